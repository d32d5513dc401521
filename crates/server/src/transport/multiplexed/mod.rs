//! `anemone.v1`: many requests on one connection, over a WebSocket or over TCP.
//!
//! `session` knows which requests are open and whose turn it is, and does no IO. `multiplexer` carries requests out.
//! `web_socket` and `tcp` are what all that looks like to the two carriers.

mod followed;
mod multiplexer;
mod session;
mod submissions;
mod tcp;
mod telling;
mod web_socket;

pub(super) use tcp::TRANSPORT as TCP;
pub(super) use web_socket::TRANSPORT;

/// The outlet of messages.
trait Outlet {
    /// Queues a message.
    fn put(&mut self, message: &str);

    /// The bytes that are queued and not written.
    fn queued_bytes(&self) -> usize;
}
