//! The roles of the two ends of a connection.

/// The role of an end. A client masks the frames that it sends, and a server does not (RFC 6455 section 5.1).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Role {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

impl Role {
    /// Returns true if the frames that this end *receives* must be masked.
    #[must_use]
    pub const fn receives_masked(self) -> bool {
        matches!(self, Self::Server)
    }
}
