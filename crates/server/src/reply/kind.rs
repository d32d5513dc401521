//! The advice for each kind of problem.

use anemone_wire::problem::Kind;
use http::StatusCode;

/// The advice for each kind, in their order.
const TABLE: [(Kind, &str); Kind::ALL.len()] = [
    (Kind::UnknownPath, "GET /topics lists the topics; GET /topics/NAME reads one."),
    (Kind::UnknownTopic, "GET /topics lists the topics."),
    (Kind::TopicDeleted, "It will have no more events. GET /topics lists the topics."),
    (
        Kind::TooSlow,
        "This topic closes readers whose next events it no longer retains. The member gap says which events are \
         missing. Continue after its resume, or begin again with after=earliest or after=latest.",
    ),
    (Kind::MethodNotAllowed, "The Allow field lists the methods that this path accepts."),
    (
        Kind::BadHost,
        "An HTTP/1.1 request must have exactly one Host field, with the host and port of its URL.",
    ),
    (
        Kind::Misdirected,
        "The server answers requests for localhost, for loopback addresses, for the addresses it listens on, and for \
         the names in allow_hosts (or --allow-host NAME); if it listens everywhere, also for the name of its machine. This keeps other sites from pointing their names at it. \
         If a proxy is in front, have it forward the original Host, or allow the host that it sends.",
    ),
    (
        Kind::BadName,
        "A topic's name is 1 to 128 of A-Z a-z 0-9 . _ - and begins with a letter or a digit. In a path, two \
         hexadecimal digits must follow each %, and they may not encode a slash or a control character.",
    ),
    (
        Kind::BadForwarding,
        "A trusted proxy names its client in Forwarded, or in X-Forwarded-For, -Host, -Proto and -Port. Have it set one kind of \
         these fields and remove the other.",
    ),
    (Kind::UnsupportedEncoding, "Send the body unencoded, without Content-Encoding."),
    (Kind::UnsupportedTransferCoding, "Transfer-Encoding may only be chunked."),
    (
        Kind::FrameRefused,
        "A topic with frame=NAME is the document of an iframe in a page of the same site, and calls a function of that \
         page. The server recognizes such an iframe by Sec-Fetch-Dest and Sec-Fetch-Site, which browsers send only over \
         https and to localhost.",
    ),
    (
        Kind::BadParameter,
        "The detail names the query parameter or header field, its value and the valid values.",
    ),
    (
        Kind::PositionAhead,
        "Positions come from this topic's replies, but this one is beyond its newest event. Begin again with \
         after=earliest or after=latest.",
    ),
    (
        Kind::TokenTooLong,
        "The positions of all topics must fit token_bytes_max. Read fewer topics on one stream, or each with a reader of its \
         own on /ws.",
    ),
    (
        Kind::NotAcceptable,
        "The detail lists the representations of a topic; a file is available uncompressed or with gzip.",
    ),
    (
        Kind::RangeNotSatisfiable,
        "Content-Range says how long the file is. Ask for a range that begins before its end, or for the whole file.",
    ),
    (
        Kind::OriginRefused,
        "Pages of another origin may use this server only if --allow-origin or allow_origins names their origin: \
         SCHEME://HOST[:PORT], or SCHEME://*.NAME. If it is the server's own page, a proxy in front has replaced the Host or \
         removed its port: have it forward the original (nginx: proxy_set_header Host $http_host).",
    ),
    (
        Kind::BadHandshake,
        "The detail names the requirement of RFC 6455 section 4.2.1 that the request does not meet.",
    ),
    (Kind::TlsRequired, "Use https:// instead of http://, or wss:// instead of ws://."),
    (
        Kind::PublishRefused,
        "A topic with publish = \"loopback\" accepts events only from clients on the server's own machine. They may not come \
         through a proxy that names its client, and a page must address the server as localhost or by its loopback \
         address.",
    ),
    (
        Kind::LocalOnly,
        "Ask from the server's own machine, at a loopback address and not through a proxy.",
    ),
    (
        Kind::UnsupportedType,
        "The Accept-Post or Accept-Patch field lists the types that are. With curl, --json DATA sends JSON. To a topic, -d DATA \
         publishes JSON, or text if it is not JSON; -H 'Content-Type: text/plain' -d DATA always publishes text.",
    ),
    (
        Kind::BadEvent,
        "The detail says where, and which Content-Type to use. Nothing was published.",
    ),
    (
        Kind::EventTooBig,
        "The detail names the limit, which counts the event as JSON: a string with its quotes and \
         escapes, bytes as Base64. Nothing was published.",
    ),
    (
        Kind::KeyReused,
        "Each request needs a key of its own; only a retry of the same one may repeat it. Nothing was done now. The detail says \
         so if this very request was carried out before, and its result is gone.",
    ),
    (
        Kind::PreconditionFailed,
        "The topic has newer events, or began a new epoch, and nothing was published; or the file has changed. \
         Read it again, and retry with the new ETag.",
    ),
    (
        Kind::UnknownRecord,
        "GET on the resource lists its records. The record may have been removed.",
    ),
    (
        Kind::Conflict,
        "Create the record with another id, or without one, and the server chooses it. PUT replaces the record that exists.",
    ),
    (
        Kind::Unprocessable,
        "The input is well formed, but the service cannot use it. The detail says why, and the member pointer (RFC 6901) \
         names the place in the document.",
    ),
    (
        Kind::ServiceTimeout,
        "The service did not begin its reply within service_timeout. For long work, send Prefer: respond-async with a POST, \
         and watch the run.",
    ),
    (
        Kind::UnknownRun,
        "The key may be wrong, or the run ended too long ago. A run disappears some time after its end (run_retention).",
    ),
    (
        Kind::RunEnded,
        "It can be read, but no longer cancelled. GET /runs/KEY?state returns its state and its result.",
    ),
    (
        Kind::RunFailed,
        "Its work failed; the detail says why. A program's standard error is in the member stderr of its state.",
    ),
    (
        Kind::RunTimeout,
        "It was stopped because it took longer than run_time_max. Give it less to do, or raise that limit.",
    ),
    (
        Kind::TooManyRuns,
        "The queue of runs is full, or this client has too many runs in it. Try again after the time in Retry-After.",
    ),
    (
        Kind::StartRefused,
        "By default, only clients on the server's own machine may start runs of programs and change the demo's records. \
         They may not come through a proxy. To let anyone start runs, set start = \"anyone\" in the service's [[run]] of the \
         configuration, which replaces --run; for a Mount in Rust, Mount::start_right(StartRight::Anyone).",
    ),
    (Kind::TooManyTopics, "The detail names the limit. Publish to an existing topic."),
    (Kind::StorageFull, "Nothing was published. Try again once there is space."),
    (
        Kind::StorageFailed,
        "If this answers a publisher, nothing was published, or the outcome is unknown: a retry with the same idempotency key \
         is safe. If it answers a reader, the disk could not be read: try again later from the same position. The server's log \
         says more.",
    ),
    (Kind::BodyTooBig, "The detail names the limit."),
    (
        Kind::BadBody,
        "The detail says what is wrong: the body was cut short, or its framing is not valid.",
    ),
    (Kind::BodyTimeout, "The detail names the limit."),
    (Kind::Stopping, "Try again once the server is back."),
    (
        Kind::BadMessage,
        "A message is METHOD ID TARGET, perhaps with fields FIELD=VALUE, or CANCEL ID; a payload follows after a line feed. The detail says what is wrong.",
    ),
    (
        Kind::TooManyRequests,
        "The number of open requests on a connection is limited, and so is that of one client's finds which wait for \
         their turn at a resource. Wait until one has its final status, or cancel one.",
    ),
    (Kind::TooManyConnections, "Try again in a moment."),
    (
        Kind::TooManyAwaited,
        "The topic has no event yet, and clients already wait for as many such topics as the limit allows. Poll without \
         wait, which always gets an answer, or try again later. If this persists, raise limits.awaited_topics_max or \
         limits.awaited_topics_per_address_max.",
    ),
    (
        Kind::Overloaded,
        "Try again in a moment: the server drops the clients that have been stuck longest. If this persists, raise \
         memory_max.",
    ),
    (Kind::Internal, "The server's log says more."),
];

/// Returns the text at `/problems/NAME`.
pub(crate) fn explanation(name: &str) -> Option<String> {
    let kind = Kind::of(name)?;
    Some(format!("{} ({})\n\n{}\n", kind.title(), status(kind), advice(kind)))
}

pub(crate) fn advice(kind: Kind) -> &'static str {
    TABLE[kind as usize].1
}

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
