//! Publishing: batches of new events.

use crate::digest;
use crate::keys::Keyed;
use crate::{Data, IdempotencyKey, Note, Position, PublishError, UnixTime};

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
        let data = self.events.iter().map(|event| event.data.bytes());
        self.key.map(|key| Keyed { key, content: digest::of_data(data) })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_events_have_the_same_digest_and_others_do_not() {
        let of = |numbers: &[u64], micros: u64| {
            let time = UnixTime::from_micros(micros);
            let event = |number| NewEvent { time, data: Data::json(number).unwrap() };
            let batch = Batch::new(numbers.iter().map(event).collect());
            batch.with_key("a".parse().unwrap()).keyed().unwrap().content
        };
        assert_eq!(of(&[1, 2], 0), of(&[1, 2], 9));
        for other in [&[12][..], &[2, 1], &[1], &[1, 2, 3], &[]] {
            assert_ne!(of(&[1, 2], 0), of(other, 0), "{other:?}");
        }
    }
}
