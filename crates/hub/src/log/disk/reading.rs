//! Reads pages: the newest events from memory, older ones from their segments.
//!
//! A page from disk reads at most one stride of the index before its first record, and then the page itself. It holds
//! no lock meanwhile; if retention removes a file under a reader, the read begins again.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::kept::Kept;
use super::lock::{Guard, KEPT, Lock, lock};
use super::paths::segment_path;
use super::record::{self, Fault, Origin, Record};
use super::scan::scan;
use super::segments::{KnownEvent, Stretch};
use crate::error::Action;
use crate::log::Slice;
use crate::log::filling::Filling;
use crate::{Data, Event, PageLimit, PublishError, StorageError, UnixTime};

/// The bytes read from a file at a time, unless a record is longer.
const CHUNK_BYTES: u64 = 128 << 10;

/// The bytes read at a time for retention, unless a record is longer.
const KNOWN_BYTES: u64 = 16 << 10;

/// The number of attempts before a read fails, when files were removed or damaged meanwhile.
const ATTEMPTS_MAX: u32 = 4;

#[derive(Debug)]
enum Trouble {
    Io(Action, io::Error),
    /// There is no valid record at the place of one.
    Damage,
}

/// The readers' side of a log: events in memory and in segments.
#[derive(Debug)]
pub(super) struct Readable {
    directory: PathBuf,
    pub(super) kept: Lock<KEPT, Kept>,
}

impl Readable {
    pub(super) fn new(directory: PathBuf, kept: Kept) -> Self {
        Self { directory, kept: Lock::new(kept) }
    }

    /// Returns the offset of the newest event.
    pub(super) fn head(&self) -> u64 {
        lock(&self.kept).segments.head()
    }

    /// Checks that the topic can hold a batch of this size, if it shares its bytes.
    pub(super) fn check_room(&self, bytes: u64) -> Result<(), PublishError> {
        let kept = lock(&self.kept);
        match kept.allowance.refuses(kept.retention, bytes) {
            Some(bytes_max) => Err(PublishError::TooBig { bytes, bytes_max }),
            None => Ok(()),
        }
    }

    pub(super) fn read(
        &self,
        now: UnixTime,
        after: u64,
        limit: PageLimit,
    ) -> Result<Slice, StorageError> {
        self.attempt(|| self.try_read(now, after, limit))
    }

    /// Returns the offset before the oldest kept event whose time is `time` or later, or else the head.
    pub(super) fn since(&self, now: UnixTime, time: UnixTime) -> Result<u64, StorageError> {
        self.attempt(|| self.try_since(now, time))
    }

    /// Reads again if files were removed or damaged meanwhile.
    fn attempt<T>(&self, read: impl Fn() -> Result<T, (u64, Trouble)>) -> Result<T, StorageError> {
        let mut attempts = 1;
        loop {
            match read() {
                Ok(read) => return Ok(read),
                Err((base, trouble)) => {
                    let path = segment_path(&self.directory, base);
                    let may_repeat = attempts < ATTEMPTS_MAX;
                    attempts += 1;
                    match trouble {
                        Trouble::Io(_, error)
                            if may_repeat
                                && error.kind() == io::ErrorKind::NotFound
                                && !lock(&self.kept).segments.has(base) => {}
                        Trouble::Io(action, error) => {
                            return Err(StorageError::new(action, &path, error));
                        }
                        Trouble::Damage if may_repeat => self.search_again(base, &path)?,
                        Trouble::Damage => {
                            let error =
                                io::Error::new(io::ErrorKind::InvalidData, "damaged record");
                            return Err(StorageError::new(Action::Read, &path, error));
                        }
                    }
                }
            }
        }
    }

    fn try_read(
        &self,
        now: UnixTime,
        after: u64,
        limit: PageLimit,
    ) -> Result<Slice, (u64, Trouble)> {
        let mut kept = self.settled(now);
        let (first, head) = (kept.segments.first(), kept.segments.head());
        let from = kept.segments.resume(after);
        let mut page = Filling::new(limit, head.saturating_sub(from));
        let mut next = from;
        while !page.is_full {
            if kept.is_in_memory(next) {
                page.extend(kept.newest.after(next));
                break;
            }
            // At the end or before a hole; the next page begins after the hole and reports it.
            let Some(stretch) = kept.segments.locate(next) else { break };
            drop(kept);
            let path = segment_path(&self.directory, stretch.base);
            let origin = Origin::new(&self.directory, stretch.base);
            read_stretch(&path, origin, &stretch, &mut page)
                .map_err(|trouble| (stretch.base, trouble))?;
            next = page.events.last().map_or(next, |event| event.offset);
            kept = lock(&self.kept);
        }
        Ok(Slice { first, head, from, is_last: false, events: page.events })
    }

    /// The index tells in which stride the event is, so only that one is read. For the oldest stride, the index may
    /// refer to an event that is no longer kept; then another stride is read.
    fn try_since(&self, now: UnixTime, time: UnixTime) -> Result<u64, (u64, Trouble)> {
        let mut kept = self.settled(now);
        let mut from = kept.segments.first();
        while let Some((stretch, last)) = kept.segments.since(from, time) {
            if kept.is_in_memory(stretch.first - 1) {
                let found = kept.newest.since(stretch.first, time);
                return Ok(found.map_or(kept.segments.head(), |event| event.offset - 1));
            }
            drop(kept);
            let found = find_since(&self.directory, &stretch, time)
                .map_err(|trouble| (stretch.base, trouble))?;
            if let Some(offset) = found {
                return Ok(offset - 1);
            }
            from = last + 1;
            kept = lock(&self.kept);
        }
        Ok(kept.segments.head())
    }

    /// Returns the state that readers see at `now`, with retention applied exactly. That sometimes reads a piece of
    /// the oldest file, without holding a lock. If the piece cannot be read, more events are kept until it can.
    ///
    /// Callers read or write events anyway. Callers that only ask what is kept use [`Kept::expire`], which needs no
    /// disk.
    pub(super) fn settled(&self, now: UnixTime) -> Guard<'_, KEPT, Kept> {
        let mut failures = 0;
        let mut kept = lock(&self.kept);
        while let Some(stretch) = kept.expire(now) {
            drop(kept);
            let path = segment_path(&self.directory, stretch.base);
            let found = read_known(&path, Origin::new(&self.directory, stretch.base), &stretch);
            // The read that reaches the damage will report it.
            let is_found_out = matches!(found, Err(Trouble::Damage))
                && self.search_again(stretch.base, &path).is_ok();
            kept = lock(&self.kept);
            match found {
                Ok((at, known)) => kept.segments.learn(stretch.base, stretch.first, at, known),
                // A retry would fail again at once, unless the damage is known now or retention has removed the file.
                Err(_) if !is_found_out && kept.segments.has(stretch.base) => break,
                Err(_) if failures == ATTEMPTS_MAX => break,
                Err(_) => failures += 1,
            }
        }
        kept
    }

    /// Searches for the valid records of a segment in which damage was read. It holds the lock, since this is rare
    /// and nothing may be appended meanwhile.
    fn search_again(&self, base: u64, path: &Path) -> Result<(), StorageError> {
        let mut kept = lock(&self.kept);
        let Some((len, below)) = kept.segments.bounds(base) else { return Ok(()) };
        let failure = |error| StorageError::new(Action::Read, path, error);
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(len).read_to_end(&mut bytes))
            .map_err(failure)?;
        let found = scan(&bytes, Origin::new(&self.directory, base), below);
        let lost = kept.segments.replace(base, found.spans);
        tracing::error!("{} is damaged: {lost} events of it are lost", path.display());
        Ok(())
    }
}

/// Returns the facts that retention needs about the first events of a stretch, and the place of the first record: at
/// least one event, and as many as one read returns.
fn read_known(
    path: &Path,
    origin: Origin,
    stretch: &Stretch,
) -> Result<(u64, Vec<KnownEvent>), Trouble> {
    let mut file = File::open(path).map_err(|error| Trouble::Io(Action::Open, error))?;
    let (mut expected, mut at) = stretch.from;
    let mut wanted = KNOWN_BYTES;
    let (mut first_at, mut known) = (at, Vec::new());
    while known.is_empty() {
        let chunk = read_chunk(&mut file, at, wanted.min(stretch.end.saturating_sub(at)))?;
        let mut done = 0;
        wanted = KNOWN_BYTES;
        while known.len() < KnownEvent::AT_ONCE_MAX && done < chunk.len() {
            let record = match record::decode(&chunk[done..], origin) {
                Ok(record) if record.offset == expected => record,
                Err(Fault::Short(bytes)) if at + done as u64 + bytes <= stretch.end => {
                    wanted = bytes.max(KNOWN_BYTES);
                    break;
                }
                _ => return Err(Trouble::Damage),
            };
            if record.offset == stretch.first {
                first_at = at + done as u64;
            }
            if record.offset >= stretch.first {
                known.push(KnownEvent { time: record.time, bytes: record.bytes });
            }
            expected += 1;
            done += usize::try_from(record.bytes).unwrap_or(usize::MAX);
        }
        if chunk.is_empty() {
            return Err(Trouble::Damage);
        }
        at += done as u64;
    }
    Ok((first_at, known))
}

fn read_stretch(
    path: &Path,
    origin: Origin,
    stretch: &Stretch,
    page: &mut Filling,
) -> Result<(), Trouble> {
    each_record(path, origin, stretch, |record| {
        if !page.fits(record.data.len()) {
            return ControlFlow::Break(());
        }
        let data = Data::from_log(record.data);
        page.push(Arc::new(Event { offset: record.offset, time: record.time, data }));
        if page.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// Returns the first event in a stretch of a file whose time is `time` or later.
fn find_since(directory: &Path, stretch: &Stretch, time: UnixTime) -> Result<Option<u64>, Trouble> {
    let (path, origin) =
        (segment_path(directory, stretch.base), Origin::new(directory, stretch.base));
    let mut found = None;
    each_record(&path, origin, stretch, |record| {
        if record.time < time {
            return ControlFlow::Continue(());
        }
        found = Some(record.offset);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Passes the records of a stretch of a file to `take`, until that is enough.
fn each_record(
    path: &Path,
    origin: Origin,
    stretch: &Stretch,
    mut take: impl FnMut(&Record<'_>) -> ControlFlow<()>,
) -> Result<(), Trouble> {
    let mut file = File::open(path).map_err(|error| Trouble::Io(Action::Open, error))?;
    let (mut expected, mut at) = stretch.from;
    let mut wanted = CHUNK_BYTES;
    while at < stretch.end {
        let chunk = read_chunk(&mut file, at, wanted.min(stretch.end - at))?;
        wanted = CHUNK_BYTES;
        let mut done = 0;
        while done < chunk.len() {
            let record = match record::decode(&chunk[done..], origin) {
                Ok(record) if record.offset == expected => record,
                // The rest of the record is in the next chunk, if the stretch is that long.
                Err(Fault::Short(bytes)) if at + done as u64 + bytes <= stretch.end => {
                    wanted = bytes.max(CHUNK_BYTES);
                    break;
                }
                _ => return Err(Trouble::Damage),
            };
            if record.offset >= stretch.first && take(&record).is_break() {
                return Ok(());
            }
            expected += 1;
            done += usize::try_from(record.bytes).unwrap_or(usize::MAX);
        }
        at += done as u64;
    }
    Ok(())
}

fn read_chunk(file: &mut File, at: u64, bytes: u64) -> Result<Vec<u8>, Trouble> {
    let mut chunk = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut chunk));
    match read {
        Ok(()) => Ok(chunk),
        // The file was truncated by another process.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Trouble::Damage),
        Err(error) => Err(Trouble::Io(Action::Read, error)),
    }
}
