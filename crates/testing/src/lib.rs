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

use std::time::Duration;

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
mod random;
#[cfg(feature = "server")]
pub mod secure;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "hub")]
mod topics;
#[cfg(feature = "server")]
pub mod ways;
#[cfg(feature = "server")]
mod websocket;

#[cfg(feature = "server")]
pub use event_stream::EventStream;
#[cfg(feature = "server")]
pub use http::{HANDSHAKE, Reply, request, send, try_line};
pub use log::Log;
pub use random::{Random, seed};
#[cfg(feature = "server")]
pub use server::Fixture;
#[cfg(feature = "hub")]
pub use topics::{Background, Topics, values, within};
#[cfg(feature = "server")]
pub use websocket::Socket;

/// Longest wait for anything that must come; only a failing test takes this long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The bytes that this process, the server and its clients, has in memory.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}
