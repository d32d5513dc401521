//! Publishing: batches of new events, the key that makes a retry safe, and the receipt.

use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use crate::digest;
use crate::keys::Keyed;
use crate::{Data, Position, PublishError, UnixTime};

/// An event that has no place in a log yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewEvent {
    /// The time at which it is published, or at which its source says that it happened.
    pub time: UnixTime,
    /// The data that it carries.
    pub data: Data,
}

/// Events that are published together: all of them are kept, one after the other, or none is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Batch {
    /// In the order they are to have. At least one.
    pub events: Vec<NewEvent>,
    /// Makes a retry safe: a batch whose key was seen before is not appended again. With other data than then it
    /// is refused.
    pub key: Option<IdempotencyKey>,
    /// The note that its publisher wants to find again: see [`Topic::note`](crate::Topic::note).
    pub note: Option<Note>,
    /// The positions of which the topic's newest event must have one when this is appended; otherwise it is refused. A batch
    /// whose key was seen before is not asked.
    pub heads: Option<Vec<Position>>,
}

impl Batch {
    /// Most bytes of a batch in a log of any size, so that every length in a log fits 32 bits.
    pub const BYTES_MAX: u64 = 1 << 30;

    /// A batch of these events, without a key.
    #[must_use]
    pub fn new(events: Vec<NewEvent>) -> Self {
        Self { events, key: None, note: None, heads: None }
    }

    /// The same batch with a key.
    #[must_use]
    pub fn with_key(self, key: IdempotencyKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// The same batch, for a topic whose newest event is at one of these positions.
    #[must_use]
    pub fn with_heads(self, heads: Vec<Position>) -> Self {
        Self { heads: Some(heads), ..self }
    }

    /// Sees that the topic is where it must be.
    pub(crate) fn check_head(&self, head: Position) -> Result<(), PublishError> {
        match &self.heads {
            Some(heads) if !heads.contains(&head) => Err(PublishError::HeadMoved { head }),
            _ => Ok(()),
        }
    }

    /// Its key, with what comes with it.
    pub(crate) fn keyed(&self) -> Option<Keyed> {
        self.key.map(|key| Keyed { key, content: digest::of_events(&self.events) })
    }

    /// The same batch with a note.
    #[must_use]
    pub fn with_note(self, note: Note) -> Self {
        Self { note: Some(note), ..self }
    }
}

impl From<NewEvent> for Batch {
    fn from(event: NewEvent) -> Self {
        Self::new(vec![event])
    }
}

/// A publisher's name of a batch, to publish it again after an answer was lost: 1 to 255
/// printable ASCII characters, of which a digest is kept. It should hold 128 random bits (a UUID, say):
/// publishers of a topic share its keys.
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

/// The text is not an idempotency key.
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

/// The place of a batch in its topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Published {
    /// The position of its first event.
    pub first: Position,
    /// The position of its last event.
    pub last: Position,
    /// Its key was seen before: these are the positions of the first time, and nothing was appended.
    pub repeated: bool,
}

/// Completes once a batch is kept as the topic's log promises, or is refused.
///
/// # Cancel safety
/// Dropping it takes nothing back: the batch may be kept or not.
#[derive(Debug)]
#[must_use = "whether the batch is kept is not known before this completes"]
pub struct Receipt {
    pub(crate) published: Published,
    pub(crate) outcome: Outcome,
}

/// The outcome of a batch that a log took.
#[derive(Debug)]
pub(crate) enum Outcome {
    Kept,
    /// The log will tell.
    Pending(oneshot::Receiver<Result<(), PublishError>>),
}

impl Future for Receipt {
    type Output = Result<Published, PublishError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Outcome::Pending(told) = &mut self.outcome {
            // A log that went without a word was closed.
            ready!(Pin::new(told).poll(context)).unwrap_or(Err(PublishError::Closed))?;
            self.outcome = Outcome::Kept;
        }
        Poll::Ready(Ok(self.published))
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
