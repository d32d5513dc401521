//! Notes: short texts that are stored with a batch.

use std::str::FromStr;
use std::sync::Arc;

/// A short text that is stored with a batch, both or neither. Readers do not see it.
/// [`Topic::note`](crate::Topic::note) returns the newest one of a topic. A source stores its place in one.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Note(Arc<str>);

impl Note {
    /// The longest note in bytes.
    pub const BYTES_MAX: usize = 1024;

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An error of a text that is not a note.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a note is 1 to 1024 bytes, not {bytes}")]
pub struct NoteError {
    /// The number of its bytes.
    pub bytes: usize,
}

impl FromStr for Note {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        if !(1..=Self::BYTES_MAX).contains(&text.len()) {
            return Err(NoteError { bytes: text.len() });
        }
        Ok(Self(text.into()))
    }
}
