//! The key that makes it safe to publish a batch again.

use std::str::FromStr;

use crate::digest;

/// A publisher's name for a batch, for publishing it again when the answer was lost: 1 to 255 printable ASCII
/// characters, of which a digest is kept. It should contain 128 random bits, for example a UUID, since all publishers
/// of a topic share its keys.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct IdempotencyKey([u8; 16]);

impl IdempotencyKey {
    /// The longest key, in bytes.
    pub const BYTES_MAX: usize = 255;

    pub(crate) const fn of_digest(digest: [u8; 16]) -> Self {
        Self(digest)
    }

    pub(crate) const fn digest(self) -> [u8; 16] {
        self.0
    }
}

/// An error of a text that is not an idempotency key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an idempotency key is 1 to 255 printable ASCII characters")]
pub struct IdempotencyKeyError;

impl FromStr for IdempotencyKey {
    type Err = IdempotencyKeyError;

    fn from_str(text: &str) -> Result<Self, IdempotencyKeyError> {
        let fits = (1..=Self::BYTES_MAX).contains(&text.len());
        if !fits || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(IdempotencyKeyError);
        }
        Ok(Self(digest::of_key(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_printable_and_bounded() {
        for key in ["a", " ", "8e03978e-40d5-43e8-bc93-6894a57f9324", "~", &"x".repeat(255)] {
            assert!(key.parse::<IdempotencyKey>().is_ok(), "{key:?}");
        }
        for key in ["", "a\n", "é", "\u{7f}", "a\0b", &"x".repeat(256)] {
            assert!(key.parse::<IdempotencyKey>().is_err(), "{key:?}");
        }
    }
}
