//! The changes to a topic's directory that precede the next write: saving `topic.json`, and cleaning up after the end
//! of the last session.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::lock::{LEFTOVER, Lock, META, lock};
use super::paths::{META_FILE, free_path};
use super::platform::{Platform, replace};
use super::state::{Meta, OwnNote};
use crate::error::Action;
use crate::{Epoch, StorageError, TopicOptions};

#[derive(Debug)]
pub(super) struct Groundwork {
    pub(super) directory: PathBuf,
    pub(super) epoch: Epoch,
    meta: Lock<META, SavedMeta>,
    leftover: Lock<LEFTOVER, Leftover>,
    /// True while the directory is about to be moved away, and ever after if it was.
    deleting: AtomicBool,
    /// True once the directory may belong to another topic.
    deleted: AtomicBool,
}

/// The facts for `topic.json`, and whether they are saved.
#[derive(Debug)]
pub(super) struct SavedMeta {
    pub(super) options: TopicOptions,
    pub(super) own_note: Option<OwnNote>,
    pub(super) is_saved: bool,
}

/// The changes to files that precede any write.
#[derive(Debug, Default)]
pub(super) struct Leftover {
    /// The last segment and the length of its valid part, if there are bytes after that.
    pub(super) ragged: Option<(PathBuf, u64)>,
    /// The files without valid records, and their new names.
    pub(super) aside: Vec<(PathBuf, PathBuf)>,
}

impl Groundwork {
    pub(super) fn new(
        directory: PathBuf,
        epoch: Epoch,
        meta: SavedMeta,
        leftover: Leftover,
    ) -> Self {
        let (meta, leftover) = (Lock::new(meta), Lock::new(leftover));
        let (deleting, deleted) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { directory, epoch, meta, leftover, deleting, deleted }
    }

    pub(super) fn directory_name(&self) -> Cow<'_, str> {
        self.directory.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Sets the options, without saving them.
    pub(super) fn set_options(&self, options: TopicOptions) {
        let mut meta = lock(&self.meta);
        meta.is_saved &= meta.options == options;
        meta.options = options;
    }

    /// Sets a note without a batch, without saving it.
    pub(super) fn set_own_note(&self, note: OwnNote) {
        let mut meta = lock(&self.meta);
        meta.own_note = Some(note);
        meta.is_saved = false;
    }

    /// Saves the facts about the topic, unless they are saved.
    pub(super) fn save_meta(&self, platform: &dyn Platform) -> Result<(), StorageError> {
        let mut meta = lock(&self.meta);
        if meta.is_saved || self.is_deleted() {
            return Ok(());
        }
        let path = self.directory.join(META_FILE);
        Meta::new(&self.directory_name(), self.epoch, meta.options)
            .with_note(meta.own_note.as_ref())
            .to_json()
            .and_then(|json| replace(platform, &path, &json))
            .map_err(|error| StorageError::new(Action::Write, &path, error))?;
        meta.is_saved = true;
        Ok(())
    }

    /// Sets files without valid records aside and cuts off invalid bytes, unless that was done.
    pub(super) fn settle_leftover(&self, platform: &dyn Platform) -> Result<(), StorageError> {
        let mut leftover = lock(&self.leftover);
        while let Some((from, to)) = leftover.aside.last() {
            match self.set_aside(platform, from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StorageError::new(Action::Rename, from, error));
                }
                _ => leftover.aside.pop(),
            };
        }
        if let Some((path, len)) = &leftover.ragged {
            let file = platform.open(path);
            file.and_then(|mut file| file.cut(*len))
                .map_err(|error| StorageError::new(Action::Cut, path, error))?;
        }
        leftover.ragged = None;
        Ok(())
    }

    /// Renames a damaged file to a name that no other has.
    pub(super) fn set_aside(
        &self,
        platform: &dyn Platform,
        from: &Path,
        to: &Path,
    ) -> io::Result<()> {
        let to = free_path(to);
        platform.rename(from, &to)?;
        tracing::error!("{} is damaged: it was renamed to {}", from.display(), to.display());
        platform.flush_directory(&self.directory)
    }

    /// Calls `discard` to move the directory away while nothing is saved in it. Nothing is saved afterwards.
    pub(super) fn delete<T>(
        &self,
        discard: impl FnOnce(&Path) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let _meta = lock(&self.meta);
        self.deleting.store(true, Ordering::Release);
        let discarded =
            discard(&self.directory).inspect_err(|_| self.deleting.store(false, Ordering::Release));
        self.deleted.store(discarded.is_ok(), Ordering::Release);
        discarded
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Returns true if its directory was moved away to be deleted, even if the deletion still goes on. Does not wait for it.
    pub(super) fn is_moved_away(&self) -> bool {
        // A directory that is there again is another topic's, which is created after the deletion: asked in this order.
        self.deleting.load(Ordering::Acquire) && (!self.directory.exists() || self.is_deleted())
    }
}
