//! WebSocket connections over tokio.
//!
//! [`WebSocket`] drives one [`proto`] connection over any byte stream: it reads, writes, keeps time
//! and closes. It adds no queue of its own: what is to be sent waits in the connection's output,
//! and while that is stuck nothing is read, so a peer that does not read cannot make anything
//! grow.
//!
//! The opening handshake is the caller's: an HTTP server that has parsed the request answers it
//! with [`proto::handshake::respond`] and hands the stream over.
#![forbid(unsafe_code)]

mod clock;
mod error;
#[cfg(unix)]
pub mod reactor;
mod task;

pub use anemone_proto as proto;
pub use error::{Error, Lost};
pub use task::{Incoming, Turn, WebSocket};
