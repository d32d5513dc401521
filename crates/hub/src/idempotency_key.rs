//! The key that makes it safe to publish a batch again.

use std::str::FromStr;

use anemone_wire::{IdempotencyKeyError, validate_idempotency_key};

use crate::digest;

/// A publisher's name for a batch, for publishing it again when the answer was lost: 1 to 128 visible ASCII
/// characters, of which a digest is kept. It should contain 128 random bits, for example a UUID, since all publishers
/// of a topic share its keys.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct IdempotencyKey([u8; 16]);

impl IdempotencyKey {
    pub(crate) const fn of_digest(digest: [u8; 16]) -> Self {
        Self(digest)
    }

    pub(crate) const fn digest(self) -> [u8; 16] {
        self.0
    }
}

impl FromStr for IdempotencyKey {
    type Err = IdempotencyKeyError;

    fn from_str(text: &str) -> Result<Self, IdempotencyKeyError> {
        validate_idempotency_key(text)?;
        Ok(Self(digest::of_key(text)))
    }
}
