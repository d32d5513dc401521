//! An address with a listener for every thread.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

use crate::listen::bind_error::BindError;
use crate::socket::unix_socket::BACKLOG;

/// An address to listen on.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    /// The first listener, which holds the port until it is taken.
    first: Option<TcpListener>,
}

impl Port {
    pub(crate) fn claim(address: SocketAddr) -> Result<Self, BindError> {
        let claim = || {
            if address.port() != 0 {
                // Sockets that share a port would also share it with another server that shares it; one that does not
                // share detects that.
                listen(address, Sharing::Alone)?;
            }
            // A free port is held from now on: if it were released for a moment, another server could get it.
            let first = listen(address, Sharing::Shared)?;
            Ok(Self { address: first.local_addr()?, first: Some(first) })
        };
        claim().map_err(|error| BindError::of_address(address, error))
    }

    /// Returns one more listener on it.
    pub(crate) fn listener(&mut self) -> Result<TcpListener, BindError> {
        match self.first.take() {
            Some(first) => Ok(first),
            None => listen(self.address, Sharing::Shared)
                .map_err(|error| BindError::of_address(self.address, error)),
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sharing {
    Alone,
    Shared,
}

fn listen(address: SocketAddr, sharing: Sharing) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if sharing == Sharing::Shared {
        socket.set_reuse_port(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    // Connections inherit this: small messages are sent at once, without waiting for an acknowledgement.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
