//! WebSocket (RFC 6455, RFC 7692) as state machines: bytes and time in, events and bytes out.
//!
//! No socket, clock, thread or source of randomness is touched here: they are arguments. So any
//! stream can be driven, a test can make up its own time, and every input can be tried.
//!
//! # Driving a connection
//! 1. Opening: [`handshake::ServerHandshake`] or [`handshake::ClientHandshake`] turns bytes into a negotiated
//!    connection, or [`handshake::respond`] answers a request that an HTTP server has parsed.
//! 2. Bytes from the peer go to [`Connection::receive`], which gives at most one [`Event`] and says how
//!    much it used; call it until all is used. Messages are borrowed from the very bytes that
//!    came in, unmasked in place, unless they were cut; that is why events are handed out one by one
//!    rather than queued.
//! 3. What is to be written lies in [`Sender::transmit`]; say how much went with [`Sender::transmitted`].
//! 4. Call [`Connection::handle_timeout`] at [`Connection::poll_timeout`].
//! 5. Once [`Connection::is_closed`], write what is left and close the stream.
//!
//! # Compression
//! Both handshakes negotiate permessage-deflate when they are given a [`DeflateConfig`], and
//! [`Connection::with_deflate`] puts what was agreed on to work. From then on messages are compressed
//! and inflated without a word; without it a connection is as it was. The compressor and the inflater
//! belong to the thread, which lends them through an [`ExchangeCodecs`]: an idle connection has
//! neither, unless it takes its context over from one message to the next.
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
