//! A log in memory: a ring of shared events, bounded by [`Retention`]. Its slack is nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::ring::Ring;
use super::{Extent, Filling, Log, Progress, Slice, WhenFull, advance, receipt};
use crate::batch::Outcome;
use crate::event::EVENT_OVERHEAD_BYTES;
use crate::keys::{Keys, Place};
use crate::retention::Held;
use crate::{
    Batch, Epoch, Event, Health, Note, PageLimit, PublishError, Receipt, Retention, StorageError,
    TopicOptions, UnixTime,
};

#[derive(Debug)]
pub(crate) struct MemoryLog {
    epoch: Epoch,
    kept: Mutex<Kept>,
    progress: watch::Sender<Progress>,
}

/// Events `first()..=head`, without a hole.
#[derive(Debug)]
struct Kept {
    ring: Ring,
    head: u64,
    keys: Keys,
    retention: Retention,
    note: Option<Note>,
}

impl MemoryLog {
    pub(crate) fn new(
        epoch: Epoch,
        options: TopicOptions,
        progress: watch::Sender<Progress>,
    ) -> Self {
        let TopicOptions { retention, keys, .. } = options;
        let (ring, keys) = (Ring::default(), Keys::new(keys));
        let kept = Kept { ring, head: 0, keys, retention, note: None };
        Self { epoch, kept: Mutex::new(kept), progress }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No method panics while it holds the lock, so a poisoned log is still a whole one.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for MemoryLog {
    fn append(
        &self,
        now: UnixTime,
        batch: &Batch,
        _when_full: WhenFull,
    ) -> Result<Receipt, PublishError> {
        let mut kept = self.kept();
        if let Some(key) = &batch.key
            && let Some(place) = kept.keys.find(now, key)
        {
            return Ok(receipt(self.epoch, place, true, Outcome::Kept));
        }
        let place = kept.append(batch)?;
        kept.expire(now);
        drop(kept);
        advance(&self.progress, place.last);
        Ok(receipt(self.epoch, place, false, Outcome::Kept))
    }

    fn room(&self) -> Option<&Notify> {
        None
    }

    fn read(&self, now: UnixTime, after: u64, limit: PageLimit) -> Result<Slice, StorageError> {
        let mut kept = self.kept();
        kept.expire(now);
        let (first, head) = (kept.first(), kept.head);
        let from = after.max(first - 1);
        let rest = kept.ring.after(from);
        let mut page = Filling::new(limit, rest.len() as u64);
        page.extend(rest);
        Ok(Slice { first, head, from, events: page.events })
    }

    fn data_bytes_after(&self, after: u64) -> u64 {
        self.kept().ring.data_bytes_after(after)
    }

    fn extent(&self, now: UnixTime) -> Extent {
        let mut kept = self.kept();
        kept.expire(now);
        Extent { first: kept.first(), head: kept.head, bytes: kept.ring.bytes() }
    }

    fn note(&self) -> Option<Note> {
        self.kept().note.clone()
    }

    fn set_note(&self, note: Note) -> Result<(), StorageError> {
        self.kept().note = Some(note);
        Ok(())
    }

    fn health(&self) -> Health {
        Health::default()
    }

    fn configure(&self, options: TopicOptions) {
        let mut kept = self.kept();
        kept.retention = options.retention;
        kept.keys.set_window(options.keys);
    }

    fn delete(&self) -> Result<(), StorageError> {
        Ok(())
    }
}

impl Kept {
    /// Offset of the oldest event kept, or of the next one to come when none is.
    fn first(&self) -> u64 {
        self.head + 1 - self.ring.len()
    }

    fn append(&mut self, batch: &Batch) -> Result<Place, PublishError> {
        let cost = |data: &crate::Data| data.bytes().len() as u64 + EVENT_OVERHEAD_BYTES;
        let bytes = batch.events.iter().map(|event| cost(&event.data)).sum();
        let bytes_max = self.retention.bytes_max.min(Batch::BYTES_MAX);
        if bytes > bytes_max {
            return Err(PublishError::TooBig { bytes, bytes_max });
        }
        let first = self.head + 1;
        for event in &batch.events {
            self.head += 1;
            let (time, data) = (event.time, event.data.clone());
            self.ring.push(Arc::new(Event { offset: self.head, time, data }));
        }
        let place = Place { first, last: self.head };
        if let (Some(key), Some(event)) = (&batch.key, batch.events.first()) {
            self.keys.remember(event.time, key.clone(), place);
        }
        self.note = batch.note.clone().or(self.note.take());
        Ok(place)
    }

    /// Drops what retention no longer keeps.
    fn expire(&mut self, now: UnixTime) {
        while let Some(oldest) = self.ring.oldest() {
            let held =
                Held { events: self.ring.len(), bytes: self.ring.bytes(), oldest: oldest.time };
            if !self.retention.is_passed(held, now) {
                return;
            }
            self.ring.pop_oldest();
        }
    }
}
