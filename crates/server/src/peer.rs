//! The peer of a connection, according to its socket.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::geteuid;

use crate::owner::{self, Owner};
use crate::source::Source;

/// The ends of a request's connection, for a [`Service`](crate::Service) behind another HTTP server. They come from
/// the request's extensions, or from [`Service::peer_from`](crate::Service::peer_from).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ConnectionEnds {
    /// The client's end.
    pub peer: SocketAddr,
    /// The server's end of this very connection, which may differ from the address of the listener. On Linux, it
    /// allows the server to find the user of a client on this machine. Without it, or with a wrong one, no client has
    /// the rights of clients of the server's own machine. On systems that do not tell the user, all users of this
    /// machine have them.
    pub own: Option<SocketAddr>,
}

impl From<SocketAddr> for ConnectionEnds {
    /// Sets only the client's end.
    fn from(peer: SocketAddr) -> Self {
        Self { peer, own: None }
    }
}

/// The kind of place where a client has connected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Door {
    /// A client may be a trusted proxy.
    Common,
    /// For this machine alone: no client is a trusted proxy.
    Local,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct UnixPeer {
    /// The number of its user, if the system tells it.
    pub(crate) user: Option<u32>,
    /// The number of the connection, which has no port.
    pub(crate) number: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Peer {
    Address(SocketAddr),
    /// A loopback address, and the server's address of the connection.
    Loopback(SocketAddr, SocketAddr, Door),
    /// A loopback address, and the number of the user who has opened the connection.
    Owned(SocketAddr, u32, Door),
    /// A process on this machine that may connect to the Unix socket.
    Unix(UnixPeer, Door),
    /// The peer is gone already.
    Unknown,
}

impl Peer {
    /// Returns the peer of a socket. It is unknown if the peer is gone, which is no error.
    pub(crate) fn of(stream: &TcpStream, door: Door) -> Self {
        stream.peer_addr().map_or(Self::Unknown, |peer| {
            Self::between(ConnectionEnds { peer, own: stream.local_addr().ok() }, door)
        })
    }

    pub(crate) fn of_unix(stream: &UnixStream, door: Door) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::Unix(UnixPeer { user: owner::of_unix(stream), number }, door)
    }

    pub(crate) fn between(ends: ConnectionEnds, door: Door) -> Self {
        match (Self::new(Ok(ends.peer)), ends.own) {
            (Self::Address(address), Some(own)) if address.ip().is_loopback() => {
                Self::Loopback(address, canonical(own), door)
            }
            (peer, _) => peer,
        }
    }

    pub(crate) fn new(peer: io::Result<SocketAddr>) -> Self {
        peer.map_or(Self::Unknown, |address| Self::Address(canonical(address)))
    }

    /// Asks the kernel for the user of a loopback connection, if that was not done before.
    ///
    /// The answer holds as long as the connection: the kernel stores the user who opens a socket, and neither a process
    /// that gets the descriptor nor a change of the process's user changes it. Only root can, with `fchown`. No other
    /// socket gets these addresses while ours is open.
    pub(crate) fn with_owner(self) -> Self {
        let Self::Loopback(peer, own, door) = self else { return self };
        match owner::of(peer, own) {
            Owner::User(user) => Self::Owned(peer, user, door),
            Owner::Nobody | Owner::Unknown => self,
        }
    }

    pub(crate) fn is_local(self) -> bool {
        match self {
            Self::Address(address) | Self::Loopback(address, ..) | Self::Owned(address, ..) => {
                address.ip().is_loopback()
            }
            Self::Unix(..) => true,
            Self::Unknown => false,
        }
    }

    /// Returns the owner of the other end, if that is on this machine. Asks the kernel unless that was done before.
    pub(crate) fn owner(self) -> Owner {
        match self {
            Self::Loopback(peer, own, _) => owner::of(peer, own),
            Self::Owned(_, user, _) => Owner::User(user),
            Self::Unix(unix, _) => unix.user.map_or(Owner::Unknown, Owner::User),
            Self::Address(_) | Self::Unknown => Owner::Unknown,
        }
    }

    /// Checks that it is a process of the server's own user or of root. On a system that does not report users, any
    /// process on this machine passes.
    pub(crate) fn is_own(self) -> bool {
        self.is_local()
            && match self.owner() {
                Owner::User(user) => is_own_user(user),
                Owner::Unknown => !owner::are_reported(),
                Owner::Nobody => false,
            }
    }

    /// Returns the source that limits count it for: its user, if that is known, and else its address.
    pub(crate) fn source(self) -> Option<Source> {
        match self.owner() {
            Owner::User(user) => Some(Source::User(user)),
            Owner::Unknown | Owner::Nobody => {
                self.address().map(|address| Source::of(address.ip()))
            }
        }
    }

    /// Returns the number of the connection, which tells it from others of its source: the port of an address.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Unix(unix, _) => unix.number,
            _ => self.address().map_or(0, |address| address.port().into()),
        }
    }

    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) | Self::Loopback(address, ..) | Self::Owned(address, ..) => {
                Some(address)
            }
            Self::Unix(..) | Self::Unknown => None,
        }
    }

    pub(crate) fn is_unix(self) -> bool {
        matches!(self, Self::Unix(..))
    }

    /// Returns true if it came in where there is no TLS: by a Unix socket, or at a place for this machine alone.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Unix(..)) || self.is_direct()
    }

    /// Returns true if it came in where no client is a trusted proxy.
    pub(crate) fn is_direct(self) -> bool {
        matches!(
            self,
            Self::Loopback(_, _, Door::Local)
                | Self::Owned(_, _, Door::Local)
                | Self::Unix(_, Door::Local)
        )
    }
}

/// Returns true for the server's own user and for root.
pub(crate) fn is_own_user(user: u32) -> bool {
    const ROOT: u32 = 0;
    user == ROOT || user == geteuid().as_raw()
}

/// Unmaps the address of an IPv4 client on an IPv6 socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
