//! The access log: one line for each request when its reply, stream or WebSocket is over, as an event of `tracing`
//! with its own target.
//!
//! Owns the contents of a line; `samples` decides which of many similar requests get one. When the log is off, a
//! request costs a look at a flag, and a page or message only a look at a missing pointer.

mod line;
mod samples;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use anemone_hub::Position;
use anemone_wire::Token;
use anemone_ws::Memory;
use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};

pub use self::line::ACCESS_TARGET;
use self::line::{AccessedRequest, Line, Reached, ReadTopics, RequestOutcome};
pub(crate) use self::line::{AnswerKind, CLIENT_GONE, SERVER_STOPPED};
use self::samples::Samples;
use crate::reply::body::{Body, pieces};
use crate::request::own_path::in_log;

/// The most characters of each text in a line: of a path, of topics, of their places, and of a method.
const PATH_CHARS_MAX: usize = 256;
const METHOD_CHARS_MAX: usize = 32;

/// The memory of a line until it is written, besides its texts.
const LINE_BYTES: usize = 384;

/// The requests that get a line in the access log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AccessLog {
    /// None. There are many requests, and their lines reveal who was there.
    #[default]
    Off,
    /// All, except that similar polls and refusals of a client get one line a minute with their number, and a client
    /// gets at most 600 lines a minute.
    Sampled,
    /// All.
    All,
}

#[derive(Debug)]
pub(crate) struct Accesses {
    which: AccessLog,
    samples: Mutex<Samples>,
    is_stopping: AtomicBool,
    memory: Memory,
}

impl Accesses {
    pub(crate) fn new(which: AccessLog, memory: &Memory) -> Self {
        let (samples, is_stopping) = Default::default();
        Self { which, samples, is_stopping, memory: memory.clone() }
    }

    /// Records that the server stops, which is the reason for requests cut from now on.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_lines(&self) -> bool {
        self.which != AccessLog::Off
    }

    /// Begins the line of a request, of this client if it is known.
    pub(crate) fn begin(
        self: &Arc<Self>,
        client: Option<SocketAddr>,
        method: &str,
        path: &str,
    ) -> AccessLine {
        tracing::debug!(client = client.map(display), method, path = &*in_log(path), "request");
        if self.which == AccessLog::Off
            || !tracing::enabled!(target: ACCESS_TARGET, tracing::Level::INFO)
        {
            return AccessLine(None);
        }
        let (method, path) =
            (start(method, METHOD_CHARS_MAX), start(&in_log(path), PATH_CHARS_MAX));
        let held = self.memory.reserve(LINE_BYTES + method.len() + path.len());
        AccessLine(Some(Arc::new(Draft {
            log: Arc::clone(self),
            begun: Instant::now(),
            request: Arc::new(AccessedRequest { client, method, path, _held: held }),
            outcome: Mutex::default(),
        })))
    }

    /// Writes a line and those that are due, unless it is one of many similar ones.
    fn finish(&self, line: Line) {
        if self.which == AccessLog::All {
            return line.write(0);
        }
        let due = self.samples().take(line, Instant::now());
        due.into_iter().for_each(|(line, repeats)| line.write(repeats));
    }

    /// Writes the lines of requests that had none yet.
    pub(crate) fn flush(&self) {
        let left = self.samples().take_all();
        left.into_iter().for_each(|(line, repeats)| line.write(repeats));
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the beginning of a text, with an ellipsis if that is not all.
fn start(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A future line of the access log, if there will be one. It is written when its last clone is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessLine(Option<Arc<Draft>>);

#[derive(Debug)]
struct Draft {
    log: Arc<Accesses>,
    begun: Instant,
    request: Arc<AccessedRequest>,
    outcome: Mutex<RequestOutcome>,
}

impl AccessLine {
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn set_answer(&self, answer: AnswerKind) {
        self.change(|outcome| outcome.answer = answer);
    }

    pub(crate) fn set_status(&self, status: u16) {
        self.change(|outcome| outcome.status = Some(status));
    }

    pub(crate) fn set_topics(&self, topics: impl FnOnce() -> String) {
        if let Some(draft) = &self.0 {
            let text = start(&topics(), PATH_CHARS_MAX);
            let held = draft.log.memory.reserve(text.len());
            let topics = Arc::new(ReadTopics { text, _held: held });
            self.change(|outcome| outcome.topics = Some(topics));
        }
    }

    pub(crate) fn count_sent(&self, bytes: usize) {
        self.change(|outcome| outcome.bytes += bytes as u64);
    }

    /// Sets the last position in the reply.
    pub(crate) fn set_position(&self, position: Position) {
        self.change(|outcome| outcome.position = Some(Reached::Position(position)));
    }

    /// Sets the places in several topics up to which the reply goes.
    pub(crate) fn set_places(&self, token: &Token) {
        self.change(|outcome| {
            let text = start(&token.to_string(), PATH_CHARS_MAX);
            outcome.position = Some(Reached::Token(text));
        });
    }

    /// Sets the reason for the end; the first one counts.
    pub(crate) fn set_end(&self, end: impl Into<Cow<'static, str>>) {
        self.change(|outcome| {
            outcome.end.get_or_insert_with(|| end.into());
        });
    }

    fn change(&self, change: impl FnOnce(&mut RequestOutcome)) {
        if let Some(draft) = &self.0 {
            change(&mut draft.outcome.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Makes the line end with this reply.
    pub(crate) fn follow(self, response: Response<Body>) -> Response<Body> {
        let Some(draft) = &self.0 else { return response };
        self.set_status(response.status().as_u16());
        // The body of such a reply is not sent.
        let is_whole = draft.request.method == "HEAD";
        response.map(|body| {
            let is_whole = is_whole || http_body::Body::is_end_stream(&body);
            pieces(LoggedBody { body, line: self, is_whole })
        })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let outcome = self.outcome.get_mut().unwrap_or_else(PoisonError::into_inner).clone();
        let outcome = outcome.finish(self.log.is_stopping.load(Ordering::Relaxed));
        let (request, duration) = (Arc::clone(&self.request), self.begun.elapsed());
        self.log.finish(Line { request, outcome, duration });
    }
}

struct LoggedBody {
    body: Body,
    line: AccessLine,
    is_whole: bool,
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => self.line.count_sent(frame.data_ref().map_or(0, Bytes::len)),
            Some(Err(error)) => self.line.set_end(format!("broken off: {error}")),
            None => {}
        }
        self.is_whole = frame.is_none() || self.body.is_end_stream();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for LoggedBody {
    fn drop(&mut self) {
        if !self.is_whole {
            self.line.set_end(CLIENT_GONE);
        }
    }
}
