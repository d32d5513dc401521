//! A log in memory: a ring of shared events, limited exactly by [`Retention`], and by the bytes that it shares with
//! other logs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;

use super::filling::Filling;
use super::progress::{advance, finish};
use super::ring::{Ring, cost_bytes};
use super::shared_bytes::{Allowance, Evict, SharedBytes};
use super::{Extent, Log, Slice, TopicProgress, WhenFull};
use crate::allowances::Need;
use crate::keys::{KEY_BYTES, Keyed, Keys, Place, Seen, room_beside};
use crate::receipt::Outcome;
use crate::retention::Holding;
use crate::{
    Batch, Epoch, Event, IdempotencyKey, Keeps, NewEvent, Note, PageLimit, Position, PublishError,
    Receipt, Retention, StorageError, TopicOptions, UnixTime,
};

#[derive(Debug)]
pub(crate) struct MemoryLog {
    epoch: Epoch,
    kept: Arc<LockedContents>,
    shared: Arc<SharedBytes>,
    progress: watch::Sender<TopicProgress>,
}

/// The contents, which other logs that share bytes with this one may make evict.
#[derive(Debug)]
struct LockedContents(Mutex<Contents>);

/// The events `first()..=head`, without a hole.
#[derive(Debug)]
struct Contents {
    ring: Ring,
    head: u64,
    keys: Keys,
    retention: Retention,
    allowance: Allowance,
    note: Option<Note>,
    /// True if no event may follow.
    is_ended: bool,
    /// Removed events, which are dropped after the lock is released.
    gone: RemovedEvents,
}

/// Removed events. The removal of one, which is the usual case, allocates nothing.
#[derive(Debug, Default)]
struct RemovedEvents {
    first: Option<Arc<Event>>,
    rest: Vec<Arc<Event>>,
}

impl RemovedEvents {
    fn push(&mut self, event: Arc<Event>) {
        match &mut self.first {
            first @ None => *first = Some(event),
            Some(_) => self.rest.push(event),
        }
    }
}

impl MemoryLog {
    /// Creates an empty log that shares bytes with others, unless its options have a limit in bytes.
    pub(crate) fn new(
        epoch: Epoch,
        options: TopicOptions,
        shared: &Arc<SharedBytes>,
        progress: watch::Sender<TopicProgress>,
    ) -> Self {
        let TopicOptions { retention, keys, .. } = options;
        let (ring, keys) = (Ring::default(), Keys::new(keys));
        let (note, is_ended, gone) = (None, false, RemovedEvents::default());
        let kept = Arc::new_cyclic(|kept: &Weak<LockedContents>| {
            let allowance = shared.join(0, kept.clone());
            let contents =
                Contents { ring, head: 0, keys, retention, allowance, note, is_ended, gone };
            LockedContents(Mutex::new(contents))
        });
        Self { epoch, kept, shared: Arc::clone(shared), progress }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        self.kept.change(change)
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.kept.lock()
    }
}

impl LockedContents {
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Evict for LockedContents {
    fn evict(&self) {
        // Without a time: the age is checked by each read.
        self.change(|kept| kept.expire(UnixTime::default()));
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
        self.shared.evict();
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
            let [oldest, newest] =
                [kept.ring.oldest(), kept.ring.newest()].map(|event| event.map(|it| it.time));
            Extent { first: kept.first(), head: kept.head, bytes: kept.bytes(), oldest, newest }
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

    fn keeps(&self) -> Option<Keeps> {
        let kept = self.lock();
        Some(kept.allowance.keeps(kept.retention))
    }

    fn configure(&self, options: TopicOptions) {
        let mut kept = self.lock();
        kept.retention = options.retention;
        kept.keys.set_window(options.keys);
        kept.keys.forget_beyond(room_beside(0, options.retention.bytes_max));
        let held = kept.bytes();
        kept.allowance.grow(kept.retention, Need { least: 0, whole: held });
        kept.allowance.settle(kept.retention, held);
        drop(kept);
        self.shared.evict();
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
                kept.make_room(0, cost_bytes(&last.data));
                kept.push(last);
            }
            kept.expire(now);
            Some(kept.head)
        });
        self.shared.evict();
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
        let mut kept = self.lock();
        let events = std::mem::take(&mut kept.ring);
        kept.allowance.leave();
        drop(kept);
        drop(events);
        Ok(())
    }
}

/// Returns the bytes for which a batch counts in memory, without its key.
pub(crate) fn batch_bytes(batch: &Batch) -> u64 {
    batch.events.iter().map(|event| cost_bytes(&event.data)).sum()
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
        let bytes = batch_bytes(batch);
        let keys_bytes = if keyed.is_some() { KEY_BYTES } else { 0 };
        let bytes_max = self.make_room(keys_bytes, bytes).min(Batch::BYTES_MAX);
        if bytes > bytes_max {
            let most = self.allowance.refuses(self.retention, bytes).unwrap_or(bytes_max);
            return Err(PublishError::TooBig { bytes, bytes_max: most.min(Batch::BYTES_MAX) });
        }
        let first = self.head + 1;
        batch.events.iter().for_each(|event| self.push(event));
        let place = Place { first, last: self.head };
        if let (Some(keyed), Some(event)) = (keyed, batch.events.first()) {
            self.keys.remember(Seen::new(keyed, event.time, place));
        }
        // Keys give way to events only where there is no more room.
        if !self.retention.shares_bytes() || self.bytes() > bytes_max {
            self.keys.forget_beyond(room_beside(bytes, bytes_max));
        }
        self.note = batch.note.clone().or(self.note.take());
        Ok(place)
    }

    /// Asks for room for a batch of this size, if the log shares its bytes. Returns the most that it may hold now.
    fn make_room(&self, keys_bytes: u64, batch_bytes: u64) -> u64 {
        let whole = self.bytes() + keys_bytes + batch_bytes;
        self.allowance.grow(self.retention, Need { least: batch_bytes, whole })
    }

    fn push(&mut self, event: &NewEvent) {
        self.head += 1;
        let (time, data) = (event.time, event.data.clone());
        self.ring.push(Arc::new(Event { offset: self.head, time, data }));
    }

    /// Drops the events beyond the retention, but never the last event of a log that has ended.
    fn expire(&mut self, now: UnixTime) {
        self.keys.expire(now);
        let limit = self.allowance.limit(self.retention);
        while let Some(oldest) = self.ring.oldest() {
            let held =
                Holding { events: self.ring.len(), bytes: self.bytes(), oldest: oldest.time };
            let is_last = self.is_ended && self.ring.len() == 1;
            if is_last || !limit.is_passed(held, now) {
                break;
            }
            self.pop_oldest();
        }
        self.allowance.settle(self.retention, self.bytes());
    }

    fn pop_oldest(&mut self) {
        if let Some(event) = self.ring.pop_oldest() {
            self.gone.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
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
            let is_free = self.log.upgrade().is_some_and(|log| log.kept.0.try_lock().is_ok());
            self.counts[usize::from(is_free)].fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn no_event_is_dropped_while_others_wait_for_the_log() {
        let bytes_max = 100_000;
        let retention = Retention { bytes_max, ..Retention::default() };
        let (progress, _) = watch::channel(TopicProgress::default());
        let (epoch, shared) = (Epoch::from_bits(1), SharedBytes::new(0));
        let log = Arc::new(MemoryLog::new(epoch, retention.into(), &shared, progress));
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
