//! A response that refuses a request, and the rules for trying again.

use std::fmt;
use std::time::{Duration, SystemTime};

use anemone_wire::multiplexed::Reply;
use anemone_wire::problem::{Details, Kind};
use anemone_ws::Refusal;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};

use crate::EndReason;
use crate::problem::words;
use crate::text::shown;

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
    /// The most bytes that are read of a refusal's body.
    pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;

    /// Creates a refusal with a status alone.
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

    /// Creates a refusal from the final status of a multiplexed request.
    pub(crate) fn of_reply(reply: &Reply<'_>) -> Self {
        Self { problem: Details::parse(reply.payload), ..Self::bare(reply.status) }
    }

    /// Creates a refusal from the problem that ends a stream.
    pub(crate) fn of_problem(json: &str) -> Self {
        let problem = Details::parse(json.as_bytes());
        let status = problem.as_ref().map_or(500, |problem| problem.status);
        Self { problem, ..Self::bare(status) }
    }

    pub(crate) fn of_redirect(status: u16, location: Option<String>) -> Self {
        Self { location, ..Self::bare(status) }
    }

    pub(crate) fn of_handshake(refusal: &Refusal, now: SystemTime) -> Self {
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

    /// Returns the body: a problem, or any text of a service or a proxy. Empty if the body is longer than 64 KiB.
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

    /// Returns true if the same call may succeed later. A service that was too slow is likely to be too slow again. A
    /// body that a service cannot read (`bad-body`) does not become readable.
    pub(crate) fn is_brief(&self) -> bool {
        match self.status {
            408 | 425 | 429 | 502 | 503 => true,
            504 => self.kind() != Some(Kind::ServiceTimeout),
            _ => false,
        }
    }

    /// Returns the reason why a topic has ended, if this refusal means that. A missing topic means a deleted topic only
    /// if it `was_there` before.
    pub(crate) fn end_reason(&self, was_there: bool) -> Option<EndReason> {
        let problem = self.problem.as_ref()?;
        match problem.kind()? {
            Kind::TopicDeleted => Some(EndReason::Deleted),
            Kind::UnknownTopic if was_there => Some(EndReason::Deleted),
            Kind::TooSlow => Some(EndReason::TooSlow { gap: problem.gap.clone() }),
            _ => None,
        }
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        self.problem.as_ref().and_then(Details::kind)
    }

    pub(crate) fn is_permanent(&self) -> bool {
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

    /// Returns true if the answer may be different over another transport.
    pub(crate) fn is_about_transport(&self) -> bool {
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

/// Parses `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date.
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
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
    fn a_status_that_does_not_get_better_is_told_from_one_that_may() {
        for status in [301, 400, 401, 403, 404, 405, 406, 410, 422, 501, 505] {
            assert!(refused(status, &[], b"").is_permanent(), "{status}");
        }
        for status in [408, 425, 429, 500, 502, 503, 504, 507] {
            assert!(!refused(status, &[], b"").is_permanent(), "{status}");
        }
    }

    #[test]
    fn a_server_that_knows_the_topic_is_believed_on_any_transport() {
        assert!(!refused(404, &[], TOPIC).is_about_transport());
        assert!(refused(404, &[], b"<html>").is_about_transport());
        assert!(refused(400, &[], br#"{"type":"/problems/bad-handshake"}"#).is_about_transport());
        assert!(!refused(503, &[], b"").is_about_transport());
    }
}
