//! Problems (RFC 9457): the kinds there are, and the members of a body.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{After, Gap};

macro_rules! kinds {
    ($(#[doc = $doc:literal] $kind:ident = $name:literal, $status:literal;)*) => {
        /// The kinds of problems. Each has a page at its `type`, `/problems/NAME`.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum Kind {
            $(#[doc = $doc] $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The name in the `type` of a problem.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The status of HTTP, unless a problem has another.
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
    UnknownPath = "unknown-path", 404;
    /// There is no topic of this name.
    UnknownTopic = "unknown-topic", 404;
    /// The topic was deleted.
    TopicDeleted = "topic-deleted", 410;
    /// Events went before the reader had read them, and its topic ends readers then.
    TooSlow = "too-slow", 410;
    /// The path does not take this method.
    MethodNotAllowed = "method-not-allowed", 405;
    /// The field `Host` is not what HTTP asks for.
    BadHost = "bad-host", 400;
    /// The request names a host that is not this server's.
    Misdirected = "misdirected", 421;
    /// The path has a name that nothing can have.
    BadName = "bad-name", 400;
    /// A trusted proxy says something of a request that cannot be.
    BadForwarding = "bad-forwarding", 400;
    /// A body is encoded in a way that is not understood.
    UnsupportedEncoding = "unsupported-encoding", 415;
    /// A request is framed in a way that is not understood.
    UnsupportedTransferCoding = "unsupported-transfer-coding", 501;
    /// The document of a frame, outside of a frame of the server's own site.
    FrameRefused = "frame-refused", 403;
    /// A query parameter or field does not say what it must.
    BadParameter = "bad-parameter", 400;
    /// The position cannot be one that this topic handed out.
    PositionAhead = "position-ahead", 400;
    /// None of the forms that `Accept` allows can be given.
    NotAcceptable = "not-acceptable", 406;
    /// Nothing of the file is in the range that is asked for.
    RangeNotSatisfiable = "range-not-satisfiable", 416;
    /// The request comes from a page of another origin.
    OriginRefused = "origin-refused", 403;
    /// The WebSocket handshake does not hold what RFC 6455 asks for.
    BadHandshake = "bad-handshake", 400;
    /// Plain HTTP where TLS is spoken.
    TlsRequired = "tls-required", 400;
    /// The topic takes nothing from this client.
    PublishRefused = "publish-refused", 403;
    /// Only clients on the server's own machine may see this.
    LocalOnly = "local-only", 403;
    /// A body's content type is not one that can be published.
    UnsupportedType = "unsupported-type", 415;
    /// The event to publish is not what it was said to be.
    BadEvent = "bad-event", 400;
    /// An event is larger than allowed.
    EventTooBig = "event-too-big", 413;
    /// The idempotency key was used for something else.
    KeyReused = "key-reused", 422;
    /// The topic is not where it must be for this.
    PreconditionFailed = "precondition-failed", 412;
    /// No more topics may be created.
    TooManyTopics = "too-many-topics", 507;
    /// There is no room to keep an event.
    StorageFull = "storage-full", 507;
    /// An event cannot be kept.
    StorageFailed = "storage-failed", 503;
    /// A request's body is larger than allowed.
    BodyTooBig = "body-too-big", 413;
    /// A request's body could not be read.
    BadBody = "bad-body", 400;
    /// A request's body took too long.
    BodyTimeout = "body-timeout", 408;
    /// The server stops.
    Stopping = "stopping", 503;
    /// Multiplexed: a message cannot be understood.
    BadMessage = "bad-message", 400;
    /// Multiplexed: the connection has as many open requests as it may.
    TooManyRequests = "too-many-requests", 429;
    /// The server has as many connections as it may.
    TooManyConnections = "too-many-connections", 503;
    /// As many topics are awaited before their first event as may be.
    TooManyAwaited = "too-many-awaited", 503;
    /// The server holds as much for its clients as it may.
    Overloaded = "overloaded", 503;
    /// Something in the server that should not be.
    Internal = "internal", 500;
}

impl Kind {
    /// The kind of this name, if it is known here.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// The members of a problem: those of RFC 9457 section 3.1, and `gap`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Details<'a> {
    /// The name of its kind, which may be one that is not known here.
    pub name: Cow<'a, str>,
    /// A sentence about its kind, maybe empty.
    pub title: Cow<'a, str>,
    /// The status.
    pub status: u16,
    /// A sentence about this time, maybe empty.
    pub detail: Cow<'a, str>,
    /// The events that a reader who was too slow has missed.
    pub gap: Option<Gap>,
}

#[derive(Serialize)]
struct Written<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
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
}

impl Details<'_> {
    /// Its kind, if that is known here.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Kind::of(&self.name)
    }

    /// Its body. The gap is that of an end: reading begins at its `resume`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self { name, title, status, detail, gap } = self;
        let written =
            Written { r#type: format!("/problems/{name}"), title, status: *status, detail };
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

    /// Reads a body; `None` when it is none of a server of ours.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Details<'static>> {
        let Read { r#type, title, status, detail, gap } = serde_json::from_slice(body).ok()?;
        let name = r#type.rsplit('/').next().unwrap_or_default().to_owned().into();
        // A gap that is not understood is no reason to understand nothing.
        let gap = gap.and_then(|gap| serde_json::from_value(gap).ok());
        Some(Details { name, title: title.into(), status, detail: detail.into(), gap })
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
        }
        assert_eq!(Kind::of("nonsense"), None);
    }

    #[test]
    fn a_gap_that_is_not_understood_leaves_the_rest() {
        let body = br#"{"type":"https://a.example/problems/too-slow","gap":{"reason":7}}"#;
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
        ) {
            let (name, title, detail) = (name.into(), title.into(), detail.into());
            let details = Details { name, title, status, detail, gap };
            prop_assert_eq!(Details::parse(details.to_json().as_bytes()), Some(details));
        }
    }
}
