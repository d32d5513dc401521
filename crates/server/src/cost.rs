//! The cost of what is open for a client that does nothing with it.
//!
//! Each of these counts in the memory for all clients as long as it is there, so that many which are quiet cannot take
//! more than that either. They are what the process was seen to grow by, all it does for one taken together, and somewhat
//! more; `tests/real_cost.rs` holds them against that.

/// A connection in the thread's loop: a WebSocket, a stream, one that has not said yet what it is.
pub(crate) const CONNECTION_BYTES: usize = 1 << 10;
/// One that the HTTP server has, beside its header, as long as it has it.
pub(crate) const HTTP1_BYTES: usize = 12 << 10;
/// TLS.
pub(crate) const TLS_BYTES: usize = 12 << 10;
/// HTTP/2, without its requests.
pub(crate) const HTTP2_BYTES: usize = 20 << 10;
/// A request, a stream or a WebSocket on it, which takes 9 KB at most.
pub(crate) const HTTP2_REQUEST_BYTES: usize = 10 << 10;
/// A topic that is awaited before it is there: its name, and what tells those who wait.
pub(crate) const AWAITED_TOPIC_BYTES: usize = 5 << 9;
/// A request of `anemone.v1`: most are readers.
pub(crate) const MULTIPLEXED_REQUEST_BYTES: usize = 512;
