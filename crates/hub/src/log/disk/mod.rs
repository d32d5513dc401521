//! Logs on disk: a directory with one sub-directory for each topic, and one thread that writes to it.
//!
//! ```text
//! DIR/lock                                    held while it is open
//! DIR/state.json                              how it was opened and closed
//! DIR/witness.7                               made when it was opened for the seventh time, and never touched again
//! DIR/marks.7                                 how far each topic has come
//! DIR/topics/wind/topic.json                  the topic's epoch and options
//! DIR/topics/wind/00000000000000000001.log    a segment, named by its first offset
//! DIR/topics/wind/….damaged                   a segment that was set aside
//! DIR/topics/wind/keys                        keys whose segments are gone
//! DIR/deleted/                                what is being removed
//! ```
//!
//! **What is kept.** A batch is acknowledged once it is written ([`Fsync`] says whether it is flushed by
//! then), so `kill -9` at any moment loses no acknowledged event. After a crash of the machine with
//! `interval` or `never`, events that readers have seen may be gone; then the topic begins a new epoch, so
//! that every reader is told and none gets another event under a position it has. Where the system does
//! not say which start of the machine this is (Linux does), every end but a close counts as a crash.
//!
//! **What goes.** Readers see what retention keeps, to the event; files go as whole segments. A segment is an eighth
//! of what the topic keeps (at most [`DataOptions::segment_bytes_max`], at least 4 KiB, 64 events and 1 second), so on
//! disk there is at most what retention says, one segment and one batch. Keys that are still in their window outlive
//! their segment.
//!
//! **What is damaged** is told to readers as a gap; what is around it is read. Opening a directory
//! reads all of it once and checks every record. A segment without one good record is renamed
//! `FIRST-LAST.damaged`, with the offsets that are missing; one with some is renamed `FIRST.damaged` when retention is
//! past it; a number follows where the name is taken. Nothing but deleting its topic removes such a file: it is the
//! operator's, to look at, to bring back from a backup of (stop the server, put the right bytes at `FIRST.log`, padded
//! with zeros to 20 digits, remove the `.damaged` file, start), or to remove when `/health` no
//! longer counts its events. It takes nothing of what a topic may keep.
//!
//! **What a copy is.** A directory that was restored from a backup is in the past of its readers. `state.json` says which
//! file `witness.N` was, by its device, inode and the times of its making and its last change; it is made anew at each
//! start and never touched again. A copy of it is another file, or a changed one, and then all topics begin new epochs.
//! Renaming the directory, reading it and backing it up change nothing; `chmod`, `chown`, hard links and `touch` of that
//! file do: they change nothing else than a copy does that is written over the original and set back to its times, so
//! nothing tells them from it; and what might is put back with it. [`DataOptions::adopt`] is for a move on purpose. What cannot be told from the original: a whole file system
//! that is put back, as a snapshot or an image of its disk. Delete `state.json` then before the next start, and all
//! topics begin new epochs.
//!
//! **What is cut short.** The newest offset of each topic is kept apart from its segments, too, in `marks.N`; a topic
//! that has less than that begins a new epoch.
//!
//! Modules: `record` and `scan` are the format, `segments` what is where, `active` the file that is
//! written, `log` puts them together, `topic` is how a topic has it, `reading` and `recovery` read, `carried` is the file of keys, `intake`, `queue`
//! and `writer` are the way to the disk, `shared`, `state`, `marks` and `name` what else is in the directory, `platform` what the machine
//! is asked for.

mod active;
mod carried;
#[cfg(feature = "testing")]
mod failing;
mod intake;
mod log;
mod marks;
mod name;
mod platform;
mod queue;
mod reading;
mod record;
mod recovery;
mod scan;
mod segments;
mod shared;
mod state;
mod topic;
mod writer;

#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use self::active::{Active, Found};
use self::carried::Carried;
#[cfg(feature = "testing")]
pub use self::failing::{DiskFault, FailingDisk};
use self::log::{Contents, DiskLog, lock};
use self::platform::{Platform, System};
use self::recovery::Recovery;
use self::segments::Segments;
use self::shared::{Disk, TOPICS, lock_directory};
use self::state::History;
pub(crate) use self::topic::DiskTopic;
use super::Progress;
use crate::error::Action;
use crate::keys::Keys;
use crate::{Epoch, Health, OpenError, StorageError, TopicName, TopicOptions, UnixTime};

/// The time at which an event is flushed, so that it survives a crash of the machine. Every event that is acknowledged
/// survives the end of the process, whatever is chosen here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fsync {
    /// Before it is acknowledged. Events that come together share a flush.
    Always,
    /// This often.
    Interval(Duration),
    /// Whenever the system does it, and when the data directory is closed.
    Never,
}

impl Default for Fsync {
    /// Each second.
    fn default() -> Self {
        Self::Interval(Duration::from_secs(1))
    }
}

/// The options of a data directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataOptions {
    /// The time at which events are flushed.
    pub fsync: Fsync,
    /// The largest segment, in bytes; a batch that alone is larger has one for itself. Opening a
    /// directory holds one segment in memory at a time. Default 16 MiB.
    pub segment_bytes_max: u64,
    /// The bytes of each topic's newest events that are held in memory. Default 1 MiB.
    pub memory_bytes_max: u64,
    /// The bytes that may wait to be written, for all topics together; as much again may be in the
    /// write that is under way. Publishers beyond that wait or are refused. Default 8 MiB.
    pub queue_bytes_max: u64,
    /// Takes a directory that was copied or restored for the one it is a copy of: its topics go on in their epochs.
    /// For one start, after a move on purpose, with all that was there. Default no.
    pub adopt: bool,
}

impl Default for DataOptions {
    fn default() -> Self {
        Self {
            fsync: Fsync::default(),
            segment_bytes_max: 16 << 20,
            memory_bytes_max: 1 << 20,
            queue_bytes_max: 8 << 20,
            adopt: false,
        }
    }
}

/// The time that something may wait for the disk before that is worth telling.
const BEHIND_MIN: Duration = Duration::from_secs(5);

/// A directory that topics are kept in. Cheap to clone; it is closed when the last clone is dropped, or
/// by [`DataDir::close`].
#[derive(Clone, Debug)]
pub struct DataDir(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    disk: Arc<Disk>,
    history: History,
    /// Its topics were taken by a hub.
    taken: AtomicBool,
    /// Held until it is closed. None on a file system that nobody can write to.
    lock: Mutex<Option<File>>,
    writer: Mutex<Option<JoinHandle<Result<(), StorageError>>>>,
}

/// A topic that was found in a data directory.
pub(crate) struct FoundTopic {
    pub(crate) name: TopicName,
    pub(crate) epoch: Epoch,
    pub(crate) log: DiskTopic,
    pub(crate) progress: watch::Sender<Progress>,
}

impl DataDir {
    /// Opens a data directory, and makes it when there is none. Blocks for the disk.
    ///
    /// # Errors
    /// [`OpenError::InUse`] while it is open elsewhere, [`OpenError::Format`] when another version wrote
    /// it, [`OpenError::Storage`] when it cannot be made or read. One that can be read and not
    /// written to is opened; [`DataDir::health`] says so.
    pub fn open(path: impl Into<PathBuf>, options: DataOptions) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(System), path.into(), options)
    }

    fn open_on(
        platform: Arc<dyn Platform>,
        path: PathBuf,
        options: DataOptions,
    ) -> Result<Self, OpenError> {
        let topics = path.join(TOPICS);
        if let Err(error) = platform.create_directory(&topics)
            && !path.is_dir()
        {
            return Err(StorageError::new(Action::Make, &topics, error).into());
        }
        let lock = lock_directory(&path)?;
        keep_private(&path, &topics);
        let history = History::read(&*platform, &path, options.adopt)?;
        if history.is_copy {
            tracing::warn!(
                "{} looks like a copy, or like one that a backup was put back over, and may be in the past of its readers: \
                 all its topics begin new epochs. chmod, chown, hard links and touch of the files in it look the same, \
                 also a chown -R at each start of a container: leave the files as they are while the server is down. Of \
                 one that has all it had, changed so or moved on purpose, a start with --adopt-data keeps the epochs",
                path.display()
            );
        }
        if history.is_adopted {
            tracing::warn!(
                "{} looks like a copy, and its topics go on in their epochs (--adopt-data): if it is one, and events were \
                 published to the original after it was made, their readers are not told, and may skip as many new ones \
                 silently",
                path.display()
            );
        }
        let disk = Arc::new(Disk::new(platform, path, options, history.session + 1));
        let writing = Arc::clone(&disk);
        let writer = std::thread::Builder::new()
            .name("anemone-disk".to_owned())
            .spawn(move || writer::run(&writing))
            .map_err(|error| StorageError::new(Action::StartWriter, &disk.path, error))?;
        let (lock, writer) = (Mutex::new(lock), Mutex::new(Some(writer)));
        let taken = AtomicBool::new(false);
        Ok(Self(Arc::new(Handle { disk, history, taken, lock, writer })))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.disk.path
    }

    /// Its health, all its topics together: the first fault, and the sum of what is damaged.
    #[must_use]
    pub fn health(&self) -> Health {
        let disk = &self.0.disk;
        let behind = disk.queue.waits_for().filter(|waits_for| *waits_for >= BEHIND_MIN);
        let own = Health { writing: lock(&disk.fault).clone(), damaged_events: 0, behind };
        disk.logs().iter().fold(own, |health, log| health.and(log.health()))
    }

    /// Writes and flushes what was handed over, and closes it; topics can still be read. Publishing from
    /// now on is refused. Blocks for the disk. Closing it again does nothing.
    ///
    /// # Errors
    /// When not all could be flushed. It is closed all the same.
    pub fn close(&self) -> Result<(), StorageError> {
        self.0.close()
    }

    /// All topics in it, once, and the epoch of those to come. What must begin a new epoch begins this one.
    pub(crate) fn recover(&self, new_epoch: Epoch) -> Result<(Vec<FoundTopic>, Epoch), OpenError> {
        let Handle { disk, history, taken, .. } = &*self.0;
        if taken.swap(true, Ordering::AcqRel) {
            return Err(OpenError::InUse(disk.path.clone()));
        }
        let topics = disk.path.join(TOPICS);
        let failure = |error| StorageError::new(Action::Read, &topics, error);
        let recovery = Recovery { platform: &*disk.platform, history, new_epoch };
        let (mut found, mut directories) = (Vec::new(), BTreeSet::new());
        let entries = match fs::read_dir(&topics) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            entries => Some(entries.map_err(failure)?),
        };
        for entry in entries.into_iter().flatten() {
            let entry = entry.map_err(failure)?;
            let directory = entry.file_name();
            let named = directory.to_str().and_then(|text| Some((text, name::topic(text)?)));
            let Some((text, name)) = named else {
                tracing::warn!("{} is not a topic's directory", entry.path().display());
                continue;
            };
            if let Some(recovered) = recovery.topic(entry.path(), text)? {
                if !recovered.is_flushed {
                    disk.taint();
                }
                directories.insert(text.to_owned());
                let epoch = recovered.contents.epoch;
                let progress = watch::Sender::new(Progress::default());
                let (disk, told) = (Arc::clone(disk), progress.clone());
                let log = DiskLog::new(disk, entry.path(), recovered.contents, told);
                // The disk is read here once, so that nobody has to who only asks what the topic holds.
                drop(log.settled(UnixTime::default()));
                self.0.disk.add(&log);
                found.push(FoundTopic { name, epoch, log: DiskTopic(log), progress });
            }
        }
        // A topic that was lost as a whole had events in that epoch, and would begin it again.
        let are_all_there = history.listed().all(|topic| directories.contains(topic));
        let coming = history.coming.filter(|_| are_all_there).unwrap_or(new_epoch);
        *lock(&disk.coming) = Some(coming);
        // What cannot be written now is written before the first event. A fault is told by `health`.
        if disk.begin().is_ok() {
            disk.empty_trash();
        }
        Ok((found, coming))
    }

    /// Makes a topic's directory.
    pub(crate) fn create(
        &self,
        name: &TopicName,
        epoch: Epoch,
        options: TopicOptions,
        progress: watch::Sender<Progress>,
    ) -> Result<DiskTopic, StorageError> {
        let disk = &self.0.disk;
        disk.begin()?;
        let topics = disk.path.join(TOPICS);
        let directory = topics.join(name::directory(name));
        let contents = Contents {
            epoch,
            options,
            segments: Segments::new(Vec::new(), 0),
            keys: Keys::new(options.keys),
            carried: Carried::nothing(&directory),
            active: Active::new(directory.clone(), epoch, Found::nothing(), None),
            own_note: None,
            aside: Vec::new(),
            meta_is_saved: false,
        };
        let platform = &*disk.platform;
        platform
            .create_directory(&directory)
            .map_err(|error| StorageError::new(Action::Make, &directory, error))?;
        let log = DiskLog::new(Arc::clone(disk), directory, contents, progress);
        let flush = || {
            platform
                .flush_directory(&topics)
                .map_err(|error| StorageError::new(Action::Flush, &topics, error))
        };
        let made = log.save_meta().and_then(|()| flush()).and_then(|()| log.mark(0));
        if let Err(error) = made {
            // If that fails, too, there is an empty topic, or none, at the next start.
            let _ = platform.remove_directory(&log.directory);
            return Err(error);
        }
        disk.add(&log);
        Ok(DiskTopic(log))
    }

    /// Whether nothing more is taken.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.disk.queue.is_closed()
    }
}

/// Has nobody but the owner see what is in a data directory. One that is open to others is not changed: it may be more
/// than ours. What is in it is.
fn keep_private(path: &Path, topics: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let is_open = |path: &Path| {
            fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
        };
        if is_open(path) {
            tracing::warn!(
                "others on this machine may look into {}: chmod 700 it; the topics in it are closed to them",
                path.display()
            );
        }
        if is_open(topics)
            && let Err(error) = fs::set_permissions(topics, fs::Permissions::from_mode(0o700))
        {
            tracing::warn!("{} is open to others on this machine: {error}", topics.display());
        }
    }
    #[cfg(not(unix))]
    let _ = (path, topics);
}

impl Handle {
    fn close(&self) -> Result<(), StorageError> {
        self.disk.queue.close();
        let Some(writer) = lock(&self.writer).take() else { return Ok(()) };
        let written = writer.join().unwrap_or_else(|_| {
            let error = io::Error::other("the writer panicked");
            Err(StorageError::new(Action::Close, &self.disk.path, error))
        });
        // The lock goes with the file.
        lock(&self.lock).take();
        written
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!("{}", error.with_cause());
        }
        // Each of them has the disk, too.
        self.disk.forget();
    }
}
