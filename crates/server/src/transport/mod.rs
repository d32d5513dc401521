//! One file for each way to read a topic or publish to it, and for what is no topic. None imports another; here they are
//! listed.

mod broadcast;
mod echo;
mod forever_frame;
mod long_poll;
mod multiplexed;
mod ndjson;
mod poll;
mod post;
mod sse;
#[cfg(test)]
mod tests;
mod websocket;

use crate::exchange::read_transport::ReadTransport;
use crate::exchange::tcp_transport::TcpTransport;
use crate::exchange::upgrade::HandshakeTransport;

/// The transports that answer a `GET` of a topic. Of those that a client takes equally well, the first answers.
pub(crate) static READING: &[&ReadTransport] = &[
    &long_poll::TRANSPORT,
    &poll::TRANSPORT,
    &sse::TRANSPORT,
    &ndjson::TRANSPORT,
    &forever_frame::TRANSPORT,
    #[cfg(test)]
    &tests::toy::TRANSPORT,
];

/// The transport whose reply's fields a `HEAD` gets, whatever it takes: a stream without its body says nothing.
pub(crate) static HEAD: &ReadTransport = &poll::TRANSPORT;

/// The transports that take a connection over after a handshake.
pub(crate) static SHAKING_HANDS: &[&HandshakeTransport] =
    &[&broadcast::TRANSPORT, &echo::TRANSPORT, &multiplexed::TRANSPORT, &websocket::TRANSPORT];

/// Answers a request that changes a topic.
pub(crate) use self::post::answer as change;

/// The transports that have a TCP port of their own: for `anemone.v1`, and to echo bytes.
pub(crate) static TCP: &TcpTransport = &multiplexed::TCP;
pub(crate) static TCP_ECHO: &TcpTransport = &echo::TCP;
