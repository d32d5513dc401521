//! The log of one topic on disk, with the sides of publishers, readers and the writer.
//!
//! Publishers hand batches over under the `intake` lock and get their offsets there ([`Intake`]). The writer
//! ([`DiskLog::commit`]) writes them under the `file` lock, which only it uses. Readers see the contents under the
//! `kept` lock ([`Readable`]).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::active::{Active, Limits};
use super::carried::Carried;
use super::groundwork::{Groundwork, Leftover, SavedMeta};
use super::intake::{Intake, Job};
use super::kept::Kept;
use super::lock::{CARRIED, FILE, Guard, INTAKE, KEPT, LAST, Lock, lock};
use super::options::Fsync;
use super::paths::{aside_path, segment_path};
use super::reading::Readable;
use super::segments::Segments;
use super::shared::Disk;
use super::state::OwnNote;
use crate::error::Action;
use crate::keys::{KEY_BYTES, Keys, room_beside};
use crate::log::progress::{TopicProgress, advance};
use crate::log::shared_bytes::Evict;
use crate::{
    Epoch, Event, Health, Note, Position, PublishError, StorageError, TopicOptions, UnixTime,
};

#[derive(Debug)]
pub(super) struct DiskLog {
    disk: Arc<Disk>,
    pub(super) groundwork: Arc<Groundwork>,
    pub(super) progress: watch::Sender<TopicProgress>,
    pub(super) intake: Lock<INTAKE, Intake>,
    pub(super) readable: Readable,
    file: Lock<FILE, Active>,
    carried: Lock<CARRIED, Carried>,
    /// The error of the last attempt to keep something, if it failed.
    fault: Lock<LAST, Option<StorageError>>,
    /// The time at which the log was last told that a read failed.
    unread_at: Lock<LAST, Option<Instant>>,
}

/// The interval at which failed reads of a topic are logged, since clients can read as often as they like.
const UNREAD_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct InitialContents {
    pub(super) epoch: Epoch,
    pub(super) options: TopicOptions,
    pub(super) segments: Segments,
    pub(super) keys: Keys,
    pub(super) carried: Carried,
    pub(super) active: Active,
    pub(super) own_note: Option<OwnNote>,
    /// The files without valid records, and their new names.
    pub(super) aside: Vec<(PathBuf, PathBuf)>,
    pub(super) meta_is_saved: bool,
}

impl DiskLog {
    pub(super) fn new(
        disk: Arc<Disk>,
        directory: PathBuf,
        contents: InitialContents,
        progress: watch::Sender<TopicProgress>,
    ) -> Arc<Self> {
        let InitialContents {
            epoch,
            options,
            segments,
            keys,
            carried,
            active,
            own_note,
            aside,
            meta_is_saved,
        } = contents;
        let head = segments.head();
        advance(&progress, head);
        let leftover = Leftover { ragged: active.leftover(), aside };
        let note = OwnNote::or(own_note.as_ref(), active.note.as_ref());
        let meta = SavedMeta { options, own_note, is_saved: meta_is_saved };
        let intake = Intake::new(head, keys, options);
        let retention = options.retention;
        let held =
            if retention.shares_bytes() { segments.bytes() + intake.keys.bytes() } else { 0 };
        Arc::new_cyclic(|log: &Weak<Self>| {
            let allowance = disk.shared_bytes.join(held, log.clone());
            let kept = Kept::new(segments, retention, allowance, &intake.keys, note);
            Self {
                disk,
                readable: Readable::new(directory.clone(), kept),
                groundwork: Arc::new(Groundwork::new(directory, epoch, meta, leftover)),
                progress,
                intake: Lock::new(intake),
                file: Lock::new(active),
                carried: Lock::new(carried),
                fault: Lock::default(),
                unread_at: Lock::default(),
            }
        })
    }

    /// Writes batches in the order in which they were handed over, shows them to readers, and notifies their
    /// publishers. Returns true if something written is not flushed.
    pub(super) fn commit(&self, jobs: Vec<Job>) -> bool {
        let mut file = lock(&self.file);
        let round = lock(&self.intake).round;
        let (jobs, stale): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.round == round);
        let last_fault = lock(&self.fault).clone();
        for job in stale {
            job.complete(Err(last_fault.clone().map_or(PublishError::Closed, Into::into)));
        }
        let mut jobs = jobs.into_iter();
        while !jobs.as_slice().is_empty() {
            if self.groundwork.is_deleted() {
                jobs.by_ref().for_each(|job| job.complete(Err(PublishError::Deleted)));
                break;
            }
            match self.write_some(&mut file, jobs.as_slice()) {
                Ok(count) => jobs.by_ref().take(count).for_each(|job| job.complete(Ok(()))),
                Err(error) => {
                    self.record_fault(&error);
                    let mut intake = lock(&self.intake);
                    // Later batches have offsets that follow on one that is not kept.
                    intake.begin_again(self.readable.head());
                    drop(intake);
                    jobs.by_ref().for_each(|job| job.complete(Err(error.clone().into())));
                }
            }
        }
        file.flushed < self.readable.head()
    }

    /// Writes the first of these batches, as many as fit one file, and shows them to readers. Returns their number.
    fn write_some(&self, file: &mut Active, jobs: &[Job]) -> Result<usize, StorageError> {
        let disk = &self.disk;
        disk.begin()?;
        self.save_meta()?;
        let (limits, is_spent) = {
            let kept = lock(&self.readable.kept);
            let retention = kept.allowance.likely(kept.retention);
            let limits = Limits::of(retention, disk.options.segment_bytes_max);
            (limits, kept.segments.is_spent() && file.events > 0)
        };
        let is_full = |job: &Job| {
            let time = job.events.first().map(|event| event.time).unwrap_or_default();
            file.is_full_for(limits, job.events.len() as u64, job.bytes, time)
        };
        if is_spent || jobs.first().is_some_and(is_full) {
            file.roll(&*disk.platform, disk.options.fsync)?;
        }
        let (mut records, mut events) = (Vec::new(), 0);
        let mut count = 0;
        for job in jobs {
            let bytes = file.len + records.len() as u64 + job.bytes;
            let new_events = job.events.len() as u64;
            // The first batch always fits: the new file was begun for it.
            if count > 0 && !limits.can_hold(bytes, file.events + events + new_events) {
                break;
            }
            job.encode(file.origin(), file.flushed, &mut records);
            events += new_events;
            count += 1;
        }
        let written = jobs[..count].iter().flat_map(Job::records);
        if let Some((oldest, _)) = written.clone().next() {
            let (begun, last) = (oldest.time, oldest.offset + events - 1);
            let at = file.end();
            let mark = || self.mark(last);
            file.write(&*disk.platform, disk.options.fsync, &records, last, mark)?;
            file.events += events;
            file.begun = file.begun.or(Some(begun));
            if let Some(note) = jobs[..count].iter().rev().find_map(|job| job.note.as_ref()) {
                file.note = Some(note.clone());
                lock(&self.readable.kept).note = Some(note.clone());
            }
            self.count_in(&jobs[..count]);
            self.show(file.base, at, written);
            *lock(&self.fault) = None;
        }
        Ok(count)
    }

    /// Makes room for batches that were written, and remembers their keys.
    fn count_in(&self, jobs: &[Job]) {
        let bytes_of = |job: &Job| job.bytes + job.key.map_or(0, |_| KEY_BYTES);
        let batch_bytes = jobs.iter().map(|job| job.bytes).max().unwrap_or(0);
        let bytes = jobs.iter().map(bytes_of).sum();
        let short = lock(&self.readable.kept).make_room(bytes, batch_bytes);
        drop(self.change_keys(|intake| {
            intake.keep(jobs);
            // Keys give way to events only where there is no more room.
            if let Some(bytes_max) = short {
                intake.keys.forget_beyond(room_beside(batch_bytes, bytes_max));
            }
        }));
    }

    /// Changes the keys and counts them before retention is applied, so that no event is dropped for keys that are
    /// gone.
    pub(super) fn change_keys(&self, change: impl FnOnce(&mut Intake)) -> Guard<'_, KEPT, Kept> {
        let mut intake = lock(&self.intake);
        change(&mut intake);
        let mut kept = lock(&self.readable.kept);
        kept.count_keys(&intake.keys);
        kept
    }

    /// Shows readers the records that were written to the file `base` from `at` on.
    fn show<'a>(
        &self,
        base: u64,
        mut at: u64,
        written: impl Iterator<Item = (&'a Arc<Event>, u64)>,
    ) {
        let mut kept = lock(&self.readable.kept);
        let mut newest = UnixTime::default();
        for (event, bytes) in written {
            kept.segments.append(base, event.time, at, bytes);
            kept.newest.push(Arc::clone(event));
            at += bytes;
            newest = event.time;
        }
        while kept.newest.bytes() > self.disk.options.memory_bytes_max {
            kept.newest.pop_oldest();
        }
        kept.shown();
        let head = kept.segments.head();
        drop(kept);
        drop(self.readable.settled(newest));
        advance(&self.progress, head);
    }

    pub(super) fn flush(&self) -> Result<(), StorageError> {
        let mut file = lock(&self.file);
        if self.groundwork.is_deleted() {
            return Ok(());
        }
        let flushed = file.flush(&*self.disk.platform);
        match &flushed {
            Ok(()) => {
                let mut fault = lock(&self.fault);
                *fault = fault.take().filter(|error| error.action() != Action::Flush);
            }
            Err(error) => self.record_fault(error),
        }
        flushed
    }

    /// Flushes all files, including those that are no longer written.
    pub(super) fn flush_all(&self) -> Result<(), StorageError> {
        self.flush()?;
        if self.disk.options.fsync != Fsync::Never {
            return Ok(());
        }
        let bases: Vec<_> = lock(&self.readable.kept).segments.bases().collect();
        for base in bases {
            let path = segment_path(&self.groundwork.directory, base);
            let file = self.disk.platform.open(&path);
            file.and_then(|mut file| file.flush())
                .map_err(|error| StorageError::new(Action::Flush, &path, error))
                .inspect_err(|error| self.record_fault(error))?;
        }
        Ok(())
    }

    /// Applies retention at `now`, and removes files.
    pub(super) fn sweep(&self, now: UnixTime) {
        let is_spent = self.readable.settled(now).segments.is_spent();
        if is_spent && let Err(error) = self.replace_spent() {
            self.record_fault(&error);
        }
        self.remove_gone();
    }

    /// Begins an empty file after one whose events are all too old.
    fn replace_spent(&self) -> Result<(), StorageError> {
        let mut file = lock(&self.file);
        if self.groundwork.is_deleted()
            || file.events == 0
            || !lock(&self.readable.kept).segments.is_spent()
        {
            return Ok(());
        }
        self.disk.begin()?;
        let (platform, fsync) = (&*self.disk.platform, self.disk.options.fsync);
        file.roll(platform, fsync)?;
        let head = file.base - 1;
        file.write(platform, fsync, &[], head, || Ok(()))?;
        // Only the name of the new file contains the next offset.
        file.flush(platform)?;
        let mut kept = lock(&self.readable.kept);
        kept.segments.begin(file.base, file.len);
        kept.expire(UnixTime::default());
        Ok(())
    }

    pub(super) fn remove_gone(&self) {
        // The directory of a deleted topic may already belong to another.
        let file = lock(&self.file);
        let gone = std::mem::take(&mut lock(&self.readable.kept).gone);
        if gone.is_empty() || self.groundwork.is_deleted() {
            return;
        }
        if let Err(error) = self.carry_keys() {
            self.record_fault(&error);
            lock(&self.readable.kept).gone.extend(gone);
            return;
        }
        let (platform, directory) = (&*self.disk.platform, &self.groundwork.directory);
        for (done, segment) in gone.iter().enumerate() {
            let path = segment_path(directory, segment.base);
            let result = if segment.is_damaged {
                self.groundwork.set_aside(platform, &path, &aside_path(directory, segment.base))
            } else {
                platform.remove_file(&path)
            };
            if let Err(error) = result
                && error.kind() != io::ErrorKind::NotFound
            {
                self.record_fault(&StorageError::new(Action::Remove, &path, error));
                lock(&self.readable.kept).gone.extend(&gone[done..]);
                break;
            }
        }
        drop(file);
    }

    /// Saves the keys of segments that are to be removed, while they are in their window.
    fn carry_keys(&self) -> Result<(), StorageError> {
        let intake = lock(&self.intake);
        let below = {
            let kept = lock(&self.readable.kept);
            kept.segments.bases().next().unwrap_or(kept.segments.head() + 1)
        };
        let mut carried = lock(&self.carried);
        let is_stale = carried.is_stale(intake.keys.between(0, below).len() as u64);
        let after = if is_stale { 0 } else { carried.up_to };
        let keys: Vec<_> = intake.keys.between(after, below).collect();
        drop(intake);
        let (platform, fsync) = (&*self.disk.platform, self.disk.options.fsync);
        if is_stale {
            carried.rewrite(platform, &keys, below - 1)
        } else {
            carried.append(platform, fsync, &keys, below - 1)
        }
    }

    pub(super) fn set_note(&self, note: Note) -> Result<(), StorageError> {
        // No batch can be written while the file is locked.
        let file = lock(&self.file);
        lock(&self.readable.kept).note = Some(note.clone());
        self.groundwork.set_own_note(OwnNote { note, replaces: file.note.clone() });
        self.save_meta().inspect_err(|error| self.record_fault(error))
    }

    /// Moves its directory to the trash and returns its new path.
    pub(super) fn discard(&self) -> Result<PathBuf, StorageError> {
        // The writer creates nothing in the directory while the file is locked.
        let mut file = lock(&self.file);
        self.disk.end_coming()?;
        file.release();
        self.groundwork.delete(|directory| self.disk.discard(directory))
    }

    /// Removes its mark and its discarded directory.
    pub(super) fn remove(&self, discarded: &Path) {
        lock(&self.readable.kept).allowance.leave();
        self.disk.forget_mark(&self.groundwork.directory_name());
        if let Err(error) = self.disk.platform.remove_directory(discarded) {
            // The next start of the data directory tries again.
            tracing::warn!("cannot remove {}: {error}", discarded.display());
        }
    }

    pub(super) fn save_meta(&self) -> Result<(), StorageError> {
        self.groundwork.save_meta(&*self.disk.platform)
    }

    /// Records, apart from the segments, that events up to this offset may be acknowledged.
    pub(super) fn mark(&self, offset: u64) -> Result<(), StorageError> {
        let position = Position { epoch: self.groundwork.epoch, offset };
        self.disk.mark(&self.groundwork.directory_name(), position)
    }

    pub(super) fn position(&self) -> Position {
        Position { epoch: self.groundwork.epoch, offset: self.readable.head() }
    }

    pub(super) fn record_fault(&self, error: &StorageError) {
        if error.action() == Action::Flush {
            self.disk.taint();
        }
        let mut fault = lock(&self.fault);
        // Logged once: the next event is likely to fail in the same way.
        if fault.as_ref() != Some(error) {
            tracing::error!(topic = %self.groundwork.directory.display(), "{}", error.with_cause());
        }
        *fault = Some(error.clone());
    }

    /// Logs that events could not be read, unless that was logged a short while ago, or the topic is deleted.
    pub(super) fn report_unread(&self, error: &StorageError) {
        let mut unread_at = lock(&self.unread_at);
        let is_due = unread_at.is_none_or(|at| at.elapsed() >= UNREAD_INTERVAL);
        if is_due && !self.groundwork.is_moved_away() {
            *unread_at = Some(Instant::now());
            let topic = self.groundwork.directory.display();
            tracing::error!(%topic, "events cannot be read: {}", error.with_cause());
        }
    }

    pub(super) fn health(&self) -> Health {
        let writing = lock(&self.fault).clone();
        let damaged_events = lock(&self.readable.kept).segments.missing();
        Health { writing, damaged_events, behind: None }
    }
}

/// Called by the writer, which has given others more room.
impl Evict for DiskLog {
    fn evict(&self) {
        // Without a time: the age is checked by each read.
        drop(self.readable.settled(UnixTime::default()));
        self.remove_gone();
    }
}
