//! One loop for all plain sockets of a thread.
//!
//! A [`Reactor`] has its own epoll set, whose descriptor the runtime watches like any other. One task therefore
//! serves all sockets of the thread, a turn at a time, beside the thread's other tasks. All sockets share one read
//! buffer, one output buffer and one reading of the clock. An idle socket has no task, no timer and no buffer.
//!
//! [`drive`] does the same for one stream of any other kind, in a task of its own.
//!
//! A turn reads each ready socket, passes the input to its [`Handler`], and writes all queued output at once. The
//! loop does not read from a socket whose output is pending. A socket with more work than fits a slice of less than
//! half a millisecond continues in a later turn, after the sockets that came before it. A turn therefore takes about
//! a millisecond at most; then the runtime checks its own IO and timers.
//!
//! [`Reactor::survey`] describes the connections of the thread, a few in each turn.
//!
//! # Example
//! An echo for any number of connections, and one client:
//! ```
//! use anemone_ws::proto::handshake::{HANDSHAKE_BYTES_MAX, ServerHandshake};
//! use anemone_ws::proto::{Message, Sender};
//! use anemone_ws::reactor::{Handler, Opening, Reactor};
//! use anemone_ws::{Incoming, Memory, Negotiated};
//!
//! struct Echo;
//! impl Handler for Echo {
//!     fn on_message(&mut self, message: Message<'_>, sender: &mut Sender) {
//!         let _ = sender.send(message); // fails once the connection is being closed
//!     }
//! }
//!
//! /// Makes a connection a WebSocket, once its handshake is whole.
//! fn decide(first: &[u8]) -> Opening {
//!     match ServerHandshake::default().receive(first, &[]) {
//!         Ok(None) => Opening::more(HANDSHAKE_BYTES_MAX, decide),
//!         Ok(Some(answered)) => {
//!             let negotiated = Negotiated { first: answered.rest, ..Negotiated::default() };
//!             Opening::web_socket(answered.response.head().into_bytes(), negotiated, Echo)
//!         }
//!         Err(error) => Opening::refuse(ServerHandshake::refusal(&error).into_bytes()),
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut builder = tokio::runtime::Builder::new_current_thread();
//! builder.enable_all().build_local(Default::default())?.block_on(async {
//!     let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//!     listener.set_nonblocking(true)?;
//!     let url = format!("ws://{}/", listener.local_addr()?);
//!     let reactor = Reactor::start(Memory::default())?;
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
mod drive;
mod handle;
mod handler;
mod listeners;
mod opening;
mod pending;
mod protocol;
mod release;
mod run;
mod scratch;
mod shared;
mod socket;
mod sockets;
mod stream;
mod survey;
mod timers;
mod waker;

pub use broadcast::{Broadcast, DeliverError, Member};
pub use drive::drive;
pub use handle::Reactor;
pub use handler::{Handler, StreamHandler};
pub use opening::Opening;
pub use survey::{ConnectionId, LoopFigures, Speaks, SurveyedConnection};
pub use waker::{SendWaker, SyncWaker};
