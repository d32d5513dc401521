//! The faults of what a server sent.

use crate::TooLong;

/// Something that no Anemone server sends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Not JSON, or without a member that it must have.
    #[error("not the expected JSON")]
    Json(#[from] serde_json::Error),
    /// Not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// Something stands where a position should.
    #[error("a position is missing")]
    NoPosition,
    /// Longer than allowed.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A page contradicts itself.
    #[error("a page whose events, gap and next position contradict one another")]
    Page,
    /// A multiplexed message that is not `STATUS ID`.
    #[error("not a message of anemone.v1")]
    NotMultiplexed,
}

impl From<std::str::Utf8Error> for Malformed {
    fn from(_: std::str::Utf8Error) -> Self {
        Self::NotUtf8
    }
}

impl From<TooLong> for Malformed {
    fn from(TooLong { limit, .. }: TooLong) -> Self {
        Self::TooLong { limit }
    }
}
