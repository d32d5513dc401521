//! Which bytes to read next, of which file.
//!
//! Owns the open file and how it is told from another one. Blocks, as files do; one
//! [`Follower::turn`] makes a handful of system calls and at most one that reads something.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};

use super::Origin;

/// What one look at the file gave.
#[derive(Debug)]
pub(super) enum Turn {
    /// A file was opened that is there since before the source, or was not there until now.
    Opened,
    /// This many bytes were read; there may be more.
    Read(usize),
    /// There is nothing more at present.
    Idle,
    /// It has become shorter, and is read from its beginning from now on. What was read of it has
    /// ended.
    Truncated,
    /// Another file is read from its beginning from now on. The old one has ended.
    Rotated,
    /// There is no such file, or none that can be read; the one that was open, if one was, has
    /// nothing more at present.
    Lost(io::Error),
}

#[derive(Debug)]
pub(super) struct Follower {
    path: PathBuf,
    /// Where to begin in the first file. One that is not there at first is read from its beginning.
    origin: Origin,
    /// For a beginning at the end: how far back a line that was begun is looked for.
    line_bytes_max: usize,
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// As long as it is open no other file can have it.
    id: Id,
    /// How much of it was read.
    position: u64,
}

/// Device and inode.
type Id = (u64, u64);

fn id(metadata: &Metadata) -> Id {
    (metadata.dev(), metadata.ino())
}

impl Follower {
    pub(super) fn new(path: PathBuf, origin: Origin, line_bytes_max: usize) -> Self {
        Self { path, origin, line_bytes_max, open: None }
    }

    /// Reads what there is, at most as much as `buffer` holds, or looks why there is nothing more.
    pub(super) fn turn(&mut self, buffer: &mut [u8]) -> Turn {
        let Some(open) = &mut self.open else { return self.open_first() };
        let more = match open.read(buffer) {
            Ok(0) => open.restart_if_shorter().map(|shorter| shorter.then_some(Turn::Truncated)),
            Ok(len) => Ok(Some(Turn::Read(len))),
            Err(error) => Err(error),
        };
        match more {
            Ok(Some(turn)) => return turn,
            Ok(None) => {}
            // There may be another file that can be read.
            Err(error) => {
                return self.other_file().map_or(Turn::Lost(error), |other| self.replace(other));
            }
        }
        // Another file is of interest once it has something in it: until then somebody may still
        // write to this one.
        match std::fs::metadata(&self.path) {
            Err(error) => return Turn::Lost(error),
            Ok(metadata) if id(&metadata) == open.id || metadata.len() == 0 => return Turn::Idle,
            Ok(_) => {}
        }
        let other = match OpenFile::open(&self.path) {
            Ok(other) => other,
            Err(error) => return Turn::Lost(error),
        };
        self.replace_at_end(other, buffer)
    }

    /// What was written to the old file before the other one appeared is there by now.
    fn replace_at_end(&mut self, other: OpenFile, buffer: &mut [u8]) -> Turn {
        match self.open.as_mut().map(|open| open.read(buffer)) {
            Some(Ok(len)) if len > 0 => Turn::Read(len),
            _ => self.replace(other),
        }
    }

    fn open_first(&mut self) -> Turn {
        let opened = OpenFile::open(&self.path).and_then(|mut open| {
            if self.origin == Origin::End {
                open.skip_to_last_line(self.line_bytes_max)?;
            }
            Ok(open)
        });
        match opened {
            Ok(open) => {
                self.open = Some(open);
                Turn::Opened
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::NotFound {
                    self.origin = Origin::Start;
                }
                Turn::Lost(error)
            }
        }
    }

    fn other_file(&self) -> Option<OpenFile> {
        let other = OpenFile::open(&self.path).ok()?;
        self.open.as_ref().is_none_or(|open| open.id != other.id).then_some(other)
    }

    fn replace(&mut self, other: OpenFile) -> Turn {
        self.open = Some(other);
        Turn::Rotated
    }
}

impl OpenFile {
    fn open(path: &std::path::Path) -> io::Result<Self> {
        // Not blocking: opening a FIFO would otherwise wait for who writes to it.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        Ok(Self { file, id: id(&metadata), position: 0 })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.position += len as u64;
        Ok(len)
    }

    fn restart_if_shorter(&mut self) -> io::Result<bool> {
        let shorter = self.file.metadata()?.len() < self.position;
        if shorter {
            self.position = self.file.seek(SeekFrom::Start(0))?;
        }
        Ok(shorter)
    }

    /// To the beginning of the last line, if it has no end yet, else to the end of the file. Of one
    /// that is too long anyway, somewhere in it from where on it is still too long.
    fn skip_to_last_line(&mut self, line_bytes_max: usize) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        // A line of the limit and its CR LF do not make it too long.
        let window = (line_bytes_max as u64).saturating_add(3).min(len);
        self.position = self.file.seek(SeekFrom::Start(len - window))?;
        let mut end = Vec::new();
        (&self.file).take(window).read_to_end(&mut end)?;
        let line_bytes = end.iter().rev().take_while(|byte| **byte != b'\n').count();
        let back = (end.len() - line_bytes) as u64;
        self.position = self.file.seek(SeekFrom::Start(self.position + back))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::*;
    use tempfile::TempDir;

    /// A file to follow, in a directory of its own, removed at the end.
    struct Log(TempDir);

    impl Log {
        fn new(text: &str) -> Self {
            let log = Self(TempDir::new().unwrap());
            log.append("log", text);
            log
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn append(&self, name: &str, text: &str) {
            let file = OpenOptions::new().append(true).create(true).open(self.path(name));
            file.unwrap().write_all(text.as_bytes()).unwrap();
        }

        fn follow(&self, origin: Origin, line_bytes_max: usize) -> Follower {
            let mut follower = Follower::new(self.path("log"), origin, line_bytes_max);
            assert_eq!(follow(&mut follower), "opened");
            follower
        }
    }

    /// What a turn gave: what was read, or a word.
    fn follow(follower: &mut Follower) -> String {
        let mut buffer = [0; 4];
        match follower.turn(&mut buffer) {
            Turn::Read(len) => String::from_utf8_lossy(&buffer[..len]).into_owned(),
            Turn::Lost(error) => format!("lost: {:?}", error.kind()),
            turn => format!("{turn:?}").to_lowercase(),
        }
    }

    fn turns<const COUNT: usize>(follower: &mut Follower) -> [String; COUNT] {
        std::array::from_fn(|_| follow(follower))
    }

    #[test]
    fn a_turn_reads_no_more_than_the_buffer_holds() {
        let log = Log::new("123456");
        let mut follower = log.follow(Origin::Start, 80);
        assert_eq!(turns(&mut follower), ["1234", "56", "idle", "idle"]);
    }

    #[test]
    fn the_end_begins_with_a_line_that_was_begun_unless_that_is_too_long() {
        for (text, more) in [
            ("", ""),
            ("a\nb\n", ""),
            ("a\nb", "b"),
            ("ab", "ab"),
            ("a\n1234\r", "1234\r"),
            // Of the limit and more: enough is given for it to be too long.
            ("a\n123456789", "3456789"),
        ] {
            let log = Log::new(text);
            let mut follower = log.follow(Origin::End, 4);
            let read = turns::<2>(&mut follower).concat().replace("idle", "");
            assert_eq!(read, more, "{text:?}");
        }
    }

    #[test]
    fn the_old_file_is_read_to_its_end_before_the_new_one() {
        let log = Log::new("1");
        let mut follower = log.follow(Origin::Start, 80);
        assert_eq!(turns(&mut follower), ["1", "idle"]);
        std::fs::rename(log.path("log"), log.path("old")).unwrap();
        assert_eq!(follow(&mut follower), "lost: NotFound");
        log.append("log", "");
        assert_eq!(follow(&mut follower), "idle");
        log.append("old", "22222");
        log.append("log", "3");
        assert_eq!(turns(&mut follower), ["2222", "2", "rotated", "3", "idle"]);
    }

    #[test]
    fn what_comes_while_the_new_file_is_opened_is_read_first() {
        let log = Log::new("1");
        let mut follower = log.follow(Origin::Start, 80);
        assert_eq!(follow(&mut follower), "1");
        std::fs::rename(log.path("log"), log.path("old")).unwrap();
        log.append("log", "3");
        // As if these had come after the first read of the turn found nothing.
        let other = follower.other_file().unwrap();
        log.append("old", "2");
        assert_eq!(follower.replace_at_end(other, &mut [0; 4]).read(), 1);
        assert_eq!(turns(&mut follower), ["rotated", "3"]);
    }

    impl Turn {
        fn read(&self) -> usize {
            if let Self::Read(len) = self { *len } else { 0 }
        }
    }

    #[test]
    fn a_shorter_file_is_read_again_and_a_deleted_one_to_its_end() {
        let log = Log::new("111");
        let mut follower = log.follow(Origin::Start, 80);
        assert_eq!(follow(&mut follower), "111");
        std::fs::write(log.path("log"), "2").unwrap();
        assert_eq!(turns(&mut follower), ["truncated", "2", "idle"]);
        log.append("log", "3");
        std::fs::remove_file(log.path("log")).unwrap();
        assert_eq!(turns(&mut follower), ["3", "lost: NotFound"]);
    }
}
