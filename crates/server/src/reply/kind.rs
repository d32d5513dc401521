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
        "GET /topics lists the topics; GET /topics/NAME reads one.",
    ),
    (
        Kind::UnknownTopic,
        "unknown-topic",
        StatusCode::NOT_FOUND,
        "No topic has this name",
        "GET /topics lists the topics.",
    ),
    (
        Kind::TopicDeleted,
        "topic-deleted",
        StatusCode::GONE,
        "The topic was deleted",
        "It will have no more events. GET /topics lists the topics.",
    ),
    (
        Kind::TooSlow,
        "too-slow",
        StatusCode::GONE,
        "The reader was too slow",
        "This topic closes readers whose next events it no longer retains. The member gap says which events are \
         missing. Continue after its resume, or begin again with after=earliest or after=latest.",
    ),
    (
        Kind::MethodNotAllowed,
        "method-not-allowed",
        StatusCode::METHOD_NOT_ALLOWED,
        "Method not allowed",
        "The Allow field lists the methods that this path accepts.",
    ),
    (
        Kind::BadHost,
        "bad-host",
        StatusCode::BAD_REQUEST,
        "The field Host is missing or wrong",
        "An HTTP/1.1 request must have exactly one Host field, with the host and port of its URL.",
    ),
    (
        Kind::Misdirected,
        "misdirected",
        StatusCode::MISDIRECTED_REQUEST,
        "Not a host of this server",
        "The server answers requests for localhost, for loopback addresses, for the addresses it listens on, and for \
         the names in allow_hosts (or --allow-host NAME). This keeps other sites from pointing their names at it. \
         If a proxy is in front, have it forward the original Host, or allow the host that it sends.",
    ),
    (
        Kind::BadName,
        "bad-name",
        StatusCode::BAD_REQUEST,
        "Not a valid name",
        "A topic's name is 1 to 128 of A-Z a-z 0-9 . _ - and begins with a letter or a digit. In a path, two \
         hexadecimal digits must follow each %, and they may not encode a slash or a control character.",
    ),
    (
        Kind::BadForwarding,
        "bad-forwarding",
        StatusCode::BAD_REQUEST,
        "The proxy's forwarding fields are not valid",
        "A trusted proxy names its client in Forwarded, or in X-Forwarded-For, -Host and -Proto. Have it set one kind of \
         these fields and remove the other.",
    ),
    (
        Kind::UnsupportedEncoding,
        "unsupported-encoding",
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "The body is encoded",
        "Send the body unencoded, without Content-Encoding.",
    ),
    (
        Kind::UnsupportedTransferCoding,
        "unsupported-transfer-coding",
        StatusCode::NOT_IMPLEMENTED,
        "The transfer coding is not supported",
        "Transfer-Encoding may only be chunked.",
    ),
    (
        Kind::FrameRefused,
        "frame-refused",
        StatusCode::FORBIDDEN,
        "Only for an iframe",
        "A topic with frame=NAME is the document of an iframe in a page of the same site, and calls a function of that \
         page. The server recognizes such an iframe by Sec-Fetch-Dest and Sec-Fetch-Site, which browsers send only over \
         https and to localhost.",
    ),
    (
        Kind::BadParameter,
        "bad-parameter",
        StatusCode::BAD_REQUEST,
        "A parameter is not valid",
        "The detail names the query parameter or header field, its value and the valid values.",
    ),
    (
        Kind::PositionAhead,
        "position-ahead",
        StatusCode::BAD_REQUEST,
        "The position was never issued",
        "Positions come from this topic's replies, but this one is beyond its newest event. Begin again with \
         after=earliest or after=latest.",
    ),
    (
        Kind::NotAcceptable,
        "not-acceptable",
        StatusCode::NOT_ACCEPTABLE,
        "No representation that Accept allows",
        "A topic is available as application/json, application/x-ndjson or text/event-stream, and with frame=NAME as \
         text/html; a file uncompressed or with gzip.",
    ),
    (
        Kind::RangeNotSatisfiable,
        "range-not-satisfiable",
        StatusCode::RANGE_NOT_SATISFIABLE,
        "The range is beyond the end of the file",
        "Content-Range says how long the file is. Ask for a range that begins before its end, or for the whole file.",
    ),
    (
        Kind::OriginRefused,
        "origin-refused",
        StatusCode::FORBIDDEN,
        "Origin refused",
        "Pages of another origin may use this server only if --allow-origin or allow_origins names their origin.",
    ),
    (
        Kind::BadHandshake,
        "bad-handshake",
        StatusCode::BAD_REQUEST,
        "Not a WebSocket handshake",
        "The detail names the requirement of RFC 6455 section 4.2.1 that the request does not meet.",
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
        "A topic with publish = \"loopback\" accepts events only from clients on the server's own machine. They may not come \
         through a proxy that names its client, and a page must address the server as localhost or by its loopback \
         address.",
    ),
    (
        Kind::LocalOnly,
        "local-only",
        StatusCode::FORBIDDEN,
        "Only for the server's own machine",
        "Ask from the server's own machine, at a loopback address and not through a proxy.",
    ),
    (
        Kind::UnsupportedType,
        "unsupported-type",
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "This type cannot be published",
        "The Accept-Post field lists the types that can. With curl, -d DATA publishes JSON, or text if it is not JSON; \
         -H 'Content-Type: text/plain' -d DATA always publishes text.",
    ),
    (
        Kind::BadEvent,
        "bad-event",
        StatusCode::BAD_REQUEST,
        "There is no event, or one does not match its type",
        "The detail says where, and which Content-Type to use. Nothing was published.",
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
        "The idempotency key was used for other events",
        "Each batch needs its own key; only a retry of the same batch may repeat a key. Nothing was published.",
    ),
    (
        Kind::PreconditionFailed,
        "precondition-failed",
        StatusCode::PRECONDITION_FAILED,
        "The If-Match condition does not hold",
        "The topic has newer events, or began a new epoch, and nothing was published; or the file has changed. \
         Read it again, and retry with the new ETag.",
    ),
    (
        Kind::TooManyTopics,
        "too-many-topics",
        StatusCode::INSUFFICIENT_STORAGE,
        "Too many topics",
        "The detail names the limit. Publish to an existing topic.",
    ),
    (
        Kind::StorageFull,
        "storage-full",
        StatusCode::INSUFFICIENT_STORAGE,
        "There is no space to store the event",
        "Nothing was published. Try again once there is space.",
    ),
    (
        Kind::StorageFailed,
        "storage-failed",
        StatusCode::SERVICE_UNAVAILABLE,
        "The event cannot be stored",
        "Nothing was published, or the outcome is unknown: a retry with the same idempotency key is safe. \
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
        "The detail says what is wrong: the body was cut short, or its framing is not valid.",
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
        "The server is stopping",
        "Try again once the server is back.",
    ),
    (
        Kind::BadMessage,
        "bad-message",
        StatusCode::BAD_REQUEST,
        "The message is not valid",
        "A message is METHOD ID TARGET, or CANCEL ID; a payload follows after a line feed. The detail says what is wrong.",
    ),
    (
        Kind::TooManyRequests,
        "too-many-requests",
        StatusCode::TOO_MANY_REQUESTS,
        "Too many requests are open",
        "The number of open requests on a connection is limited. Wait until one has its final status, or cancel one.",
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
        "Clients await too many topics",
        "The topic has no event yet, and clients already wait for as many such topics as the limit allows. Poll without \
         wait, which always gets an answer, or try again later. If this persists, raise limits.awaited_topics_max or \
         limits.awaited_topics_per_address_max.",
    ),
    (
        Kind::Overloaded,
        "overloaded",
        StatusCode::SERVICE_UNAVAILABLE,
        "The server holds too much data for its clients",
        "Try again in a moment: the server drops the clients that have been stuck longest. If this persists, raise \
         memory_max.",
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
