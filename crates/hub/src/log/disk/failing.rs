//! A disk that fails on demand, for tests of crates that store topics: the feature `testing`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::data_dir::DataDir;
use super::options::DataOptions;
use super::platform::{Identity, Output, Platform, System};
use crate::{OpenError, UnixTime};

/// A fault of a disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DiskFault {
    /// There is no space: a write does half of its work and fails.
    Full,
    /// The disk is read-only.
    ReadOnly,
    /// Writes wait until this fault is over.
    Stalled,
    /// Removals of directories wait until this fault is over.
    RemovalStalled,
}

/// A disk that fails on demand. Clones are handles to the same disk.
#[derive(Clone, Debug, Default)]
pub struct FailingDisk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    fault: Mutex<Option<DiskFault>>,
    changed: Condvar,
    waiting: AtomicUsize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<DiskFault>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailingDisk {
    /// Opens a data directory on it, as [`DataDir::open`] does.
    ///
    /// # Errors
    /// As [`DataDir::open`].
    pub fn open(
        &self,
        path: impl Into<PathBuf>,
        options: DataOptions,
    ) -> Result<DataDir, OpenError> {
        DataDir::open_on(Arc::new(self.clone()), path.into(), options)
    }

    /// Sets the fault, or none.
    pub fn set(&self, fault: Option<DiskFault>) {
        *self.0.lock() = fault;
        self.0.changed.notify_all();
    }

    /// Returns the number of calls that wait while the disk is stalled.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// Returns the fault, after waiting while the disk is stalled.
    fn fault(&self) -> Option<DiskFault> {
        self.fault_after(DiskFault::Stalled)
    }

    /// Returns the fault, after waiting until it is not `stall`.
    fn fault_after(&self, stall: DiskFault) -> Option<DiskFault> {
        let is_stalled = |fault: &mut Option<DiskFault>| *fault == Some(stall);
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.0.changed.wait_while(self.0.lock(), is_stalled);
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        *waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.fault() {
            Some(DiskFault::ReadOnly) => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            _ => change(),
        }
    }
}

impl Platform for FailingDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let file = self.change(|| System.open(path))?;
        Ok(Box::new(FailingFile { file, disk: self.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|| System.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change(|| System.remove_file(path))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.change(|| System.create_directory(path))
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.fault_after(DiskFault::RemovalStalled);
        self.change(|| System.remove_directory(path))
    }

    fn flush_directory(&self, path: &Path) -> io::Result<()> {
        System.flush_directory(path)
    }

    fn boot(&self) -> Option<String> {
        System.boot()
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        System.identity(path)
    }

    fn now(&self) -> UnixTime {
        System.now()
    }
}

#[derive(Debug)]
struct FailingFile {
    file: Box<dyn Output>,
    disk: FailingDisk,
}

impl Output for FailingFile {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        match self.disk.fault() {
            Some(DiskFault::Full) => {
                self.file.write(&bytes[..bytes.len() / 2], at)?;
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => self.disk.change(|| self.file.write(bytes, at)),
        }
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.disk.change(|| self.file.cut(len))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.is_at(path)
    }
}
