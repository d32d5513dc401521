//! What the topics of a data directory share: its lock, its `state.json` and its trash.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::DataOptions;
use super::intake::Job;
use super::log::{DiskLog, lock};
use super::platform::{Platform, replace};
use super::queue::Queue;
use super::state::State;
use crate::error::Action;
use crate::{OpenError, StorageError};

pub(super) const TOPICS: &str = "topics";
const DELETED: &str = "deleted";
pub(super) const STATE_FILE: &str = "state.json";
const LOCK_FILE: &str = "lock";

/// What the topics of a data directory share.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) path: PathBuf,
    pub(super) options: DataOptions,
    pub(super) platform: Arc<dyn Platform>,
    pub(super) boot: Option<String>,
    pub(super) queue: Queue<Job>,
    /// All that are open, though nobody else may have them: they are flushed when this is closed.
    logs: Mutex<Vec<Arc<DiskLog>>>,
    /// `state.json` says that the directory is in use; nothing may be written before.
    begun: Mutex<bool>,
    /// Something may not have been flushed although it was tried: this cannot be closed as whole.
    tainted: AtomicBool,
    /// Why the directory itself could not be written to.
    pub(super) fault: Mutex<Option<StorageError>>,
}

impl Disk {
    pub(super) fn new(
        platform: Arc<dyn Platform>,
        path: PathBuf,
        options: DataOptions,
        boot: Option<String>,
    ) -> Self {
        Self {
            queue: Queue::new(options.queue_bytes_max),
            path,
            options,
            platform,
            boot,
            logs: Mutex::default(),
            begun: Mutex::new(false),
            tainted: AtomicBool::new(false),
            fault: Mutex::default(),
        }
    }

    /// Says in `state.json` that the directory is in use, unless that was done: before anything else is
    /// written. It forgets the past, so what follows from that comes before: epochs that begin now are
    /// written, and what a crash of the machine left at the end of a segment is cut off, which would be
    /// damage if a mere kill were next.
    pub(super) fn begin(&self) -> Result<(), StorageError> {
        let mut begun = lock(&self.begun);
        if *begun {
            return Ok(());
        }
        let mut logs = self.logs().into_iter();
        let result = logs.try_for_each(|log| log.save_meta().and_then(|()| log.settle_leftover()));
        let result = result.and_then(|()| self.write_state(&self.state()));
        *begun = result.is_ok();
        *lock(&self.fault) = result.clone().err();
        result
    }

    /// Says in `state.json` that everything is there.
    pub(super) fn end(&self, heads: BTreeMap<String, u64>) -> Result<(), StorageError> {
        if !*lock(&self.begun) || self.tainted.load(Ordering::Acquire) {
            return Ok(());
        }
        self.write_state(&self.state().closed(heads))
    }

    fn state(&self) -> State {
        State::open(self.boot.clone(), self.options.fsync)
    }

    fn write_state(&self, state: &State) -> Result<(), StorageError> {
        let path = self.path.join(STATE_FILE);
        replace(&*self.platform, &path, &state.to_json())
            .map_err(|error| StorageError::new(Action::Write, &path, error))
    }

    pub(super) fn taint(&self) {
        self.tainted.store(true, Ordering::Release);
    }

    pub(super) fn add(&self, log: &Arc<DiskLog>) {
        lock(&self.logs).push(Arc::clone(log));
    }

    pub(super) fn remove(&self, log: &Arc<DiskLog>) {
        lock(&self.logs).retain(|other| !Arc::ptr_eq(other, log));
    }

    /// Lets all of them go.
    pub(super) fn forget(&self) {
        lock(&self.logs).clear();
    }

    pub(super) fn logs(&self) -> Vec<Arc<DiskLog>> {
        lock(&self.logs).clone()
    }

    /// Moves a topic's directory to where it is removed; returns where that is.
    pub(super) fn discard(&self, directory: &Path) -> Result<PathBuf, StorageError> {
        let failure = |error| StorageError::new(Action::Remove, directory, error);
        let trash = self.path.join(DELETED).join(directory.file_name().unwrap_or_default());
        self.empty_trash();
        self.platform.create_directory(&self.path.join(DELETED)).map_err(failure)?;
        self.platform.rename(directory, &trash).map_err(failure)?;
        let topics = self.path.join(TOPICS);
        if let Err(error) = self.platform.flush_directory(&topics) {
            tracing::warn!("cannot flush {}: {error}", topics.display());
        }
        Ok(trash)
    }

    /// Removes what is left of deleted topics.
    pub(super) fn empty_trash(&self) {
        let trash = self.path.join(DELETED);
        if trash.exists()
            && let Err(error) = self.platform.remove_directory(&trash)
        {
            tracing::warn!("cannot remove {}: {error}", trash.display());
        }
    }
}

/// Has no one else open it. `None` where nothing can be written, by anyone.
pub(super) fn lock_directory(path: &Path) -> Result<Option<File>, OpenError> {
    let path_of_lock = path.join(LOCK_FILE);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(&path_of_lock);
    let file = match file.or_else(|error| File::open(&path_of_lock).map_err(|_| error)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(None),
        Err(error) => return Err(StorageError::new(Action::Open, &path_of_lock, error).into()),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => {
            Err(StorageError::new(Action::Lock, &path_of_lock, error).into())
        }
    }
}
