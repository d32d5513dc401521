//! Batches of new events for publishing.

use bytes::Bytes;

use crate::digest;
use crate::keys::Keyed;
use crate::{Data, IdempotencyKey, Note, Position, PublishError, UnixTime};

/// An event that is not in a log yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewEvent {
    /// The time at which it is published, or at which it happened according to its source.
    pub time: UnixTime,
    /// The data.
    pub data: Data,
}

/// Events that are published together: all of them are kept in a row, or none.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use anemone_hub::{Batch, Data, Epoch, NewEvent, Retention, Topic, UnixTime};
///
/// let wind = Topic::new("wind".parse()?, Epoch::random()?, Retention::default());
/// let event = |speed: f64| Ok(NewEvent { time: UnixTime::now(), data: Data::json(&speed)? });
/// let events = [2.74, 2.81].into_iter().map(event).collect::<Result<_, anemone_hub::DataError>>()?;
/// let batch = Batch::new(events).with_key("measured-at-noon".parse()?);
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let published = wind.publish_kept(UnixTime::now(), &batch).await?;
/// assert_eq!((published.last.offset, published.repeated), (2, false));
/// // A retry with the same key appends nothing.
/// let again = wind.publish_kept(UnixTime::now(), &batch).await?;
/// assert_eq!((again.last.offset, again.repeated), (2, true));
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Batch {
    /// The events in their order; at least one.
    pub events: Vec<NewEvent>,
    /// Makes a retry safe: a batch with a known key is not appended again. With other data than before, it is
    /// refused.
    pub key: Option<IdempotencyKey>,
    /// The request that the batch fulfils. With a known key, it is compared in place of the data, for a publisher that
    /// could not make the same events again: an empty batch with the key and the request gives their positions.
    pub request: Option<Bytes>,
    /// A note that its publisher can read later: see [`Topic::note`](crate::Topic::note).
    pub note: Option<Note>,
    /// The expected head: the batch is refused unless the topic's newest event is at one of these positions. A batch
    /// with a known key is not checked.
    pub heads: Option<Vec<Position>>,
}

impl Batch {
    /// The largest batch in any log, in bytes, so that every length in a log fits 32 bits.
    pub const BYTES_MAX: u64 = 1 << 30;

    /// Creates a batch of these events, without a key.
    #[must_use]
    pub fn new(events: Vec<NewEvent>) -> Self {
        Self { events, key: None, request: None, note: None, heads: None }
    }

    /// Adds a key.
    #[must_use]
    pub fn with_key(self, key: IdempotencyKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Adds the request that a retry is compared by.
    #[must_use]
    pub fn with_request(self, request: Bytes) -> Self {
        Self { request: Some(request), ..self }
    }

    /// Adds the positions of which the topic's newest event must have one.
    #[must_use]
    pub fn with_heads(self, heads: Vec<Position>) -> Self {
        Self { heads: Some(heads), ..self }
    }

    /// Checks that it has events, and the topic's head.
    pub(crate) fn check(&self, head: Position) -> Result<(), PublishError> {
        match &self.heads {
            _ if self.events.is_empty() => Err(PublishError::Empty),
            Some(heads) if !heads.contains(&head) => Err(PublishError::HeadMoved { head }),
            _ => Ok(()),
        }
    }

    /// Returns its key, with the digest of its request, or else of its events.
    pub(crate) fn keyed(&self) -> Option<Keyed> {
        let key = self.key?;
        let content = match &self.request {
            Some(request) => digest::of_data(std::iter::once(request)),
            None => digest::of_data(self.events.iter().map(|event| event.data.bytes())),
        };
        Some(Keyed { key, content })
    }

    /// Adds a note.
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
