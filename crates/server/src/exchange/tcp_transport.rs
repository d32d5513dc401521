//! The descriptor of a transport with its own TCP port, without HTTP.

use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;

use crate::clients::permits::ConnectionPermit;
use crate::local::Local;
use crate::peer::Peer;
use crate::{Options, Problem};

/// A transport that serves all connections to a port.
#[derive(Debug)]
pub(crate) struct TcpTransport {
    /// The name of its port.
    pub(crate) name: &'static str,
    /// Returns the address for its port, if it is offered.
    pub(crate) address: fn(&Options) -> Option<SocketAddr>,
    /// Serves a connection in the thread's loop.
    pub(crate) adopt: fn(&Rc<Local>, TcpStream, Peer, ConnectionPermit),
    /// Returns the bytes for a refused client.
    pub(crate) refusal: fn(&Problem) -> Vec<u8>,
}
