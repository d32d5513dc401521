//! What changes anything on a disk, and what else comes from the machine: the one seam at which tests
//! make a disk fail. Reading is done with `std::fs` where it is needed.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

use crate::UnixTime;

pub(super) trait Platform: fmt::Debug + Send + Sync {
    /// Opens a file to write, and makes it when there is none.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory, and those above it. One that is there is left as it is.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with all that is in it.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Has the names in a directory survive a crash of the machine.
    fn flush_directory(&self, path: &Path) -> io::Result<()>;
    /// What is another after each start of the machine; `None` when it does not say.
    fn boot(&self) -> Option<String>;
    fn now(&self) -> UnixTime;
}

/// A file that is written.
pub(super) trait Output: fmt::Debug + Send {
    /// Writes all of these bytes; when that fails, some may be written.
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Drops all from `len` on.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Has what was written survive a crash of the machine.
    fn flush(&mut self) -> io::Result<()>;
}

/// This machine.
#[derive(Debug)]
pub(super) struct System;

impl Platform for System {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn flush_directory(&self, path: &Path) -> io::Result<()> {
        // Elsewhere a directory cannot be opened as a file, and its names are in the file system's journal.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }

    fn boot(&self) -> Option<String> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned())
    }

    fn now(&self) -> UnixTime {
        SystemTime::now().into()
    }
}

impl Output for File {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.seek(SeekFrom::Start(at))?;
        self.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Puts a whole file in the place of another: a crash leaves the one or the other.
pub(super) fn replace(platform: &dyn Platform, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = platform.open(&new)?;
    file.cut(0)?;
    file.write(bytes, 0)?;
    file.flush()?;
    drop(file);
    platform.rename(&new, path)?;
    path.parent().map_or(Ok(()), |directory| platform.flush_directory(directory))
}
