//! The texts of each kind of problem.

use anemone_wire::problem::Kind;
use http::StatusCode;

/// The title and the advice for each kind, in their order.
const TABLE: [(Kind, &str, &str); Kind::ALL.len()] = [
    (
        Kind::UnknownPath,
        "Nothing at this path",
        "GET /topics lists the topics; GET /topics/NAME reads one.",
    ),
    (Kind::UnknownTopic, "No topic has this name", "GET /topics lists the topics."),
    (
        Kind::TopicDeleted,
        "The topic was deleted",
        "It will have no more events. GET /topics lists the topics.",
    ),
    (
        Kind::TooSlow,
        "The reader was too slow",
        "This topic closes readers whose next events it no longer retains. The member gap says which events are \
         missing. Continue after its resume, or begin again with after=earliest or after=latest.",
    ),
    (
        Kind::MethodNotAllowed,
        "Method not allowed",
        "The Allow field lists the methods that this path accepts.",
    ),
    (
        Kind::BadHost,
        "The field Host is missing or wrong",
        "An HTTP/1.1 request must have exactly one Host field, with the host and port of its URL.",
    ),
    (
        Kind::Misdirected,
        "Not a host of this server",
        "The server answers requests for localhost, for loopback addresses, for the addresses it listens on, and for \
         the names in allow_hosts (or --allow-host NAME). This keeps other sites from pointing their names at it. \
         If a proxy is in front, have it forward the original Host, or allow the host that it sends.",
    ),
    (
        Kind::BadName,
        "Not a valid name",
        "A topic's name is 1 to 128 of A-Z a-z 0-9 . _ - and begins with a letter or a digit. In a path, two \
         hexadecimal digits must follow each %, and they may not encode a slash or a control character.",
    ),
    (
        Kind::BadForwarding,
        "The proxy's forwarding fields are not valid",
        "A trusted proxy names its client in Forwarded, or in X-Forwarded-For, -Host and -Proto. Have it set one kind of \
         these fields and remove the other.",
    ),
    (
        Kind::UnsupportedEncoding,
        "The body is encoded",
        "Send the body unencoded, without Content-Encoding.",
    ),
    (
        Kind::UnsupportedTransferCoding,
        "The transfer coding is not supported",
        "Transfer-Encoding may only be chunked.",
    ),
    (
        Kind::FrameRefused,
        "Only for an iframe",
        "A topic with frame=NAME is the document of an iframe in a page of the same site, and calls a function of that \
         page. The server recognizes such an iframe by Sec-Fetch-Dest and Sec-Fetch-Site, which browsers send only over \
         https and to localhost.",
    ),
    (
        Kind::BadParameter,
        "A parameter is not valid",
        "The detail names the query parameter or header field, its value and the valid values.",
    ),
    (
        Kind::PositionAhead,
        "The position was never issued",
        "Positions come from this topic's replies, but this one is beyond its newest event. Begin again with \
         after=earliest or after=latest.",
    ),
    (
        Kind::NotAcceptable,
        "No representation that Accept allows",
        "The detail lists the representations of a topic; a file is available uncompressed or with gzip.",
    ),
    (
        Kind::RangeNotSatisfiable,
        "The range is beyond the end of the file",
        "Content-Range says how long the file is. Ask for a range that begins before its end, or for the whole file.",
    ),
    (
        Kind::OriginRefused,
        "Origin refused",
        "Pages of another origin may use this server only if --allow-origin or allow_origins names their origin.",
    ),
    (
        Kind::BadHandshake,
        "Not a WebSocket handshake",
        "The detail names the requirement of RFC 6455 section 4.2.1 that the request does not meet.",
    ),
    (
        Kind::TlsRequired,
        "This port speaks TLS",
        "Use https:// instead of http://, or wss:// instead of ws://.",
    ),
    (
        Kind::PublishRefused,
        "This client may not publish here",
        "A topic with publish = \"loopback\" accepts events only from clients on the server's own machine. They may not come \
         through a proxy that names its client, and a page must address the server as localhost or by its loopback \
         address.",
    ),
    (
        Kind::LocalOnly,
        "Only for the server's own machine",
        "Ask from the server's own machine, at a loopback address and not through a proxy.",
    ),
    (
        Kind::UnsupportedType,
        "This type cannot be published",
        "The Accept-Post field lists the types that can. With curl, -d DATA publishes JSON, or text if it is not JSON; \
         -H 'Content-Type: text/plain' -d DATA always publishes text.",
    ),
    (
        Kind::BadEvent,
        "There is no event, or one does not match its type",
        "The detail says where, and which Content-Type to use. Nothing was published.",
    ),
    (
        Kind::EventTooBig,
        "An event is too big",
        "The detail names the limit, which counts the event as JSON: a string with its quotes and \
         escapes, bytes as Base64. Nothing was published.",
    ),
    (
        Kind::KeyReused,
        "The idempotency key was used for other events",
        "Each batch needs its own key; only a retry of the same batch may repeat a key. Nothing was published.",
    ),
    (
        Kind::PreconditionFailed,
        "The If-Match condition does not hold",
        "The topic has newer events, or began a new epoch, and nothing was published; or the file has changed. \
         Read it again, and retry with the new ETag.",
    ),
    (
        Kind::UnknownRecord,
        "No record has this id",
        "GET on the resource lists its records. The record may have been removed.",
    ),
    (
        Kind::Conflict,
        "The record exists already",
        "Create the record with another id, or without one, and the server chooses it. PUT replaces the record that exists.",
    ),
    (
        Kind::Unprocessable,
        "The input does not fit",
        "The input is well formed, but the service cannot use it. The detail says why, and the member pointer (RFC 6901) \
         names the place in the document.",
    ),
    (
        Kind::ServiceTimeout,
        "The service did not answer in time",
        "The service did not begin its reply within service_timeout. For long work, send Prefer: respond-async with a POST, \
         and watch the run.",
    ),
    (
        Kind::UnknownRun,
        "No run has this key",
        "The key may be wrong, or the run ended too long ago. A run disappears some time after its end (run_retention).",
    ),
    (
        Kind::RunEnded,
        "The run has ended",
        "It can be read, but no longer cancelled. GET /runs/KEY?state returns its state and its result.",
    ),
    (
        Kind::RunFailed,
        "The run failed",
        "Its work failed; the detail says why. A program's standard error is in the member stderr of its state.",
    ),
    (
        Kind::RunTimeout,
        "The run took too long",
        "It was stopped because it took longer than run_time_max. Give it less to do, or raise that limit.",
    ),
    (
        Kind::TooManyRuns,
        "Too many runs are waiting",
        "The queue of runs is full, or this client has too many runs in it. Try again after the time in Retry-After.",
    ),
    (
        Kind::StartRefused,
        "This client may not start this, or change this",
        "By default, only clients on the server's own machine may start runs of programs and change the demo's records. \
         They may not come through a proxy. The configuration can allow anyone.",
    ),
    (
        Kind::TooManyTopics,
        "Too many topics",
        "The detail names the limit. Publish to an existing topic.",
    ),
    (
        Kind::StorageFull,
        "There is no space to store the event",
        "Nothing was published. Try again once there is space.",
    ),
    (
        Kind::StorageFailed,
        "The event cannot be stored",
        "Nothing was published, or the outcome is unknown: a retry with the same idempotency key is safe. \
         The server's log says more.",
    ),
    (Kind::BodyTooBig, "The body is too big", "The detail names the limit."),
    (
        Kind::BadBody,
        "The body could not be read",
        "The detail says what is wrong: the body was cut short, or its framing is not valid.",
    ),
    (Kind::BodyTimeout, "The body took too long", "The detail names the limit."),
    (Kind::Stopping, "The server is stopping", "Try again once the server is back."),
    (
        Kind::BadMessage,
        "The message is not valid",
        "A message is METHOD ID TARGET, or CANCEL ID; a payload follows after a line feed. The detail says what is wrong.",
    ),
    (
        Kind::TooManyRequests,
        "Too many requests are open",
        "The number of open requests on a connection is limited. Wait until one has its final status, or cancel one.",
    ),
    (Kind::TooManyConnections, "Too many connections", "Try again in a moment."),
    (
        Kind::TooManyAwaited,
        "Clients await too many topics",
        "The topic has no event yet, and clients already wait for as many such topics as the limit allows. Poll without \
         wait, which always gets an answer, or try again later. If this persists, raise limits.awaited_topics_max or \
         limits.awaited_topics_per_address_max.",
    ),
    (
        Kind::Overloaded,
        "The server holds too much data for its clients",
        "Try again in a moment: the server drops the clients that have been stuck longest. If this persists, raise \
         memory_max.",
    ),
    (Kind::Internal, "Internal error", "The server's log says more."),
];

/// Returns the title of a kind.
pub(crate) const fn title(kind: Kind) -> &'static str {
    TABLE[kind as usize].1
}

/// Returns the text at `/problems/NAME`.
pub(crate) fn explanation(name: &str) -> Option<String> {
    let kind = Kind::of(name)?;
    let (_, title, advice) = TABLE[kind as usize];
    Some(format!("{title} ({})\n\n{advice}\n", status(kind)))
}

/// Returns the status of a kind.
pub(crate) fn status(kind: Kind) -> StatusCode {
    // Every status is that of an error.
    StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_kinds() {
        assert!(TABLE.iter().enumerate().all(|(index, (kind, ..))| *kind as usize == index));
    }

    #[test]
    fn every_kind_has_a_page() {
        assert!(Kind::ALL.iter().all(|kind| explanation(kind.name()).is_some()));
        assert_eq!(explanation("nonsense"), None);
        let page = explanation("misdirected").unwrap();
        assert!(
            page.starts_with("Not a host of this server (421 Misdirected Request)\n\n"),
            "{page}"
        );
    }
}
