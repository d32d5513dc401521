//! A server in the process of the test, and the clients that talk to it.

pub mod calls;
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

pub use anemone_ws::proto::Message;
pub use endpoint::Endpoint;
pub use event_stream::EventStream;
pub use fixture::Fixture;
pub use http::{HANDSHAKE, Reply, connect, request, send, try_line, unchunked};
pub use websocket::Socket;
