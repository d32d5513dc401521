//! An endless reply with the events of a reader. SSE, NDJSON and the forever-frame are encodings of it.
//!
//! `endless` owns the order of its parts. Here, a task carries it as the body of a reply of the HTTP server.
//! `in_loop` carries it for connections that begin with such a request, without the HTTP server, and `in_web_socket` in
//! messages.

mod endless;
pub(crate) mod in_loop;
pub(crate) mod in_web_socket;
pub(crate) mod many;

use std::sync::Arc;
use std::time::Duration;

use anemone_wire::{EndReason, Item};
use anemone_ws::Memory;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response};
use tokio::time::{Instant, timeout_at};

pub(crate) use self::endless::{EndlessPart, EndlessReply};
use crate::Problem;
use crate::clients::access::{CLIENT_GONE, SERVER_STOPPED};
use crate::clients::connections::closed::Cause;
use crate::clients::connections::described::{Described, WireProtocol};
use crate::clients::refusals::Refusals;
use crate::exchange::read_request::ReadRequest;
use crate::memory::counted;
use crate::read::pages::{ItemEncoding, TopicPages, text};
use crate::read::reader::{ReadEnd, Reader, in_log};
use crate::reply::body::{self, Body, STREAM_CACHING};
use crate::site::Site;
use crate::stop::Stop;
use crate::transport_name::TransportName;

/// The encoding of a reply that a task makes.
pub(crate) enum TextEncoding {
    /// One that readers at the same place share.
    Shared(&'static ItemEncoding),
    /// One of this reply alone.
    Own(Append),
}

/// Appends an item.
type Append = Box<dyn Fn(&Item<'_>, &mut String) + Send>;

/// Answers with the stream; without `after`, of future events.
pub(crate) fn answer(
    read: &ReadRequest,
    transport: TransportName,
    content_type: &'static str,
    stop: Stop,
    encoding: TextEncoding,
) -> Result<Response<Body>, Problem> {
    let reply = EndlessReply::new(read.open_stream(transport)?, Instant::now());
    let pages = read.pages(reply.reader().topic());
    let (limits, site) = (&read.site.limits, Arc::clone(&read.site));
    let (heartbeat, probe) = (limits.heartbeat, limits.write_timeout);
    let kind = (transport, read.protocol());
    let why = CLIENT_GONE;
    let state = InTask { reply, pages, heartbeat, probe, stop, encoding, site, kind, why };
    let pieces = stream::unfold(state, |mut state| async move {
        let piece = state.next().await?;
        Some((piece, state))
    });
    Ok(response(content_type, body::stream(pieces)))
}

fn response(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = body::reply(content_type, STREAM_CACHING, body);
    // Tells nginx and similar proxies not to buffer the stream.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A reply that a task makes. Each piece is made when the one before was written, from the current log: a slow reader
/// is only a position.
struct InTask {
    reply: EndlessReply,
    pages: Arc<TopicPages>,
    heartbeat: Duration,
    /// The longest time between heartbeats to a client that has ended its side.
    probe: Duration,
    stop: Stop,
    encoding: TextEncoding,
    site: Arc<Site>,
    kind: (TransportName, WireProtocol),
    /// The reason for its end: that its client has left, until another one is known.
    why: &'static str,
}

impl Drop for InTask {
    fn drop(&mut self) {
        let reader = self.reply.reader();
        let described = Described::new(reader.client(), self.kind, None);
        let cause = Cause::of_stream(self.why);
        self.site.closed.add(&described.reading(reader.describe()), reader.since(), cause);
    }
}

impl InTask {
    /// Returns the next piece; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let has_page = self.wait().await;
            let (pages, encoding, memory) = (&self.pages, &self.encoding, &self.site.memory);
            let read = |reader: &mut Reader| match has_page {
                true => encoding.read(reader, pages, memory),
                false => Ok(None),
            };
            return match self.reply.poll(Instant::now(), self.heartbeat, read) {
                EndlessPart::Page(text) => Some(text),
                EndlessPart::Item(item) => Some(encoding.one(&item)),
                EndlessPart::Ended(item) => {
                    self.why = in_log(&EndReason::Ended);
                    Some(self.encoding.one(&item))
                }
                EndlessPart::Nothing => {
                    if !self.reply.is_open() {
                        // The log has more than its readers were told of yet.
                        self.reply.ready().await;
                    }
                    continue;
                }
                EndlessPart::Failed { notice, problem } => {
                    self.why = end_in_log(&problem);
                    cut(&self.reply, notice.as_ref(), &problem, &self.site.refusals);
                    notice.map(|item| self.encoding.one(&item))
                }
                EndlessPart::Over => None,
            };
        }
    }

    /// Waits until there is something to send, or the end. Returns true if that may be a page.
    async fn wait(&mut self) -> bool {
        if !self.reply.is_open() {
            return true;
        }
        let (due, is_half_closed) = (self.reply.due(self.heartbeat), self.reply.is_half_closed());
        let stop = &mut self.stop;
        let interrupted =
            async { if is_half_closed { stop.lost().await } else { stop.interrupted().await } };
        tokio::select! {
            ready = timeout_at(due, self.reply.ready()) => return ready.is_ok(),
            () = interrupted => {}
        }
        if self.stop.is_stopping() && self.reply.reader().readable().is_run() {
            // It was cancelled before, and its watchers see that.
            self.reply.finish();
        } else if self.stop.is_stopping() {
            self.why = SERVER_STOPPED;
            self.reply.end(SERVER_STOPPED);
        } else if is_half_closed {
            self.reply.end(CLIENT_GONE);
        } else {
            if !self.reply.reader().readable().is_started() {
                self.reply.reader().access().set_end(CLIENT_GONE);
            }
            self.reply.half_close(self.probe);
        }
        true
    }
}

impl TextEncoding {
    /// Returns the text of the reader's next page; `None` when everything was read.
    fn read(
        &self,
        reader: &mut Reader,
        pages: &TopicPages,
        memory: &Memory,
    ) -> Result<Option<Bytes>, ReadEnd> {
        let append = match self {
            Self::Shared(encoding) => {
                let page = pages.read(reader, encoding)?;
                return Ok(page.map(|page| page.encoded.text().clone()));
            }
            Self::Own(append) => append,
        };
        let page = reader.is_behind().then(|| reader.read()).transpose()?;
        Ok(page.map(|page| counted(memory, text(&page, append))))
    }

    fn one(&self, item: &Item<'_>) -> Bytes {
        match self {
            Self::Shared(encoding) => encoding.one(item).into(),
            Self::Own(append) => {
                let mut text = String::new();
                append(item, &mut text);
                text.into()
            }
        }
    }
}

/// Logs why a reply is cut.
fn cut(reply: &EndlessReply, notice: Option<&Item<'_>>, problem: &Problem, refusals: &Refusals) {
    reply.note(problem, refusals);
    if notice.is_none() {
        reply.reader().access().set_end(problem.kind().name());
        tracing::warn!(problem = problem.to_json(), "a stream was cut off");
    }
}

fn end_in_log(problem: &Problem) -> &'static str {
    problem.end_reason().map_or(problem.kind().name(), |reason| in_log(&reason))
}
