//! The contents of a line of the access log.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Position;
use anemone_ws::Reservation;

use crate::clients::readers::in_words;
use crate::source::Source;
use crate::transport_name::TransportName;

/// The target of the access log's events, which have level info. The event at the beginning of a request has level
/// debug and no special target.
pub const ACCESS_TARGET: &str = "anemone::access";

#[derive(Debug)]
pub(super) struct AccessedRequest {
    pub(super) client: Option<SocketAddr>,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) _held: Reservation,
}

impl AccessedRequest {
    pub(super) fn source(&self) -> Option<Source> {
        self.client.map(|client| Source::of(client.ip()))
    }
}

/// The topics of a reader of several, as names and patterns.
#[derive(Debug)]
pub(super) struct ReadTopics {
    pub(super) text: String,
    pub(super) _held: Reservation,
}

/// The place that a request has reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Reached {
    Position(Position),
    /// The token of several topics, maybe cut.
    Token(String),
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(position) => position.fmt(f),
            Self::Token(token) => f.write_str(token),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct RequestOutcome {
    /// `None` until there is a reply.
    pub(super) status: Option<u16>,
    pub(super) answer: AnswerKind,
    /// `None` unless it reads several.
    pub(super) topics: Option<Arc<ReadTopics>>,
    pub(super) bytes: u64,
    pub(super) position: Option<Reached>,
    pub(super) end: Option<Cow<'static, str>>,
}

impl RequestOutcome {
    /// Returns the final outcome. A request that was dropped before its reply got no position.
    pub(super) fn finish(self, is_stopping: bool) -> Self {
        if self.status.is_some() {
            return self;
        }
        let given_up = if is_stopping { SERVER_STOPPED } else { CLIENT_GONE };
        Self { position: None, end: Some(self.end.unwrap_or(Cow::Borrowed(given_up))), ..self }
    }
}

/// The end of a request whose client closed its side, lost the connection, or took no output for too long.
pub(crate) const CLIENT_GONE: &str = "client gone";
pub(crate) const SERVER_STOPPED: &str = "server stopped";

/// The kind of an answer, which is the transport in a line.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) enum AnswerKind {
    /// A reply that is not a page of a topic, or not known yet.
    #[default]
    Http,
    /// A page of a topic, at once or after a wait.
    Page(TransportName),
    /// A stream or a WebSocket.
    Stream(TransportName),
}

impl AnswerKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Page(transport) | Self::Stream(transport) => transport.as_str(),
        }
    }

    pub(super) const fn is_poll(self) -> bool {
        matches!(self, Self::Page(_))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) request: Arc<AccessedRequest>,
    pub(super) outcome: RequestOutcome,
    pub(super) duration: Duration,
}

impl Line {
    /// Writes the line. `repeats` is the number of similar requests without a line since the last one.
    pub(super) fn write(&self, repeats: u64) {
        let Self { request, outcome, duration } = self;
        let client = request.client.map(in_words);
        tracing::info!(
            target: ACCESS_TARGET,
            method = request.method,
            path = request.path,
            topics = outcome.topics.as_ref().map(|topics| &*topics.text),
            status = outcome.status,
            transport = %outcome.answer.as_str(),
            client = client.as_ref().map(display),
            bytes = outcome.bytes,
            duration_ms = duration.as_micros() as f64 / 1000.0,
            position = outcome.position.as_ref().map(display),
            end = outcome.end.as_deref(),
            repeats = (repeats > 0).then_some(repeats),
            "request"
        );
    }
}

#[cfg(test)]
mod tests {
    use anemone_hub::Epoch;

    use super::*;

    #[test]
    fn a_request_that_is_given_up_before_its_reply_was_told_no_position_and_says_who_gave_it_up() {
        let position = Reached::Position(Position { epoch: Epoch::from_bits(9), offset: 3 });
        let over = |status, end: Option<&'static str>, is_stopping| {
            let outcome = RequestOutcome {
                status,
                position: Some(position.clone()),
                end: end.map(Cow::Borrowed),
                ..RequestOutcome::default()
            };
            let RequestOutcome { status, position, end, .. } = outcome.finish(is_stopping);
            (status, position, end.map(Cow::into_owned))
        };
        for (end, is_stopping, expected) in [
            (None, false, "client gone"),
            (None, true, "server stopped"),
            (Some("connection closed"), false, "connection closed"),
        ] {
            assert_eq!(over(None, end, is_stopping), (None, None, Some(expected.to_owned())));
        }
        assert_eq!(over(Some(200), None, true), (Some(200), Some(position.clone()), None));
    }
}
