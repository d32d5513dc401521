//! A topic's log on disk, as the topic has it: the contract, and which of its calls wait for the disk.
//!
//! `read`, `first` and `since` read what is not in memory, `set_note`, `configure` and `delete` read and write, and `append` waits for
//! room where it may. All others answer from memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::lock::lock;
use super::log::DiskLog;
use super::state::OwnNote;
use crate::keys::room_beside;
use crate::log::{Extent, Log, Slice, WhenFull};
use crate::{
    Batch, Health, IdempotencyKey, Note, PageLimit, PublishError, Receipt, StorageError,
    TopicOptions, UnixTime,
};

/// Longest time that [`Topic::publish`](crate::Topic::publish) blocks its thread while the disk is behind.
const HAND_OVER_WAIT_MAX: Duration = Duration::from_secs(1);

/// A topic's log, as the topic has it.
#[derive(Debug)]
pub(crate) struct DiskTopic(pub(super) Arc<DiskLog>);

impl DiskTopic {
    /// Forgets the keys that are past their window: they count in what is kept.
    fn expire_keys(&self, now: UnixTime) {
        let mut intake = lock(&self.0.intake);
        intake.keys.expire(now);
        lock(&self.0.readable.kept).keys_bytes = intake.keys.bytes();
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
            match self.0.hand_over(now, batch) {
                Err(busy @ PublishError::Busy { .. }) if when_full == WhenFull::Wait => {
                    let until = *until.get_or_insert_with(|| Instant::now() + HAND_OVER_WAIT_MAX);
                    if !self.0.disk.queue.wait_for_room(until) {
                        return Err(busy);
                    }
                }
                taken => return taken,
            }
        }
    }

    fn room(&self) -> Option<&Notify> {
        Some(self.0.disk.queue.room())
    }

    fn read(&self, now: UnixTime, after: u64, limit: PageLimit) -> Result<Slice, StorageError> {
        self.0.readable.read(now, after, limit)
    }

    fn first(&self, now: UnixTime) -> u64 {
        self.expire_keys(now);
        self.0.readable.settled(now).segments.first()
    }

    fn since(&self, now: UnixTime, time: UnixTime) -> Result<u64, StorageError> {
        self.expire_keys(now);
        self.0.readable.since(now, time)
    }

    fn extent(&self, now: UnixTime) -> Extent {
        self.expire_keys(now);
        let mut kept = lock(&self.0.readable.kept);
        // What would have to be read to go on is not: see `settled`.
        let _ = kept.expire(now);
        let segments = &kept.segments;
        let bytes = segments.bytes() + kept.keys_bytes;
        Extent { first: segments.first(), head: segments.head(), bytes }
    }

    fn data_bytes_after(&self, after: u64) -> u64 {
        let kept = lock(&self.0.readable.kept);
        let after = after.max(kept.segments.first() - 1);
        if kept.is_in_memory(after) {
            return kept.newest.data_bytes_after(after);
        }
        kept.segments.data_bytes_after(after)
    }

    fn note(&self) -> Option<Note> {
        lock(&self.0.readable.kept).note.clone()
    }

    fn set_note(&self, note: Note) -> Result<(), StorageError> {
        // While the file is locked, no batch comes between.
        let file = lock(&self.0.file);
        lock(&self.0.readable.kept).note = Some(note.clone());
        self.0.groundwork.set_own_note(OwnNote { note, replaces: file.note.clone() });
        self.0.save_meta().inspect_err(|error| self.0.failed(error))
    }

    fn knows(&self, now: UnixTime, key: IdempotencyKey) -> bool {
        lock(&self.0.intake).keys.find(now, key).is_some()
    }

    fn health(&self) -> Health {
        self.0.health()
    }

    fn configure(&self, options: TopicOptions) {
        self.0.groundwork.set_options(options);
        {
            let mut intake = lock(&self.0.intake);
            intake.keys.set_window(options.keys);
            intake.bytes_max = options.retention.bytes_max.min(Batch::BYTES_MAX);
            let room = room_beside(0, intake.bytes_max);
            intake.keys.forget_beyond(room);
        }
        lock(&self.0.readable.kept).retention = options.retention;
        // No time: age is measured by who asks.
        drop(self.0.readable.settled(UnixTime::default()));
        if let Err(error) = self.0.save_meta() {
            self.0.failed(&error);
        }
    }

    fn delete(&self) -> Result<(), StorageError> {
        let log = &self.0;
        // While the file is locked, the writer makes nothing in the directory.
        let mut file = lock(&log.file);
        log.disk.end_coming()?;
        file.release();
        let trash = log.groundwork.delete(|directory| log.disk.discard(directory))?;
        drop(file);
        log.disk.remove(log);
        log.disk.forget_mark(&log.groundwork.directory_name());
        if let Err(error) = log.disk.platform.remove_directory(&trash) {
            // It is tried again when the data directory is opened.
            tracing::warn!("cannot remove {}: {error}", trash.display());
        }
        Ok(())
    }
}
