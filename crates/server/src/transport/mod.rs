//! The transports, one file each, and their lists. No transport imports another.

mod broadcast;
mod echo;
mod forever_frame;
mod long_poll;
mod multiplexed;
mod ndjson;
mod poll;
mod post;
mod service_socket;
mod sse;
#[cfg(test)]
mod tests;
mod websocket;

use crate::exchange::read_transport::ReadTransport;
use crate::exchange::tcp_transport::TcpTransport;
use crate::exchange::upgrade::{HandshakeRoute, HandshakeTransport, Post};

/// The transports that answer a `GET` of a topic. Among those that a client accepts equally, the first answers.
pub(crate) static READING: &[&ReadTransport] = &[
    &long_poll::TRANSPORT,
    &poll::TRANSPORT,
    &sse::TRANSPORT,
    &ndjson::TRANSPORT,
    &forever_frame::TRANSPORT,
    #[cfg(test)]
    &tests::toy::TRANSPORT,
];

/// The transport whose header fields a `HEAD` gets, whatever it accepts: a stream without its body has no
/// information.
pub(crate) static HEAD: &ReadTransport = &poll::HEAD;

/// Returns the transport of a stream over HTTP: server-sent events, or lines.
pub(crate) fn stream(is_event_stream: bool) -> &'static ReadTransport {
    if is_event_stream { &sse::TRANSPORT } else { &ndjson::TRANSPORT }
}

/// The transports that take over a connection after a handshake.
pub(crate) static SHAKING_HANDS: &[&HandshakeTransport] = &[
    &broadcast::TRANSPORT,
    &echo::TRANSPORT,
    &multiplexed::TRANSPORT,
    &websocket::TRANSPORT,
    &service_socket::TRANSPORT,
    #[cfg(test)]
    &tests::toy_path::TRANSPORT,
];

/// Returns the transport with this path of its own, and its handler of `POST`.
pub(crate) fn at_own(own: &str) -> Option<(&'static HandshakeTransport, Option<Post>)> {
    SHAKING_HANDS.iter().find_map(|transport| match transport.route {
        HandshakeRoute::Path { path, post, .. } if path == own => Some((*transport, post)),
        _ => None,
    })
}

/// Answers a request that changes a topic.
pub(crate) use self::post::answer as change;

/// The transports with their own TCP ports.
pub(crate) static TCP: &[&TcpTransport] = &[
    &multiplexed::TCP,
    &echo::TCP,
    #[cfg(test)]
    &tests::toy_port::TRANSPORT,
];
