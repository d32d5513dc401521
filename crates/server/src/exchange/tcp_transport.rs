//! The descriptor of a transport that has a TCP port of its own, without HTTP.

use std::net::TcpStream;
use std::rc::Rc;

use crate::Problem;
use crate::clients::permits::ConnectionPermit;
use crate::local::Local;
use crate::peer::Peer;

/// A transport that serves every connection to a port.
#[derive(Debug)]
pub(crate) struct TcpTransport {
    /// Has the thread's loop serve a connection.
    pub(crate) adopt: fn(&Rc<Local>, TcpStream, Peer, ConnectionPermit),
    /// The bytes for a client that is not let in.
    pub(crate) refusal: fn(&Problem) -> Vec<u8>,
}
