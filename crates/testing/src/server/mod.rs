//! A server in the process of the test, and the clients that talk to it.

mod endpoint;
mod event_stream;
mod fixture;
mod http;
pub mod logged;
pub mod multiplexed;
mod page;
pub mod secure;
pub mod ways;
mod websocket;

pub use endpoint::Endpoint;
pub use event_stream::EventStream;
pub use fixture::Fixture;
pub use http::{HANDSHAKE, Reply, connect, request, send, try_line};
pub use websocket::Socket;
