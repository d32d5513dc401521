//! A data directory: opening it, its topics, and closing it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use super::active::{Active, Found};
use super::carried::Carried;
use super::desk::Desk;
use super::intake::batch_bytes;
use super::lock::{LAST, Lock, lock};
use super::log::{DiskLog, InitialContents};
use super::options::DataOptions;
use super::platform::{Platform, System};
use super::recovery::Recovery;
use super::segments::Segments;
use super::shared::{Disk, TOPICS, lock_directory};
use super::state::History;
use super::topic::DiskTopic;
use super::{name, writer};
use crate::error::Action;
use crate::keys::Keys;
use crate::log::TopicProgress;
use crate::{
    Batch, Epoch, Health, OpenError, PublishError, Retention, StorageError, TopicName,
    TopicOptions, UnixTime,
};

/// The time of waiting for the disk after which that is reported.
const BEHIND_MIN: Duration = Duration::from_secs(5);

/// A directory that stores topics. Cheap to clone; it is closed when the last clone is dropped, or by
/// [`DataDir::close`].
///
/// ```
/// use anemone_hub::{Data, DataDir, Epoch, Hub, Retention, UnixTime};
///
/// let directory = tempfile::tempdir()?;
/// let open = || DataDir::open(directory.path(), Default::default());
///
/// let hub = Hub::with_data(Epoch::random()?, open()?)?;
/// let wind = hub.create("wind".parse()?, Retention::default())?;
/// let position = wind.publish(UnixTime::now(), Data::json(&2.74)?)?;
/// hub.close()?;
/// # drop((hub, wind));
///
/// // After a restart, the topic and its positions are the same.
/// let hub = Hub::with_data(Epoch::random()?, open()?)?;
/// let wind = hub.topic(&"wind".parse()?).expect("it was stored");
/// assert_eq!(wind.info(UnixTime::now()).head, position);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DataDir(Arc<OpenDirectory>);

#[derive(Debug)]
struct OpenDirectory {
    desk: Arc<Desk>,
    history: History,
    /// True once a hub has taken its topics.
    taken: AtomicBool,
    /// Held until it is closed. `None` on a read-only file system.
    lock: Lock<LAST, Option<File>>,
    writer: Lock<LAST, Option<JoinHandle<Result<(), StorageError>>>>,
}

pub(crate) struct FoundTopic {
    pub(crate) name: TopicName,
    pub(crate) epoch: Epoch,
    pub(crate) log: DiskTopic,
    pub(crate) progress: watch::Sender<TopicProgress>,
}

impl DataDir {
    /// Opens a data directory, and creates it if there is none. Blocks for the disk.
    ///
    /// # Errors
    /// [`OpenError::InUse`] while it is open elsewhere, [`OpenError::Format`] when another version wrote it,
    /// [`OpenError::Storage`] when it cannot be created or read. A directory that can be read but not written is
    /// opened; [`DataDir::health`] reports that.
    pub fn open(path: impl Into<PathBuf>, options: DataOptions) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(System), path.into(), options)
    }

    pub(super) fn open_on(
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
                "{} looks like a copy or a restored backup, and readers may have seen newer events than it \
                 contains: all its topics begin new epochs. chmod, chown, hard links and touch of its files \
                 look the same, also a chown -R at each start of a container: leave the files unchanged while \
                 the server is down. If the directory is complete, and was moved or changed on purpose, start \
                 with --adopt-data to keep the epochs",
                path.display()
            );
        }
        if history.is_adopted {
            tracing::warn!(
                "{} looks like a copy, and its topics continue their epochs (--adopt-data): if events were \
                 published to the original after the copy was made, their readers are not warned, and may \
                 silently skip as many new events",
                path.display()
            );
        }
        let disk = Arc::new(Disk::new(platform, path, options, history.session + 1));
        let desk = Arc::new(Desk::new(Arc::clone(&disk)));
        let writing = Arc::clone(&desk);
        let writer = std::thread::Builder::new()
            .name("anemone-disk".to_owned())
            .spawn(move || writer::run(&writing))
            .map_err(|error| StorageError::new(Action::StartWriter, &disk.path, error))?;
        let (lock, writer) = (Lock::new(lock), Lock::new(Some(writer)));
        let taken = AtomicBool::new(false);
        Ok(Self(Arc::new(OpenDirectory { desk, history, taken, lock, writer })))
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.desk.disk.path
    }

    /// Returns the health of all its topics together: the first fault, and the sum of the damage.
    #[must_use]
    pub fn health(&self) -> Health {
        let (desk, disk) = (&self.0.desk, &self.0.desk.disk);
        let behind = desk.queue.waits_for().filter(|waits_for| *waits_for >= BEHIND_MIN);
        let own = Health { writing: lock(&disk.fault).clone(), damaged_events: 0, behind };
        desk.logs().iter().fold(own, |health, log| health.and(log.health()))
    }

    /// Writes and flushes everything handed over, and closes the directory. Topics can still be read, but publishing
    /// is refused. Blocks for the disk. Closing it again does nothing.
    ///
    /// # Errors
    /// When not everything could be flushed. It is closed all the same.
    pub fn close(&self) -> Result<(), StorageError> {
        self.0.close()
    }

    /// Returns all topics in it, once, and the epoch of future topics. A topic that cannot keep its epoch begins
    /// `new_epoch`.
    pub(crate) fn recover(&self, new_epoch: Epoch) -> Result<(Vec<FoundTopic>, Epoch), OpenError> {
        let OpenDirectory { desk, history, taken, .. } = &*self.0;
        let disk = &desk.disk;
        if taken.swap(true, Ordering::AcqRel) {
            return Err(OpenError::InUse(disk.path.clone()));
        }
        let topics = disk.path.join(TOPICS);
        let failure = |error| StorageError::new(Action::Read, &topics, error);
        let recovery = Recovery { platform: &*disk.platform, history, new_epoch };
        let (mut found, mut logs, mut directories) = (Vec::new(), Vec::new(), BTreeSet::new());
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
                let progress = watch::Sender::new(TopicProgress::default());
                let (disk, told) = (Arc::clone(disk), progress.clone());
                let log = DiskLog::new(disk, entry.path(), recovered.contents, told);
                // Reads the disk once here, so that callers that only ask what the topic holds never have to.
                drop(log.readable.settled(UnixTime::default()));
                let topic = DiskTopic::new(Arc::clone(&log), Arc::clone(desk));
                logs.push(log);
                found.push(FoundTopic { name, epoch, log: topic, progress });
            }
        }
        // A topic that was lost as a whole had events in that epoch, and would begin it again.
        let are_all_there = history.listed().all(|topic| directories.contains(topic));
        let coming = history.coming.filter(|_| are_all_there).unwrap_or(new_epoch);
        let topics = logs.iter().map(|log| (Arc::clone(&log.groundwork), log.position()));
        disk.found(topics.collect(), coming);
        // Changes that cannot be written now are written before the first event. `health` reports a fault.
        if disk.begin().is_ok() {
            disk.empty_trash();
        }
        // They may hold more than they share, if that is less than before.
        disk.shared_bytes.fit();
        // Added only now: the writer would otherwise sweep them, or begin with only some of them.
        logs.iter().for_each(|log| desk.add(log));
        Ok((found, coming))
    }

    /// Checks that a topic which is created now could take a batch.
    pub(crate) fn check_first(
        &self,
        retention: Retention,
        batch: &Batch,
    ) -> Result<(), PublishError> {
        let bytes = batch_bytes(batch, batch.keyed());
        self.0.desk.disk.shared_bytes.check_another(retention, bytes)
    }

    pub(crate) fn create(
        &self,
        name: &TopicName,
        epoch: Epoch,
        options: TopicOptions,
        progress: watch::Sender<TopicProgress>,
    ) -> Result<DiskTopic, StorageError> {
        let (desk, disk) = (&self.0.desk, &self.0.desk.disk);
        disk.begin()?;
        let topics = disk.path.join(TOPICS);
        let directory = topics.join(name::directory(name));
        let contents = InitialContents {
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
            // If that fails, too, there is an empty topic or none at the next start.
            let _ = platform.remove_directory(&log.groundwork.directory);
            return Err(error);
        }
        desk.add(&log);
        Ok(DiskTopic::new(log, Arc::clone(desk)))
    }

    /// Applies retention to idle topics, as the writer does.
    #[cfg(test)]
    pub(super) fn sweep(&self, now: UnixTime) {
        self.0.desk.sweep(now);
    }

    /// Returns true if the directory takes no more events.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.desk.queue.is_closed()
    }
}

/// Makes the contents of a data directory private to its owner. A directory that others can read stays unchanged,
/// since it may contain more than ours, but its contents become private.
fn keep_private(path: &Path, topics: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let is_open = |path: &Path| {
            fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
        };
        if is_open(path) {
            tracing::warn!(
                "other users on this machine may list {}: run chmod 700 on it; they cannot read the topics in it",
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

impl OpenDirectory {
    fn close(&self) -> Result<(), StorageError> {
        self.desk.queue.close();
        let Some(writer) = lock(&self.writer).take() else { return Ok(()) };
        let written = writer.join().unwrap_or_else(|_| {
            let error = io::Error::other("the writer panicked");
            Err(StorageError::new(Action::Close, &self.desk.disk.path, error))
        });
        // Closing the file releases the lock.
        lock(&self.lock).take();
        written
    }
}

impl Drop for OpenDirectory {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!("{}", error.with_cause());
        }
        // A topic that outlives the directory does not need the others.
        self.desk.forget();
    }
}
