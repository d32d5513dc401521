//! Support that the tests of several crates share: servers to start, clients over plain sockets, logs to read.
//!
//! `process` uses nothing of the product, so that independent checks of the product may use it. The feature `hub` adds
//! `Topics`. The feature `server` adds a server in the process of the test, and the clients that talk to it.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::should_implement_trait,
    reason = "only tests use this crate; a test panics where it fails, and waits for the next thing of many kinds"
)]

pub mod documents;
mod log;
#[cfg(feature = "server")]
mod nobody;
pub mod process;
#[cfg(feature = "hub")]
mod run;
mod seed;
#[cfg(feature = "server")]
mod server;
#[cfg(unix)]
mod terminal;
#[cfg(feature = "hub")]
mod topics;
mod wait;

pub use log::Log;
#[cfg(feature = "server")]
pub use nobody::nobody;
pub use process::resident_bytes;
#[cfg(feature = "hub")]
pub use run::{run, within};
pub use seed::seed;
#[cfg(feature = "server")]
pub use server::{
    Endpoint, EventStream, Fixture, HANDSHAKE, Message, Reply, Socket, calls, connect, logged,
    multiplexed, request, secure, send, try_line, unchunked, ways,
};
#[cfg(unix)]
pub use terminal::terminal;
#[cfg(feature = "hub")]
pub use topics::{Background, Topics, values};
pub use wait::{PATIENCE, wait_for, wait_until};
