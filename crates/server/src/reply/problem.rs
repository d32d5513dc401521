//! Problem details (RFC 9457), the same on every transport.

use std::time::Duration;

use anemone_wire::problem::{Details, Kind};
use anemone_wire::{EndReason, Gap};
use http::{HeaderValue, Response, StatusCode};

use crate::reply::body::{Body, full, reply};
use crate::reply::kind;
use crate::reply::protection::{self, protect};

/// Returns the first characters of a client's own words.
pub(crate) fn excerpt(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

/// A problem for a client.
///
/// ```
/// use anemone_server::{Kind, Problem};
///
/// let problem = Problem::new(Kind::Unprocessable, "height must be a number").at("/height");
/// assert!(problem.to_json().contains("height must be a number"));
/// let response = problem.into_response();
/// assert_eq!(response.status(), 422);
/// assert_eq!(response.headers()["content-type"], "application/problem+json");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    kind: Kind,
    status: StatusCode,
    detail: String,
    fields: Vec<(&'static str, HeaderValue)>,
    gap: Option<Box<Gap>>,
    pointer: Option<Box<str>>,
}

impl Problem {
    /// Creates a problem of this kind; `detail` describes this occurrence.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            status: kind::status(kind),
            detail: detail.into(),
            fields: Vec::new(),
            gap: None,
            pointer: None,
        }
    }

    /// Adds the JSON Pointer (RFC 6901) to what does not fit.
    #[must_use]
    pub fn at(self, pointer: impl Into<String>) -> Self {
        Self { pointer: Some(pointer.into().into_boxed_str()), ..self }
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn code(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Adds words before its detail.
    pub(crate) fn in_front(self, words: &str) -> Self {
        Self { detail: format!("{words}{}", self.detail), ..self }
    }

    /// Adds words after its detail.
    pub(crate) fn and(self, words: &str) -> Self {
        Self { detail: self.detail + words, ..self }
    }

    /// Sets another status than that of its kind.
    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Adds a header field that its status requires.
    pub(crate) fn field(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Returns the header fields that its status requires.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &HeaderValue)> {
        self.fields.iter().map(|(name, value)| (*name, value))
    }

    /// Creates the problem of a reader that did not read these events before they were dropped.
    pub(crate) fn too_slow(gap: Gap) -> Self {
        let (after, missed) = (gap.after, gap.missed);
        let missed = missed.unwrap_or_default();
        let detail = format!("too slow: {missed} events after {after} are no longer retained");
        Self { gap: Some(Box::new(gap)), ..Self::new(Kind::TooSlow, detail) }
    }

    /// Creates the problem for a client that has ended its side, if it still reads.
    pub(crate) fn client_gone(grace: Duration) -> Self {
        let detail = format!("nothing came within {grace:?} after the client ended its side");
        Self::new(Kind::Internal, detail).status(StatusCode::GATEWAY_TIMEOUT)
    }

    /// Returns the reason for the end of reading, if this problem is one.
    pub(crate) fn end_reason(&self) -> Option<EndReason> {
        match self.kind {
            Kind::TopicDeleted => Some(EndReason::Deleted),
            Kind::TooSlow => Some(EndReason::TooSlow { gap: self.gap.as_deref().cloned() }),
            _ => None,
        }
    }

    /// Creates the problem of a path without content: status 404.
    #[must_use]
    pub fn nothing_at(path: &str) -> Self {
        Self::new(Kind::UnknownPath, format!("there is nothing at {}", excerpt(path, 80)))
    }

    pub(crate) fn too_many_connections() -> Self {
        let detail = "the server has reached its limit on connections";
        Self::new(Kind::TooManyConnections, detail)
            .field("retry-after", HeaderValue::from_static("1"))
    }

    /// Creates the problem of too much memory.
    pub(crate) fn overloaded() -> Self {
        let detail = "the server has reached its limit on memory held for clients";
        Self::new(Kind::Overloaded, detail).field("retry-after", HeaderValue::from_static("1"))
    }

    /// Returns its body as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let (name, title) = (self.kind.name().into(), self.kind.title().into());
        let (status, detail) = (self.status.as_u16(), self.detail.as_str().into());
        let (gap, pointer) =
            (self.gap.as_deref().cloned(), self.pointer.as_deref().map(Into::into));
        Details { name, title, status, detail, gap, pointer }.to_json()
    }

    /// Returns an HTTP/1.1 reply that ends the connection, for code without the HTTP server.
    pub(crate) fn to_http1(&self) -> String {
        let fields =
            self.fields.iter().filter_map(|(name, value)| Some((*name, value.to_str().ok()?)));
        let protective = protection::FIELDS;
        let protective = protective.iter().map(|(name, value)| (name.as_str(), *value));
        let fields = fields.chain(protective).map(|(name, value)| format!("{name}: {value}\r\n"));
        let (status, fields, body) =
            (self.status, fields.collect::<String>(), self.to_json() + "\n");
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\n\
             content-length: {}\r\n{fields}connection: close\r\n\r\n{body}",
            body.len()
        )
    }

    /// Returns its reply. Its [`Kind`] is in the reply's extensions.
    #[must_use]
    pub fn into_response(self) -> Response<Body> {
        let body = full(self.to_json() + "\n");
        let mut response = reply("application/problem+json", "no-store", body);
        *response.status_mut() = self.status;
        response.extensions_mut().insert(self.kind);
        let headers = response.headers_mut();
        for (name, value) in self.fields {
            headers.append(name, value);
        }
        protect(headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_has_the_members_of_rfc_9457() {
        let problem = Problem::new(Kind::UnknownTopic, "there is no topic \"x\"");
        let body: serde_json::Value = serde_json::from_str(&problem.to_json()).unwrap();
        assert_eq!(body["type"], "/problems/unknown-topic");
        assert_eq!(body["status"], 404);
        assert_eq!(body["title"], "No topic has this name");
        assert_eq!(body["detail"], "there is no topic \"x\"");
    }
}
