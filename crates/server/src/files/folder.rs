//! A directory with files to serve, and the limits on parallel work in it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anemone_ws::Memory;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::log_times::LogTimes;
use super::open::FileRefusal;

/// The most files of a directory that are examined, opened or read at once; a thread waits for each. Disks gain
/// nothing from more. A disk that does not answer occupies at most these threads, and none of another directory.
const AT_ONCE: usize = 8;
/// The most for all directories together, unless there are more directories: half of a runtime's blocking threads.
const ALL_AT_ONCE: usize = 256;
/// The most files that stay open for slow clients.
const OPEN_MAX: usize = 64;
/// The time that a client waits for the disk. A network disk may never answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The limits for all directories together.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// The number of files of each directory that are read at once.
    at_once: usize,
    descriptors: Arc<Semaphore>,
    memory: Memory,
}

impl Disk {
    /// Creates the limits for this many directories.
    pub(super) fn new(directories: usize, memory: &Memory) -> Self {
        Self {
            at_once: (ALL_AT_ONCE / directories.max(1)).clamp(1, AT_ONCE),
            descriptors: Arc::new(Semaphore::new(OPEN_MAX)),
            memory: memory.clone(),
        }
    }
}

/// A directory with files to serve. A thread that waits for a dead disk never ends, so each directory has its own
/// threads, and its own limit on log lines.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    dir: Arc<Path>,
    at_once: Arc<Semaphore>,
    log_times: Arc<LogTimes>,
    disk: Disk,
}

impl Folder {
    pub(super) fn new(dir: &Path, disk: &Disk) -> Self {
        let at_once = Arc::new(Semaphore::new(disk.at_once));
        Self { dir: dir.into(), at_once, log_times: Arc::default(), disk: disk.clone() }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.disk.memory
    }

    /// Returns the right to keep one more file open.
    pub(super) fn descriptor(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.disk.descriptors).try_acquire_owned().ok()
    }

    /// Runs `work`, which may wait for the disk, on a blocking thread. Logs it if the file at `path` exists and
    /// cannot be served.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let done = async {
            let permit =
                Arc::clone(&self.at_once).acquire_owned().await.map_err(io::Error::other)?;
            let work = move || {
                // Until the work is done, even if nobody waits for it any more.
                let _permit = permit;
                work()
            };
            spawn_blocking(work).await.map_err(io::Error::other)?
        };
        let done = timeout(PATIENCE, done).await;
        let no_answer = |_| Err(io::Error::new(io::ErrorKind::TimedOut, NoAnswer));
        done.unwrap_or_else(no_answer).inspect_err(|error| self.log_refusal(path, error))
    }

    /// Logs why an existing file is not served.
    fn log_refusal(&self, path: &Path, error: &io::Error) {
        match FileRefusal::of(error) {
            Some(refusal) => self.log_times.log_refusal(&self.dir, path, refusal),
            None if is_absence(error) || is_overload(error) => {}
            None => self.log_times.log_error(&self.dir, path, error),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the disk has not answered for {PATIENCE:?}")]
struct NoAnswer;

/// An error of the memory limit.
#[derive(Debug, thiserror::Error)]
#[error("too much memory is already held for clients")]
pub(super) struct Overload;

/// Returns true if an error is due to the memory limit.
pub(super) fn is_overload(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<Overload>())
}

/// Returns true if an error says that there is no such file.
pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidFilename
            | io::ErrorKind::InvalidInput
    )
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;
    use std::time::Instant;

    use anemone_testing::Log;

    use super::*;

    const FILE: &str = "./a.txt";

    /// Blocks all threads of a directory until the result is dropped.
    pub(in super::super) async fn stick(folder: &Folder) -> mpsc::Sender<()> {
        let (stuck, never) = mpsc::channel();
        let never = Arc::new(Mutex::new(never));
        let begun = Arc::new(Semaphore::new(0));
        // Dropped, as by a client that disconnects.
        for _ in 0..AT_ONCE {
            let (folder, never, begun) = (folder.clone(), Arc::clone(&never), Arc::clone(&begun));
            let wait = move || {
                begun.add_permits(1);
                let _ = never.lock().map(|never| never.recv());
                Ok(())
            };
            tokio::spawn(async move { folder.aside(Path::new(FILE), wait).await });
        }
        let all = begun.acquire_many(u32::try_from(AT_ONCE).unwrap()).await;
        assert!(all.is_ok());
        stuck
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever_for_a_disk_and_so_many_threads_do() {
        let folder = Folder::new(Path::new("www"), &Disk::new(1, &Memory::default()));
        let _stuck = stick(&folder).await;
        // The paused clock does not advance by itself while a thread works.
        let time = tokio::time::advance(PATIENCE);
        let (done, ()) = tokio::join!(folder.aside(Path::new(FILE), || Ok(())), time);
        assert_eq!(done.unwrap_err().to_string(), "the disk has not answered for 30s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_does_not_answer_holds_up_its_own_directory_alone() {
        let disk = Disk::new(2, &Memory::default());
        let _stuck = stick(&Folder::new(Path::new("dead"), &disk)).await;
        let other = Folder::new(Path::new("www"), &disk);
        let done = tokio::spawn(async move { other.aside(Path::new(FILE), || Ok(())).await });
        let since = Instant::now();
        while !done.is_finished() {
            assert!(since.elapsed() < Duration::from_secs(20), "it waits for the other one");
            std::thread::sleep(Duration::from_millis(1));
            tokio::task::yield_now().await;
        }
        done.await.unwrap().unwrap();
    }

    #[test]
    fn many_directories_share_the_threads_that_there_are() {
        for (directories, expected) in [(0, 8), (1, 8), (32, 8), (33, 7), (256, 1), (1_000, 1)] {
            let disk = Disk::new(directories, &Memory::default());
            assert_eq!(disk.at_once, expected, "{directories}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_log_names_a_file_of_each_directory_that_does_not_answer() {
        let log = Log::keep();
        let disk = Disk::new(2, &Memory::default());
        let mut all = Vec::new();
        for dir in ["dead", "stale"] {
            let folder = Folder::new(Path::new(dir), &disk);
            all.push((stick(&folder).await, folder));
        }
        for (_, folder) in &all {
            for _ in 0..2 {
                let time = tokio::time::advance(PATIENCE);
                let asked = folder.aside(Path::new(FILE), || Ok(()));
                let (done, ()) = tokio::join!(asked, time);
                assert!(done.is_err());
            }
        }
        let mut said = log.lines();
        said.sort();
        let expected = ["dead", "stale"]
            .map(|dir| format!("ERROR cannot read {dir}/a.txt: the disk has not answered for 30s"));
        assert_eq!(said, expected);
    }
}
