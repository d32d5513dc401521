//! The handles to a loop.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use anemone_proto::{CloseFrame, Time};

use super::handler::{Handler, StreamHandler};
use super::opening::{Awaited, Opening};
use super::protocol::{Protocol, Stream, WebSocket};
use super::run::Loop;
use super::shared::{Adopted, Shared};
use crate::{Agreed, Memory};

/// A thread's loop. Clones are handles to the same one.
#[derive(Clone)]
pub struct Reactor(Rc<Shared>);

impl Reactor {
    /// Starts the loop as a task of the current local runtime.
    ///
    /// # Errors
    /// When there is no descriptor for its epoll set.
    ///
    /// # Panics
    /// Outside of a `LocalRuntime` or `LocalSet`.
    pub fn start() -> io::Result<Self> {
        Self::start_within(Memory::default())
    }

    /// The same; what its sockets hold for their peers, output that is not taken and messages that have not come
    /// whole, counts in `memory`. While that is exceeded, a message that goes on to come ends its connection (1013), and so
    /// do those end whom [`Memory::relieve`] concerns: who have held something for the longest time, and whose handlers have
    /// most open.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_within(memory: Memory) -> io::Result<Self> {
        let mut wanted = memory.wanted();
        let shared = Rc::new(Shared { memory, ..Shared::default() });
        let turns = Loop::new(Rc::clone(&shared))?;
        tokio::task::spawn_local(turns.run());
        let told = Rc::clone(&shared);
        tokio::task::spawn_local(async move {
            while wanted.changed().await.is_ok() {
                told.wanted.set(*wanted.borrow_and_update());
                told.bell.ring();
            }
        });
        Ok(Self(shared))
    }

    /// Accepts connections: `accept` gets each, and may have this loop take it over. The listener must
    /// be non-blocking, and so are the streams. When one cannot be accepted, for want of
    /// descriptors, say, the loop tells the log once and tries again ten times a second.
    pub fn listen(&self, listener: TcpListener, accept: impl FnMut(TcpStream) + 'static) {
        self.0.listening.borrow_mut().push((listener, Box::new(accept)));
        self.0.bell.ring();
    }

    /// Closes all listeners.
    pub fn stop_listening(&self) {
        self.0.is_deaf.set(true);
        // Those that the loop has not taken yet, for it may have no turn any more, and what accepts may
        // hold the loop: neither would ever go.
        drop(self.0.listening.take());
        self.0.bell.ring();
    }

    /// Takes over a connection of which its first bytes decide what it becomes. `decide` gets what
    /// one read brought, and can [wait for more](Opening::more). A connection that is not decided after
    /// `timeout` is closed. The stream must be non-blocking.
    pub fn adopt_opening(
        &self,
        stream: TcpStream,
        timeout: Duration,
        decide: impl FnOnce(&[u8]) -> Opening + 'static,
    ) {
        let decide = Box::new(decide);
        self.push(stream, Vec::new(), move |now| Box::new(Awaited::new(decide, now + timeout)));
    }

    /// Takes over a WebSocket whose handshake is done. The stream must be non-blocking.
    pub fn adopt<H>(&self, stream: TcpStream, mut agreed: Agreed, handler: H)
    where
        H: Handler + 'static,
    {
        let first = std::mem::take(&mut agreed.first);
        self.push(stream, first, move |now| WebSocket::boxed(agreed, handler, now));
    }

    /// Takes over a stream of bytes, which is closed after `idle_timeout` in which none came and
    /// nobody woke it, or none that were stuck were taken. The stream must be non-blocking.
    pub fn adopt_stream<H>(&self, stream: TcpStream, idle_timeout: Duration, handler: H)
    where
        H: StreamHandler + 'static,
    {
        self.push(stream, Vec::new(), move |now| Stream::boxed(handler, idle_timeout, now));
    }

    /// Returns if the loop panics, in a handler for instance: none of its connections is served any more then.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn failed(&self) {
        self.0.failed.notified().await;
    }

    fn push(
        &self,
        stream: TcpStream,
        first: Vec<u8>,
        protocol: impl FnOnce(Time) -> Box<dyn Protocol> + 'static,
    ) {
        self.0.connections.set(self.0.connections.get() + 1);
        let protocol = Box::new(protocol);
        self.0.adopted.borrow_mut().push_back(Adopted { stream, first, protocol });
        self.0.bell.ring();
    }

    /// The number of connections that are open, or have yet to say what they become.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.0.connections.get()
    }

    /// Closes every connection, those to come as well, and waits until all are over: at most the
    /// close time-out of their [`Config`](crate::proto::Config), twice.
    ///
    /// # Cancel safety
    /// Once polled, the connections are being closed.
    pub async fn close_all(&self, frame: CloseFrame) {
        *self.0.farewell.borrow_mut() = Some(frame);
        self.0.bell.ring();
        while self.0.connections.get() > 0 {
            self.0.ended.notified().await;
        }
    }
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reactor").field("connections", &self.0.connections).finish_non_exhaustive()
    }
}
