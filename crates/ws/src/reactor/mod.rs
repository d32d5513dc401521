//! One loop for all plain sockets of a thread.
//!
//! A [`Reactor`] has an epoll set of its own, whose descriptor the runtime watches like any other,
//! so one task serves all its sockets, a turn at a time, beside whatever else runs on the thread. What
//! a turn needs exists once: a read buffer, an output buffer, one reading of the clock. A socket
//! that has nothing to do costs no task, no timer and no buffer.
//!
//! [`drive`] does the same for one stream of any other kind, in a task of its own.
//!
//! A turn reads each ready socket, hands what came to its [`Handler`], and writes all that was queued
//! meanwhile in one go. A socket whose output is stuck is not read. One that has more to do than fits a slice
//! of less than half a millisecond goes on in a later turn, after everybody who came before; and so a turn takes
//! about a millisecond at most, after which the runtime looks at its own IO and timers.
//!
//! # Example
//! An echo for any number of connections, and one client:
//! ```
//! use anemone_ws::proto::{Message, Sender, handshake::ServerHandshake};
//! use anemone_ws::reactor::{Handler, Opening, Reactor};
//! use anemone_ws::{Agreed, Incoming};
//!
//! struct Echo;
//! impl Handler for Echo {
//!     fn message(&mut self, message: Message<'_>, sender: &mut Sender) {
//!         let _ = sender.send(message); // fails once the connection is being closed
//!     }
//! }
//!
//! /// What a connection becomes: a WebSocket, if a handshake is what came first.
//! fn decide(first: &[u8]) -> Opening {
//!     let Ok(Some(answered)) = ServerHandshake::default().receive(first, &[]) else {
//!         return Opening::elsewhere(drop); // a real server would answer, or wait for the rest
//!     };
//!     let agreed = Agreed { first: answered.rest, ..Agreed::default() };
//!     Opening::web_socket(answered.accepted.response().into_bytes(), agreed, Echo)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut builder = tokio::runtime::Builder::new_current_thread();
//! builder.enable_all().build_local(Default::default())?.block_on(async {
//!     let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//!     listener.set_nonblocking(true)?;
//!     let url = format!("ws://{}/", listener.local_addr()?);
//!     let reactor = Reactor::start()?;
//!     let adopting = reactor.clone();
//!     let timeout = std::time::Duration::from_secs(10);
//!     reactor.listen(listener, move |stream| adopting.adopt_opening(stream, timeout, decide));
//!
//!     let mut client = anemone_ws::connect(&url).await?;
//!     client.send("hello").await?;
//!     assert_eq!(client.recv().await?, Some(Incoming::Text("hello".into())));
//! #   Ok(())
//! })
//! # }
//! ```

mod broadcast;
mod budget;
mod concerned;
mod drive;
mod listeners;
mod opening;
mod protocol;
mod run;
mod scratch;
mod socket;
mod sockets;
mod stream;
mod stuck;
mod timers;
mod waker;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use anemone_proto::{CloseFrame, Message, Output, Piece, Sender, Time};
use opening::Awaited;
use protocol::{Protocol, Stream, WebSocket};
use tokio::sync::Notify;
use waker::Bell;

pub use broadcast::{Broadcast, DeliverError, Member};
pub use drive::{drive, drive_within};
pub use opening::Opening;
pub use waker::Waker;

use crate::{Agreed, Error, Memory, Wanted};

/// The work of an application with one connection: the four events of a WebSocket, and one more for
/// those who send on their own account. Messages are borrowed from the read buffer; replies are
/// queued on the spot, without allocation.
///
/// No method may block: every socket of the thread waits.
pub trait Handler {
    /// The connection is open.
    fn open(&mut self, waker: Waker, sender: &mut Sender) {
        let _ = (waker, sender);
    }

    /// Whether messages that do not come whole are to be handed out in pieces as they come, instead
    /// of collected. Asked once.
    fn takes_pieces(&self) -> bool {
        false
    }

    /// A piece of a message came; only where [`takes_pieces`](Self::takes_pieces) says so, and not
    /// for messages that came whole. A compressed one is cut into pieces of 32 KiB.
    fn piece(&mut self, piece: Piece<'_>, sender: &mut Sender) {
        let _ = (piece, sender);
    }

    /// A message came.
    fn message(&mut self, message: Message<'_>, sender: &mut Sender);

    /// Somebody called [`Waker::wake`], or everything that was stuck has been written. A good sender
    /// queues more only while [`Sender::queued_bytes`] is low.
    fn ready(&mut self, sender: &mut Sender) {
        let _ = sender;
    }

    /// The peer has ended its side without a close frame, and sends nothing more. Whether there is something to say
    /// to it yet: then this is asked again after each turn, and else the connection is over.
    fn ended(&mut self, sender: &mut Sender) -> bool {
        let _ = sender;
        false
    }

    /// The bytes that it has counted in the loop's [`Memory`] for what is open on the connection though nothing moves:
    /// requests, readers. Asked only when too much is held in all: then the connections on which most is open are closed
    /// (1013).
    fn open_bytes(&self) -> usize {
        0
    }

    /// The peer has answered a keep-alive ping, so long after it was sent, to the millisecond.
    fn pong(&mut self, round_trip: Duration) {
        let _ = round_trip;
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

/// The work of an application with the bytes of a connection that is not a WebSocket. What is appended to
/// `output` is written. While that is stuck nothing is read, and nobody is [`ready`](Self::ready).
pub trait StreamHandler {
    /// The connection is open.
    fn open(&mut self, waker: Waker) {
        let _ = waker;
    }

    /// Bytes came.
    fn receive(&mut self, bytes: &[u8], output: &mut Output);

    /// Most bytes that [`receive`](Self::receive) is given at once. Others have their turn in between, so a
    /// handler for which there may be much work in few bytes wants few. Asked before each read.
    fn receive_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Somebody called [`Waker::wake`], or everything that was stuck has been written.
    fn ready(&mut self, output: &mut Output) {
        let _ = output;
    }

    /// The peer has ended its side, and sends nothing more. Whether there is something to say to it yet: then this
    /// is asked again after each turn, and else the connection is over once all is written.
    fn ended(&mut self, output: &mut Output) -> bool {
        let _ = output;
        false
    }

    /// The loop [closes](Reactor::close_all) its connections: the last that is written.
    fn close(&mut self, output: &mut Output) {
        let _ = output;
    }

    /// The number of bytes that it keeps of what has not come whole.
    fn held_bytes(&self) -> usize {
        0
    }

    /// As [`Handler::open_bytes`].
    fn open_bytes(&self) -> usize {
        0
    }

    /// Once the stream is to be closed: how long the peer may take to read the rest and to end its side.
    fn ending(&self) -> Option<Duration> {
        None
    }
}

/// A thread's loop. Clones are handles to the same one.
#[derive(Clone)]
pub struct Reactor(Rc<Shared>);

/// The state through which the handles tell the loop something.
#[derive(Default)]
struct Shared {
    adopted: RefCell<VecDeque<Adopted>>,
    /// Listening sockets on their way into the loop.
    listening: RefCell<Vec<(TcpListener, Accept)>>,
    /// Set once: nobody is accepted any more.
    is_deaf: Cell<bool>,
    /// The memory in which counts what its sockets hold.
    memory: Memory,
    /// Those who are to let go of it, until the loop has seen to that.
    wanted: Cell<Option<Wanted>>,
    bell: Rc<Bell>,
    /// Set once: every connection is to be closed with this.
    farewell: RefCell<Option<CloseFrame>>,
    /// Connections adopted and not over.
    connections: Cell<usize>,
    ended: Notify,
    /// The loop has panicked.
    failed: Notify,
}

/// The function that takes those who come.
type Accept = Box<dyn FnMut(TcpStream)>;

/// A connection on its way into the loop.
struct Adopted {
    stream: TcpStream,
    /// The bytes that came with the handshake.
    first: Vec<u8>,
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
        let turns = run::Loop::new(Rc::clone(&shared))?;
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
    /// one read brought. A connection without any after `timeout` is closed. The stream must be
    /// non-blocking.
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
