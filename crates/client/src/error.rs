//! The errors of this crate, and the distinction between permanent errors and others.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anemone_wire::multiplexed::Reply;
use anemone_wire::problem::Kind;
use anemone_ws::{ConnectError, Lost, Step, rustls};

use crate::address::{Address, UrlError};
use crate::problem::RunProblem;
use crate::refused::Refused;
use crate::text::shown;
use crate::{Hole, Malformed};

/// An error of connecting, reading, publishing or calling.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL is not valid for this use.
    #[error("URL is not valid")]
    Url(#[from] UrlError),
    /// A header field's name or value has characters that are not allowed.
    #[error("header field {name} has a character that is not allowed")]
    HeaderInvalid {
        /// The name of the field; its value may be secret.
        name: String,
    },
    /// A header field that this crate sets itself.
    #[error("header field {name} cannot be set")]
    HeaderReserved {
        /// The name of the field.
        name: String,
    },
    /// The idempotency key is not 1 to 128 visible ASCII characters.
    #[error("an idempotency key has 1 to 128 visible ASCII characters")]
    KeyInvalid,
    /// The text to publish is not UTF-8.
    #[error("text is not UTF-8")]
    NotText,
    /// The connection could not be opened.
    #[error(transparent)]
    Connect(ConnectError),
    /// The server, or a proxy before it, refused the request.
    #[error("server answered {0}")]
    Refused(Box<Refused>),
    /// The other end is not an Anemone server.
    #[error("not an Anemone server")]
    Foreign(#[from] Foreign),
    /// The URL is not that of a topic, and the server has no topic at that path.
    #[error("this URL is not a topic's; a topic's looks like {example}")]
    NoTopic {
        /// An example of a topic's URL.
        example: String,
    },
    /// The server sent something invalid.
    #[error("server sent something that is not valid")]
    Malformed(#[from] Malformed),
    /// Events are missing, and the server did not report a gap.
    #[error(transparent)]
    Hole(#[from] Hole),
    /// The server names more topics than are allowed.
    #[error("the patterns match more than {limit} topics")]
    TooManyTopics {
        /// [`Limits::topics_max`](crate::Limits::topics_max).
        limit: usize,
    },
    /// An HTTP exchange failed.
    #[error("HTTP exchange failed")]
    Http(#[from] hyper::Error),
    /// A stream failed.
    #[error("connection failed")]
    Io(#[from] std::io::Error),
    /// A WebSocket failed.
    #[error("WebSocket failed")]
    WebSocket(#[from] anemone_ws::Error),
    /// The server closed the WebSocket.
    #[error("server closed with {}", close(*code, reason))]
    Closed {
        /// The close code, if there was one.
        code: Option<u16>,
        /// The server's reason; may be empty.
        reason: String,
    },
    /// The server ended the stream.
    #[error("server ended the stream")]
    Ended,
    /// The server sent nothing after the connection was open.
    #[error("no answer within {limit:?}")]
    Unanswered {
        /// [`Timeouts::answer`](crate::Timeouts::answer).
        limit: Duration,
    },
    /// The connection was silent for too long: not even a heartbeat arrived.
    #[error("nothing arrived for {limit:?}")]
    Stalled {
        /// [`Timeouts::stall`](crate::Timeouts::stall).
        limit: Duration,
    },
    /// The method of a call is not 1 to 16 capital letters.
    #[error("a method has 1 to 16 capital letters, such as GET or POST")]
    MethodInvalid,
    /// Only a `POST` starts a run.
    #[error("a run is started by POST")]
    NotPost,
    /// A multiplexed request cannot have this header field.
    #[error("header field {name} cannot be sent with a multiplexed request")]
    HeaderNotMultiplexed {
        /// The name of the field.
        name: String,
    },
    /// The connection that the call shared with others has ended.
    #[error(transparent)]
    Shared(Arc<Self>),
    /// The run has failed.
    #[error("the run has failed{}", problem.as_deref().map(RunProblem::reason).unwrap_or_default())]
    RunFailed {
        /// The problem, if the server named it.
        problem: Option<Box<RunProblem>>,
    },
    /// The run was cancelled.
    #[error("the run was cancelled")]
    RunCancelled,
    /// No answer came to a call, so the call may have been carried out or not. The call is not safe to repeat, or was
    /// repeated too often.
    #[error("the request may or may not have been carried out")]
    Uncertain(#[source] Box<Self>),
}

fn close(code: Option<u16>, reason: &str) -> String {
    let code = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
    if reason.is_empty() { code } else { format!("{code}: {}", shown(reason)) }
}

/// A sign that the other end is not an Anemone server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Foreign {
    /// A success with an unexpected content type.
    #[error("its answer is {found}, not {expected}")]
    ContentType {
        /// The `Content-Type`, or a note that there is none.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The server does not support the subprotocol.
    #[error("its WebSocket does not speak {expected}")]
    Subprotocol {
        /// The subprotocol.
        expected: &'static str,
    },
    /// The server answered a request to start a run, but started none.
    #[error("it answered {status} and started no run")]
    NoRun {
        /// The HTTP status.
        status: u16,
    },
    /// The answer is not HTTP.
    #[error("its answer is not HTTP; if this is the TCP port of a server (--tcp), use tcp://")]
    NotHttp(#[source] hyper::Error),
    /// The answer over bare TCP is HTTP.
    #[error("it answers with HTTP: use http://")]
    Http,
    /// Nothing that the server sent was understood.
    #[error("its first message is not understood")]
    Content(#[source] Malformed),
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Refused(refusal) => {
                Self::Refused(Box::new(Refused::of_handshake(&refusal, SystemTime::now())))
            }
            ConnectError::Redirected { status, location } => {
                Self::Refused(Box::new(Refused::of_redirect(status, location)))
            }
            error => Self::Connect(error),
        }
    }
}

impl Error {
    /// Creates the error for a multiplexed request from its final status.
    pub(crate) fn of_reply(reply: &Reply<'_>) -> Self {
        Self::Refused(Box::new(Refused::of_reply(reply)))
    }

    /// Returns true if trying again cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Url(_)
            | Self::HeaderInvalid { .. }
            | Self::HeaderReserved { .. }
            | Self::KeyInvalid
            | Self::NotText
            | Self::NoTopic { .. }
            | Self::TooManyTopics { .. }
            | Self::MethodInvalid
            | Self::NotPost
            | Self::HeaderNotMultiplexed { .. }
            | Self::RunFailed { .. }
            | Self::RunCancelled
            | Self::Foreign(_) => true,
            Self::Shared(error) => error.is_permanent(),
            Self::Uncertain(error) => error.is_permanent(),
            Self::Refused(refused) => refused.is_permanent(),
            Self::Connect(error) => is_permanent(error),
            Self::Malformed(_)
            | Self::Hole(_)
            | Self::Http(_)
            | Self::Io(_)
            | Self::WebSocket(_)
            | Self::Closed { .. }
            | Self::Ended
            | Self::Unanswered { .. }
            | Self::Stalled { .. } => false,
        }
    }

    /// Returns true if the server's certificate is not valid: it is not trusted, or belongs to another server.
    #[must_use]
    pub fn is_about_certificate(&self) -> bool {
        matches!(self, Self::Connect(error) if error.is_about_certificate())
    }

    /// Returns true if nothing listens at the address of the server.
    #[must_use]
    pub fn is_connection_refused(&self) -> bool {
        match self {
            Self::Connect(ConnectError::Stream { step: Step::Tcp, source }) => {
                source.kind() == std::io::ErrorKind::ConnectionRefused
            }
            Self::Shared(error) => error.is_connection_refused(),
            _ => false,
        }
    }

    /// Returns true if the other end is not an Anemone server.
    pub(crate) fn is_foreign(&self) -> bool {
        match self {
            Self::Foreign(_) => true,
            Self::Shared(error) => error.is_foreign(),
            _ => false,
        }
    }

    /// Returns the time to wait for which the server asked.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refused) => refused.retry_after(),
            Self::Shared(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Converts an answer from a path without topics into [`Error::NoTopic`], if the URL is not that of a topic. Such
    /// an answer is a success of another kind, or a refusal since the path is unknown or does not allow the method.
    pub(crate) fn at(self, address: &Address) -> Self {
        let is_none = match &self {
            Self::Foreign(_) => true,
            Self::Refused(refused) => {
                (200..300).contains(&refused.status())
                    || matches!(refused.kind(), Some(Kind::UnknownPath | Kind::MethodNotAllowed))
            }
            _ => false,
        };
        match address.example() {
            Some(example) if is_none && !address.has_topics() => Self::NoTopic { example },
            _ => self,
        }
    }

    /// Returns true if something that is not an Anemone server answered the handshake.
    pub(crate) fn is_of_another_server(&self) -> bool {
        match self {
            Self::Refused(refused) => refused.problem().is_none(),
            Self::Foreign(_) | Self::Connect(ConnectError::Response(_)) => true,
            _ => false,
        }
    }

    /// Returns true if the answer may come from the network instead of the server. A network that asks for a login
    /// answers with a page, a redirect, a refusal or its own certificate.
    pub(crate) fn may_be_of_network(&self) -> bool {
        match self {
            Self::Refused(refused) => refused.kind().is_none(),
            Self::Foreign(_) | Self::Connect(_) => true,
            _ => false,
        }
    }

    /// Returns true if the error may depend on the transport, so that another transport could work. `is_open` is true
    /// if the connection worked before.
    pub(crate) fn is_about_transport(&self, is_open: bool) -> bool {
        match self {
            Self::Foreign(_)
            | Self::Malformed(_)
            | Self::Stalled { .. }
            | Self::Unanswered { .. } => true,
            Self::Refused(refused) => refused.is_about_transport(),
            Self::Connect(ConnectError::Response(_)) => true,
            Self::Connect(
                ConnectError::Stream { step, .. } | ConnectError::TimedOut { step, .. },
            ) => *step == Step::Handshake,
            Self::Http(_) | Self::Io(_) | Self::Closed { .. } | Self::Ended => !is_open,
            Self::WebSocket(error) => {
                !is_open || !matches!(error, anemone_ws::Error::Lost(Lost::Ended | Lost::Io(_)))
            }
            _ => false,
        }
    }
}

fn is_permanent(error: &ConnectError) -> bool {
    match error {
        ConnectError::Url(_)
        | ConnectError::ProxyUrl(_)
        | ConnectError::SubprotocolInvalid(_)
        | ConnectError::HeaderInvalid { .. }
        | ConnectError::HeaderReserved { .. }
        | ConnectError::UnixByProxy
        | ConnectError::TlsUnavailable
        | ConnectError::ProxyResponse(_)
        | ConnectError::ProxySpoke { .. }
        | ConnectError::Response(_) => true,
        // A certificate does not become valid, but a stream that was cut may succeed.
        ConnectError::Stream { step: Step::Tls, source } => {
            source.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
                || source.kind() == std::io::ErrorKind::Other
        }
        // Neither the permissions of this process change, nor the path that it was given.
        ConnectError::Stream { step: Step::Unix, source } => matches!(
            source.kind(),
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::InvalidInput
        ),
        ConnectError::ProxyRefused(refusal) => (400..500).contains(&refusal.status()),
        _ => false,
    }
}

/// Formats an error with its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_does_not_get_better_but_a_stream_that_was_cut_may() {
        let tls =
            |source| Error::from(ConnectError::Stream { step: Step::Tls, source }).is_permanent();
        let bad = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        assert!(tls(std::io::Error::new(std::io::ErrorKind::InvalidData, bad)));
        assert!(!tls(std::io::ErrorKind::UnexpectedEof.into()));
    }

    #[test]
    fn a_network_may_answer_but_not_with_a_problem_of_ours() {
        let refused = |body: &[u8]| {
            let refused =
                Refused::new(403, &http::HeaderMap::new(), body.to_vec(), SystemTime::now());
            Error::Refused(Box::new(refused)).may_be_of_network()
        };
        assert!(refused(b"<html>") && refused(br#"{"type":"/login","title":"Log in"}"#));
        assert!(!refused(br#"{"type":"/problems/origin-refused","title":"No","status":403}"#));
        assert!(
            Error::from(Foreign::Http).may_be_of_network() && !Error::Ended.may_be_of_network()
        );
    }

    #[test]
    fn an_end_may_be_about_the_transport_before_anything_has_worked() {
        assert!(Error::Ended.is_about_transport(false) && !Error::Ended.is_about_transport(true));
    }
}
