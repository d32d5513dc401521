//! The load generator. It has one thread with its own epoll set, and checks every reply.
//!
//! `frames` prepares the bytes to send and the bytes to expect before the clock starts. A message costs the generator a
//! copy into the kernel, a copy out of it, and a comparison.

mod audience;
mod calls;
mod churn;
mod connection;
mod delivery;
mod fragments;
mod frames;
mod generator;
mod http;
mod http2;
mod opening;
mod poller;
mod publishers;
mod readers;
mod topic;
mod unchecked;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context;
pub(crate) use audience::Audience;
pub(crate) use calls::{CallWay, CalledService, Calls};
pub(crate) use churn::{Closing, churn};
pub(crate) use delivery::Delivery;
pub(crate) use frames::{Frames, Shape, masked_and_timed, masked_frame};
pub(crate) use generator::Generator;
pub(crate) use http::{Body, BodyEnd, Head, chunk, head, post, request, response};
pub(crate) use http2::Http2Calls;
pub(crate) use opening::{
    Opener, echo_once, join, open, raise_descriptor_limit, shake_hands, shake_hands_with_talker,
};
pub(crate) use publishers::{Acknowledged, PublishWay, Publishers};
pub(crate) use readers::{Deliveries, Readers};
pub(crate) use topic::Topic;
pub(crate) use unchecked::client_config;

/// The longest wait for a step that a server should do at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The protocol of a connection after its opening.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Protocol {
    /// Bytes are echoed without framing.
    Tcp,
    /// Messages of one frame each are echoed.
    WebSocket,
}

/// The endpoint of an echo or a broadcast.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    /// The path of the WebSocket handshake, such as `/echo`.
    pub(crate) path: String,
}

/// Connects, and sends nothing. A read waits for at most [`PATIENCE`].
pub(crate) fn connect(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Returns true if the operation can be tried again.
pub(crate) fn is_transient(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
