//! Problems: the kinds and the JSON body (RFC 9457; "Problems" in `docs/PROTOCOL.md`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{After, Gap};

macro_rules! kinds {
    ($(#[doc = $doc:literal] $kind:ident = $name:literal, $status:literal, $title:literal;)*) => {
        /// The kinds of problems. `/problems/NAME`, the `type` of a problem, explains its kind.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum Kind {
            $(#[doc = $doc] $kind,)*
        }

        impl Kind {
            /// All kinds, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The name, such as `unknown-topic`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The title, a sentence without a full stop.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$kind => $title,)*
                }
            }

            /// The HTTP status. Some problems have another one.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$kind => $status,)*
                }
            }
        }
    };
}

kinds! {
    /// There is nothing at this path.
    UnknownPath = "unknown-path", 404, "Nothing at this path";
    /// There is no topic of this name.
    UnknownTopic = "unknown-topic", 404, "No topic has this name";
    /// The topic was deleted, or the run is no longer kept.
    TopicDeleted = "topic-deleted", 410, "The topic or run is gone";
    /// The topic closes slow readers, and events were evicted before this reader got them.
    TooSlow = "too-slow", 410, "The reader was too slow";
    /// The path does not take this method.
    MethodNotAllowed = "method-not-allowed", 405, "Method not allowed";
    /// The field `Host` is missing, repeated or invalid.
    BadHost = "bad-host", 400, "The field Host is missing or wrong";
    /// The request names a host that is not one of the server's own.
    Misdirected = "misdirected", 421, "Not a host of this server";
    /// The path has an invalid name.
    BadName = "bad-name", 400, "Not a valid name";
    /// The forwarding fields of a trusted proxy are invalid or contradict one another.
    BadForwarding = "bad-forwarding", 400, "The proxy's forwarding fields are not valid";
    /// The content encoding of a body is not supported.
    UnsupportedEncoding = "unsupported-encoding", 415, "The body is encoded";
    /// The transfer coding of a request is not supported.
    UnsupportedTransferCoding = "unsupported-transfer-coding", 501, "The transfer coding is not supported";
    /// A forever-frame was asked for outside of an iframe of the same site.
    FrameRefused = "frame-refused", 403, "Only for an iframe";
    /// A query parameter or header field is invalid.
    BadParameter = "bad-parameter", 400, "A parameter is not valid";
    /// The topic never issued this position.
    PositionAhead = "position-ahead", 400, "The position was never issued";
    /// The places in all topics of a request, or of a stream, take more than a token may.
    TokenTooLong = "token-too-long", 400, "The token of these topics is too long";
    /// `Accept` allows no available representation.
    NotAcceptable = "not-acceptable", 406, "No representation that Accept allows";
    /// The range is beyond the end of the file.
    RangeNotSatisfiable = "range-not-satisfiable", 416, "The range is beyond the end of the file";
    /// The request comes from a page of another origin.
    OriginRefused = "origin-refused", 403, "Origin refused";
    /// The request is not a WebSocket handshake as RFC 6455 requires.
    BadHandshake = "bad-handshake", 400, "Not a WebSocket handshake";
    /// Plain HTTP came to a port that speaks TLS.
    TlsRequired = "tls-required", 400, "This port speaks TLS";
    /// This client may not publish to the topic.
    PublishRefused = "publish-refused", 403, "This client may not publish here";
    /// The path is only for clients on the server's own machine.
    LocalOnly = "local-only", 403, "Only for the server's own machine";
    /// Bodies of this content type are not taken here.
    UnsupportedType = "unsupported-type", 415, "The type of the body is not supported";
    /// An event does not match its content type, or there is none.
    BadEvent = "bad-event", 400, "There is no event, or one does not match its type";
    /// An event is larger than allowed.
    EventTooBig = "event-too-big", 413, "An event is too big";
    /// The idempotency key was used for another request, or for this one, whose result is gone.
    KeyReused = "key-reused", 422, "The idempotency key was used before";
    /// The condition of `If-Match` does not hold.
    PreconditionFailed = "precondition-failed", 412, "The If-Match condition does not hold";
    /// A resource has no record with this id.
    UnknownRecord = "unknown-record", 404, "No record has this id";
    /// A record with this id exists.
    Conflict = "conflict", 409, "The record exists already";
    /// The input is well formed, but does not fit.
    Unprocessable = "unprocessable", 422, "The input does not fit";
    /// A service has not begun its reply in time.
    ServiceTimeout = "service-timeout", 504, "The service did not answer in time";
    /// There is no run with this key.
    UnknownRun = "unknown-run", 404, "No run has this key";
    /// The run has ended already.
    RunEnded = "run-ended", 409, "The run has ended";
    /// The work of a run failed.
    RunFailed = "run-failed", 500, "The run failed";
    /// A run took longer than it may.
    RunTimeout = "run-timeout", 504, "The run took too long";
    /// The queue of runs is full.
    TooManyRuns = "too-many-runs", 503, "Too many runs are waiting";
    /// This client may not start runs here, or change these records.
    StartRefused = "start-refused", 403, "This client may not start this, or change this";
    /// No more topics may be created.
    TooManyTopics = "too-many-topics", 507, "Too many topics";
    /// There is no space to store an event.
    StorageFull = "storage-full", 507, "There is no space to store the event";
    /// An event could not be stored, or events could not be read from the disk.
    StorageFailed = "storage-failed", 503, "The storage failed";
    /// A request's body is larger than allowed.
    BodyTooBig = "body-too-big", 413, "The body is too big";
    /// A request's body could not be read.
    BadBody = "bad-body", 400, "The body could not be read";
    /// A request's body took too long.
    BodyTimeout = "body-timeout", 408, "The body took too long";
    /// The server is stopping.
    Stopping = "stopping", 503, "The server is stopping";
    /// A multiplexed message is invalid.
    BadMessage = "bad-message", 400, "The message is not valid";
    /// A multiplexed connection has too many open requests.
    TooManyRequests = "too-many-requests", 429, "Too many requests are open";
    /// The server has too many connections.
    TooManyConnections = "too-many-connections", 503, "Too many connections";
    /// Clients await too many topics that have no event yet.
    TooManyAwaited = "too-many-awaited", 503, "Clients await too many topics";
    /// The server holds too much data for its clients.
    Overloaded = "overloaded", 503, "The server holds too much data for its clients";
    /// The server has an error of its own.
    Internal = "internal", 500, "Internal error";
}

impl Kind {
    /// The kind with this name; `None` if it is unknown.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// The members of a problem: those of RFC 9457 section 3.1, without `instance`, and `gap` and `pointer`.
///
/// ```
/// use anemone_wire::problem::{Details, Kind};
///
/// let body = br#"{"type":"/problems/unknown-topic","status":404,"detail":"no topic is named wnd"}"#;
/// let details = Details::parse(body).unwrap();
/// assert_eq!(details.kind(), Some(Kind::UnknownTopic));
/// assert_eq!(details.detail, "no topic is named wnd");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Details<'a> {
    /// The name of its kind: the part of `type` after the last slash.
    pub name: Cow<'a, str>,
    /// A sentence about its kind; may be empty.
    pub title: Cow<'a, str>,
    /// The HTTP status; 0 if the body has none.
    pub status: u16,
    /// A sentence about this occurrence; may be empty.
    pub detail: Cow<'a, str>,
    /// The events that a slow reader has missed; only with [`Kind::TooSlow`].
    pub gap: Option<Gap>,
    /// The JSON Pointer (RFC 6901) to what does not fit; only with [`Kind::Unprocessable`].
    pub pointer: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct Written<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
}

#[derive(Deserialize)]
struct Read {
    r#type: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    status: u16,
    #[serde(default)]
    detail: String,
    gap: Option<serde_json::Value>,
    pointer: Option<serde_json::Value>,
}

impl Details<'_> {
    /// The kind; `None` if it is unknown.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Kind::of(&self.name)
    }

    /// The JSON object. The `resume` of its gap is an [`After::Anew`].
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self { name, title, status, detail, gap, pointer } = self;
        let (r#type, pointer) = (format!("/problems/{name}"), pointer.as_deref());
        let written = Written { r#type, title, status: *status, detail, pointer };
        // Strings and a number always have a JSON form.
        let mut json = serde_json::to_string(&written).unwrap_or_default();
        if let Some(gap) = gap {
            json.pop();
            json.push_str(r#","gap":"#);
            gap.write(After::Anew, &mut json);
            json.push('}');
        }
        json
    }

    /// Reads a body; `None` if it is no problem.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Details<'static>> {
        let Read { r#type, title, status, detail, gap, pointer } =
            serde_json::from_slice(body).ok()?;
        let name = r#type.rsplit('/').next().unwrap_or_default().to_owned().into();
        // A gap or a pointer that is not understood is no reason to understand nothing.
        let gap = gap.and_then(|gap| serde_json::from_value(gap).ok());
        let pointer = pointer.and_then(|pointer| Some(pointer.as_str()?.to_owned().into()));
        Some(Details { name, title: title.into(), status, detail: detail.into(), gap, pointer })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::gap;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_the_status_of_an_error() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind.name()), Some(*kind));
            assert!((400..600).contains(&kind.status()), "{kind:?}");
            assert!(!kind.title().is_empty(), "{kind:?}");
        }
        assert_eq!(Kind::of("nonsense"), None);
    }

    #[test]
    fn a_gap_that_is_not_understood_leaves_the_rest() {
        let body =
            br#"{"type":"https://a.example/problems/too-slow","gap":{"reason":7},"pointer":7}"#;
        let details = Details::parse(body).unwrap();
        assert_eq!((details.kind(), details.gap), (Some(Kind::TooSlow), None));
        assert_eq!(Details::parse(b"<html>"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            name in "[a-z-]{1,20}",
            title in ".{0,20}",
            status in any::<u16>(),
            detail in ".{0,20}",
            gap in prop::option::of(gap()),
            pointer in prop::option::of(".{0,20}"),
        ) {
            let pointer = pointer.map(Into::into);
            let (name, title, detail) = (name.into(), title.into(), detail.into());
            let details = Details { name, title, status, detail, gap, pointer };
            prop_assert_eq!(Details::parse(details.to_json().as_bytes()), Some(details));
        }
    }
}
