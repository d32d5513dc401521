//! All calls that change the disk, and other calls to the machine: the one interface at which tests make a disk fail.
//! Reads use `std::fs` directly.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::UnixTime;

/// The properties that tell a file from its copy. Somebody who copies it cannot choose them.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Identity {
    /// The number of the file system; it may change when the machine restarts.
    device: u64,
    inode: u64,
    /// The time of the last change of its contents or attributes, in nanoseconds as text.
    changed: String,
    /// The time of its creation, if it is known.
    born: Option<String>,
}

impl Identity {
    pub(super) fn is_same_file(&self, other: &Self, is_same_boot: bool) -> bool {
        let born = self.born.as_ref().zip(other.born.as_ref());
        self.inode == other.inode
            && (self.device == other.device || !is_same_boot)
            && born.is_none_or(|(one, other)| one == other)
    }

    pub(super) fn is_untouched(&self, other: &Self, is_same_boot: bool) -> bool {
        self.is_same_file(other, is_same_boot) && self.changed == other.changed
    }

    #[cfg(test)]
    pub(super) fn numbered(inode: u64) -> Self {
        Self { inode, ..Self::default() }
    }
}

pub(super) trait Platform: fmt::Debug + Send + Sync {
    /// Opens a file for writing, and creates it if necessary, private to its owner.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory that is private to its owner, and its parents. An existing one is left unchanged.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with its contents.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Flushes the names in a directory, so that they survive a crash of the machine.
    fn flush_directory(&self, path: &Path) -> io::Result<()>;
    /// Returns a text that differs after each start of the machine; `None` if the system has none.
    fn boot(&self) -> Option<String>;
    fn identity(&self, path: &Path) -> io::Result<Identity>;
    fn now(&self) -> UnixTime;
}

/// A file that is being written.
pub(super) trait Output: fmt::Debug + Send {
    /// Writes all bytes; if that fails, some may be written.
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Flushes the file, so that it survives a crash of the machine.
    fn flush(&mut self) -> io::Result<()>;
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// The real machine.
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
        // On other systems a directory cannot be opened as a file, and the journal of the file system contains its
        // names.
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
        // On other systems, a copy has another time of creation.
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

/// Returns options that create files private to their owner.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Replaces a file as a whole: a crash leaves the old or the new one.
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
