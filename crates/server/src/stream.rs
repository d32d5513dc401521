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
use crate::read::reader::{Page, Reader, in_log};
use crate::reply::body::{self, Body, STREAM_CACHING};
use crate::site::Site;
use crate::stop::Stop;
use crate::transport_name::TransportName;

/// Answers with the stream; without `after`, of future events. `append` appends an item.
pub(crate) fn answer(
    read: &ReadRequest,
    transport: TransportName,
    content_type: &'static str,
    stop: Stop,
    append: impl Fn(&Item<'_>, &mut String) + Send + 'static,
) -> Result<Response<Body>, Problem> {
    let reply = EndlessReply::new(read.open_stream(transport)?, Instant::now());
    let (limits, site) = (&read.site.limits, Arc::clone(&read.site));
    let (heartbeat, probe) = (limits.heartbeat, limits.write_timeout);
    let kind = (transport, read.protocol());
    let state = InTask { reply, heartbeat, probe, stop, append, site, kind, why: CLIENT_GONE };
    let memory = read.site.memory.clone();
    let pieces = stream::unfold((state, memory), |(mut state, memory)| async move {
        let piece = counted(&memory, state.next().await?);
        Some((piece, (state, memory)))
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
struct InTask<F> {
    reply: EndlessReply,
    heartbeat: Duration,
    /// The longest time between heartbeats to a client that has ended its side.
    probe: Duration,
    stop: Stop,
    append: F,
    site: Arc<Site>,
    kind: (TransportName, WireProtocol),
    /// The reason for its end: that its client has left, until another one is known.
    why: &'static str,
}

impl<F> Drop for InTask<F> {
    fn drop(&mut self) {
        let reader = self.reply.reader();
        let described = Described::new(reader.client(), self.kind, None);
        let cause = Cause::of_stream(self.why);
        self.site.closed.add(&described.reading(reader.describe()), reader.since(), cause);
    }
}

impl<F: Fn(&Item<'_>, &mut String)> InTask<F> {
    /// Returns the next piece; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            let has_page = self.wait().await;
            let read = |reader: &mut Reader| has_page.then(|| reader.read()).transpose();
            return match self.reply.poll(Instant::now(), self.heartbeat, read) {
                EndlessPart::Page(page) => Some(text(&page, &self.append)),
                EndlessPart::Item(item) => Some(one(&item, &self.append)),
                EndlessPart::Ended(item) => {
                    self.why = in_log(&EndReason::Ended);
                    Some(one(&item, &self.append))
                }
                EndlessPart::Nothing => continue,
                EndlessPart::Failed { notice, problem } => {
                    self.why = end_in_log(&problem);
                    cut(&self.reply, notice.as_ref(), &problem, &self.site.refusals);
                    notice.map(|item| one(&item, &self.append))
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

fn one(item: &Item<'_>, append: impl Fn(&Item<'_>, &mut String)) -> String {
    let mut text = String::new();
    append(item, &mut text);
    text
}

fn text(page: &Page, append: impl Fn(&Item<'_>, &mut String)) -> String {
    let mut text = String::with_capacity(page.text_bytes());
    page.items().for_each(|item| append(&item, &mut text));
    text
}
