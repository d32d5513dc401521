//! A reply without end: what a reader comes by, from its position on. SSE, NDJSON and the forever-frame are
//! forms of it.
//!
//! Owns the order of things (where it begins, notices before the events after them), heartbeats, and the end when
//! the topic ends or the server stops. A form says what each item looks like. `in_loop` has the same for the
//! connections that begin with such a request, without the HTTP server.

pub(crate) mod in_loop;

use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Position;
use futures_util::stream;
use http::{HeaderValue, Response, header};
use tokio::time::timeout;

use crate::Problem;
use crate::clients::access::{CLIENT_GONE, SERVER_STOPPED};
use crate::clients::refusals::{Asked, Refusals};
use crate::exchange::read_request::ReadRequest;
use crate::memory::counted;
use crate::read::reader::{EndReason, Item, Page, Reader};
use crate::reply::body::{self, Body};
use crate::stop::Stop;
use crate::transport_name::TransportName;

/// Answers with the stream. Without `after`, it is what comes from now on. `append` appends an item.
pub(crate) fn answer(
    read: &ReadRequest,
    transport: TransportName,
    content_type: &'static str,
    stop: Stop,
    append: impl Fn(&Item<'_>, &mut String) + Send + 'static,
) -> Result<Response<Body>, Problem> {
    let (reader, refusals) = (read.open_stream(transport)?, Arc::clone(&read.refusals));
    let heartbeat = read.heartbeat;
    let state = Stream { reader, heartbeat, stop, form: append, phase: Phase::New, refusals };
    let memory = read.memory.clone();
    let pieces = stream::unfold((state, memory), |(mut state, memory)| async move {
        let piece = state.next().await?;
        Some((counted(&memory, piece), (state, memory)))
    });
    Ok(response(content_type, body::stream(pieces)))
}

fn response(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx, and what follows its example, would hold back what is to be seen at once.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// One reader's stream. A piece is made when the one before has been written, from wherever the
/// log is by then: a slow reader is only a position.
struct Stream<F> {
    reader: Reader,
    heartbeat: Duration,
    stop: Stop,
    form: F,
    phase: Phase,
    refusals: Arc<Refusals>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Nothing has been said.
    New,
    Open,
    /// The client has ended its side: what there is up to here is the last.
    Ending(Position),
    /// Everything has been said.
    Over,
}

impl<F: Fn(&Item<'_>, &mut String)> Stream<F> {
    /// The next piece; `None` when there is none any more.
    async fn next(&mut self) -> Option<String> {
        match self.phase {
            Phase::New => {
                self.phase = Phase::Open;
                Some(self.one(&Item::Begin(self.reader.position())))
            }
            Phase::Open => tokio::select! {
                ready = timeout(self.heartbeat, self.reader.ready()) => match ready {
                    Ok(()) => self.page(),
                    Err(_) => Some(self.one(&Item::Quiet(self.reader.position()))),
                },
                () = self.stop.over() => {
                    let is_stopping = self.stop.is_stopping();
                    let end = if is_stopping { SERVER_STOPPED } else { CLIENT_GONE };
                    self.reader.access().ended(end);
                    self.phase = match is_stopping {
                        true => Phase::Over,
                        false => Phase::Ending(self.reader.end_by_now()),
                    };
                    self.rest()
                }
            },
            Phase::Ending(_) => self.rest(),
            Phase::Over => None,
        }
    }

    /// The events that there were when the client ended its side, a page at a time.
    fn rest(&mut self) -> Option<String> {
        match self.phase {
            Phase::Ending(end) if !self.reader.has_reached(end) => self.page(),
            _ => None,
        }
    }

    fn page(&mut self) -> Option<String> {
        match self.reader.read() {
            Ok(page) => Some(text(&page, &self.form)),
            Err(problem) => {
                self.phase = Phase::Over;
                let path = format!("/topics/{}", self.reader.topic().name());
                let asked = Asked::request(self.reader.client(), "GET", &path);
                self.refusals.note(&problem, asked);
                match EndReason::of(&problem) {
                    Some(reason) => {
                        self.reader.access().ended(reason.in_log());
                        Some(self.one(&Item::End(reason)))
                    }
                    None => {
                        self.reader.access().ended(problem.kind().name());
                        tracing::warn!(problem = problem.to_json(), "a stream was cut off");
                        None
                    }
                }
            }
        }
    }

    fn one(&self, item: &Item<'_>) -> String {
        let mut piece = String::new();
        (self.form)(item, &mut piece);
        piece
    }
}

/// The text of a page.
fn text(page: &Page, form: impl Fn(&Item<'_>, &mut String)) -> String {
    let data_bytes: usize = page.events.iter().map(|event| event.data.bytes().len() + 64).sum();
    let mut text = String::with_capacity(data_bytes + 128);
    page.items().for_each(|item| form(&item, &mut text));
    text
}
