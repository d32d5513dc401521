//! The things that the topics of a data directory share: its lock, its `state.json` and its trash.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::intake::Job;
use super::lock::lock;
use super::log::DiskLog;
use super::marks::Marks;
use super::options::{DataOptions, Fsync};
use super::platform::{Platform, private, replace};
use super::queue::Queue;
use super::state::{STATE_FILE, State, marks_path, session_of, witness_path};
use crate::error::Action;
use crate::{Epoch, OpenError, Position, StorageError};

pub(super) const TOPICS: &str = "topics";
const DELETED: &str = "deleted";
const LOCK_FILE: &str = "lock";

/// The things that the topics of a data directory share.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) path: PathBuf,
    pub(super) options: DataOptions,
    pub(super) platform: Arc<dyn Platform>,
    /// The number of times that the directory was opened, this time included.
    session: u64,
    pub(super) queue: Queue<Job>,
    /// All that are open, though nobody else may have them: they are flushed when this is closed.
    logs: Mutex<Vec<Arc<DiskLog>>>,
    /// The content of `state.json`, once it says that the directory is in use; nothing may be written before.
    begun: Mutex<Option<State>>,
    /// Since then.
    marks: Mutex<Option<Marks>>,
    /// The epoch of topics to come, as `state.json` has it.
    pub(super) coming: Mutex<Option<Epoch>>,
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
        session: u64,
    ) -> Self {
        Self {
            queue: Queue::new(options.queue_bytes_max),
            path,
            options,
            platform,
            session,
            logs: Mutex::default(),
            begun: Mutex::default(),
            marks: Mutex::default(),
            coming: Mutex::default(),
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
        if begun.is_some() {
            return Ok(());
        }
        let mut logs = self.logs().into_iter();
        let result = logs.try_for_each(|log| {
            log.groundwork.save_meta(&*self.platform)?;
            log.groundwork.settle_leftover(&*self.platform)
        });
        let result = result.and_then(|()| {
            let state = self.begin_session()?;
            self.write_state(&state)?;
            Ok(state)
        });
        *lock(&self.fault) = result.as_ref().err().cloned();
        *begun = Some(result?);
        self.remove_past_sessions();
        Ok(())
    }

    /// Makes the files that a copy of this directory cannot have, or not as they are. Under names that no session
    /// before this had: until `state.json` speaks of these, those count.
    fn begin_session(&self) -> Result<State, StorageError> {
        let platform = &*self.platform;
        let witness = witness_path(&self.path, self.session);
        let failure = |error| StorageError::new(Action::Make, &witness, error);
        match platform.remove_file(&witness) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failure(error)),
            _ => {}
        }
        // Other bytes than those of the witness before it, so that who copies only what has changed copies it, too.
        let text = format!("{} {}\n", self.session, platform.now().as_micros());
        let made = platform.open(&witness).and_then(|mut file| {
            file.write(text.as_bytes(), 0)?;
            file.flush()
        });
        made.map_err(failure)?;
        let path = marks_path(&self.path, self.session);
        let failure = |error| StorageError::new(Action::Make, &path, error);
        let logs = self.logs();
        let heads =
            logs.iter().map(|log| (log.groundwork.directory_name().into_owned(), log.position()));
        let marks = Marks::create(platform, &path, heads).map_err(failure)?;
        *lock(&self.marks) = Some(marks);
        platform.flush_directory(&self.path).map_err(failure)?;
        let coming = *lock(&self.coming);
        State::open(platform, &self.path, self.session, (self.options.fsync, coming))
            .map_err(failure)
    }

    /// Says in `state.json` that a topic may have been deleted since the directory was opened: before the first one is.
    pub(super) fn end_coming(&self) -> Result<(), StorageError> {
        self.begin()?;
        let mut begun = lock(&self.begun);
        if let Some(state) = begun.as_ref().and_then(State::without_coming) {
            self.write_state(&state)?;
            *begun = Some(state);
        }
        Ok(())
    }

    /// Removes the files of sessions before this.
    fn remove_past_sessions(&self) {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in entries {
            let session = entry.file_name().to_str().and_then(session_of);
            if session.is_some_and(|session| session != self.session)
                && let Err(error) = self.platform.remove_file(&entry.path())
            {
                tracing::warn!("cannot remove {}: {error}", entry.path().display());
            }
        }
    }

    /// Notes down how far a topic has come; with [`Fsync::Always`] that survives a crash of the machine.
    pub(super) fn mark(&self, name: &str, position: Position) -> Result<(), StorageError> {
        let mut marks = lock(&self.marks);
        let Some(marks) = &mut *marks else { return Ok(()) };
        let failure = |action| {
            move |error| StorageError::new(action, &marks_path(&self.path, self.session), error)
        };
        marks.set(name, position).map_err(failure(Action::Write))?;
        match self.options.fsync {
            Fsync::Always => marks.flush().map_err(failure(Action::Flush)),
            Fsync::Interval(_) | Fsync::Never => Ok(()),
        }
    }

    /// Forgets how far a topic had come that is no more.
    pub(super) fn forget_mark(&self, name: &str) {
        if let Some(marks) = &mut *lock(&self.marks)
            && let Err(error) = marks.remove(name)
        {
            // The next start drops it: there is no such topic.
            tracing::warn!("cannot forget the mark of {name}: {error}");
        }
    }

    /// Says in `state.json` that everything is there.
    pub(super) fn end(&self, heads: &BTreeMap<String, Position>) -> Result<(), StorageError> {
        let begun = lock(&self.begun).clone().filter(|_| !self.tainted.load(Ordering::Acquire));
        begun.map_or(Ok(()), |state| self.write_state(&state.closed(heads)))
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
    let mut options = private();
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
