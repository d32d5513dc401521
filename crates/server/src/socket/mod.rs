//! Streams of bytes below HTTP: reading ahead, gathering, counting, deadlines, and the places to listen on.

pub(crate) mod ahead;
pub(crate) mod counted;
pub(crate) mod gathered;
pub(crate) mod listen_at;
pub(crate) mod prefixed;
pub(crate) mod sliced;
pub(crate) mod unix_socket;
pub(crate) mod unread;
pub(crate) mod write_deadline;

/// The time that a client has to end its side after the server has ended its own.
pub(crate) const LINGER: std::time::Duration = std::time::Duration::from_secs(2);
