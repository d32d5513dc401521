//! The other end of a connection, as its socket says.

use std::io;
use std::net::{SocketAddr, TcpStream};

/// The address of the client that a request is for, as far as that is known: what a trusted proxy says of it, or else the other
/// end of its connection. It is among the extensions of each request that a [`Fallback`](crate::Fallback) gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientAddress(pub SocketAddr);

/// The ends of the connection that a request came by, for a [`Service`](crate::Service) behind somebody else's HTTP server: among the
/// request's extensions, or found there by [`Service::peer_from`](crate::Service::peer_from).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ConnectionEnds {
    /// The other end.
    pub peer: SocketAddr,
    /// The end here. With it, on Linux, the system is asked which user a client of this machine is; without it every user of
    /// this machine may do what is for clients of the server's own machine.
    pub own: Option<SocketAddr>,
}

impl From<SocketAddr> for ConnectionEnds {
    /// The other end alone.
    fn from(peer: SocketAddr) -> Self {
        Self { peer, own: None }
    }
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Peer {
    Address(SocketAddr),
    /// A loopback address, and the one that it is connected to.
    Loopback(SocketAddr, SocketAddr),
    /// Whoever may connect to the Unix socket, which is on this machine.
    Unix,
    /// It is gone already.
    Unknown,
}

impl Peer {
    /// As a socket says of its peer. That it cannot any more, for the peer is gone, is no error.
    pub(crate) fn of(stream: &TcpStream) -> Self {
        stream.peer_addr().map_or(Self::Unknown, |peer| {
            Self::between(ConnectionEnds { peer, own: stream.local_addr().ok() })
        })
    }

    /// As the ends of its connection say.
    pub(crate) fn between(ends: ConnectionEnds) -> Self {
        match (Self::new(Ok(ends.peer)), ends.own) {
            (Self::Address(address), Some(own)) if address.ip().is_loopback() => {
                Self::Loopback(address, canonical(own))
            }
            (peer, _) => peer,
        }
    }

    /// As its address says, alone.
    pub(crate) fn new(peer: io::Result<SocketAddr>) -> Self {
        peer.map_or(Self::Unknown, |address| Self::Address(canonical(address)))
    }

    pub(crate) fn is_local(self) -> bool {
        match self {
            Self::Address(address) | Self::Loopback(address, _) => address.ip().is_loopback(),
            Self::Unix => true,
            Self::Unknown => false,
        }
    }

    /// Its address, if it has one.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) | Self::Loopback(address, _) => Some(address),
            Self::Unix | Self::Unknown => None,
        }
    }

    /// The end of the connection here, if the other is on this machine.
    pub(crate) fn own_end(self) -> Option<SocketAddr> {
        if let Self::Loopback(_, own) = self { Some(own) } else { None }
    }
}

/// An IPv4 client comes to an IPv6 socket with a mapped address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
