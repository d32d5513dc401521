//! Support that the tests of several crates share: servers to start, clients over plain sockets, logs to read.
//!
//! [`process`] uses nothing of the product, so that independent checks of the product may use it. The feature `hub` adds
//! [`Topics`]. The feature `server` adds a server in the process of the test, and the clients that talk to it.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::should_implement_trait,
    reason = "only tests use this crate; a test panics where it fails, and waits for the next thing of many kinds"
)]

#[cfg(feature = "server")]
mod endpoint;
#[cfg(feature = "server")]
mod event_stream;
#[cfg(feature = "server")]
mod http;
mod log;
#[cfg(feature = "server")]
pub mod logged;
#[cfg(feature = "server")]
pub mod multiplexed;
#[cfg(feature = "server")]
mod page;
pub mod process;
#[cfg(feature = "server")]
pub mod secure;
mod seed;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "hub")]
mod topics;
mod wait;
#[cfg(feature = "server")]
pub mod ways;
#[cfg(feature = "server")]
mod websocket;

#[cfg(feature = "server")]
pub use endpoint::Endpoint;
#[cfg(feature = "server")]
pub use event_stream::EventStream;
#[cfg(feature = "server")]
pub use http::{HANDSHAKE, Reply, connect, request, send, try_line};
pub use log::Log;
pub use process::resident_bytes;
pub use seed::seed;
#[cfg(feature = "server")]
pub use server::Fixture;
#[cfg(feature = "hub")]
pub use topics::{Background, Topics, values, within};
pub use wait::{PATIENCE, wait_for, wait_until};
#[cfg(feature = "server")]
pub use websocket::Socket;
