//! A log in memory: a ring of shared events, limited exactly by [`Retention`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::filling::Filling;
use super::progress::{advance, finish};
use super::ring::{Ring, cost_bytes};
use super::{Extent, Log, Progress, Slice, WhenFull};
use crate::keys::{Keyed, Keys, Place, Seen, room_beside};
use crate::receipt::Outcome;
use crate::retention::Holding;
use crate::{
    Batch, Epoch, Event, IdempotencyKey, NewEvent, Note, PageLimit, Position, PublishError,
    Receipt, Retention, StorageError, TopicOptions, UnixTime,
};

#[derive(Debug)]
pub(crate) struct MemoryLog {
    epoch: Epoch,
    kept: Mutex<Contents>,
    progress: watch::Sender<Progress>,
}

/// The events `first()..=head`, without a hole.
#[derive(Debug)]
struct Contents {
    ring: Ring,
    head: u64,
    keys: Keys,
    retention: Retention,
    note: Option<Note>,
    /// True if no event may follow.
    is_ended: bool,
    /// Removed events, which are dropped after the lock is released.
    gone: Gone,
}

/// Removed events. The removal of one, which is the usual case, allocates nothing.
#[derive(Debug, Default)]
struct Gone {
    first: Option<Arc<Event>>,
    rest: Vec<Arc<Event>>,
}

impl Gone {
    fn push(&mut self, event: Arc<Event>) {
        match &mut self.first {
            first @ None => *first = Some(event),
            Some(_) => self.rest.push(event),
        }
    }
}

impl MemoryLog {
    pub(crate) fn new(
        epoch: Epoch,
        options: TopicOptions,
        progress: watch::Sender<Progress>,
    ) -> Self {
        let TopicOptions { retention, keys, .. } = options;
        let (ring, keys) = (Ring::default(), Keys::new(keys));
        let (note, is_ended, gone) = (None, false, Gone::default());
        let kept = Contents { ring, head: 0, keys, retention, note, is_ended, gone };
        Self { epoch, kept: Mutex::new(kept), progress }
    }

    /// Changes the contents. One event may take the place of very many, and the threads that wait for the lock do not
    /// wait until these are dropped.
    fn change<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        let mut kept = self.lock();
        let changed = change(&mut kept);
        let gone = std::mem::take(&mut kept.gone);
        drop(kept);
        drop(gone);
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        // No method panics while it holds the lock, so the value of a poisoned lock is still consistent.
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
        let keyed = batch.keyed();
        let (place, is_repeated) = self.change(|kept| {
            if let Some(place) = keyed.map_or(Ok(None), |keyed| kept.keys.repeats(now, keyed))? {
                return Ok((place, true));
            }
            if kept.is_ended {
                return Err(PublishError::Ended);
            }
            batch.check(Position { epoch: self.epoch, offset: kept.head })?;
            let place = kept.append(batch, keyed)?;
            kept.expire(now);
            Ok((place, false))
        })?;
        if !is_repeated {
            advance(&self.progress, place.last);
        }
        Ok(Receipt::new(self.epoch, place, is_repeated, Outcome::Kept))
    }

    fn read(&self, now: UnixTime, after: u64, limit: PageLimit) -> Result<Slice, StorageError> {
        self.change(|kept| {
            kept.expire(now);
            let (first, head) = (kept.first(), kept.head);
            let from = after.max(first - 1);
            let rest = kept.ring.after(from);
            let mut page = Filling::new(limit, rest.len() as u64);
            page.extend(rest);
            let is_last = kept.is_ended && from + page.events.len() as u64 == head;
            Ok(Slice { first, head, from, is_last, events: page.events })
        })
    }

    fn data_bytes_after(&self, after: u64) -> u64 {
        self.lock().ring.data_bytes_after(after)
    }

    fn first(&self, now: UnixTime) -> u64 {
        self.extent(now).first
    }

    fn since(&self, now: UnixTime, time: UnixTime) -> Result<u64, StorageError> {
        self.change(|kept| {
            kept.expire(now);
            Ok(kept.ring.since(1, time).map_or(kept.head, |event| event.offset - 1))
        })
    }

    fn extent(&self, now: UnixTime) -> Extent {
        self.change(|kept| {
            kept.expire(now);
            let newest = kept.ring.newest().map(|event| event.time);
            Extent { first: kept.first(), head: kept.head, bytes: kept.bytes(), newest }
        })
    }

    fn note(&self) -> Option<Note> {
        self.lock().note.clone()
    }

    fn set_note(&self, note: Note) -> Result<(), StorageError> {
        self.lock().note = Some(note);
        Ok(())
    }

    fn knows(&self, now: UnixTime, key: IdempotencyKey) -> bool {
        self.lock().keys.find(now, key).is_some()
    }

    fn configure(&self, options: TopicOptions) {
        let mut kept = self.lock();
        kept.retention = options.retention;
        kept.keys.set_window(options.keys);
        kept.keys.forget_beyond(room_beside(0, options.retention.bytes_max));
    }

    fn end(&self, now: UnixTime, last: Option<NewEvent>) -> bool {
        let head = self.change(|kept| {
            if std::mem::replace(&mut kept.is_ended, true) {
                return None;
            }
            if let Some(last) = &last {
                // Its bytes come on top, so a large result pushes out none of what led to it by them.
                let bytes_max = &mut kept.retention.bytes_max;
                *bytes_max = bytes_max.saturating_add(cost_bytes(&last.data));
                kept.push(last);
            }
            kept.expire(now);
            Some(kept.head)
        });
        head.map(|head| finish(&self.progress, head)).is_some()
    }

    fn shrink_to(&self, bytes: u64) {
        self.change(|kept| {
            while kept.bytes() > bytes && kept.ring.len() > 1 {
                kept.pop_oldest();
            }
        });
    }

    fn delete(&self) -> Result<(), StorageError> {
        // First, so that nobody takes the missing events for the end of the topic.
        self.progress.send_modify(|progress| progress.deleted = true);
        // Slow readers may hold the topic for long. The events are dropped after the lock is released.
        let events = std::mem::take(&mut self.lock().ring);
        drop(events);
        Ok(())
    }
}

impl Contents {
    /// Returns the offset of the oldest kept event, or else that of the next one.
    fn first(&self) -> u64 {
        self.head + 1 - self.ring.len()
    }

    fn bytes(&self) -> u64 {
        self.ring.bytes() + self.keys.bytes()
    }

    fn append(&mut self, batch: &Batch, keyed: Option<Keyed>) -> Result<Place, PublishError> {
        let bytes = batch.events.iter().map(|event| cost_bytes(&event.data)).sum();
        let bytes_max = self.retention.bytes_max.min(Batch::BYTES_MAX);
        if bytes > bytes_max {
            return Err(PublishError::TooBig { bytes, bytes_max });
        }
        let first = self.head + 1;
        batch.events.iter().for_each(|event| self.push(event));
        let place = Place { first, last: self.head };
        if let (Some(keyed), Some(event)) = (keyed, batch.events.first()) {
            self.keys.remember(Seen::new(keyed, event.time, place));
        }
        self.keys.forget_beyond(room_beside(bytes, bytes_max));
        self.note = batch.note.clone().or(self.note.take());
        Ok(place)
    }

    fn push(&mut self, event: &NewEvent) {
        self.head += 1;
        let (time, data) = (event.time, event.data.clone());
        self.ring.push(Arc::new(Event { offset: self.head, time, data }));
    }

    /// Drops the events beyond the retention, but never the last event of a log that has ended.
    fn expire(&mut self, now: UnixTime) {
        self.keys.expire(now);
        while let Some(oldest) = self.ring.oldest() {
            let held =
                Holding { events: self.ring.len(), bytes: self.bytes(), oldest: oldest.time };
            let is_last = self.is_ended && self.ring.len() == 1;
            if is_last || !self.retention.is_passed(held, now) {
                return;
            }
            self.pop_oldest();
        }
    }

    fn pop_oldest(&mut self) {
        if let Some(event) = self.ring.pop_oldest() {
            self.gone.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::Data;

    /// Data that counts when it is dropped while its log is locked, and when it is not.
    struct Dropped {
        log: Weak<MemoryLog>,
        counts: Arc<[AtomicU64; 2]>,
    }

    impl AsRef<[u8]> for Dropped {
        fn as_ref(&self) -> &[u8] {
            b"1"
        }
    }

    impl Drop for Dropped {
        fn drop(&mut self) {
            let is_free = self.log.upgrade().is_some_and(|log| log.kept.try_lock().is_ok());
            self.counts[usize::from(is_free)].fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn no_event_is_dropped_while_others_wait_for_the_log() {
        let bytes_max = 100_000;
        let retention = Retention { bytes_max, ..Retention::default() };
        let (progress, _) = watch::channel(Progress::default());
        let log = Arc::new(MemoryLog::new(Epoch::from_bits(1), retention.into(), progress));
        let counts = Arc::<[AtomicU64; 2]>::default();
        let append = |data| {
            let batch = Batch::from(NewEvent { time: UnixTime::default(), data });
            drop(log.append(UnixTime::default(), &batch, WhenFull::Refuse).unwrap());
        };
        for _ in 0..100 {
            let (log, counts) = (Arc::downgrade(&log), Arc::clone(&counts));
            append(Data::from_owner(Dropped { log, counts }));
        }
        append(Data::json(&"x".repeat(99_000)).unwrap());
        let dropped = |at: usize| counts[at].load(Ordering::Relaxed);
        assert!(dropped(1) > 50, "{counts:?}");
        log.shrink_to(0);
        assert_eq!([dropped(0), dropped(1)], [0, 100]);
    }
}
