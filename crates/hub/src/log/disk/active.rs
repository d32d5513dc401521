//! The file of a topic that is being written. Owns the rule that only valid bytes precede a write: the rest of a
//! failed write is cut off first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::options::Fsync;
use super::paths::segment_path;
use super::platform::{Output, Platform};
use super::record::{Origin, encode_segment_header, segment_header_bytes};
use crate::error::Action;
use crate::{Epoch, Note, Retention, StorageError, UnixTime};

/// The limits of a segment; the next batch beyond them begins a new one. Pure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) age: Duration,
}

impl Limits {
    /// A segment holds at most an eighth of the retention, so that at most an eighth more is on disk, but not so
    /// little that files are nearly empty.
    pub(super) const PER_RETENTION: u32 = 8;
    pub(super) const BYTES_MIN: u64 = 4 << 10;
    pub(super) const EVENTS_MIN: u64 = 64;
    pub(super) const AGE_MIN: Duration = Duration::from_secs(1);

    pub(super) fn of(retention: Retention, segment_bytes_max: u64) -> Self {
        let eighth = |whole: u64| whole / u64::from(Self::PER_RETENTION);
        Self {
            bytes: eighth(retention.bytes_max).min(segment_bytes_max).max(Self::BYTES_MIN),
            events: eighth(retention.events_max).max(Self::EVENTS_MIN),
            age: (retention.age_max / Self::PER_RETENTION).max(Self::AGE_MIN),
        }
    }

    pub(super) fn can_hold(self, bytes: u64, events: u64) -> bool {
        bytes <= self.bytes && events <= self.events
    }
}

#[derive(Debug)]
pub(super) struct Active {
    directory: PathBuf,
    epoch: Epoch,
    /// The offset of its first event.
    pub(super) base: u64,
    /// The length of its valid part.
    pub(super) len: u64,
    /// The number of its events, including those that are no longer kept.
    pub(super) events: u64,
    /// The time of its first event.
    pub(super) begun: Option<UnixTime>,
    /// The newest flushed offset.
    pub(super) flushed: u64,
    /// The newest written offset.
    written: u64,
    /// The newest written note. The next segment begins with it.
    pub(super) note: Option<Note>,
    output: Option<Box<dyn Output>>,
    /// True if there may be bytes after the valid part.
    is_ragged: bool,
    /// True if its name may not survive a crash yet.
    is_new: bool,
    /// True if flushing failed. Nothing more is written before it succeeds.
    is_unflushable: bool,
    /// True if the open file is no longer at its path.
    is_lost: bool,
}

/// The state of the file when a log is opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) base: u64,
    pub(super) len: u64,
    pub(super) events: u64,
    pub(super) begun: Option<UnixTime>,
    /// The newest offset in the log.
    pub(super) head: u64,
    /// The newest flushed offset.
    pub(super) flushed: u64,
    pub(super) is_ragged: bool,
}

impl Found {
    /// No file: the first one begins with the first event.
    pub(super) const fn nothing() -> Self {
        Self { base: 1, len: 0, events: 0, begun: None, head: 0, flushed: 0, is_ragged: false }
    }
}

impl Active {
    pub(super) fn new(directory: PathBuf, epoch: Epoch, found: Found, note: Option<Note>) -> Self {
        let Found { base, len, events, begun, head, flushed, is_ragged } = found;
        Self {
            directory,
            epoch,
            base,
            len,
            events,
            begun,
            flushed,
            written: head,
            note,
            output: None,
            is_ragged,
            is_new: len == 0,
            is_unflushable: false,
            is_lost: false,
        }
    }

    /// Returns the file and the length of its valid part, if there are bytes after that.
    pub(super) fn leftover(&self) -> Option<(PathBuf, u64)> {
        self.is_ragged.then(|| (self.path(), self.len))
    }

    fn path(&self) -> PathBuf {
        segment_path(&self.directory, self.base)
    }

    /// Returns true if a batch must go to a new file.
    pub(super) fn is_full_for(
        &self,
        limits: Limits,
        events: u64,
        bytes: u64,
        time: UnixTime,
    ) -> bool {
        let too_old = self.begun.is_some_and(|begun| time.since(begun) > limits.age);
        self.events > 0 && (too_old || !limits.can_hold(self.len + bytes, self.events + events))
    }

    /// Switches to a new file, which is created by the first write.
    pub(super) fn roll(
        &mut self,
        platform: &dyn Platform,
        fsync: Fsync,
    ) -> Result<(), StorageError> {
        if fsync != Fsync::Never {
            // Once there is a newer file, this one must be complete.
            self.flush(platform)?;
        }
        self.output = None;
        self.base = self.written + 1;
        self.len = 0;
        self.events = 0;
        self.begun = None;
        self.is_ragged = false;
        self.is_new = true;
        Ok(())
    }

    /// Returns the segment for which records are written.
    pub(super) fn origin(&self) -> Origin {
        Origin::new(&self.directory, self.base)
    }

    /// Returns the offset in the file of the next record.
    pub(super) fn end(&self) -> u64 {
        if self.len == 0 { segment_header_bytes(self.note.as_ref()) } else { self.len }
    }

    /// Appends records up to the offset `last`, and flushes them with [`Fsync::Always`]. Then calls `mark` to record
    /// the offset. If any of this fails, or the file is no longer at its path, the state is as before.
    pub(super) fn write(
        &mut self,
        platform: &dyn Platform,
        fsync: Fsync,
        records: &[u8],
        last: u64,
        mark: impl FnOnce() -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.repair(platform)?;
        if self.is_unflushable {
            self.flush(platform)?;
        }
        let mut bytes = Vec::new();
        let bytes = if self.len == 0 {
            encode_segment_header(self.origin(), self.epoch, self.note.as_ref(), &mut bytes);
            bytes.extend_from_slice(records);
            &bytes
        } else {
            records
        };
        let (len, flushed, path) = (self.len, self.flushed, self.path());
        let written = self.repair(platform)?.write(bytes, len);
        self.is_ragged = true;
        let mut written = written.map_err(|error| StorageError::new(Action::Write, &path, error));
        if written.is_ok() {
            self.len = len + bytes.len() as u64;
            let before = std::mem::replace(&mut self.written, last);
            if fsync == Fsync::Always {
                written = self.flush(platform);
            }
            written = written.and_then(|()| self.check(&path)).and_then(|()| mark());
            if written.is_err() {
                (self.len, self.written, self.flushed) = (len, before, flushed);
            }
        }
        if written.is_err() {
            // The next start must not find the rest of the failed write. If it cannot be cut off now, that happens
            // before the next write.
            self.is_ragged = true;
            let _ = self.repair(platform);
            return written;
        }
        self.is_ragged = false;
        Ok(())
    }

    /// Checks that the file is at its path, where the next start looks for it. A file whose directory was removed,
    /// renamed or unmounted can still be written.
    fn check(&mut self, path: &Path) -> Result<(), StorageError> {
        let is_there = self.output.as_ref().map_or(Ok(true), |output| output.is_at(path));
        self.is_lost = !matches!(is_there, Ok(true));
        match is_there {
            Ok(true) => Ok(()),
            Ok(false) => Err(file_missing(path)),
            Err(error) => Err(StorageError::new(Action::Open, path, error)),
        }
    }

    /// Flushes everything written, so that it survives a crash of the machine.
    pub(super) fn flush(&mut self, platform: &dyn Platform) -> Result<(), StorageError> {
        let path = self.path();
        if self.is_lost {
            return Err(file_missing(&path));
        }
        if let Some(output) = &mut self.output
            && (self.flushed < self.written || self.is_new || self.is_unflushable)
        {
            self.is_unflushable = true;
            output.flush().map_err(|error| StorageError::new(Action::Flush, &path, error))?;
            if self.is_new {
                platform
                    .flush_directory(&self.directory)
                    .map_err(|error| StorageError::new(Action::Flush, &self.directory, error))?;
                self.is_new = false;
            }
            self.is_unflushable = false;
        }
        self.flushed = self.written;
        Ok(())
    }

    pub(super) fn release(&mut self) {
        self.output = None;
    }

    /// Returns the file, opened if necessary, after cutting off invalid bytes.
    fn repair(&mut self, platform: &dyn Platform) -> Result<&mut dyn Output, StorageError> {
        let path = self.path();
        let failure = |action, error| StorageError::new(action, &path, error);
        let output = match self.output.take() {
            Some(output) if !self.is_lost => output,
            _ => {
                // A file of this name may exist, if its creation was interrupted.
                self.is_ragged |= self.len == 0;
                let found = std::fs::metadata(&path).map_or(0, |found| found.len());
                if found < self.len {
                    return Err(file_missing(&path));
                }
                let opened = platform.open(&path).map_err(|error| failure(Action::Open, error))?;
                // A file that was found again may have been written by another process, and not be flushed.
                self.is_unflushable |= std::mem::take(&mut self.is_lost);
                opened
            }
        };
        let output = self.output.insert(output);
        if self.is_ragged {
            output.cut(self.len).map_err(|error| failure(Action::Cut, error))?;
            self.is_ragged = false;
        }
        Ok(&mut **output)
    }
}

fn file_missing(path: &Path) -> StorageError {
    let cause = "the file is gone: it or its directory was removed, renamed or unmounted";
    StorageError::new(Action::Write, path, std::io::Error::new(std::io::ErrorKind::NotFound, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_an_eighth_of_what_is_kept_within_bounds() {
        let of = |events_max, bytes_max, seconds| {
            let age_max = Duration::from_secs(seconds);
            Limits::of(Retention { events_max, bytes_max, age_max }, 16 << 20)
        };
        let age = Duration::from_secs(450);
        assert_eq!(of(10_000, 16 << 20, 3_600), Limits { bytes: 2 << 20, events: 1_250, age });
        assert_eq!(of(u64::MAX, u64::MAX, 3_600).bytes, 16 << 20);
        assert_eq!(of(1, 1, 0), Limits { bytes: 4 << 10, events: 64, age: Limits::AGE_MIN });
    }
}
