//! `anemone.v1`: many requests on one connection, over a WebSocket or over TCP.
//!
//! `session` holds the open requests and their turns, without IO. `multiplexer` executes requests, and `call` those to
//! services. `web_socket` and `tcp` are the two carriers.

mod call;
mod call_waker;
mod followed;
mod multiplexer;
mod payloads;
mod sending;
mod service_request;
mod session;
mod submissions;
mod tcp;
mod web_socket;
mod work;

pub(super) use tcp::TRANSPORT as TCP;
pub(super) use web_socket::TRANSPORT;

/// A destination of messages.
trait Outlet {
    fn put(&mut self, message: &str);

    /// Queues a message: as text if it is UTF-8, otherwise as binary.
    fn put_bytes(&mut self, message: &[u8]);

    fn queued_bytes(&self) -> usize;
}
