//! The listening sockets of a loop.

use std::io::{self, ErrorKind};
use std::net::TcpStream;

use mio::net::TcpListener;
use mio::{Interest, Registry};

use super::shared::OnAccept;

/// The most connections accepted in one turn; the rest follow in the next.
const ACCEPTS_MAX: usize = 16;

/// Listening sockets and the functions that take their connections.
#[derive(Default)]
pub(super) struct Listeners(Vec<Listener>);

struct Listener {
    socket: TcpListener,
    accept: OnAccept,
    /// True while connections may be waiting: epoll reports only new ones.
    may_accept: bool,
}

impl Listeners {
    /// Returns the token of a listener; these count down from the largest number.
    fn token(index: usize) -> mio::Token {
        mio::Token(usize::MAX - 1 - index)
    }

    pub(super) fn insert(
        &mut self,
        registry: &Registry,
        socket: std::net::TcpListener,
        accept: OnAccept,
    ) -> io::Result<()> {
        let mut socket = TcpListener::from_std(socket);
        registry.register(&mut socket, Self::token(self.0.len()), Interest::READABLE)?;
        self.0.push(Listener { socket, accept, may_accept: true });
        Ok(())
    }

    /// Records an event. Returns true if it belongs to a listener.
    pub(super) fn event(&mut self, token: mio::Token) -> bool {
        let index = (usize::MAX - 1).wrapping_sub(token.0);
        let listener = self.0.get_mut(index);
        listener.map(|listener| listener.may_accept = true).is_some()
    }

    pub(super) fn have_work(&self) -> bool {
        self.0.iter().any(|listener| listener.may_accept)
    }

    /// Accepts waiting connections.
    ///
    /// # Errors
    /// When a connection waits and cannot be accepted, for example because no descriptors are left. The caller can
    /// try again later.
    pub(super) fn accept(&mut self) -> io::Result<()> {
        for listener in self.0.iter_mut().filter(|listener| listener.may_accept) {
            for _ in 0..ACCEPTS_MAX {
                match listener.socket.accept() {
                    Ok((stream, _)) => (listener.accept)(TcpStream::from(stream)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        listener.may_accept = false;
                        break;
                    }
                    // The peer has already closed this connection.
                    Err(error) if is_of_the_connection(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.0.clear();
    }
}

fn is_of_the_connection(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
