//! Calls over HTTP/1.1. Each open call has a connection of its own, which is kept for a later call.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyper::body::Incoming;

use super::lines::Lines;
use super::reply::Head;
use crate::Error;
use crate::address::Address;
use crate::error::Foreign;
use crate::http::{Ask, Http};
use crate::options::Options;
use crate::sent::Sent;

/// The most idle connections that are kept.
const IDLE_MAX: usize = 8;

pub(super) struct HttpCalls {
    address: Arc<Address>,
    options: Arc<Options>,
    idle: Mutex<Vec<Http>>,
}

/// The body of a reply, with its connection.
pub(super) struct HttpBody {
    calls: Arc<HttpCalls>,
    http: Option<Http>,
    body: Incoming,
    /// The items of a stream; `None` for any other body.
    lines: Option<Lines>,
}

impl HttpCalls {
    pub(super) fn new(address: Arc<Address>, options: Arc<Options>) -> Self {
        Self { address, options, idle: Mutex::default() }
    }

    /// Makes a call. Returns the beginning of its reply; a refusal is an error.
    pub(super) async fn open(
        self: Arc<Self>,
        ask: &Ask,
        sent: &Sent,
    ) -> Result<(Head, HttpBody), Error> {
        let ask = Ask { target: self.address.join(&ask.target), ..ask.clone() };
        let mut http = self.take();
        let response = http.send_once(&ask, sent).await.map_err(as_not_http)?;
        let status = response.status();
        if !(status.is_success() || status == http::StatusCode::NOT_MODIFIED) {
            let error = http.read_refusal(response).await;
            self.keep(http);
            return Err(error);
        }
        let (parts, body) = response.into_parts();
        let head = Head { status: status.as_u16(), fields: parts.headers };
        let lines = head.is_stream().then(|| Lines::new(self.options.limits.event_bytes_max));
        Ok((head, HttpBody { calls: self, http: Some(http), body, lines }))
    }

    fn take(&self) -> Http {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Http::new(Arc::clone(&self.address), Arc::clone(&self.options)))
    }

    fn keep(&self, http: Http) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if http.is_open() && idle.len() < IDLE_MAX {
            idle.push(http);
        }
    }
}

/// Converts the error of an exchange that failed because the answer is not HTTP.
fn as_not_http(error: Error) -> Error {
    match error {
        Error::Http(error) if error.is_parse() && !error.is_parse_too_large() => {
            Foreign::NotHttp(error).into()
        }
        error => error,
    }
}

impl HttpBody {
    /// Returns the next item of a stream, or the next part of any other body; `None` at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(line) = self.lines.as_mut().map(Lines::next).transpose()?.flatten() {
                return Ok(Some(line));
            }
            let Some(http) = &mut self.http else { return Ok(None) };
            match (http.piece(&mut self.body).await?, &mut self.lines) {
                (Some(piece), None) => return Ok(Some(piece)),
                (Some(piece), Some(lines)) => lines.feed(&piece),
                (None, lines) => {
                    self.http.take().into_iter().for_each(|http| self.calls.keep(http));
                    return Ok(lines.as_mut().and_then(Lines::last));
                }
            }
        }
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody").field("lines", &self.lines).finish_non_exhaustive()
    }
}
