//! Chooses the next bytes to read, and the file to read them from.
//!
//! Owns the open file and the files that come after it. Its calls block, as all reading of files does. One
//! [`Follower::turn`] makes a handful of system calls and reads at most one chunk. It makes more calls only if it has
//! to compare the files beside a replaced one.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Origin;
use super::open_file::{Chunk, FileState, OpenFile, id, not_a_file, window_bytes};
use super::place::{Id, Place, WINDOW_BYTES, Window};
use super::siblings::{COUNT_MAX, Next, Sibling, next_after, siblings};
use super::watch::{Found, Watches};

/// The most files that are compared with a truncated file to find its copy. They are the oldest of those that were
/// written to after the last read.
const COPIES_MAX: usize = 16;

/// The most files that came under the path and are held open until it is their turn. If there are more, the oldest
/// empty ones are given up first.
const HELD_MAX: usize = 64;

/// The most times that the names are read because the file was rotated meanwhile.
const ATTEMPTS_MAX: u32 = 4;

#[derive(Debug)]
pub(super) enum Turn {
    /// A file was opened: the first one, or one that did not exist before.
    Opened(Opened),
    /// Bytes were read; there may be more.
    Read(Chunk),
    /// There are no more bytes now.
    Idle,
    /// Files came under the path, but were gone before they could be opened.
    Missed(Missing),
    /// The file was changed, and is read again from its beginning. Its earlier bytes form a stream that has ended.
    Restarted(Option<Missing>),
    /// The file was copied and truncated. Reading continues in the copy.
    Copied(Missing),
    /// Another file is read from its beginning. The stream of the old file has ended.
    Rotated(Option<Missing>),
    /// There is no readable file under the path. An open file, if any, has no more bytes now.
    Lost(io::Error),
}

/// The place where reading begins.
#[derive(Debug)]
pub(super) enum Opened {
    /// At the origin, since no place was stored.
    Anew,
    /// After the stored place, maybe in a copy of the file.
    After(Place, Option<Missing>),
    /// In another file, since the file of the stored place is gone or was replaced.
    Elsewhere(Missing),
}

/// Lines that may be missing before the next ones.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Missing {
    /// The rest of the file after this many bytes. It was truncated, replaced or rotated away before the rest was read.
    Rest(u64),
    /// The lines that were written after the file was copied to this path and before it was truncated.
    BetweenCopies(PathBuf),
    /// Files older than this one. Either the old file is no longer among them, or there are more names than the limit.
    Between(PathBuf),
    /// This number of files that were under the path only for a moment.
    Brief(u64),
    /// All of this file. It has the same time of the last write as the file before, and their order is unknown.
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
            Self::Brief(1) => write!(f, "a file that was there too briefly to be opened"),
            Self::Brief(count) => {
                write!(f, "{count} files that were there too briefly to be opened")
            }
            Self::Doubtful(path) => {
                write!(f, "all of {}, of the same time as the file read before it,", path.display())
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Follower {
    path: PathBuf,
    /// The place to begin in the first file, if no place is stored.
    origin: Origin,
    /// A time at which the file did not exist, in nanoseconds since the Unix epoch. Everything written after that time
    /// is new.
    absent_at: Option<i64>,
    /// The most bytes before the end that are searched for the beginning of an unfinished line.
    line_bytes_max: usize,
    /// The stored place, until its file is found.
    place: Option<Place>,
    watches: Watches,
    open: Option<OpenFile>,
    /// The files that came under the path after the open one, the oldest first.
    held: VecDeque<OpenFile>,
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
        let (open, held) = (None, VecDeque::new());
        Self { path, origin, absent_at, line_bytes_max, place, watches, open, held }
    }

    /// Returns the size of the buffer for reads of this size.
    pub(super) const fn buffer_bytes(read_bytes: usize) -> usize {
        WINDOW_BYTES + read_bytes
    }

    /// Reads as much as `buffer` holds at most. If there are no more bytes, returns the reason.
    pub(super) fn turn(&mut self, buffer: &mut [u8]) -> Turn {
        self.watches.directory_of(&self.path);
        let gone = self.hold_arrivals();
        if gone > 0 {
            return Turn::Missed(Missing::Brief(gone));
        }
        let Some(open) = &mut self.open else { return self.open_first() };
        match open.check(buffer) {
            Ok(FileState::More(chunk)) => return Turn::Read(chunk),
            Ok(FileState::End) => {}
            Ok(FileState::Changed) => return self.on_changed(),
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
            return self.on_back_again();
        }
        match (self.next_file(), stands) {
            (Ok(Some((other, gap))), _) => self.replace_at_end(other, gap, buffer),
            (Err(error), _) | (Ok(None), Err(error)) => Turn::Lost(error),
            (Ok(None), Ok(metadata)) if !metadata.is_file() => Turn::Lost(not_a_file()),
            // Another file counts once it has content: until then, somebody may still write to this one.
            (Ok(None), Ok(_)) => {
                self.watches.watch_other(&self.path);
                Turn::Idle
            }
        }
    }

    /// Opens the files that came under the path since the last turn, so that they can be read even if they are renamed
    /// or deleted. Returns the number of files that were gone already.
    fn hold_arrivals(&mut self) -> u64 {
        let directory = self.path.parent().unwrap_or(Path::new(""));
        let full = self.held.iter().filter(|file| file.has_content()).count();
        let open = |name: &OsStr| OpenFile::open(&directory.join(name));
        let Found { files, gone } = self.watches.arrivals(HELD_MAX - full.min(HELD_MAX), open);
        for file in files {
            let is_known = self.open.iter().chain(&self.held).any(|known| known.id == file.id);
            if !is_known {
                self.held.push_back(file);
            }
        }
        while self.held.len() > HELD_MAX {
            let empty = self.held.iter().position(|file| !file.has_content());
            self.held.remove(empty.unwrap_or(0));
        }
        gone
    }

    /// Handles the end of the open file while the path leads to it. Any other files under the path were there only for
    /// a moment.
    fn on_back_again(&mut self) -> Turn {
        let brief = self.held.iter().filter(|file| file.has_content()).count();
        if brief == 0 {
            return Turn::Idle;
        }
        self.held.clear();
        Turn::Missed(Missing::Brief(brief as u64))
    }

    /// Returns the place after the last chunk, or before the first file.
    pub(super) fn place(&self) -> Option<Place> {
        let Some(open) = &self.open else {
            return Some(Place::before_all(self.path.as_os_str().as_bytes(), self.absent_at?));
        };
        Some(self.place_in(open, open.position, &open.tail))
    }

    /// Returns the place after the first `len` bytes of the chunk that was read last, into this buffer.
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

    /// Returns the oldest file with content that is newer than the open one. After several rotations, it is older than
    /// the file under the path.
    fn next_file(&mut self) -> io::Result<Option<(OpenFile, Option<Missing>)>> {
        let Some(open) = &self.open else { return Ok(None) };
        let last_write = open.last_write()?;
        let (current, older) = self.names()?;
        // If there are more names than the limit, a file between the two may be missing.
        let are_all = older.len() < COUNT_MAX;
        let Next { file, doubtful } = next_after(&older, open.id, last_write);
        let is_known = older.iter().any(|sibling| sibling.id == open.id);
        let are_between = !are_all || (file.is_some() && !is_known);
        if let Some(held) = self.next_held(file)? {
            return Ok(Some((held, None)));
        }
        let before = file.map_or(&self.path, |next| &next.path);
        let between = are_between.then(|| Missing::Between(before.clone()));
        let gap = between.or_else(|| Some(Missing::Doubtful(doubtful?.path.clone())));
        let next = file.map(|next| OpenFile::open(&next.path)).transpose()?.or(current);
        self.held.retain(|held| next.as_ref().is_none_or(|next| next.id != held.id));
        Ok(next.map(|next| (next, gap)))
    }

    /// Takes the first held file with content. If the sibling `beside` is older and came without a notice, takes none.
    fn next_held(&mut self, beside: Option<&Sibling>) -> io::Result<Option<OpenFile>> {
        let Some(at) = self.held.iter().position(OpenFile::has_content) else { return Ok(None) };
        if let Some(beside) = beside
            && self.held.iter().all(|held| held.id != beside.id)
            && beside.modified <= self.held[at].last_write()?
        {
            return Ok(None);
        }
        self.held.drain(..at);
        Ok(self.held.pop_front())
    }

    /// Returns the file under the path, if it has content, and the older files beside it.
    fn names(&self) -> io::Result<(Option<OpenFile>, Vec<Sibling>)> {
        let mut attempts = 1;
        loop {
            let current = match std::fs::metadata(&self.path) {
                Ok(metadata) if metadata.is_file() && metadata.len() > 0 => {
                    Some(OpenFile::open(&self.path)?)
                }
                Ok(_) | Err(_) => None,
            };
            // A file that was rotated away before the path was opened is under its new name by now. One that is
            // rotated away meanwhile may be missing from the names.
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

    /// Reads the old file to its end, and then switches to the other one. By now, the old file has everything that was
    /// written to it before the other one appeared.
    fn replace_at_end(&mut self, other: OpenFile, gap: Option<Missing>, buffer: &mut [u8]) -> Turn {
        match self.open.as_mut().map(|open| open.check(buffer)) {
            Some(Ok(FileState::More(chunk))) => Turn::Read(chunk),
            Some(Ok(FileState::Changed)) => self.on_changed(),
            _ => self.replace(other, gap),
        }
    }

    /// Handles a change: the open file no longer contains the bytes that were read.
    fn on_changed(&mut self) -> Turn {
        let Some(open) = &mut self.open else { return Turn::Idle };
        let (id, position) = (open.id, open.position);
        // The contents of files in /proc are generated at each read.
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

    /// Returns a file beside the open one that contains the bytes that were read. Searches only files that were written
    /// to after that, or at the same time.
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
            // It came since the directory is watched.
            None if !self.held.is_empty() => self.open_written_after(i64::MAX),
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

    /// Opens the oldest file written after time `at`. The file may have been rotated before it was first noticed.
    fn open_written_after(&mut self, at: i64) -> io::Result<OpenFile> {
        let (current, older) = self.names()?;
        let next = next_after(&older, (0, 0), at).file;
        let is_held = |next: &Sibling| self.held.iter().any(|held| held.id == next.id);
        if let Some(next) = next.filter(|next| !is_held(next)) {
            return OpenFile::open(&next.path);
        }
        if let Some(held) = self.held.pop_front() {
            return Ok(held);
        }
        current.map_or_else(|| OpenFile::open(&self.path), Ok)
    }

    /// Continues after a stored place. Looks for its file under the path, then under the name that a rotation gave it,
    /// and then by its content.
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
        // A copy can only be recognized by its content.
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
        let next = next.and_then(|next| OpenFile::open(&next.path).ok());
        let next = next.or_else(|| self.held.pop_front()).or(current);
        let Some(next) = next.map_or_else(|| OpenFile::open(&self.path), Ok).ok() else {
            // The file may come back.
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
        self.held.retain(|held| held.id != open.id);
        self.watches.watch_file(&open.file);
        self.open = Some(open);
    }
}

/// Returns the current time minus 10 ms, in nanoseconds since the Unix epoch. The times of files are that coarse, so no
/// file that is written from now on has an earlier time.
fn now() -> Option<i64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()?.checked_sub(10_000_000)
}

#[cfg(test)]
mod tests;
