//! The kinds of problems.

use http::StatusCode;

/// The kinds of problems. Each has a page at its `type`, `/problems/NAME`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// There is nothing at this path.
    UnknownPath,
    /// There is no topic of this name.
    UnknownTopic,
    /// The topic was deleted.
    TopicDeleted,
    /// Events went before the reader had read them, and its topic ends readers then.
    TooSlow,
    /// The path does not take this method.
    MethodNotAllowed,
    /// The field `Host` is not what HTTP asks for.
    BadHost,
    /// The request names a host that is not this server's.
    Misdirected,
    /// The path has a name that nothing can have.
    BadName,
    /// A trusted proxy says something of a request that cannot be.
    BadForwarding,
    /// A body is encoded in a way that is not understood.
    UnsupportedEncoding,
    /// A request is framed in a way that is not understood.
    UnsupportedTransferCoding,
    /// The document of a frame, outside of a frame of the server's own site.
    FrameRefused,
    /// A query parameter or field does not say what it must.
    BadParameter,
    /// The position cannot be one that this topic handed out.
    PositionAhead,
    /// None of the forms that `Accept` allows can be given.
    NotAcceptable,
    /// Nothing of the file is in the range that is asked for.
    RangeNotSatisfiable,
    /// The request comes from a page of another origin.
    OriginRefused,
    /// The WebSocket handshake does not hold what RFC 6455 asks for.
    BadHandshake,
    /// Plain HTTP where TLS is spoken.
    TlsRequired,
    /// The topic takes nothing from this client.
    PublishRefused,
    /// Only clients on the server's own machine may see this.
    LocalOnly,
    /// A body's content type is not one that can be published.
    UnsupportedType,
    /// The event to publish is not what it was said to be.
    BadEvent,
    /// An event is larger than allowed.
    EventTooBig,
    /// The idempotency key was used for something else.
    KeyReused,
    /// The topic is not where it must be for this.
    PreconditionFailed,
    /// No more topics may be created.
    TooManyTopics,
    /// There is no room to keep an event.
    StorageFull,
    /// An event cannot be kept.
    StorageFailed,
    /// A request's body is larger than allowed.
    BodyTooBig,
    /// A request's body could not be read.
    BadBody,
    /// A request's body took too long.
    BodyTimeout,
    /// The server stops.
    Stopping,
    /// Multiplexed: a message cannot be understood.
    BadMessage,
    /// Multiplexed: the connection has as many open requests as it may.
    TooManyRequests,
    /// The server has as many connections as it may.
    TooManyConnections,
    /// As many topics are awaited before their first event as may be.
    TooManyAwaited,
    /// The server holds as much for its clients as it may.
    Overloaded,
    /// Something in the server that should not be.
    Internal,
}

/// Of each kind, in their order: its name in the problem's `type`, its status, its title and what to do about it.
const TABLE: [(Kind, &str, StatusCode, &str, &str); 39] = [
    (
        Kind::UnknownPath,
        "unknown-path",
        StatusCode::NOT_FOUND,
        "Nothing at this path",
        "GET /topics lists the topics; each is read at /topics/NAME.",
    ),
    (
        Kind::UnknownTopic,
        "unknown-topic",
        StatusCode::NOT_FOUND,
        "No topic of this name",
        "GET /topics lists the topics there are.",
    ),
    (
        Kind::TopicDeleted,
        "topic-deleted",
        StatusCode::GONE,
        "The topic was deleted",
        "Nothing more will come of it. GET /topics lists the topics there are.",
    ),
    (
        Kind::TooSlow,
        "too-slow",
        StatusCode::GONE,
        "The reader was too slow",
        "This topic ends readers whose next events are no longer kept. The member gap says which are \
         missing. Go on after its resume, or begin again with after=earliest or after=latest.",
    ),
    (
        Kind::MethodNotAllowed,
        "method-not-allowed",
        StatusCode::METHOD_NOT_ALLOWED,
        "Method not allowed",
        "The Allow field names the methods that this path takes.",
    ),
    (
        Kind::BadHost,
        "bad-host",
        StatusCode::BAD_REQUEST,
        "The field Host is missing or wrong",
        "A request of HTTP/1.1 has the field Host once, with the host and port that were asked for.",
    ),
    (
        Kind::Misdirected,
        "misdirected",
        StatusCode::MISDIRECTED_REQUEST,
        "Not a host of this server",
        "The server answers by localhost and loopback addresses, by the addresses it listens on, and by the \
         names in allow_hosts (or --allow-host NAME), so that no page can have its own name pointed at \
         it. Behind a proxy, let it pass on the host that was asked for, or allow the one it sends.",
    ),
    (
        Kind::BadName,
        "bad-name",
        StatusCode::BAD_REQUEST,
        "Nothing can have this name",
        "A topic's name is 1 to 128 of A-Z a-z 0-9 . _ - and begins with a letter or a digit. In a path % \
         comes before two hexadecimal digits, and they do not stand for a slash or a control character.",
    ),
    (
        Kind::BadForwarding,
        "bad-forwarding",
        StatusCode::BAD_REQUEST,
        "What the proxy says cannot be",
        "A proxy that is trusted says for whom it speaks in Forwarded, or in X-Forwarded-For, -Host and \
         -Proto. Have it set the one, and take the other away.",
    ),
    (
        Kind::UnsupportedEncoding,
        "unsupported-encoding",
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "The body is encoded",
        "Send it as it is, without Content-Encoding.",
    ),
    (
        Kind::UnsupportedTransferCoding,
        "unsupported-transfer-coding",
        StatusCode::NOT_IMPLEMENTED,
        "The body is framed in an unknown way",
        "Transfer-Encoding can be chunked, and nothing else.",
    ),
    (
        Kind::FrameRefused,
        "frame-refused",
        StatusCode::FORBIDDEN,
        "Only for an iframe",
        "A topic with frame=NAME is the document of an iframe in a page of the same site, for it calls a \
         function of that page. Browsers say so with Sec-Fetch-Dest and Sec-Fetch-Site, which they \
         send to https and to localhost.",
    ),
    (
        Kind::BadParameter,
        "bad-parameter",
        StatusCode::BAD_REQUEST,
        "A parameter is wrong",
        "The detail names the query parameter or header field, what it said and what it may say.",
    ),
    (
        Kind::PositionAhead,
        "position-ahead",
        StatusCode::BAD_REQUEST,
        "The position was never handed out",
        "A position comes from this topic's replies; this one is beyond its newest event. \
         Begin again with after=earliest or after=latest.",
    ),
    (
        Kind::NotAcceptable,
        "not-acceptable",
        StatusCode::NOT_ACCEPTABLE,
        "No form that Accept allows",
        "A topic is read as application/json, application/x-ndjson or text/event-stream, and as \
         text/html with frame=NAME; a file as it is, or with gzip.",
    ),
    (
        Kind::RangeNotSatisfiable,
        "range-not-satisfiable",
        StatusCode::RANGE_NOT_SATISFIABLE,
        "Nothing is in this range",
        "Content-Range says how long the file is. Ask for a range that begins before its end, or for the whole.",
    ),
    (
        Kind::OriginRefused,
        "origin-refused",
        StatusCode::FORBIDDEN,
        "Origin refused",
        "Pages of another origin may use this server only when it was started with \
         --allow-origin for theirs.",
    ),
    (
        Kind::BadHandshake,
        "bad-handshake",
        StatusCode::BAD_REQUEST,
        "Not a WebSocket handshake",
        "The detail names the requirement of RFC 6455 section 4.2.1 that does not hold.",
    ),
    (
        Kind::TlsRequired,
        "tls-required",
        StatusCode::BAD_REQUEST,
        "This port speaks TLS",
        "Use https:// instead of http://, or wss:// instead of ws://.",
    ),
    (
        Kind::PublishRefused,
        "publish-refused",
        StatusCode::FORBIDDEN,
        "This client may not publish here",
        "Topics that publish = \"loopback\" holds for take events from clients on the server's own \
         machine alone: not through a proxy that says for whom it speaks, and from a page only when \
         its request names the server localhost, or by its loopback address.",
    ),
    (
        Kind::LocalOnly,
        "local-only",
        StatusCode::FORBIDDEN,
        "Only for the server's own machine",
        "Ask from the machine that the server runs on, by a loopback address and not through a proxy.",
    ),
    (
        Kind::UnsupportedType,
        "unsupported-type",
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Not a type that can be published",
        "The Accept-Post field names the types that can. With curl, -d DATA publishes JSON, or else text; \
         -H 'Content-Type: text/plain' -d DATA publishes text whatever it looks like.",
    ),
    (
        Kind::BadEvent,
        "bad-event",
        StatusCode::BAD_REQUEST,
        "There is no event, or one is not what it was said to be",
        "The detail says where, and which Content-Type to say. Nothing was published.",
    ),
    (
        Kind::EventTooBig,
        "event-too-big",
        StatusCode::PAYLOAD_TOO_LARGE,
        "An event is too big",
        "The detail names the limit, which counts the event as JSON: a string with its quotes and \
         escapes, bytes as Base64. Nothing was published.",
    ),
    (
        Kind::KeyReused,
        "key-reused",
        StatusCode::UNPROCESSABLE_ENTITY,
        "The idempotency key was used for something else",
        "Each batch needs a key of its own; only a retry of the very same batch repeats it. \
         Nothing was published.",
    ),
    (
        Kind::PreconditionFailed,
        "precondition-failed",
        StatusCode::PRECONDITION_FAILED,
        "It is not, or no longer, what If-Match says",
        "Something was published since, or the topic began anew, and nothing was published; or the file is another \
         one. Read what there is, and try again with its ETag.",
    ),
    (
        Kind::TooManyTopics,
        "too-many-topics",
        StatusCode::INSUFFICIENT_STORAGE,
        "Too many topics",
        "The detail names the limit. Publish to a topic that is there already.",
    ),
    (
        Kind::StorageFull,
        "storage-full",
        StatusCode::INSUFFICIENT_STORAGE,
        "There is no room to keep an event",
        "Nothing was published. Try again once there is room.",
    ),
    (
        Kind::StorageFailed,
        "storage-failed",
        StatusCode::SERVICE_UNAVAILABLE,
        "The event cannot be kept",
        "Nothing was published, or it is not known: a retry with the same idempotency key is safe. \
         The server's log says more.",
    ),
    (
        Kind::BodyTooBig,
        "body-too-big",
        StatusCode::PAYLOAD_TOO_LARGE,
        "The body is too big",
        "The detail names the limit.",
    ),
    (
        Kind::BadBody,
        "bad-body",
        StatusCode::BAD_REQUEST,
        "The body could not be read",
        "The detail says what is wrong with it: cut short, or wrongly framed.",
    ),
    (
        Kind::BodyTimeout,
        "body-timeout",
        StatusCode::REQUEST_TIMEOUT,
        "The body took too long",
        "The detail names the limit.",
    ),
    (
        Kind::Stopping,
        "stopping",
        StatusCode::SERVICE_UNAVAILABLE,
        "The server stops",
        "Try again once it is back.",
    ),
    (
        Kind::BadMessage,
        "bad-message",
        StatusCode::BAD_REQUEST,
        "The message cannot be understood",
        "A message is METHOD ID TARGET, or CANCEL ID; a payload comes after a line feed. The detail \
         names what is wrong.",
    ),
    (
        Kind::TooManyRequests,
        "too-many-requests",
        StatusCode::TOO_MANY_REQUESTS,
        "Too many requests are open",
        "Each connection may have so many. Wait until one has its final status, or cancel one.",
    ),
    (
        Kind::TooManyConnections,
        "too-many-connections",
        StatusCode::SERVICE_UNAVAILABLE,
        "Too many connections",
        "Try again in a moment.",
    ),
    (
        Kind::TooManyAwaited,
        "too-many-awaited",
        StatusCode::SERVICE_UNAVAILABLE,
        "Too many topics are waited for",
        "The topic has had no event yet, and as many such topics are waited for as may be. Poll without wait, which is \
         always answered, or try again later. If it stays so, raise limits.awaited_topics_max or \
         limits.awaited_topics_per_address_max.",
    ),
    (
        Kind::Overloaded,
        "overloaded",
        StatusCode::SERVICE_UNAVAILABLE,
        "The server holds too much for its clients",
        "Try again in a moment: those who have not taken or sent the rest for the longest time are let go. \
         If it stays so, raise memory_max.",
    ),
    (
        Kind::Internal,
        "internal",
        StatusCode::INTERNAL_SERVER_ERROR,
        "Internal error",
        "The server's log says more.",
    ),
];

impl Kind {
    /// All kinds.
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::UnknownPath; TABLE.len()];
        let mut index = 0;
        while index < TABLE.len() {
            all[index] = TABLE[index].0;
            index += 1;
        }
        all
    };

    /// Its name in the problem's `type`, its status, its title and what to do about it.
    pub(crate) const fn describe(self) -> (&'static str, StatusCode, &'static str, &'static str) {
        let (_, name, status, title, advice) = TABLE[self as usize];
        (name, status, title, advice)
    }

    /// The name in the `type` of a problem.
    pub(crate) fn name(self) -> &'static str {
        self.describe().0
    }

    /// The text at `/problems/NAME`.
    pub(crate) fn explanation(name: &str) -> Option<String> {
        let kind = Self::ALL.into_iter().find(|kind| kind.describe().0 == name)?;
        let (_, status, title, advice) = kind.describe();
        Some(format!("{title} ({status})\n\n{advice}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_kinds() {
        assert!(Kind::ALL.iter().enumerate().all(|(index, kind)| *kind as usize == index));
    }

    #[test]
    fn every_kind_has_a_name_and_a_page_of_its_own() {
        let mut names: Vec<_> = Kind::ALL.iter().map(|kind| kind.describe().0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(names.iter().all(|name| Kind::explanation(name).is_some()));
        assert_eq!(Kind::explanation("nonsense"), None);
    }
}
