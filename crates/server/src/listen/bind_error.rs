//! The causes for which a server cannot be had.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::files::StaticDirsError;
use crate::limits::LimitError;

/// The cause for which [`Server::bind`](crate::Server::bind) has no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another program listens on the address.
    #[error("another program listens on {address}")]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system does not let this user listen on the address: a port below 1024, most likely.
    #[error("no permission to listen on {address}")]
    AddressDenied {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on for another reason: it is none of this machine's, for instance.
    #[error("cannot listen on {address}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The answer of the system.
        source: io::Error,
    },
    /// The Unix socket cannot be listened on.
    #[error("cannot listen on the Unix socket {}", path.display())]
    UnixSocket {
        /// The file of the socket.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// No server can keep to a limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Two directories of files are at one path.
    #[error(transparent)]
    StaticDirs(#[from] StaticDirsError),
    /// A topic that is declared by name cannot be created.
    #[error("cannot create the topics that are declared by name")]
    Topics(#[source] io::Error),
}

impl BindError {
    pub(crate) fn of_address(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse { address },
            io::ErrorKind::PermissionDenied => Self::AddressDenied { address },
            _ => Self::Address { address, source },
        }
    }
}
