//! The way from publishers to the writer: batches get their offsets, and become jobs.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::record::{Framing, Origin, encode, record_bytes};
use crate::keys::{Keyed, Keys, Place, Seen, room_beside};
use crate::{Batch, Event, IdempotencyKey, Note, PublishError, TopicOptions, UnixTime};

/// The side of a log that publishers see.
#[derive(Debug)]
pub(super) struct Intake {
    /// The offset of the next event to be handed over.
    pub(super) next: u64,
    /// Counts failures: what was handed over before one has offsets that do not count.
    pub(super) round: u64,
    /// The keys of what is kept.
    pub(super) keys: Keys,
    /// The keys of what is on its way. Apart from the others: a batch that is not kept costs no key of one that is.
    under_way: Keys,
    bytes_max: u64,
}

/// A batch on its way to the disk.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) round: u64,
    /// None when the same batch is on its way already, in front of this one.
    pub(super) events: Vec<Arc<Event>>,
    pub(super) key: Option<Keyed>,
    pub(super) note: Option<Note>,
    /// The bytes of its records.
    pub(super) bytes: u64,
    pub(super) done: oneshot::Sender<Result<(), PublishError>>,
}

impl Intake {
    /// The intake of a log that has come to `head`, with the keys of what is in it.
    pub(super) fn new(head: u64, keys: Keys, options: TopicOptions) -> Self {
        let bytes_max = options.retention.bytes_max.min(Batch::BYTES_MAX);
        Self { next: head + 1, round: 0, keys, under_way: Keys::new(options.keys), bytes_max }
    }

    /// Applies other options from now on.
    pub(super) fn configure(&mut self, options: TopicOptions) {
        self.keys.set_window(options.keys);
        self.under_way.set_window(options.keys);
        self.bytes_max = options.retention.bytes_max.min(Batch::BYTES_MAX);
        // No time: age is measured by who asks.
        self.keys.expire(UnixTime::default());
        self.keys.forget_beyond(room_beside(0, self.bytes_max));
    }

    /// The place of the batch of this key, if that is kept or on its way, and the key in the window.
    pub(super) fn repeats(
        &mut self,
        now: UnixTime,
        keyed: Keyed,
    ) -> Result<Option<Place>, PublishError> {
        match self.keys.repeats(now, keyed)? {
            None => self.under_way.repeats(now, keyed),
            kept => Ok(kept),
        }
    }

    /// Returns whether a key is in the window.
    pub(super) fn knows(&mut self, now: UnixTime, key: IdempotencyKey) -> bool {
        self.keys.find(now, key).or_else(|| self.under_way.find(now, key)).is_some()
    }

    /// Takes in that a batch was handed over.
    pub(super) fn handed_over(&mut self, place: Place, key: Option<Seen>) {
        self.next = place.last + 1;
        if let Some(seen) = key {
            self.under_way.remember(seen);
        }
    }

    /// Remembers the keys of batches that are kept now: the next ones in the order they were handed over in.
    pub(super) fn keep(&mut self, jobs: &[Job]) {
        for job in jobs {
            let (Some(first), Some(last)) = (job.events.first(), job.events.last()) else {
                continue;
            };
            if let Some(key) = job.key {
                let place = Place { first: first.offset, last: last.offset };
                self.keys.remember(Seen::new(key, first.time, place));
                self.under_way.forget_up_to(last.offset);
            }
            self.keys.forget_beyond(room_beside(job.bytes, self.bytes_max));
        }
    }

    /// The bytes that the records of a batch take, if a log may keep that much.
    pub(super) fn bytes_of(&self, batch: &Batch, key: Option<Keyed>) -> Result<u64, PublishError> {
        let data = batch.events.iter().map(|event| event.data.bytes().len());
        let bytes = lengths(data, key, batch.note.as_ref()).sum();
        if bytes > self.bytes_max {
            return Err(PublishError::TooBig { bytes, bytes_max: self.bytes_max });
        }
        Ok(bytes)
    }

    /// Goes on after `head`: nothing that was handed over beyond it is kept.
    pub(super) fn begin_again(&mut self, head: u64) {
        self.round += 1;
        self.next = head + 1;
        self.under_way.forget_after(head);
    }
}

impl Job {
    /// The events, and how long the record of each is.
    pub(super) fn records(&self) -> impl Iterator<Item = (&Arc<Event>, u64)> + Clone {
        let data = self.events.iter().map(|event| event.data.bytes().len());
        self.events.iter().zip(lengths(data, self.key, self.note.as_ref()))
    }

    /// Appends its records, as the segment `origin` has them.
    pub(super) fn encode(&self, origin: Origin, flushed: u64, out: &mut Vec<u8>) {
        for (number, event) in self.events.iter().enumerate() {
            let key = self.key.filter(|_| number == 0);
            let note = self.note.as_ref().filter(|_| number == 0);
            // Every event takes more than one byte of the 2^30 of a batch.
            let left = u32::try_from(self.events.len() - 1 - number).unwrap_or(u32::MAX);
            encode(event, Framing { key, note, left, flushed }, origin, out);
        }
    }

    pub(super) fn tell(self, result: Result<(), PublishError>) {
        // Nobody may wait for it.
        let _ = self.done.send(result);
    }
}

/// The lengths of the records of a batch: the first has its key and its note.
fn lengths(
    data: impl Iterator<Item = usize> + Clone,
    key: Option<Keyed>,
    note: Option<&Note>,
) -> impl Iterator<Item = u64> + Clone {
    let first = std::iter::once((key, note)).chain(std::iter::repeat((None, None)));
    data.zip(first).map(|(data_bytes, (key, note))| record_bytes(key, note, data_bytes))
}
