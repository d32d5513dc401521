//! The publishers' side of a topic's log on disk.
//!
//! `read`, `first` and `since` read events that are not in memory; `set_note`, `configure` and `delete` read and
//! write; `append` waits for room where it may. All other calls answer from memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::desk::Desk;
use super::intake::Job;
use super::lock::lock;
use super::log::DiskLog;
use crate::keys::{Keyed, Place, Seen};
use crate::log::{Extent, Log, Slice, WhenFull};
use crate::receipt::Outcome;
use crate::{
    Batch, Event, Health, IdempotencyKey, Keeps, NewEvent, Note, PageLimit, Position, PublishError,
    Receipt, StorageError, TopicOptions, UnixTime,
};

/// The longest time that [`Topic::publish`](crate::Topic::publish) blocks its thread while the disk is behind.
const HAND_OVER_WAIT_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct DiskTopic {
    log: Arc<DiskLog>,
    desk: Arc<Desk>,
}

impl DiskTopic {
    pub(super) fn new(log: Arc<DiskLog>, desk: Arc<Desk>) -> Self {
        Self { log, desk }
    }

    /// Gives a batch its offsets and hands it over.
    fn hand_over(&self, now: UnixTime, batch: &Batch) -> Result<Receipt, PublishError> {
        let (log, key) = (&self.log, batch.keyed());
        let epoch = log.groundwork.epoch;
        let mut intake = lock(&log.intake);
        let round = intake.round;
        let (told, outcome) = oneshot::channel();
        let job = |events, bytes| {
            let note = batch.note.clone();
            (Arc::clone(log), Job { round, events, key, note, bytes, done: told })
        };
        if let Some(place) = key.map_or(Ok(None), |key| intake.repeats(now, key))? {
            let is_kept = place.last <= log.progress.borrow().head;
            if !is_kept {
                self.desk.queue.push(job(Vec::new(), 0), 0)?;
            }
            let outcome = if is_kept { Outcome::Kept } else { Outcome::Pending(outcome) };
            return Ok(Receipt::new(epoch, place, true, outcome));
        }
        // The head includes batches that are being written.
        batch.check(Position { epoch, offset: intake.next - 1 })?;
        let bytes = intake.bytes_of(batch, key)?;
        log.readable.check_room(bytes)?;
        let place = |(offset, event): (u64, &NewEvent)| {
            Arc::new(Event { offset, time: event.time, data: event.data.clone() })
        };
        let events: Vec<_> = (intake.next..).zip(&batch.events).map(place).collect();
        let place = Place { first: intake.next, last: intake.next + events.len() as u64 - 1 };
        self.desk.queue.push(job(events, bytes), bytes)?;
        let seen = |(key, event): (Keyed, &NewEvent)| Seen::new(key, event.time, place);
        intake.handed_over(place, key.zip(batch.events.first()).map(seen));
        Ok(Receipt::new(epoch, place, false, Outcome::Pending(outcome)))
    }

    /// Removes the keys that are past their window, since they count in the bytes kept.
    fn expire_keys(&self, now: UnixTime) {
        drop(self.log.change_keys(|intake| intake.keys.expire(now)));
    }
}

impl Log for DiskTopic {
    fn append(
        &self,
        now: UnixTime,
        batch: &Batch,
        when_full: WhenFull,
    ) -> Result<Receipt, PublishError> {
        let mut until = None;
        loop {
            match self.hand_over(now, batch) {
                Err(busy @ PublishError::Busy { .. }) if when_full == WhenFull::Wait => {
                    let until = *until.get_or_insert_with(|| Instant::now() + HAND_OVER_WAIT_MAX);
                    if !self.desk.queue.wait_for_room(until) {
                        return Err(busy);
                    }
                }
                taken => return taken,
            }
        }
    }

    fn room(&self) -> Option<&Notify> {
        Some(self.desk.queue.room())
    }

    fn read(&self, now: UnixTime, after: u64, limit: PageLimit) -> Result<Slice, StorageError> {
        let page = self.log.readable.read(now, after, limit);
        page.inspect_err(|error| self.log.report_unread(error))
    }

    fn first(&self, now: UnixTime) -> u64 {
        self.expire_keys(now);
        self.log.readable.settled(now).segments.first()
    }

    fn since(&self, now: UnixTime, time: UnixTime) -> Result<u64, StorageError> {
        self.expire_keys(now);
        let offset = self.log.readable.since(now, time);
        offset.inspect_err(|error| self.log.report_unread(error))
    }

    fn extent(&self, now: UnixTime) -> Extent {
        self.expire_keys(now);
        let mut kept = lock(&self.log.readable.kept);
        // Does not read the disk to apply retention exactly; [`Readable::settled`] does.
        let _ = kept.expire(now);
        let segments = &kept.segments;
        let (first, head, bytes) = (segments.first(), segments.head(), kept.bytes());
        let newest = kept.newest.newest().map(|event| event.time).or_else(|| segments.newest());
        Extent { first, head, bytes, oldest: segments.oldest(), newest }
    }

    fn data_bytes_after(&self, after: u64) -> u64 {
        let kept = lock(&self.log.readable.kept);
        let after = after.max(kept.segments.first() - 1);
        if kept.is_in_memory(after) {
            return kept.newest.data_bytes_after(after);
        }
        kept.segments.data_bytes_after(after)
    }

    fn note(&self) -> Option<Note> {
        lock(&self.log.readable.kept).note.clone()
    }

    fn set_note(&self, note: Note) -> Result<(), StorageError> {
        self.log.set_note(note)
    }

    fn knows(&self, now: UnixTime, key: IdempotencyKey) -> bool {
        lock(&self.log.intake).knows(now, key)
    }

    fn keeps(&self) -> Option<Keeps> {
        let kept = lock(&self.log.readable.kept);
        Some(kept.allowance.keeps(kept.retention))
    }

    fn is_on_disk(&self) -> bool {
        true
    }

    fn health(&self) -> Health {
        self.log.health()
    }

    fn configure(&self, options: TopicOptions) {
        self.log.groundwork.set_options(options);
        self.log.change_keys(|intake| intake.configure(options)).set_retention(options.retention);
        // Without a time: the age is checked by each read.
        drop(self.log.readable.settled(UnixTime::default()));
        self.desk.disk.shared_bytes.evict();
        if let Err(error) = self.log.save_meta() {
            self.log.record_fault(&error);
        }
    }

    fn delete(&self) -> Result<(), StorageError> {
        let discarded = self.log.discard()?;
        self.desk.remove(&self.log);
        self.log.remove(&discarded);
        Ok(())
    }

    fn is_deleted(&self) -> bool {
        self.log.groundwork.is_moved_away()
    }
}
