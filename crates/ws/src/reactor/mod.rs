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
//! use anemone_ws::proto::handshake::{HANDSHAKE_BYTES_MAX, ServerHandshake};
//! use anemone_ws::proto::{Message, Sender};
//! use anemone_ws::reactor::{Handler, Opening, Reactor};
//! use anemone_ws::{Agreed, Incoming};
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
//!             let agreed = Agreed { first: answered.rest, ..Agreed::default() };
//!             Opening::web_socket(answered.accepted.response().into_bytes(), agreed, Echo)
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
mod handle;
mod handler;
mod listeners;
mod opening;
mod protocol;
mod run;
mod scratch;
mod shared;
mod socket;
mod sockets;
mod stream;
mod stuck;
mod timers;
mod waker;

pub use broadcast::{Broadcast, DeliverError, Member};
pub use drive::{drive, drive_within};
pub use handle::Reactor;
pub use handler::{Handler, StreamHandler};
pub use opening::Opening;
pub use waker::Waker;
