//! The descriptor of a transport with its own TCP port, without HTTP.

use std::net::TcpStream;
use std::rc::Rc;

use crate::Problem;
use crate::clients::permits::ConnectionPermit;
use crate::local::Local;
use crate::peer::Peer;

/// A transport that serves all connections to a port.
#[derive(Debug)]
pub(crate) struct TcpTransport {
    /// Serves a connection in the thread's loop.
    pub(crate) adopt: fn(&Rc<Local>, TcpStream, Peer, ConnectionPermit),
    /// Returns the bytes for a refused client.
    pub(crate) refusal: fn(&Problem) -> Vec<u8>,
}
