//! Gives batches their offsets and turns them into jobs for the writer.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::record::{Framing, Origin, encode, record_bytes};
use crate::keys::{Keyed, Keys, Place, Seen, room_beside};
use crate::{Batch, Event, IdempotencyKey, Note, PublishError, TopicOptions, UnixTime};

/// The publishers' side of a log.
#[derive(Debug)]
pub(super) struct Intake {
    /// The offset of the next event.
    pub(super) next: u64,
    /// Counts failures: offsets given before a failure are invalid.
    pub(super) round: u64,
    pub(super) keys: Keys,
    /// The keys of batches that are being written. They are separate, so that a batch that is not kept evicts no key
    /// of a kept one.
    under_way: Keys,
    bytes_max: u64,
}

/// A batch for the writer.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) round: u64,
    /// Empty if the same batch is being written already, before this one.
    pub(super) events: Vec<Arc<Event>>,
    pub(super) key: Option<Keyed>,
    pub(super) note: Option<Note>,
    /// The length of its records in bytes.
    pub(super) bytes: u64,
    pub(super) done: oneshot::Sender<Result<(), PublishError>>,
}

impl Intake {
    pub(super) fn new(head: u64, keys: Keys, options: TopicOptions) -> Self {
        let bytes_max = options.retention.bytes_max.min(Batch::BYTES_MAX);
        Self { next: head + 1, round: 0, keys, under_way: Keys::new(options.keys), bytes_max }
    }

    pub(super) fn configure(&mut self, options: TopicOptions) {
        self.keys.set_window(options.keys);
        self.under_way.set_window(options.keys);
        self.bytes_max = options.retention.bytes_max.min(Batch::BYTES_MAX);
        // Without a time: the age is checked when a key is looked up.
        self.keys.expire(UnixTime::default());
        self.keys.forget_beyond(room_beside(0, self.bytes_max));
    }

    /// Returns the place of the batch of this key, if it is kept or being written, and the key is in the window.
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

    /// Returns true if the key of a batch that is kept, or handed over, is in the window.
    pub(super) fn knows(&mut self, now: UnixTime, key: IdempotencyKey) -> bool {
        self.keys.find(now, key).or_else(|| self.under_way.find(now, key)).is_some()
    }

    pub(super) fn handed_over(&mut self, place: Place, key: Option<Seen>) {
        self.next = place.last + 1;
        if let Some(seen) = key {
            self.under_way.remember(seen);
        }
    }

    /// Moves the keys of batches that are now kept: the next ones in the order of handing over.
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

    /// Returns the length of the records of a batch, if a log may keep that much.
    pub(super) fn bytes_of(&self, batch: &Batch, key: Option<Keyed>) -> Result<u64, PublishError> {
        let bytes = batch_bytes(batch, key);
        if bytes > self.bytes_max {
            return Err(PublishError::TooBig { bytes, bytes_max: self.bytes_max });
        }
        Ok(bytes)
    }

    /// Continues after `head`; no later batch was kept.
    pub(super) fn begin_again(&mut self, head: u64) {
        self.round += 1;
        self.next = head + 1;
        self.under_way.forget_after(head);
    }
}

impl Job {
    /// Returns the events, each with the length of its record.
    pub(super) fn records(&self) -> impl Iterator<Item = (&Arc<Event>, u64)> + Clone {
        let data = self.events.iter().map(|event| event.data.bytes().len());
        self.events.iter().zip(lengths(data, self.key, self.note.as_ref()))
    }

    pub(super) fn encode(&self, origin: Origin, flushed: u64, out: &mut Vec<u8>) {
        for (number, event) in self.events.iter().enumerate() {
            let key = self.key.filter(|_| number == 0);
            let note = self.note.as_ref().filter(|_| number == 0);
            // A batch has at most 2^30 bytes, and every event takes more than one.
            let left = u32::try_from(self.events.len() - 1 - number).unwrap_or(u32::MAX);
            encode(event, Framing { key, note, left, flushed }, origin, out);
        }
    }

    pub(super) fn complete(self, result: Result<(), PublishError>) {
        // Fails if nobody waits.
        let _ = self.done.send(result);
    }
}

/// Returns the length of the records of a batch.
pub(super) fn batch_bytes(batch: &Batch, key: Option<Keyed>) -> u64 {
    let data = batch.events.iter().map(|event| event.data.bytes().len());
    lengths(data, key, batch.note.as_ref()).sum()
}

/// Returns the lengths of the records of a batch; the first one includes the key and the note.
fn lengths(
    data: impl Iterator<Item = usize> + Clone,
    key: Option<Keyed>,
    note: Option<&Note>,
) -> impl Iterator<Item = u64> + Clone {
    let first = std::iter::once((key, note)).chain(std::iter::repeat((None, None)));
    data.zip(first).map(|(data_bytes, (key, note))| record_bytes(key, note, data_bytes))
}
