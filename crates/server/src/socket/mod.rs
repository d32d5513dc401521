//! Streams of bytes, below HTTP: what came first, what comes next, how writing ends.

pub(crate) mod ahead;
pub(crate) mod begun;
pub(crate) mod gathered;
pub(crate) mod linger;
pub(crate) mod unix_socket;
pub(crate) mod unread;
pub(crate) mod write_deadline;
