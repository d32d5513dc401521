//! Which bytes to read next, of which file.
//!
//! Owns the open file and how it is told from another one. Blocks, as files do; one
//! [`Follower::turn`] makes a handful of system calls and at most one that reads something to publish, but for a
//! look at the names beside the file when it is another one.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};

use super::Origin;
use super::place::{Id, Place, WINDOW_BYTES, Window};
use super::siblings::{COUNT_MAX, Next, Sibling, modified, next_after, siblings};
use super::watch::Watches;

/// Most files that are compared with one which was truncated, to find its copy: the oldest
/// that were written to since.
const COPIES_MAX: usize = 16;

/// The names are read again at most so often because the file was rotated meanwhile.
const ATTEMPTS_MAX: u32 = 4;

/// The result of one look at the file.
#[derive(Debug)]
pub(super) enum Turn {
    /// A file was opened that is there since before the source, or was not there until now.
    Opened(Opened),
    /// This was read; there may be more.
    Read(Chunk),
    /// There is nothing more at present.
    Idle,
    /// It is not the same any more, and is read from its beginning from now on. What was read of it has
    /// ended.
    Restarted(Option<Missing>),
    /// It was copied and truncated: its copy is read on.
    Copied(Missing),
    /// Another file is read from its beginning from now on. The old one has ended.
    Rotated(Option<Missing>),
    /// There is no such file, or none that can be read; the one that was open, if one was, has
    /// nothing more at present.
    Lost(io::Error),
}

/// The place where reading began.
#[derive(Debug)]
pub(super) enum Opened {
    /// At the origin: nothing was known of it.
    Anew,
    /// After the place that was kept, in a copy maybe.
    After(Place, Option<Missing>),
    /// The file of the place is not there any more, or another under its name.
    Elsewhere(Missing),
}

/// Something may be missing before what is read next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Missing {
    /// The rest after this many bytes, written before it was truncated, replaced or rotated away.
    Rest(u64),
    /// The lines written between the copying to this file and the truncation.
    BetweenCopies(PathBuf),
    /// Files between that was read and this one: the old one is not among them any more, or there are more of them than
    /// are looked at.
    Between(PathBuf),
    /// This file, which was last written to when the one that was read was: nothing tells which is the newer.
    Doubtful(PathBuf),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rest(offset) => write!(f, "what was written to it after byte {offset}"),
            Self::BetweenCopies(to) => {
                write!(f, "what was written while it was copied to {} and truncated", to.display())
            }
            Self::Between(to) => write!(f, "whole files older than {}", to.display()),
            Self::Doubtful(path) => {
                write!(f, "all of {}, of the same time as the file read before it,", path.display())
            }
        }
    }
}

/// The bytes that were read, and where they are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Chunk {
    /// In the buffer. Before it is what stands before it in the file, up to [`WINDOW_BYTES`].
    pub(super) range: Range<usize>,
    /// In the file.
    offset: u64,
}

#[derive(Debug)]
pub(super) struct Follower {
    path: PathBuf,
    /// The place to begin in the first file.
    origin: Origin,
    /// There was none at this time, in nanoseconds since the Unix epoch: all is new that is written after it.
    absent_at: Option<i64>,
    /// For a beginning at the end: how far back a line that was begun is looked for.
    line_bytes_max: usize,
    /// The place to go on, until it is found.
    place: Option<Place>,
    watches: Watches,
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// As long as it is open no other file can have it.
    id: Id,
    /// The bytes of it that were read.
    position: u64,
    /// Its beginning, as far as it was read.
    head: Vec<u8>,
    /// The bytes before the position.
    tail: Vec<u8>,
    /// The time of the last write to it, as of the last read.
    modified: i64,
}

/// The result of a look at the open file.
enum FileState {
    More(Chunk),
    End,
    /// It does not have any more what was read of it.
    Changed,
}

fn id(metadata: &Metadata) -> Id {
    (metadata.dev(), metadata.ino())
}

fn not_a_file() -> io::Error {
    io::Error::other("not a regular file")
}

impl Follower {
    pub(super) fn new(
        path: PathBuf,
        origin: Origin,
        line_bytes_max: usize,
        place: Option<Place>,
        watches: Watches,
    ) -> Self {
        let place = place.filter(|place| place.is_of(path.as_os_str().as_bytes()));
        let absent_at = place.as_ref().filter(|place| place.is_before_all());
        let absent_at = absent_at.map(|place| place.modified);
        let place = place.filter(|place| !place.is_before_all());
        Self { path, origin, absent_at, line_bytes_max, place, watches, open: None }
    }

    /// The size of a buffer that takes this much at a time.
    pub(super) const fn buffer_bytes(read_bytes: usize) -> usize {
        WINDOW_BYTES + read_bytes
    }

    /// Reads what there is, at most as much as `buffer` holds, or looks why there is nothing more.
    pub(super) fn turn(&mut self, buffer: &mut [u8]) -> Turn {
        self.watches.directory_of(&self.path);
        let Some(open) = &mut self.open else { return self.open_first() };
        match open.look(buffer) {
            Ok(FileState::More(chunk)) => return Turn::Read(chunk),
            Ok(FileState::End) => {}
            Ok(FileState::Changed) => return self.changed(),
            // There may be another file that can be read.
            Err(error) => {
                let gap = Missing::Rest(open.position);
                return match self.other_file() {
                    Some(other) => self.replace(other, Some(gap)),
                    None => Turn::Lost(error),
                };
            }
        }
        let open_id = open.id;
        let stands = std::fs::metadata(&self.path);
        if stands.as_ref().is_ok_and(|metadata| id(metadata) == open_id) {
            return Turn::Idle;
        }
        match (self.next_file(), stands) {
            (Ok(Some((other, gap))), _) => self.replace_at_end(other, gap, buffer),
            (Err(error), _) | (Ok(None), Err(error)) => Turn::Lost(error),
            (Ok(None), Ok(metadata)) if !metadata.is_file() => Turn::Lost(not_a_file()),
            // Another file is of interest once it has something in it: until then somebody may still
            // write to this one.
            (Ok(None), Ok(_)) => {
                self.watches.other(&self.path);
                Turn::Idle
            }
        }
    }

    /// After the last chunk, or the last turn: where all of what was given ends.
    pub(super) fn place(&self) -> Option<Place> {
        let Some(open) = &self.open else {
            return Some(Place::before_all(self.path.as_os_str().as_bytes(), self.absent_at?));
        };
        Some(self.place_in(open, open.position, &open.tail))
    }

    /// After the first `len` bytes of a chunk that is the last which was read into this buffer.
    pub(super) fn place_after(&self, chunk: &Chunk, len: usize, buffer: &[u8]) -> Option<Place> {
        let open = self.open.as_ref()?;
        let offset = chunk.offset + len as u64;
        let before = &buffer[..chunk.range.start + len];
        let tail = &before[before.len().saturating_sub(WINDOW_BYTES)..];
        Some(self.place_in(open, offset, tail))
    }

    fn place_in(&self, open: &OpenFile, offset: u64, tail: &[u8]) -> Place {
        let head = &open.head[..window_bytes(offset).min(open.head.len())];
        let path = self.path.as_os_str().as_bytes();
        Place::new(path, open.id, offset, open.modified, Window { head, tail })
    }

    /// The oldest file that is newer than the open one and has something in it: an older one of that under the
    /// path, when there were several rotations, or that itself.
    fn next_file(&self) -> io::Result<Option<(OpenFile, Option<Missing>)>> {
        let Some(open) = &self.open else { return Ok(None) };
        let last_write = modified(&open.file.metadata()?);
        let (current, older) = self.names()?;
        // With more names than are looked at, one may be missing that comes between.
        let are_all = older.len() < COUNT_MAX;
        let Next { file, doubtful } = next_after(&older, open.id, last_write);
        let is_known = older.iter().any(|sibling| sibling.id == open.id);
        let are_between = !are_all || (file.is_some() && !is_known);
        let before = file.map_or(&self.path, |next| &next.path);
        let between = are_between.then(|| Missing::Between(before.clone()));
        let gap = between.or_else(|| Some(Missing::Doubtful(doubtful?.path.clone())));
        let next = file.map(|next| OpenFile::open(&next.path)).transpose()?.or(current);
        Ok(next.map(|next| (next, gap)))
    }

    /// The file under the path, if it has something in it, and the older ones of it.
    fn names(&self) -> io::Result<(Option<OpenFile>, Vec<Sibling>)> {
        let mut attempts = 1;
        loop {
            let current = match std::fs::metadata(&self.path) {
                Ok(metadata) if metadata.is_file() && metadata.len() > 0 => {
                    Some(OpenFile::open(&self.path)?)
                }
                Ok(_) | Err(_) => None,
            };
            // A file that was rotated away before the path was looked at has a name by now. One that is rotated
            // away while names are read may be missing from them.
            let found = siblings(&self.path).unwrap_or_default();
            let now = std::fs::metadata(&self.path).ok().map(|metadata| id(&metadata));
            let is_same = current.as_ref().is_none_or(|current| now == Some(current.id));
            if is_same || attempts == ATTEMPTS_MAX {
                let current_id = current.as_ref().map(|current| current.id);
                let older = found.into_iter().filter(|file| Some(file.id) != current_id).collect();
                return Ok((current, older));
            }
            attempts += 1;
        }
    }

    /// Reads the old file to its end, and turns to another one then: what was written to the old one before the other
    /// appeared is there by now.
    fn replace_at_end(&mut self, other: OpenFile, gap: Option<Missing>, buffer: &mut [u8]) -> Turn {
        match self.open.as_mut().map(|open| open.look(buffer)) {
            Some(Ok(FileState::More(chunk))) => Turn::Read(chunk),
            Some(Ok(FileState::Changed)) => self.changed(),
            _ => self.replace(other, gap),
        }
    }

    /// Goes on with an open file in which what was read of it is no more.
    fn changed(&mut self) -> Turn {
        let Some(open) = &mut self.open else { return Turn::Idle };
        let (id, position) = (open.id, open.position);
        // Files of /proc are made up at each read.
        let is_made_up = open.is_made_up();
        if is_made_up || position == 0 {
            open.restart();
            return Turn::Restarted(None);
        }
        let place = self.place();
        let copy = place.and_then(|place| self.find_copy(&place, id));
        if let Some((path, copy)) = copy {
            self.watch(copy);
            return Turn::Copied(Missing::BetweenCopies(path));
        }
        if let Some(open) = &mut self.open {
            open.restart();
        }
        Turn::Restarted(Some(Missing::Rest(position)))
    }

    /// A file beside it that has what was read and was written to since then.
    fn find_copy(&self, place: &Place, but: Id) -> Option<(PathBuf, OpenFile)> {
        let mut found = siblings(&self.path).unwrap_or_default();
        found.retain(|file| {
            file.id != but && file.len >= place.offset && file.modified >= place.modified
        });
        found.sort_by_key(|file| file.modified);
        let copy = |file: Sibling| Some((OpenFile::at(&file.path, place).ok()??, file.path));
        found.into_iter().take(COPIES_MAX).find_map(copy).map(|(file, path)| (path, file))
    }

    fn open_first(&mut self) -> Turn {
        if let Some(place) = self.place.clone() {
            return self.go_on(place);
        }
        let opened = match self.absent_at {
            Some(at) => self.open_written_after(at),
            None => OpenFile::open(&self.path).and_then(|mut open| {
                if self.origin == Origin::End {
                    open.skip_to_last_line(self.line_bytes_max)?;
                }
                Ok(open)
            }),
        };
        match opened {
            Ok(open) => {
                self.watch(open);
                Turn::Opened(Opened::Anew)
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::NotFound {
                    self.absent_at = self.absent_at.or_else(now);
                }
                Turn::Lost(error)
            }
        }
    }

    /// The oldest of what was written since there was nothing: it may have been rotated before it was seen.
    fn open_written_after(&self, at: i64) -> io::Result<OpenFile> {
        let (current, older) = self.names()?;
        if let Some(next) = next_after(&older, (0, 0), at).file {
            return OpenFile::open(&next.path);
        }
        current.map_or_else(|| OpenFile::open(&self.path), Ok)
    }

    /// Finds the file of a place that was kept: under the path, or under the name that a rotation gave it; else
    /// one with the same content.
    fn go_on(&mut self, place: Place) -> Turn {
        let (current, older) = match self.names() {
            Ok(names) => names,
            Err(error) => return Turn::Lost(error),
        };
        let stands = std::fs::metadata(&self.path);
        let same = stands.is_ok_and(|metadata| id(&metadata) == place.id);
        let by_id = || older.iter().find(|file| file.id == place.id).map(|file| file.path.clone());
        let named = same.then(|| self.path.clone()).or_else(by_id);
        let at = |path: &Path| OpenFile::at(path, &place).ok().flatten().map(|open| (open, None));
        let found = named.and_then(|path| at(&path));
        // Nothing but its content tells what is a copy.
        let has_content = place.offset > 0;
        let found = found.or_else(|| at(&self.path).filter(|_| has_content)).or_else(|| {
            let (path, copy) = self.find_copy(&place, (0, 0)).filter(|_| has_content)?;
            Some((copy, Some(Missing::BetweenCopies(path))))
        });
        if let Some((open, gap)) = found {
            self.watch(open);
            self.place = None;
            return Turn::Opened(Opened::After(place, gap));
        }
        let next = next_after(&older, place.id, place.modified).file;
        let next = next.and_then(|next| OpenFile::open(&next.path).ok()).or(current);
        let Some(next) = next.map_or_else(|| OpenFile::open(&self.path), Ok).ok() else {
            // It may come back.
            let error = std::fs::metadata(&self.path).err().unwrap_or_else(not_a_file);
            return Turn::Lost(error);
        };
        self.watch(next);
        self.place = None;
        Turn::Opened(Opened::Elsewhere(Missing::Rest(place.offset)))
    }

    fn other_file(&self) -> Option<OpenFile> {
        let other = OpenFile::open(&self.path).ok()?;
        self.open.as_ref().is_none_or(|open| open.id != other.id).then_some(other)
    }

    fn replace(&mut self, other: OpenFile, gap: Option<Missing>) -> Turn {
        self.watch(other);
        Turn::Rotated(gap)
    }

    fn watch(&mut self, open: OpenFile) {
        self.watches.open(&open.file);
        self.open = Some(open);
    }
}

/// In nanoseconds since the Unix epoch, no later than files that are written from now on say they are: their times
/// come from a clock that ticks, each 10 ms at most.
fn now() -> Option<i64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()?.checked_sub(10_000_000)
}

/// The number of bytes before a place that tell files from each other.
fn window_bytes(offset: u64) -> usize {
    usize::try_from(offset).map_or(WINDOW_BYTES, |offset| offset.min(WINDOW_BYTES))
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Self> {
        // Not blocking: opening a FIFO would otherwise wait for who writes to it.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(not_a_file());
        }
        let (id, modified) = (id(&metadata), modified(&metadata));
        Ok(Self { file, id, position: 0, head: Vec::new(), tail: Vec::new(), modified })
    }

    /// Opens it after a place; `None` when it does not have what stands before that.
    fn at(path: &Path, place: &Place) -> io::Result<Option<Self>> {
        let mut open = Self::open(path)?;
        open.go_to(place.offset)?;
        let window = Window { head: &open.head, tail: &open.tail };
        let is_there = open.position == place.offset && place.follows(window);
        Ok(is_there.then_some(open))
    }

    /// Goes on after so many bytes, or at the end if there are less.
    fn go_to(&mut self, offset: u64) -> io::Result<()> {
        let offset = offset.min(self.file.metadata()?.len());
        let window = window_bytes(offset);
        let read = |bytes: &mut Vec<u8>, at| {
            bytes.resize(window, 0);
            self.file.read_exact_at(bytes, at)
        };
        read(&mut self.head, 0)?;
        read(&mut self.tail, offset - window as u64)?;
        self.position = offset;
        Ok(())
    }

    fn restart(&mut self) {
        self.position = 0;
        self.head.clear();
        self.tail.clear();
    }

    /// Reads on, and what stands before that again: so is seen that the file is still the same, whatever it was
    /// truncated to and has grown to since.
    fn look(&mut self, buffer: &mut [u8]) -> io::Result<FileState> {
        let window = self.tail.len();
        let most = (buffer.len() - WINDOW_BYTES + window).min(buffer.len());
        let buffer = &mut buffer[..most];
        let len = read_at(&self.file, buffer, self.position - window as u64)?;
        if len < window || buffer[..window] != self.tail {
            return Ok(FileState::Changed);
        }
        if len == window {
            // Files of /proc always seem shorter than what was read of them.
            let shorter = self.file.metadata()?.len() < self.position;
            return Ok(if shorter { FileState::Changed } else { FileState::End });
        }
        let chunk = Chunk { range: window..len, offset: self.position };
        self.position += (len - window) as u64;
        let head = WINDOW_BYTES.saturating_sub(self.head.len()).min(len - window);
        self.head.extend_from_slice(&buffer[window..window + head]);
        self.tail.clear();
        self.tail.extend_from_slice(&buffer[len.saturating_sub(WINDOW_BYTES)..len]);
        self.modified = modified(&self.file.metadata()?);
        Ok(FileState::More(chunk))
    }

    /// Returns whether it has no bytes of its own, but ones that the system makes up for each read.
    #[cfg(target_os = "linux")]
    fn is_made_up(&self) -> bool {
        use rustix::fs::{FsWord, PROC_SUPER_MAGIC};
        const SYSFS_MAGIC: FsWord = 0x6265_6572;
        const CGROUP2_MAGIC: FsWord = 0x6367_7270;
        rustix::fs::fstatfs(&self.file)
            .is_ok_and(|stat| [PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP2_MAGIC].contains(&stat.f_type))
    }

    #[cfg(not(target_os = "linux"))]
    fn is_made_up(&self) -> bool {
        false
    }

    /// To the beginning of the last line, if it has no end yet, else to the end of the file. Of one
    /// that is too long anyway, somewhere in it from where on it is still too long.
    fn skip_to_last_line(&mut self, line_bytes_max: usize) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        // A line of the limit and its CR LF do not make it too long.
        let window = (line_bytes_max as u64).saturating_add(3).min(len);
        let mut end = vec![0; usize::try_from(window).unwrap_or(0)];
        let read = read_at(&self.file, &mut end, len - window)?;
        end.truncate(read);
        let line_bytes = end.iter().rev().take_while(|byte| **byte != b'\n').count();
        self.go_to(len - window + (read - line_bytes) as u64)
    }
}

/// As much as there is, up to the whole buffer.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests;
