//! The errors of binding a server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::files::StaticDirsError;
use crate::limits::LimitError;
use crate::service::mounts::MountsError;

/// An error of [`Server::bind`](crate::Server::bind).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another program listens on the address.
    #[error("another program listens on {address}")]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system does not allow this user to listen on the address, most likely because the port is below 1024.
    #[error("no permission to listen on {address}")]
    AddressDenied {
        /// The address.
        address: SocketAddr,
    },
    /// The system refuses the address for another reason, for example because it is not of this machine.
    #[error("cannot listen on {address}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// A place for this machine alone ([`Options::listen_local`](crate::Options::listen_local)) is an address that other
    /// machines may reach.
    #[error(
        "{address} is not a loopback address, such as 127.0.0.1, which other machines cannot reach"
    )]
    NotLocal {
        /// The address.
        address: SocketAddr,
    },
    /// The server cannot listen on the Unix socket.
    #[error("cannot listen on the Unix socket {}", path.display())]
    UnixSocket {
        /// The file of the socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A limit is out of its bounds.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Two directories of files have the same path.
    #[error(transparent)]
    StaticDirs(#[from] StaticDirsError),
    /// Two services are mounted at the same path.
    #[error("two services are mounted at {path}")]
    MountedTwice {
        /// The path.
        path: String,
    },
    /// A service describes a path that is not its own.
    #[error(
        "the service at {mount} describes {path:?}, but only its own path and those below it are its to describe"
    )]
    Described {
        /// The path of the service.
        mount: String,
        /// The path in its description.
        path: String,
    },
    /// A topic that is declared by name cannot be created.
    #[error("cannot create the topics that are declared by name")]
    Topics(#[source] io::Error),
}

impl From<MountsError> for BindError {
    fn from(error: MountsError) -> Self {
        match error {
            MountsError::Twice { path } => Self::MountedTwice { path },
            MountsError::Described { mount, path } => Self::Described { mount, path },
        }
    }
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
