//! WebSocket connections over tokio, both roles.
//!
//! - [`connect`] opens a connection to a URL, if necessary over TLS and through a proxy; [`Connect`] has the options.
//! - [`accept`] answers the opening handshake on a bare stream. An HTTP server that has parsed the request answers it
//!   with `Accept::upgrade`, for the types of the crate `http`, or with [`proto::handshake::respond`], for any types,
//!   and passes the stream to [`WebSocket::server`].
//! - [`WebSocket`] is the open connection, the same at both ends: `recv`, `send`, `close`, two halves for two tasks,
//!   `Stream` and `Sink`. It drives one [`proto`] connection over any byte stream and adds no queue of its own:
//!   messages to send wait in the connection's output. While that is long, senders wait and nothing is read. A peer
//!   that does not read therefore cannot make anything grow.
//! - [`reactor`] is one loop for all plain sockets of a thread, for servers with many connections.
//!
//! # Features
//! - `aws-lc-rs` (default): enables `tls`, with aws-lc-rs for the cryptography if the caller provides none.
//! - `tls`: supports `wss://` in [`connect`], with rustls and the root certificates that the machine trusts. The
//!   cryptography comes from the configuration given to [`Connect::tls`], or from the `CryptoProvider` that the
//!   program has installed. Without this feature, `wss://` is refused.
//! - `http`: adds `Accept::upgrade` and `Upgrade::response`, which read requests and write responses of the crate
//!   `http` (1.x), for HTTP servers such as hyper, axum and tower.
#![forbid(unsafe_code)]

mod accept;
mod clock;
mod codecs;
mod connect;
mod error;
mod linger;
mod memory;
mod negotiated;
#[cfg(unix)]
pub mod reactor;
mod task;
#[cfg(feature = "http")]
mod upgrade;

pub use accept::{Accept, AcceptError, Accepted, accept};
pub use anemone_proto as proto;
/// Shared bytes, for messages.
pub use bytes::Bytes;
/// Shared text, for messages.
pub use bytestring::ByteString;
pub use connect::{
    ClientStream, Connect, ConnectError, Refusal, Step, UrlError, connect, split_unix_url,
};
pub use error::{Error, Lost};
pub use linger::Linger;
pub use memory::{Memory, Release, Reservation};
pub use negotiated::Negotiated;
pub use task::{AsMessage, Incoming, ReceiveHalf, SendHalf, Turn, WebSocket};
/// The TLS library, for [`Connect::tls`].
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls;
#[cfg(feature = "http")]
pub use upgrade::{Upgrade, refusal, switching_protocols};

/// The README's code, which compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
