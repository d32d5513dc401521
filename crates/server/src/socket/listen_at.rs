//! The places to listen on.

use std::fmt;
use std::net::SocketAddr;

use crate::UnixSocket;

/// A place to listen on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ListenAt {
    /// An address; port 0 takes a free one.
    Address(SocketAddr),
    /// A Unix socket, always without TLS.
    Unix(UnixSocket),
}

impl ListenAt {
    /// Returns the address, if it is one.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for ListenAt {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl From<UnixSocket> for ListenAt {
    fn from(socket: UnixSocket) -> Self {
        Self::Unix(socket)
    }
}

impl fmt::Display for ListenAt {
    /// Formats `IP:PORT` or `unix:PATH`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Unix(socket) => write!(f, "unix:{}", socket.path.display()),
        }
    }
}
