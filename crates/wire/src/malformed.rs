//! Errors in what a server sent.

use crate::framing::TooLong;
use crate::{PositionError, TokenError};

/// An error: no Anemone server sends this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The text is not JSON, or lacks a member.
    #[error("not the expected JSON")]
    Json(#[from] serde_json::Error),
    /// The text is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8(#[from] std::str::Utf8Error),
    /// A position is missing or invalid.
    #[error("a position is missing")]
    NoPosition,
    /// A message, line, block or page is longer than allowed.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Members of a page contradict one another.
    #[error("a page whose events, gap and next position contradict one another")]
    Page,
    /// A multiplexed message does not begin with a status and an id.
    #[error("not a message of anemone.v1")]
    NotMultiplexed,
}

impl From<PositionError> for Malformed {
    fn from(_: PositionError) -> Self {
        Self::NoPosition
    }
}

impl From<TokenError> for Malformed {
    fn from(_: TokenError) -> Self {
        Self::NoPosition
    }
}

impl From<TooLong> for Malformed {
    fn from(TooLong { limit, .. }: TooLong) -> Self {
        Self::TooLong { limit }
    }
}
