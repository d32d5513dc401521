//! WebSocket connections over tokio, both roles.
//!
//! - [`connect`] opens a connection to a URL, over TLS and through a proxy if need be; [`Connect`]
//!   has the choices.
//! - [`accept`] answers the opening handshake on a bare stream. An HTTP server that has parsed the
//!   request answers it with `Accept::upgrade`, for the types of the crate `http`, or with
//!   [`proto::handshake::respond`], for any types, and hands the stream to [`WebSocket::server`].
//! - [`WebSocket`] is the open connection, the same at both ends: `recv`, `send`, `close`, two halves for
//!   two tasks, `Stream` and `Sink`. It drives one [`proto`] connection over any byte stream and adds no
//!   queue of its own: what is to be sent waits in the connection's output, senders wait while that
//!   is long, and nothing is read while answers are stuck in it. So a peer that does not read cannot
//!   make anything grow.
//! - [`reactor`] is one loop for all plain sockets of a thread, for servers with many connections.
//!
//! # Features
//! - `aws-lc-rs` (default): `tls`, with aws-lc-rs for the cryptography where the caller brings none.
//! - `tls`: `wss://` in [`connect`], with rustls and the roots that the machine trusts. The cryptography is
//!   that of the configuration given to [`Connect::tls`], or of the `CryptoProvider` that the program has
//!   installed. Without it such a URL is refused.
//! - `http`: `Accept::upgrade` judges a request of the crate `http` (1.x), and `Upgrade::response` answers it,
//!   for those who have an HTTP server: hyper, axum, tower.
#![forbid(unsafe_code)]

mod accept;
mod agreed;
mod clock;
mod codecs;
mod connect;
mod error;
mod linger;
mod memory;
#[cfg(unix)]
pub mod reactor;
mod task;
#[cfg(feature = "http")]
mod upgrade;

pub use accept::{Accept, AcceptError, Accepted, accept};
pub use agreed::Agreed;
pub use anemone_proto as proto;
/// Shared bytes, for messages.
pub use bytes::Bytes;
/// Shared text, for messages.
pub use bytestring::ByteString;
pub use connect::{ClientStream, Connect, ConnectError, Refusal, Step, UrlError, connect};
pub use error::{Error, Lost};
pub use linger::Linger;
pub use memory::{Held, Memory, Wanted};
pub use task::{AsMessage, Incoming, IncomingPiece, ReceiveHalf, SendHalf, Turn, WebSocket};
/// The TLS library, for [`Connect::tls`].
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls;
#[cfg(feature = "http")]
pub use upgrade::{Upgrade, refusal, switching_protocols};

/// The README's code, which compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
