//! The state that the topics of a data directory share: its lock, its `state.json` and its trash.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::groundwork::Groundwork;
use super::lock::{LAST, Lock, MARKS, PHASE, lock};
use super::marks::Marks;
use super::options::{DataOptions, Fsync};
use super::platform::{Platform, private, replace};
use super::state::{STATE_FILE, State, marks_path, session_of, witness_path};
use crate::error::Action;
use crate::log::shared_bytes::SharedBytes;
use crate::{Epoch, OpenError, Position, StorageError};

pub(super) const TOPICS: &str = "topics";
const DELETED: &str = "deleted";
const LOCK_FILE: &str = "lock";

/// The state that the topics of a data directory share.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) path: PathBuf,
    pub(super) options: DataOptions,
    pub(super) platform: Arc<dyn Platform>,
    /// The bytes that topics without a limit in bytes share.
    pub(super) shared_bytes: Arc<SharedBytes>,
    /// The number of times that the directory was opened, including this time.
    session: u64,
    phase: Lock<PHASE, Phase>,
    /// The marks, once the session has begun.
    marks: Lock<MARKS, Option<Marks>>,
    /// True if something may not be flushed although that was tried: the directory cannot be closed as complete.
    tainted: AtomicBool,
    /// The error of the directory itself, if it could not be written.
    pub(super) fault: Lock<LAST, Option<StorageError>>,
}

/// The session that `state.json` describes.
#[derive(Debug)]
enum Phase {
    /// The session before. Only the consequences of the past may be written.
    Previous {
        /// The topics that were found, with their newest positions.
        topics: Vec<(Arc<Groundwork>, Position)>,
        /// The epoch of future topics.
        coming: Option<Epoch>,
    },
    /// This session, with this state.
    Current(State),
}

impl Disk {
    pub(super) fn new(
        platform: Arc<dyn Platform>,
        path: PathBuf,
        options: DataOptions,
        session: u64,
    ) -> Self {
        Self {
            path,
            options,
            platform,
            shared_bytes: SharedBytes::new(options.bytes_max),
            session,
            phase: Lock::new(Phase::Previous { topics: Vec::new(), coming: None }),
            marks: Lock::default(),
            tainted: AtomicBool::new(false),
            fault: Lock::default(),
        }
    }

    /// Sets the topics that were found, with their newest positions, and the epoch of future topics. Called once,
    /// before anything is written.
    pub(super) fn found(&self, topics: Vec<(Arc<Groundwork>, Position)>, coming: Epoch) {
        *lock(&self.phase) = Phase::Previous { topics, coming: Some(coming) };
    }

    /// Records in `state.json` that the directory is in use, unless that was done, before anything else is written.
    /// The file then no longer describes the past, so the consequences of the past come first: new epochs are
    /// written, and bytes that a crash of the machine left at the end of a segment are cut off. After a mere kill
    /// they would count as damage.
    pub(super) fn begin(&self) -> Result<(), StorageError> {
        let mut phase = lock(&self.phase);
        let Phase::Previous { topics, coming } = &*phase else { return Ok(()) };
        let begun = self.begin_session(topics, *coming);
        *lock(&self.fault) = begun.as_ref().err().cloned();
        *phase = Phase::Current(begun?);
        self.remove_past_sessions();
        Ok(())
    }

    fn begin_session(
        &self,
        topics: &[(Arc<Groundwork>, Position)],
        coming: Option<Epoch>,
    ) -> Result<State, StorageError> {
        for (groundwork, _) in topics {
            groundwork.save_meta(&*self.platform)?;
            groundwork.settle_leftover(&*self.platform)?;
        }
        let name = |groundwork: &Groundwork| groundwork.directory_name().into_owned();
        let heads = topics.iter().map(|(groundwork, head)| (name(groundwork), *head));
        self.make_session_files(heads)?;
        let failure =
            |error| StorageError::new(Action::Make, &marks_path(&self.path, self.session), error);
        let state =
            State::open(&*self.platform, &self.path, self.session, self.options.fsync, coming)
                .map_err(failure)?;
        self.write_state(&state)?;
        Ok(state)
    }

    /// Creates the files by which this directory differs from a copy. Their names are new, so that the old files
    /// count until `state.json` refers to the new ones.
    fn make_session_files(
        &self,
        heads: impl Iterator<Item = (String, Position)>,
    ) -> Result<(), StorageError> {
        let platform = &*self.platform;
        let witness = witness_path(&self.path, self.session);
        let failure = |error| StorageError::new(Action::Make, &witness, error);
        match platform.remove_file(&witness) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failure(error)),
            _ => {}
        }
        // Its contents differ from those of the previous witness, so that a tool that copies only changed files
        // copies it, too.
        let text = format!("{} {}\n", self.session, platform.now().as_micros());
        let made = platform.open(&witness).and_then(|mut file| {
            file.write(text.as_bytes(), 0)?;
            file.flush()
        });
        made.map_err(failure)?;
        let path = marks_path(&self.path, self.session);
        let failure = |error| StorageError::new(Action::Make, &path, error);
        let marks = Marks::create(platform, &path, heads).map_err(failure)?;
        *lock(&self.marks) = Some(marks);
        platform.flush_directory(&self.path).map_err(failure)
    }

    /// Records in `state.json` that a topic may have been deleted since the directory was opened. Called before the
    /// first deletion.
    pub(super) fn end_coming(&self) -> Result<(), StorageError> {
        self.begin()?;
        let mut phase = lock(&self.phase);
        if let Phase::Current(state) = &*phase
            && let Some(state) = state.without_coming()
        {
            self.write_state(&state)?;
            *phase = Phase::Current(state);
        }
        Ok(())
    }

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

    /// Sets the mark of a topic; with [`Fsync::Always`] it survives a crash of the machine.
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

    pub(super) fn forget_mark(&self, name: &str) {
        if let Some(marks) = &mut *lock(&self.marks)
            && let Err(error) = marks.remove(name)
        {
            // The next start drops it, since there is no such topic.
            tracing::warn!("cannot forget the mark of {name}: {error}");
        }
    }

    /// Records in `state.json` that the directory is complete.
    pub(super) fn end(&self, heads: &BTreeMap<String, Position>) -> Result<(), StorageError> {
        match &*lock(&self.phase) {
            Phase::Current(state) if !self.tainted.load(Ordering::Acquire) => {
                self.write_state(&state.clone().into_closed(heads))
            }
            _ => Ok(()),
        }
    }

    fn write_state(&self, state: &State) -> Result<(), StorageError> {
        let path = self.path.join(STATE_FILE);
        state
            .to_json()
            .and_then(|json| replace(&*self.platform, &path, &json))
            .map_err(|error| StorageError::new(Action::Write, &path, error))
    }

    pub(super) fn taint(&self) {
        self.tainted.store(true, Ordering::Release);
    }

    /// Moves a topic's directory to the trash and returns its new path.
    pub(super) fn discard(&self, directory: &Path) -> Result<PathBuf, StorageError> {
        let failure = |error| StorageError::new(Action::Remove, directory, error);
        let name =
            directory.file_name().ok_or_else(|| failure(io::ErrorKind::InvalidInput.into()))?;
        let trash = self.path.join(DELETED).join(name);
        self.empty_trash();
        self.platform.create_directory(&self.path.join(DELETED)).map_err(failure)?;
        self.platform.rename(directory, &trash).map_err(failure)?;
        let topics = self.path.join(TOPICS);
        if let Err(error) = self.platform.flush_directory(&topics) {
            tracing::warn!("cannot flush {}: {error}", topics.display());
        }
        Ok(trash)
    }

    /// Removes the directories of deleted topics.
    pub(super) fn empty_trash(&self) {
        let trash = self.path.join(DELETED);
        if trash.exists()
            && let Err(error) = self.platform.remove_directory(&trash)
        {
            tracing::warn!("cannot remove {}: {error}", trash.display());
        }
    }
}

/// Locks the directory against other processes. Returns `None` if nobody can write to it.
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
