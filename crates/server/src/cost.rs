//! The memory cost of connections, requests and readers that are open and idle.
//!
//! Each cost counts against the memory limit while the item is open, so that many idle clients cannot exceed the
//! limit either. The numbers are the measured growth of the process for one item, plus a reserve;
//! `tests/real_cost.rs` compares them with measurements.

/// A connection in the thread's loop: a WebSocket, a stream, or an undecided one.
pub(crate) const CONNECTION_BYTES: usize = 1 << 10;
/// A connection of the HTTP server, without its header.
pub(crate) const HTTP1_BYTES: usize = 12 << 10;
pub(crate) const TLS_BYTES: usize = 12 << 10;
/// An HTTP/2 connection, without its requests.
pub(crate) const HTTP2_BYTES: usize = 20 << 10;
/// A request, stream or WebSocket on an HTTP/2 connection, which takes at most 9 KB.
pub(crate) const HTTP2_REQUEST_BYTES: usize = 10 << 10;
/// A topic that is awaited: its name, and the notifier of those who wait.
pub(crate) const AWAITED_TOPIC_BYTES: usize = 5 << 9;
/// A topic of a reader of several: its reader, its entries in lists and in the token, and the future that waits.
pub(crate) const TOPIC_OF_MANY_BYTES: usize = 1 << 10;
/// A request of `anemone.v1`; most are readers.
pub(crate) const MULTIPLEXED_REQUEST_BYTES: usize = 640;
/// More for a request to a service, besides its payload and what the service itself holds.
pub(crate) const CALL_BYTES: usize = 5 << 10;
