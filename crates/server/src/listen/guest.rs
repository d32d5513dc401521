//! The connections that leave the thread's loop, for a task of their own.

use std::net::TcpStream;

use tokio::sync::mpsc;

use crate::clients::permits::ConnectionPermit;
use crate::peer::Peer;
use crate::routes::BegunCall;

/// A connection for a task of its own. Permits limit their number.
#[derive(Debug)]
pub(super) struct Guest {
    /// Must be non-blocking.
    pub(super) stream: TcpStream,
    pub(super) peer: Peer,
    pub(super) permit: ConnectionPermit,
    pub(super) first: FirstRequest,
}

/// The beginning of a connection's first request in its task.
#[derive(Debug, Default)]
pub(super) struct FirstRequest {
    /// The bytes that were read from the connection already.
    pub(super) bytes: Vec<u8>,
    /// The call for that request, if its service was called already.
    pub(super) begun: Option<Box<BegunCall>>,
}

impl From<Vec<u8>> for FirstRequest {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, begun: None }
    }
}

/// Passes connections to tasks of their own.
#[derive(Clone, Debug)]
pub(super) struct Guests(mpsc::UnboundedSender<Guest>);

impl Guests {
    /// Returns the passage, and its end: each connection that comes out must be served.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Guest>) {
        let (guests, admitted) = mpsc::unbounded_channel();
        (Self(guests), admitted)
    }

    pub(super) fn admit(&self, guest: Guest) {
        // Fails after the server has stopped, when nobody is served any more.
        let _ = self.0.send(guest);
    }
}
