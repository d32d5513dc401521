//! One loop for all plain sockets of a thread.
//!
//! A [`Reactor`] has an epoll set of its own, whose descriptor the runtime watches like any other,
//! so one task serves all its sockets, a turn at a time, beside whatever else runs on the thread. What
//! a turn needs exists once: a read buffer, an output buffer, one reading of the clock. A socket
//! that has nothing to do costs no task, no timer and no buffer.
//!
//! A turn reads each ready socket once, hands everything that came to its [`Handler`], and writes all that
//! was queued meanwhile in one go. A socket whose output is stuck is not read.

mod protocol;
mod run;
mod socket;
mod timers;

use std::cell::{Cell, RefCell};
use std::io;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anemone_proto::{CloseFrame, Config, Connection, Message, Sender, Time};
use protocol::{Protocol, Stream, WebSocket};
use tokio::sync::Notify;

use crate::Error;

/// What an application does with one connection: the four events of a WebSocket, and one more for
/// those who send on their own account. Messages are borrowed from the read buffer; replies are
/// queued on the spot, without allocation.
///
/// No method may block: every socket of the thread waits.
pub trait Handler {
    /// The connection is open.
    fn open(&mut self, token: Token, sender: &mut Sender) {
        let _ = (token, sender);
    }

    /// A message came.
    fn message(&mut self, message: Message<'_>, sender: &mut Sender);

    /// Somebody called [`Reactor::wake`], or everything queued has been written. A good sender
    /// queues more only while [`Sender::queued_bytes`] is low.
    fn ready(&mut self, sender: &mut Sender) {
        let _ = sender;
    }

    /// The connection failed; [`close`](Self::close) follows.
    fn error(&mut self, error: &Error) {
        let _ = error;
    }

    /// The connection is over, with the peer's close frame if it sent one.
    fn close(&mut self, frame: Option<&CloseFrame>) {
        let _ = frame;
    }
}

/// What an application does with the bytes of a connection that is not a WebSocket.
pub trait StreamHandler {
    /// Bytes came. What is appended to `output` is written back.
    fn receive(&mut self, bytes: &[u8], output: &mut Vec<u8>);
}

/// Which connection of a reactor; never used twice.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Token {
    key: u32,
    generation: u32,
}

/// A thread's loop. Clones are handles to the same one.
#[derive(Clone)]
pub struct Reactor(Rc<Shared>);

/// What the handles tell the loop.
#[derive(Default)]
struct Shared {
    adopted: RefCell<Vec<Adopted>>,
    woken: RefCell<Vec<Token>>,
    /// Set once: every connection is to be closed with this.
    farewell: RefCell<Option<CloseFrame>>,
    told: Notify,
    /// Connections adopted and not over.
    connections: Cell<usize>,
    ended: Notify,
}

/// A connection on its way into the loop.
struct Adopted {
    stream: TcpStream,
    /// Made in the loop, which has the clock.
    protocol: Box<dyn FnOnce(Time) -> Box<dyn Protocol>>,
}

impl Reactor {
    /// Starts the loop as a task of the current local runtime.
    ///
    /// # Errors
    /// When there is no descriptor for its epoll set.
    ///
    /// # Panics
    /// Outside of a `LocalRuntime` or `LocalSet`.
    pub fn start() -> io::Result<Self> {
        let shared = Rc::new(Shared::default());
        let turns = run::Loop::new(Rc::clone(&shared))?;
        tokio::task::spawn_local(turns.run());
        Ok(Self(shared))
    }

    /// Takes over a WebSocket whose handshake is done. The stream must be non-blocking; `first` are
    /// the bytes that came after the handshake, if any.
    pub fn adopt<H>(&self, stream: TcpStream, config: Arc<Config>, first: Vec<u8>, handler: H)
    where
        H: Handler + 'static,
    {
        let close_timeout = config.close_timeout;
        self.push(stream, move |now| {
            let connection = Connection::server(config, now);
            Box::new(WebSocket { connection, handler, first, close_timeout, ending: None })
        });
    }

    /// Takes over a stream of bytes, which is closed after `idle_timeout` without any. The stream
    /// must be non-blocking.
    pub fn adopt_stream<H>(&self, stream: TcpStream, idle_timeout: Duration, handler: H)
    where
        H: StreamHandler + 'static,
    {
        self.push(stream, move |now| {
            Box::new(Stream { handler, idle_timeout, received_at: now, is_over: false })
        });
    }

    fn push(&self, stream: TcpStream, protocol: impl FnOnce(Time) -> Box<dyn Protocol> + 'static) {
        self.0.connections.set(self.0.connections.get() + 1);
        self.0.adopted.borrow_mut().push(Adopted { stream, protocol: Box::new(protocol) });
        self.0.told.notify_one();
    }

    /// Has [`Handler::ready`] called for this connection, if it is still there.
    pub fn wake(&self, token: Token) {
        self.0.woken.borrow_mut().push(token);
        self.0.told.notify_one();
    }

    /// Closes every connection, those to come as well, and waits until all are over: at most the
    /// close time-out of their [`Config`], twice.
    ///
    /// # Cancel safety
    /// Once polled, the connections are being closed.
    pub async fn close_all(&self, frame: CloseFrame) {
        *self.0.farewell.borrow_mut() = Some(frame);
        self.0.told.notify_one();
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

