//! A directory with files to serve, and the bounds on what is done there at once.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anemone_ws::Memory;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::open::Refusal;
use super::told::Told;

/// Most files that are looked at, opened or read at once, for each of which a thread waits. Disks have no use for more, and
/// those that do not answer take no more threads than that.
const AT_ONCE: usize = 8;
/// Most files that stay open for clients who take their time.
const OPEN_MAX: usize = 64;
/// How long a client waits for the disk. One of another machine may never answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The bounds on all directories together.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    at_once: Arc<Semaphore>,
    descriptors: Arc<Semaphore>,
    memory: Memory,
    told: Arc<Told>,
}

impl Disk {
    pub(super) fn new(memory: &Memory) -> Self {
        Self {
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
            descriptors: Arc::new(Semaphore::new(OPEN_MAX)),
            memory: memory.clone(),
            told: Arc::default(),
        }
    }
}

/// A directory with files to serve.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    dir: Arc<Path>,
    disk: Disk,
}

impl Folder {
    pub(super) fn new(dir: &Path, disk: &Disk) -> Self {
        Self { dir: dir.into(), disk: disk.clone() }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.disk.memory
    }

    /// The right to keep one file more open.
    pub(super) fn descriptor(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.disk.descriptors).try_acquire_owned().ok()
    }

    /// Does what may wait for the disk on a thread for that.
    pub(super) async fn aside<T: Send + 'static>(
        self,
        work: impl FnOnce(Self) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let at_once = Arc::clone(&self.disk.at_once);
        let folder = self.clone();
        let done = async move {
            let permit = at_once.acquire_owned().await.map_err(io::Error::other)?;
            let work = move || {
                // Until it is done, even if nobody waits for it any more.
                let _permit = permit;
                work(folder)
            };
            spawn_blocking(work).await.map_err(io::Error::other)?
        };
        timeout(PATIENCE, done).await.unwrap_or_else(|_| {
            let error = io::Error::new(io::ErrorKind::TimedOut, NoAnswer);
            self.tell(Path::new(""), &error);
            Err(error)
        })
    }

    /// Tells the log why a file is not served that is there.
    pub(super) fn tell(&self, path: &Path, error: &io::Error) {
        match Refusal::of(error) {
            Some(refusal) => self.disk.told.refused(&self.dir, path, refusal),
            None if is_absence(error) => {}
            None => self.disk.told.failed(&self.dir, path, error),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the disk has not answered for {PATIENCE:?}")]
struct NoAnswer;

/// Whether an error says that there is no such file.
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
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever_for_a_disk_and_so_many_threads_do() {
        let folder = Folder::new(Path::new("www"), &Disk::new(&Memory::default()));
        let (_stuck, never) = std::sync::mpsc::channel::<()>();
        let never = Arc::new(std::sync::Mutex::new(never));
        let begun = Arc::new(Semaphore::new(0));
        // Dropped as by a client that goes away.
        for _ in 0..AT_ONCE {
            let (never, begun) = (Arc::clone(&never), Arc::clone(&begun));
            tokio::spawn(folder.clone().aside(move |_| {
                begun.add_permits(1);
                let _ = never.lock().map(|never| never.recv());
                Ok(())
            }));
        }
        let all = begun.acquire_many(u32::try_from(AT_ONCE).unwrap()).await;
        assert!(all.is_ok());
        // Time does not go by itself while a thread works.
        let time = tokio::time::advance(PATIENCE);
        let (done, ()) = tokio::join!(folder.aside(|_| Ok(())), time);
        assert_eq!(done.unwrap_err().to_string(), "the disk has not answered for 30s");
    }
}
