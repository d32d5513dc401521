//! Errors, and which of them are permanent.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anemone_wire::multiplexed::Reply;
use anemone_wire::problem::{Details, Kind};
use anemone_ws::{ConnectError, Lost, Refusal, Step, rustls};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};

use crate::address::{Address, UrlError};
use crate::text::shown;
use crate::{EndReason, Hole, Malformed};

/// An error of connecting, reading, publishing or calling.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL is not a topic's.
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
        /// Its name.
        name: String,
    },
    /// An idempotency key is 1 to 128 visible characters of ASCII.
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
    /// The URL is not a topic's, and neither is the answer.
    #[error("this URL is not a topic's; a topic's looks like {example}")]
    NoTopic {
        /// An example of a topic's URL.
        example: String,
    },
    /// The server sent something invalid.
    #[error("server sent something that is not valid")]
    Malformed(#[from] Malformed),
    /// Events are missing without notice.
    #[error(transparent)]
    Hole(#[from] Hole),
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
        /// The server's reason, maybe empty.
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
    /// Not even a heartbeat arrived.
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
        /// Its name.
        name: String,
    },
    /// The connection that the call shared with others has ended.
    #[error(transparent)]
    Shared(Arc<Self>),
    /// The run has failed.
    #[error("the run has failed{}", problem.as_deref().map(RunProblem::reason).unwrap_or_default())]
    RunFailed {
        /// Why, if the server said it.
        problem: Option<Box<RunProblem>>,
    },
    /// The run was cancelled.
    #[error("the run was cancelled")]
    RunCancelled,
    /// No answer came to a call, so nobody knows whether it was carried out. It is not safe to repeat, or was repeated
    /// too often.
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
    /// A success of the wrong type.
    #[error("its answer is {found}, not {expected}")]
    ContentType {
        /// The `Content-Type`, or a note that there is none.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The WebSocket does not support the subprotocol.
    #[error("its WebSocket does not speak {expected}")]
    Subprotocol {
        /// The subprotocol.
        expected: &'static str,
    },
    /// It answered a call that starts a run as any other call.
    #[error("it answered {status} and started no run")]
    NoRun {
        /// The HTTP status.
        status: u16,
    },
    /// Nothing from the server was understood.
    #[error("its first message is not understood")]
    Content(#[source] Malformed),
}

/// A response that refuses a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    status: u16,
    problem: Option<Details<'static>>,
    retry_after: Option<Duration>,
    location: Option<String>,
    content_type: Option<String>,
    body: Bytes,
}

impl Refused {
    /// The most bytes of a problem that are read.
    pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;

    /// An answer with nothing but a status.
    fn bare(status: u16) -> Self {
        let (content_type, body) = (None, Bytes::new());
        Self { status, problem: None, retry_after: None, location: None, content_type, body }
    }

    pub(crate) fn new(
        status: u16,
        headers: &HeaderMap,
        body: impl Into<Bytes>,
        now: SystemTime,
    ) -> Self {
        let field = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let body = body.into();
        Self {
            status,
            problem: Details::parse(&body),
            retry_after: field(RETRY_AFTER).and_then(|text| retry_after(text, now)),
            location: field(LOCATION).map(str::to_owned),
            content_type: field(CONTENT_TYPE).map(str::to_owned),
            body,
        }
    }

    /// The error that a multiplexed request ends with.
    pub(crate) fn multiplexed(reply: &Reply<'_>) -> Error {
        let problem = Details::parse(reply.payload);
        Error::Refused(Box::new(Self { problem, ..Self::bare(reply.status) }))
    }

    fn of_handshake(refusal: &Refusal, now: SystemTime) -> Self {
        Self {
            problem: Details::parse(refusal.body().as_bytes()),
            retry_after: refusal.field("retry-after").and_then(|text| retry_after(text, now)),
            ..Self::bare(refusal.status())
        }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the problem's name, such as `unknown-topic`, if it came from an Anemone server and not from a proxy.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_ref().map(|problem| &*problem.name)
    }

    /// Returns the time to wait before trying again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the `Content-Type` of the body, if an HTTP response has one.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// Returns the body: a problem, or what a service or a proxy says. Empty if it is longer than 64 KiB.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Returns true if the server refused the request before it began to carry it out.
    pub(crate) fn is_declined(&self) -> bool {
        matches!(
            self.kind(),
            Some(
                Kind::Overloaded
                    | Kind::TooManyConnections
                    | Kind::TooManyRequests
                    | Kind::TooManyRuns
                    | Kind::Stopping
            )
        )
    }

    /// Returns true if the same call may succeed later. A service that was too slow once would be slow again, and one
    /// that cannot read a body (`bad-body`) could not read it again.
    pub(crate) fn is_brief(&self) -> bool {
        match self.status {
            408 | 425 | 429 | 502 | 503 => true,
            504 => self.kind() != Some(Kind::ServiceTimeout),
            _ => false,
        }
    }

    /// Returns the reason why reading has ended, if this is one. A missing topic was deleted only if it `was_there`
    /// before.
    pub(crate) fn end_reason(&self, was_there: bool) -> Option<EndReason> {
        let problem = self.problem.as_ref()?;
        match problem.kind()? {
            Kind::TopicDeleted => Some(EndReason::Deleted),
            Kind::UnknownTopic if was_there => Some(EndReason::Deleted),
            Kind::TooSlow => Some(EndReason::TooSlow { gap: problem.gap.clone() }),
            _ => None,
        }
    }

    fn kind(&self) -> Option<Kind> {
        self.problem.as_ref().and_then(Details::kind)
    }

    fn is_permanent(&self) -> bool {
        match self.status {
            408 | 425 | 429 => false,
            501 | 505 => true,
            // The network cut the body short, so the same body may arrive whole. It was not published. (The same
            // problem of a service may mean an invalid body: see `is_brief`.)
            400 if self.kind() == Some(Kind::BadBody) => false,
            // The disk may have space again later.
            status => (300..500).contains(&status),
        }
    }

    /// Returns true if another transport may get a different answer.
    fn is_about_transport(&self) -> bool {
        match (&self.problem, self.status) {
            (Some(problem), _) => {
                matches!(problem.kind(), Some(Kind::BadHandshake | Kind::NotAcceptable))
            }
            (None, 408 | 425 | 429 | 503) => false,
            (None, _) => true,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if let Some(location) = &self.location {
            write!(f, " and redirects to {}", shown(location))?;
        }
        match &self.problem {
            Some(problem) => write!(f, " {}", words(problem)),
            None => Ok(()),
        }
    }
}

/// Returns a problem in words, with the place in the input that it is about.
fn words(details: &Details<'_>) -> String {
    let words = title_and_detail(details);
    match details.pointer.as_deref().filter(|pointer| !pointer.is_empty()) {
        Some(pointer) => format!("{words} (at {})", shown(pointer)),
        None => words,
    }
}

fn title_and_detail(Details { name, title, detail, .. }: &Details<'_>) -> String {
    let begin = shown(if title.is_empty() { name } else { title });
    // A detail that begins with the title replaces it.
    let start = detail.get(..title.len()).filter(|start| !start.is_empty());
    if start.is_some_and(|start| start.eq_ignore_ascii_case(title)) {
        begin + &shown(&detail[title.len()..])
    } else if detail.is_empty() {
        begin
    } else {
        format!("{begin}: {}", shown(detail))
    }
}

/// The problem of a run that has failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunProblem(Details<'static>);

impl RunProblem {
    pub(crate) fn parse(json: &str) -> Option<Self> {
        Details::parse(json.as_bytes()).map(Self)
    }

    /// Returns the problem's name, such as `run-failed` or `run-timeout`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the end of "the run has failed": what it does not say itself.
    fn reason(&self) -> String {
        match (self.name(), self.detail()) {
            ("run-failed", "") => String::new(),
            ("run-failed", detail) => format!(": {}", shown(detail)),
            _ => format!(": {self}"),
        }
    }

    /// Returns a sentence about this failure; may be empty.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

impl fmt::Display for RunProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(&self.0))
    }
}

/// Parses `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date.
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Refused(refusal) => {
                Self::Refused(Box::new(Refused::of_handshake(&refusal, SystemTime::now())))
            }
            ConnectError::Redirected { status, location } => {
                Self::Refused(Box::new(Refused { location, ..Refused::bare(status) }))
            }
            error => Self::Connect(error),
        }
    }
}

impl Error {
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

    /// Returns true if the server's certificate is invalid: not trusted, or another server's.
    #[must_use]
    pub fn is_about_certificate(&self) -> bool {
        let Self::Connect(ConnectError::Stream { step: Step::Tls, source }) = self else {
            return false;
        };
        let source = source.get_ref().and_then(|error| error.downcast_ref());
        matches!(source, Some(rustls::Error::InvalidCertificate(_)))
    }

    /// Returns the time that the server asks to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refused) => refused.retry_after(),
            Self::Shared(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Converts the error to one about the URL, if the path is not a topic's and the answer is a success of another
    /// kind, or says that there is nothing to read or to publish to.
    pub(crate) fn at(self, address: &Address) -> Self {
        let is_none = match &self {
            Self::Foreign(_) => true,
            Self::Refused(refused) => {
                (200..300).contains(&refused.status)
                    || matches!(refused.kind(), Some(Kind::UnknownPath | Kind::MethodNotAllowed))
            }
            _ => false,
        };
        match address.example() {
            Some(example) if is_none => Self::NoTopic { example },
            _ => self,
        }
    }

    /// Returns true if the error may depend on the transport, so that another one could work. `is_open` is true if
    /// the connection had worked.
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
        | ConnectError::TlsUnavailable
        | ConnectError::ProxyResponse(_)
        | ConnectError::ProxySpoke { .. }
        | ConnectError::Response(_) => true,
        // A certificate does not become valid, but a stream that was cut may succeed.
        ConnectError::Stream { step: Step::Tls, source } => {
            source.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
                || source.kind() == std::io::ErrorKind::Other
        }
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

    const TOPIC: &[u8] =
        br#"{"type":"/problems/unknown-topic","title":"No topic","status":404,"detail":"there is no \"x\""}"#;

    fn refused(status: u16, fields: &[(&str, &str)], body: &[u8]) -> Refused {
        let field = |(name, value): &(&str, &str)| (name.parse().unwrap(), value.parse().unwrap());
        let headers: HeaderMap = fields
            .iter()
            .map(field)
            .collect::<Vec<(http::HeaderName, http::HeaderValue)>>()
            .into_iter()
            .collect();
        Refused::new(status, &headers, body.to_vec(), SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn what_a_peer_said_is_shown_with_its_quotes_and_without_its_escapes() {
        assert_eq!(shown("this server's \"names\""), "this server's \"names\"");
        assert_eq!(shown("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
    }

    #[test]
    fn a_refused_input_is_told_with_its_place() {
        let json = br#"{"type":"/problems/unprocessable","title":"The input does not fit","detail":"there is no such field","pointer":"/txt"}"#;
        let words = refused(422, &[], json).to_string();
        assert_eq!(words, "422 The input does not fit: there is no such field (at /txt)");
    }

    #[test]
    fn a_refusal_is_told_with_its_problem() {
        let error = refused(404, &[], TOPIC);
        assert_eq!(error.to_string(), "404 No topic: there is no \"x\"");
        assert_eq!(error.problem(), Some("unknown-topic"));
        assert_eq!(refused(502, &[], b"<html>").to_string(), "502");
        let redirect = refused(301, &[("location", "https://a/")], b"");
        assert_eq!(redirect.to_string(), "301 and redirects to https://a/");
    }

    #[test]
    fn how_long_to_wait_is_seconds_or_a_date() {
        for (text, seconds) in [
            ("7", Some(7)),
            ("Thu, 01 Jan 1970 00:02:00 GMT", Some(120)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            let found = refused(503, &[("retry-after", text)], b"").retry_after();
            assert_eq!(found, seconds.map(Duration::from_secs), "{text}");
        }
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let past = retry_after("Thu, 01 Jan 1970 00:02:00 GMT", now);
        assert_eq!(past, Some(Duration::ZERO));
    }

    #[test]
    fn what_does_not_get_better_is_told_from_what_may() {
        for status in [301, 400, 401, 403, 404, 405, 406, 410, 422, 501, 505] {
            assert!(refused(status, &[], b"").is_permanent(), "{status}");
        }
        for status in [408, 425, 429, 500, 502, 503, 504, 507] {
            assert!(!refused(status, &[], b"").is_permanent(), "{status}");
        }
        let tls =
            |source| Error::from(ConnectError::Stream { step: Step::Tls, source }).is_permanent();
        let bad = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        assert!(tls(std::io::Error::new(std::io::ErrorKind::InvalidData, bad)));
        assert!(!tls(std::io::ErrorKind::UnexpectedEof.into()));
    }

    #[test]
    fn a_server_that_knows_the_topic_is_believed_on_any_transport() {
        let about = |refused: Refused| Error::Refused(Box::new(refused)).is_about_transport(false);
        assert!(!about(refused(404, &[], TOPIC)));
        assert!(about(refused(404, &[], b"<html>")));
        assert!(about(refused(400, &[], br#"{"type":"/problems/bad-handshake"}"#)));
        assert!(!about(refused(503, &[], b"")));
        assert!(Error::Ended.is_about_transport(false) && !Error::Ended.is_about_transport(true));
    }
}
