//! WebSocket (RFC 6455, RFC 7692) as state machines: bytes and time in, events and bytes out.
//!
//! The crate uses no socket, clock, thread or source of randomness: bytes, times and random keys are arguments. So it
//! can drive any stream, and tests can choose the time and try every input.
//!
//! # Driving a connection
//! 1. Opening: [`handshake::ServerHandshake`] or [`handshake::ClientHandshake`] turns bytes into a negotiated
//!    connection, or [`handshake::respond`] answers a request that an HTTP server has parsed.
//! 2. Pass bytes from the peer to [`Connection::receive`]. It returns at most one [`Event`] and the number of bytes
//!    consumed; call it until all are consumed. Messages are borrowed from the input, in which they are unmasked, unless
//!    a read has cut them. That is why events are returned one by one instead of queued.
//! 3. Write the bytes of [`Sender::transmit`], and report how many with [`Sender::transmitted`].
//! 4. Call [`Connection::handle_timeout`] at [`Connection::poll_timeout`].
//! 5. After [`Connection::is_closed`], write the rest and close the stream.
//!
//! # Compression
//! Both handshakes negotiate permessage-deflate if they have a [`DeflateConfig`], and [`Connection::with_deflate`]
//! applies the result. The connection then compresses and inflates messages by itself. The compressor and the
//! inflater belong to the thread, which lends them through an [`ExchangeCodecs`]: an idle connection has neither,
//! unless it uses context takeover.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use anemone_proto::{Config, Connection, Event, MaskKey, Message, Time};
//!
//! let config = Arc::new(Config::default());
//! let mut client = Connection::client(config.clone(), Time::ZERO, Box::new(|| MaskKey([1, 2, 3, 4])));
//! let mut server = Connection::server(config, Time::ZERO);
//!
//! client.sender().send(Message::Text("hi"))?;
//! let mut bytes = client.sender().transmit().to_vec();
//! let received = server.receive(Time::ZERO, &mut bytes);
//! assert_eq!(received.event, Some(Event::Message(Message::Text("hi"))));
//! # Ok::<(), anemone_proto::MisuseError>(())
//! ```
#![forbid(unsafe_code)]

mod config;
mod connection;
mod error;
mod extension;
mod frame;
pub mod handshake;
mod mask;
mod message;
mod role;
mod time;
mod utf8;

pub use config::Config;
pub use connection::{Connection, Event, MaskKeys, Output, Prepared, Received, Rest, Sender};
pub use error::{MisuseError, ProtocolError};
pub use extension::{
    Codecs, CompressionLevel, DeflateConfig, ExchangeCodecs, NegotiatedDeflate, ParameterError,
    WindowBits,
};
pub use frame::{CloseCode, CloseFrame, CloseReason, HEADER_BYTES_MAX, Header, Opcode};
pub use mask::MaskKey;
pub use message::{Message, MessageKind, Piece};
pub use role::Role;
pub use time::Time;
