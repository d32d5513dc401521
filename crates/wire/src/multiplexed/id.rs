//! The ids of requests.

use std::io::Write as _;
use std::str::{self, FromStr};

/// The id that a client gives to a request: 1 to 16 of `A-Z a-z 0-9 _ -`, but not `-` alone.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Id {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

/// The place of an id in a message about the connection.
pub(super) const NO_ID: &str = "-";

impl Id {
    /// The longest id, in bytes.
    pub const BYTES_MAX: usize = 16;

    pub(super) fn parse(word: &[u8]) -> Option<Self> {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        let fits = (1..=Self::BYTES_MAX).contains(&word.len());
        if !fits || !word.iter().all(allowed) || word == NO_ID.as_bytes() {
            return None;
        }
        let mut bytes = [0; Self::BYTES_MAX];
        bytes.iter_mut().zip(word).for_each(|(own, byte)| *own = *byte);
        Some(Self { bytes, len: word.len() as u8 })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Made of ASCII.
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl From<u32> for Id {
    /// Writes the number in decimal.
    fn from(number: u32) -> Self {
        let mut id = Self { bytes: [0; Self::BYTES_MAX], len: 0 };
        let mut free = &mut id.bytes[..];
        // Ten digits fit.
        let _ = write!(free, "{number}");
        id.len = (Self::BYTES_MAX - free.len()) as u8;
        id
    }
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text.as_bytes()).ok_or(IdError)
    }
}

/// An error: the text is no id.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an id must be 1 to {} of A-Z a-z 0-9 _ -, but not a single -", Id::BYTES_MAX)]
pub struct IdError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ids() {
        for number in [0, 1, 10, 120, u32::MAX] {
            assert_eq!(Ok(Id::from(number)), number.to_string().parse());
        }
    }
}
