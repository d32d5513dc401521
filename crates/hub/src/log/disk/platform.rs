//! The calls that change anything on a disk, and what else comes from the machine: the one seam at which tests
//! make a disk fail. Reading is done with `std::fs` where it is needed.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::UnixTime;

/// The marks that tell a file from a copy of it. None of it can be chosen by whoever copies.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Identity {
    /// The number of the file system; may be another after a start of the machine.
    device: u64,
    inode: u64,
    /// The time at which its content or its attributes were last changed, in nanoseconds as text.
    changed: String,
    /// The time at which it was made, where that is known.
    born: Option<String>,
}

impl Identity {
    /// Returns whether this is the same file as `other`.
    pub(super) fn is_same_file(&self, other: &Self, is_same_boot: bool) -> bool {
        let born = self.born.as_ref().zip(other.born.as_ref());
        self.inode == other.inode
            && (self.device == other.device || !is_same_boot)
            && born.is_none_or(|(one, other)| one == other)
    }

    /// Returns whether this is the same file, and nobody has touched it.
    pub(super) fn is_untouched(&self, other: &Self, is_same_boot: bool) -> bool {
        self.is_same_file(other, is_same_boot) && self.changed == other.changed
    }

    #[cfg(test)]
    pub(super) fn numbered(inode: u64) -> Self {
        Self { inode, ..Self::default() }
    }
}

pub(super) trait Platform: fmt::Debug + Send + Sync {
    /// Opens a file to write, and makes it when there is none: its owner's alone.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory that is its owner's alone, and those above it. One that is there is left as it is.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with all that is in it.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Has the names in a directory survive a crash of the machine.
    fn flush_directory(&self, path: &Path) -> io::Result<()>;
    /// A text that is another after each start of the machine; `None` when it does not say.
    fn boot(&self) -> Option<String>;
    /// Which file is there.
    fn identity(&self, path: &Path) -> io::Result<Identity>;
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
    /// Returns whether it is still what has this path.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// This machine.
#[derive(Debug)]
pub(super) struct System;

impl Platform for System {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(private().write(true).create(true).truncate(false).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut directories = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut directories, 0o700);
        directories.recursive(true).create(path)
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

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let metadata = fs::metadata(path)?;
        let born = metadata.created().ok().and_then(|born| {
            Some(born.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos().to_string())
        });
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let changed = format!("{}.{:09}", metadata.ctime(), metadata.ctime_nsec());
            Ok(Identity { device: metadata.dev(), inode: metadata.ino(), changed, born })
        }
        // Elsewhere a copy has another time of birth.
        #[cfg(not(unix))]
        Ok(Identity { born, ..Identity::default() })
    }

    fn now(&self) -> UnixTime {
        UnixTime::now()
    }
}

impl Output for File {
    #[cfg(unix)]
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, at)
    }

    #[cfg(not(unix))]
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        use std::io::{Seek as _, Write as _};
        self.seek(io::SeekFrom::Start(at))?;
        self.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        match fs::metadata(path) {
            #[cfg(unix)]
            Ok(there) => {
                use std::os::unix::fs::MetadataExt as _;
                let own = self.metadata()?;
                Ok((own.dev(), own.ino()) == (there.dev(), there.ino()))
            }
            #[cfg(not(unix))]
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Options of files that are their owner's alone, once made.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
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
