//! The access log: a line for each request once its reply, its stream or its WebSocket is over, as an event of `tracing`
//! with a target of its own.
//!
//! Owns what a line says; `samples` decides which of many that are alike have one. Where it is off, a request costs a look at a flag, and
//! a page or message nothing but a look at a pointer that is not there.

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
use anemone_ws::Memory;
use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

pub use self::line::ACCESS_TARGET;
use self::line::{AccessedRequest, Line, RequestOutcome};
pub(crate) use self::line::{AnswerKind, CLIENT_GONE, SERVER_STOPPED};
use self::samples::Samples;
use crate::reply::body::Body;

/// As much is told of a path, and of a method.
const PATH_CHARS_MAX: usize = 256;
const METHOD_CHARS_MAX: usize = 32;

/// What a line takes until it is written, beside its words.
const LINE_BYTES: usize = 384;

/// The requests that the access log tells of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AccessLog {
    /// None. They are many, and say who was there.
    #[default]
    Off,
    /// All but most polls and refusals: of those of a client that end alike, one a minute, with how many there were; and
    /// no more than 600 of a client a minute.
    Sampled,
    /// All.
    All,
}

/// The access log of a server.
#[derive(Debug)]
pub(crate) struct Accesses {
    which: AccessLog,
    samples: Mutex<Samples>,
    is_stopping: AtomicBool,
    /// What lines take counts there.
    memory: Memory,
}

impl Accesses {
    pub(crate) fn new(which: AccessLog, memory: &Memory) -> Self {
        let (samples, is_stopping) = Default::default();
        Self { which, samples, is_stopping, memory: memory.clone() }
    }

    /// The server stops: that is why requests are cut from now on.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// A request has come, of this client if that is known.
    pub(crate) fn begin(
        self: &Arc<Self>,
        client: Option<SocketAddr>,
        method: &str,
        path: &str,
    ) -> AccessLine {
        tracing::debug!(client = client.map(display), method, path, "request");
        if self.which == AccessLog::Off
            || !tracing::enabled!(target: ACCESS_TARGET, tracing::Level::INFO)
        {
            return AccessLine(None);
        }
        let (method, path) = (start(method, METHOD_CHARS_MAX), start(path, PATH_CHARS_MAX));
        let held = self.memory.reserve(LINE_BYTES + method.len() + path.len());
        AccessLine(Some(Arc::new(Draft {
            log: Arc::clone(self),
            begun: Instant::now(),
            request: Arc::new(AccessedRequest { client, method, path, _held: held }),
            outcome: Mutex::default(),
        })))
    }

    /// Writes the line, and those that are due, unless it is one of many that are alike.
    fn finish(&self, line: Line) {
        if self.which == AccessLog::All {
            return line.write(0);
        }
        let due = self.samples().take(line, Instant::now());
        due.into_iter().for_each(|(line, repeats)| line.write(repeats));
    }

    /// Writes what is known of requests that had no line yet.
    pub(crate) fn flush(&self) {
        let left = self.samples().take_all();
        left.into_iter().for_each(|(line, repeats)| line.write(repeats));
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of a text, with an ellipsis where that is not all.
fn start(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A line of the access log to be, if there is one. It is written once its last clone is dropped.
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
    /// Whether there is one.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// By what it is answered.
    pub(crate) fn by(&self, answer: AnswerKind) {
        self.change(|outcome| outcome.answer = answer);
    }

    pub(crate) fn status(&self, status: u16) {
        self.change(|outcome| outcome.status = Some(status));
    }

    /// So much more of its reply was made.
    pub(crate) fn sent(&self, bytes: usize) {
        self.change(|outcome| outcome.bytes += bytes as u64);
    }

    /// Its reply goes as far as here.
    pub(crate) fn reached(&self, position: Position) {
        self.change(|outcome| outcome.position = Some(position));
    }

    /// Why it is over. What is said first counts.
    pub(crate) fn ended(&self, end: impl Into<Cow<'static, str>>) {
        self.change(|outcome| {
            outcome.end.get_or_insert_with(|| end.into());
        });
    }

    fn change(&self, change: impl FnOnce(&mut RequestOutcome)) {
        if let Some(draft) = &self.0 {
            change(&mut draft.outcome.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Has the line written once this reply is.
    pub(crate) fn follow(self, response: Response<Body>) -> Response<Body> {
        let Some(draft) = &self.0 else { return response };
        self.status(response.status().as_u16());
        // The body of such a reply is not sent.
        let is_whole = draft.request.method == "HEAD";
        response.map(|body| {
            let is_whole = is_whole || http_body::Body::is_end_stream(&body);
            Followed { body, line: self, is_whole }.boxed_unsync()
        })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let outcome = self.outcome.get_mut().unwrap_or_else(PoisonError::into_inner).clone();
        let outcome = outcome.over(self.log.is_stopping.load(Ordering::Relaxed));
        let (request, duration) = (Arc::clone(&self.request), self.begun.elapsed());
        self.log.finish(Line { request, outcome, duration });
    }
}

/// A body whose bytes are counted.
struct Followed {
    body: Body,
    line: AccessLine,
    is_whole: bool,
}

impl http_body::Body for Followed {
    type Data = Bytes;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => self.line.sent(frame.data_ref().map_or(0, Bytes::len)),
            Some(Err(error)) => self.line.ended(format!("broken off: {error}")),
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

impl Drop for Followed {
    fn drop(&mut self) {
        if !self.is_whole {
            self.line.ended(CLIENT_GONE);
        }
    }
}
