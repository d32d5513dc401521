mod awaited;
mod combinations;
mod damage;
mod extent;
mod failing;
mod faulty;
mod keys;
mod sharing;
mod surviving;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use self::faulty::Faulty;
use super::{DataDir, DataOptions, Fsync, marks, paths, record};
use crate::testing::{at, batch, numbers};
use crate::{
    After, Epoch, Hub, OpenError, Page, PageLimit, Position, PublishError, Published, Retention,
    StorageError, Topic, TopicName, TopicOptions,
};

const ALWAYS: DataOptions = options(Fsync::Always);
/// Never while a test runs.
const LATER: DataOptions = options(Fsync::Interval(Duration::from_secs(3600)));

const fn options(fsync: Fsync) -> DataOptions {
    DataOptions {
        bytes_max: 1 << 30,
        fsync,
        segment_bytes_max: 4096,
        memory_bytes_max: 0,
        queue_bytes_max: 8 << 20,
        adopt: false,
    }
}

/// A machine with a data directory that holds one topic.
struct Machine {
    directory: TempDir,
    faults: Faulty,
    starts: u64,
}

/// A hub in it, and its topic.
struct Running {
    hub: Hub,
    topic: Arc<Topic>,
}

impl Machine {
    fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), faults: Faulty::default(), starts: 0 }
    }

    fn open(&mut self, options: DataOptions) -> Hub {
        self.starts += 1;
        open(&self.faults, self.directory.path(), options, self.starts).unwrap()
    }

    fn start(&mut self, options: DataOptions) -> Running {
        let hub = self.open(options);
        let topic = hub.ensure(wind(), Retention::default()).unwrap();
        Running { hub, topic }
    }

    fn topic_directory(&self) -> PathBuf {
        self.directory.path().join("topics/wind")
    }

    /// The topic's segments, oldest first.
    fn segments(&self) -> Vec<PathBuf> {
        let mut files = faulty::files_below(&self.topic_directory());
        files.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        files
    }

    /// Sets the marks back to this position: later events were never acknowledged.
    fn unmark(&self, head: Position) {
        let mut files = faulty::files_below(self.directory.path());
        files.retain(|path| path.to_str().unwrap().contains("marks."));
        fs::write(&files[0], marks::encode("wind", head)).unwrap();
    }

    /// Returns the same data as they are on the disk now, as after `kill -9`. The machine, and so its flushed data,
    /// is the same.
    fn killed(&self) -> Self {
        let directory = TempDir::new().unwrap();
        copy(self.directory.path(), directory.path());
        Self { directory, faults: self.faults.clone(), starts: self.starts + 100 }
    }
}

impl Running {
    async fn publish(&self, numbers: impl IntoIterator<Item = u64>) -> Result<u64, PublishError> {
        let published = self.topic.publish_kept(at(1), &batch(at(1), numbers)).await?;
        Ok(published.last.offset)
    }

    async fn publish_with_key(&self, key: &str, number: u64) -> Result<Published, PublishError> {
        let batch = batch(at(1), [number]).with_key(key.parse().unwrap());
        self.topic.publish_kept(at(1), &batch).await
    }

    fn read(&self, after: u64) -> Page {
        let position = Position { offset: after, ..self.head() };
        self.topic.read(at(1), position, PageLimit::default()).unwrap()
    }

    fn all(&self) -> Vec<u64> {
        let start = self.topic.start(at(1), After::Earliest).unwrap();
        let page = self.topic.read(at(1), start, PageLimit::default()).unwrap();
        assert_eq!(page.gap, None);
        numbers(&page)
    }

    fn head(&self) -> Position {
        self.topic.info(at(1)).head
    }

    fn fault(&self) -> Option<StorageError> {
        assert_eq!(self.hub.data().unwrap().health(), self.topic.health());
        self.topic.health().writing
    }
}

fn open(faults: &Faulty, path: &Path, options: DataOptions, epoch: u64) -> Result<Hub, OpenError> {
    let data = DataDir::open_on(Arc::new(faults.clone()), path.to_owned(), options)?;
    Hub::with_data(Epoch::from_bits(epoch), data)
}

fn wind() -> TopicName {
    "wind".parse().unwrap()
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
