//! Reading pages: the newest events from memory, older ones from their segments.
//!
//! A page from disk reads at most a stride of the index before its first record, and then what the page
//! takes. No lock is held meanwhile; a file that retention removed under a reader makes it begin again.

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
use super::segments::{Known, Stretch};
use crate::error::Action;
use crate::log::Slice;
use crate::log::filling::Filling;
use crate::{Data, Event, PageLimit, StorageError, UnixTime};

/// The bytes that are read from a file at a time, unless one record is larger.
const CHUNK_BYTES: u64 = 128 << 10;

/// The bytes that are read at a time for retention, unless one record is larger.
const KNOWN_BYTES: u64 = 16 << 10;

/// A read begins again so often, because files went or were damaged under it, before it fails.
const ATTEMPTS_MAX: u32 = 4;

/// The reason why a stretch could not be read.
#[derive(Debug)]
enum Trouble {
    Io(Action, io::Error),
    /// There is no good record where one was.
    Damage,
}

/// The side of a log that readers see: events from memory, or from their segments.
#[derive(Debug)]
pub(super) struct Readable {
    directory: PathBuf,
    pub(super) kept: Lock<KEPT, Kept>,
}

impl Readable {
    pub(super) fn new(directory: PathBuf, kept: Kept) -> Self {
        Self { directory, kept: Lock::new(kept) }
    }

    /// Offset of the newest event.
    pub(super) fn head(&self) -> u64 {
        lock(&self.kept).segments.head()
    }

    pub(super) fn read(
        &self,
        now: UnixTime,
        after: u64,
        limit: PageLimit,
    ) -> Result<Slice, StorageError> {
        self.attempt(|| self.try_read(now, after, limit))
    }

    /// Offset before the oldest event kept whose time is `time` or later, or the head.
    pub(super) fn since(&self, now: UnixTime, time: UnixTime) -> Result<u64, StorageError> {
        self.attempt(|| self.try_since(now, time))
    }

    /// Reads again where files went or were damaged under the reader.
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
            // The end, or a hole: the next page begins after it and says so.
            let Some(stretch) = kept.segments.locate(next) else { break };
            drop(kept);
            let path = segment_path(&self.directory, stretch.base);
            let origin = Origin::new(&self.directory, stretch.base);
            read_stretch(&path, origin, &stretch, &mut page)
                .map_err(|trouble| (stretch.base, trouble))?;
            next = page.events.last().map_or(next, |event| event.offset);
            kept = lock(&self.kept);
        }
        Ok(Slice { first, head, from, events: page.events })
    }

    /// The index says in which stride the event is, so that one is read. Only of the oldest it may say so because of an
    /// event that is no longer kept; then another one is read.
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

    /// The state that readers see at `now`, once retention was applied to the event. For that a piece of the oldest file is
    /// read now and then, with no lock held. When that cannot be read, more is kept until it can.
    ///
    /// For those who read or write events anyway. For those who only ask what is kept there is [`Kept::expire`], which
    /// goes as far as is known without the disk.
    pub(super) fn settled(&self, now: UnixTime) -> Guard<'_, KEPT, Kept> {
        let mut failures = 0;
        let mut kept = lock(&self.kept);
        while let Some(stretch) = kept.expire(now) {
            drop(kept);
            let path = segment_path(&self.directory, stretch.base);
            let found = read_known(&path, Origin::new(&self.directory, stretch.base), &stretch);
            // What it says is said by the read that comes there.
            let is_found_out = matches!(found, Err(Trouble::Damage))
                && self.search_again(stretch.base, &path).is_ok();
            kept = lock(&self.kept);
            match found {
                Ok((at, known)) => kept.segments.learn(stretch.base, stretch.first, at, known),
                // It fails again at once, unless it was damage that is known now, or retention has removed it.
                Err(_) if !is_found_out && kept.segments.has(stretch.base) => break,
                Err(_) if failures == ATTEMPTS_MAX => break,
                Err(_) => failures += 1,
            }
        }
        kept
    }

    /// Finds out what is still good in a segment in which damage was read. Under the lock, since it is
    /// rare and nothing may be appended meanwhile.
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

/// The facts that retention needs of the first events of a stretch, and where the record of the first begins. At least
/// one, and as many as are read at once.
fn read_known(
    path: &Path,
    origin: Origin,
    stretch: &Stretch,
) -> Result<(u64, Vec<Known>), Trouble> {
    let mut file = File::open(path).map_err(|error| Trouble::Io(Action::Open, error))?;
    let (mut expected, mut at) = stretch.from;
    let mut wanted = KNOWN_BYTES;
    let (mut first_at, mut known) = (at, Vec::new());
    while known.is_empty() {
        let chunk = read_chunk(&mut file, at, wanted.min(stretch.end.saturating_sub(at)))?;
        let mut done = 0;
        wanted = KNOWN_BYTES;
        while known.len() < Known::AT_ONCE_MAX && done < chunk.len() {
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
                known.push(Known { time: record.time, bytes: record.bytes });
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

/// Fills the page from a stretch of a file.
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

/// The first event in a stretch of a file whose time is `time` or later.
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

/// Hands the wanted records of a stretch of a file out, until that is enough.
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
                // The rest of it is in the next chunk, if the stretch is that long.
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
        // It was cut short by someone else.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Trouble::Damage),
        Err(error) => Err(Trouble::Io(Action::Read, error)),
    }
}
