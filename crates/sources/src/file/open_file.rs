//! An open file that is read on, and the checks that it is still the same file.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::place::{Id, Place, WINDOW_BYTES, Window};
use super::siblings::modified;

/// The bytes of one read, and their place in the file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Chunk {
    /// The range of the bytes in the buffer. Before it are the preceding bytes of the file, up to [`WINDOW_BYTES`].
    pub(super) range: Range<usize>,
    pub(super) offset: u64,
}

#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    /// The id of the file. No other file can have it while this one is open.
    pub(super) id: Id,
    /// The number of bytes read.
    pub(super) position: u64,
    /// The bytes at the beginning of the file, up to [`WINDOW_BYTES`].
    pub(super) head: Vec<u8>,
    /// The bytes before the position, up to [`WINDOW_BYTES`].
    pub(super) tail: Vec<u8>,
    /// The time of the last write, as it was at the last read.
    pub(super) modified: i64,
}

pub(super) enum FileState {
    More(Chunk),
    End,
    /// The file no longer contains the bytes that were read.
    Changed,
}

pub(super) fn id(metadata: &Metadata) -> Id {
    (metadata.dev(), metadata.ino())
}

pub(super) fn not_a_file() -> io::Error {
    io::Error::other("not a regular file")
}

/// Returns the number of bytes before a place that identify a file.
pub(super) fn window_bytes(offset: u64) -> usize {
    usize::try_from(offset).map_or(WINDOW_BYTES, |offset| offset.min(WINDOW_BYTES))
}

impl OpenFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Non-blocking, since opening a FIFO would otherwise wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(not_a_file());
        }
        let (id, modified) = (id(&metadata), modified(&metadata));
        Ok(Self { file, id, position: 0, head: Vec::new(), tail: Vec::new(), modified })
    }

    pub(super) fn has_content(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.len() > 0)
    }

    pub(super) fn last_write(&self) -> io::Result<i64> {
        Ok(modified(&self.file.metadata()?))
    }

    /// Opens a file at a place; `None` if the file does not have the bytes that identify the place.
    pub(super) fn at(path: &Path, place: &Place) -> io::Result<Option<Self>> {
        let mut open = Self::open(path)?;
        open.go_to(place.offset)?;
        let window = Window { head: &open.head, tail: &open.tail };
        let is_there = open.position == place.offset && place.follows(window);
        Ok(is_there.then_some(open))
    }

    /// Sets the position to `offset`, or to the end if that is earlier.
    pub(super) fn go_to(&mut self, offset: u64) -> io::Result<()> {
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

    pub(super) fn restart(&mut self) {
        self.position = 0;
        self.head.clear();
        self.tail.clear();
    }

    /// Reads the next bytes, and again the bytes before the position. If those have changed, the file was truncated or
    /// written anew, even if it has grown again since.
    pub(super) fn check(&mut self, buffer: &mut [u8]) -> io::Result<FileState> {
        let window = self.tail.len();
        let most = (buffer.len() - WINDOW_BYTES + window).min(buffer.len());
        let buffer = &mut buffer[..most];
        let len = read_at(&self.file, buffer, self.position - window as u64)?;
        if len < window || buffer[..window] != self.tail {
            return Ok(FileState::Changed);
        }
        if len == window {
            // Files of /proc always report a length below their contents.
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

    /// Returns true if the system generates the contents of the file at each read.
    #[cfg(target_os = "linux")]
    pub(super) fn is_made_up(&self) -> bool {
        use rustix::fs::{FsWord, PROC_SUPER_MAGIC};
        const SYSFS_MAGIC: FsWord = 0x6265_6572;
        const CGROUP2_MAGIC: FsWord = 0x6367_7270;
        rustix::fs::fstatfs(&self.file)
            .is_ok_and(|stat| [PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP2_MAGIC].contains(&stat.f_type))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_made_up(&self) -> bool {
        false
    }

    /// Moves to the beginning of an unfinished last line, or to the end of the file. If the last line is longer than
    /// the limit, moves to a place in it where the rest is still longer than the limit.
    pub(super) fn skip_to_last_line(&mut self, line_bytes_max: usize) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        // A line of the maximum length may end with CR LF.
        let window = (line_bytes_max as u64).saturating_add(3).min(len);
        let mut end = vec![0; usize::try_from(window).unwrap_or(0)];
        let read = read_at(&self.file, &mut end, len - window)?;
        end.truncate(read);
        let line_bytes = end.iter().rev().take_while(|byte| **byte != b'\n').count();
        self.go_to(len - window + (read - line_bytes) as u64)
    }
}

/// Reads until the buffer is full, or the file has no more bytes.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
