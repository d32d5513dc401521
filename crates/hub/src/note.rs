//! Notes: short texts that are kept with a batch.

use std::str::FromStr;
use std::sync::Arc;

/// A short text that is kept with a batch, and like the batch: whole or not at all. No reader sees it; the newest
/// one of a topic is found again by [`Topic::note`](crate::Topic::note). A source keeps its place so.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Note(Arc<str>);

impl Note {
    /// The longest note, in bytes.
    pub const BYTES_MAX: usize = 1024;

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not a note.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a note is 1 to 1024 bytes, not {bytes}")]
pub struct NoteError {
    /// The number of bytes that it has.
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
