//! Notices of changes from the system (inotify). The system does not report some changes, such as writes by other
//! machines to a network file system. They are found at the next check.
//!
//! `rustix` has the three system calls, and this crate needs it anyway. The crate `notify` would add six more
//! dependencies, for threads and systems that are not needed here.

pub(super) use system::{Changes, Watches};

/// The files that came under the path and are now open, and the number of files that were gone before.
#[derive(Debug)]
pub(super) struct Found<T> {
    pub(super) files: Vec<T>,
    pub(super) gone: u64,
}

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self { files: Vec::new(), gone: 0 }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use rustix::fs::inotify::{
        CreateFlags, Event, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
    };
    use tokio::io::unix::AsyncFd;

    use super::Found;
    use crate::file::arrivals::{Arrivals, DirectoryNotice};

    /// The most notices that are read at once, so that an endless stream of notices does not hold up everything else.
    const NOTICES_MAX: usize = 10_000;

    /// The most attempts in one turn to open files. The name of a file may change all the time.
    const ATTEMPTS_MAX: usize = 1000;

    /// The queue of notices, and the state after all notices that were read.
    #[derive(Debug)]
    struct Queue {
        fd: Arc<OwnedFd>,
        state: Mutex<QueueState>,
    }

    #[derive(Debug)]
    struct QueueState {
        arrivals: Arrivals,
        /// True if something may have changed since the last call of [`Changes::changed`].
        has_changed: bool,
    }

    impl Queue {
        /// Reads the notices that the system has now, and updates the state.
        fn read(&self) -> MutexGuard<'_, QueueState> {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = Reader::new(&self.fd, &mut buffer);
            for _ in 0..NOTICES_MAX {
                let Ok(event) = reader.next() else { break };
                state.note(&event);
            }
            state
        }
    }

    impl QueueState {
        fn note(&mut self, event: &Event<'_>) {
            let kind = event.events();
            if kind.contains(ReadFlags::QUEUE_OVERFLOW) {
                self.arrivals.on_overflow();
            }
            // Notices without a name are about a file itself.
            let Some(name) = event.file_name() else {
                self.has_changed = true;
                return;
            };
            let (name, number) = (OsStr::from_bytes(name.to_bytes()), event.cookie());
            let notice = if kind.contains(ReadFlags::CREATE) {
                DirectoryNotice::Created(name)
            } else if kind.contains(ReadFlags::DELETE) {
                DirectoryNotice::Deleted(name)
            } else if kind.contains(ReadFlags::MOVED_FROM) {
                DirectoryNotice::MovedFrom(name, number)
            } else if kind.contains(ReadFlags::MOVED_TO) {
                DirectoryNotice::MovedTo(name, number)
            } else {
                return;
            };
            // The path may lead to another name in the directory.
            let is_new = kind.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
            self.has_changed |= self.arrivals.note(notice) || is_new;
        }
    }

    /// The source of the news that something may have changed.
    pub(in crate::file) struct Changes {
        events: AsyncFd<Arc<OwnedFd>>,
        queue: Arc<Queue>,
    }

    /// The watches of the system: of the open file, of another file under the path, and of the names in the path's
    /// directory.
    #[derive(Debug, Default)]
    pub(in crate::file) struct Watches {
        queue: Option<Arc<Queue>>,
        /// The watches, in the order of [`Watched`].
        watches: [Option<i32>; 3],
    }

    #[derive(Clone, Copy)]
    enum Watched {
        Open,
        Other,
        Directory,
    }

    impl Changes {
        /// Starts to watch this path. Must be called within a runtime.
        pub(in crate::file) fn start(path: &Path) -> io::Result<(Self, Watches)> {
            let fd = Arc::new(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
            let arrivals = Arrivals::new(path.file_name().unwrap_or_default().to_owned());
            let state = Mutex::new(QueueState { arrivals, has_changed: false });
            let queue = Arc::new(Queue { fd: Arc::clone(&fd), state });
            let watches = Watches { queue: Some(Arc::clone(&queue)), ..Watches::default() };
            Ok((Self { events: crate::serial::watch(fd)?, queue }, watches))
        }

        /// Waits for a change since the last call.
        ///
        /// # Cancel safety
        /// Dropping the future loses nothing.
        pub(in crate::file) async fn changed(&self) {
            self.until(|state| std::mem::take(&mut state.has_changed)).await;
        }

        /// Waits until a file has come under the path and waits to be opened.
        ///
        /// # Cancel safety
        /// Dropping the future loses nothing.
        pub(in crate::file) async fn arrived(&self) {
            self.until(|state| state.arrivals.has_news()).await;
        }

        async fn until(&self, mut is_so: impl FnMut(&mut QueueState) -> bool) {
            while !is_so(&mut self.queue.read()) {
                match self.events.readable().await {
                    Ok(mut ready) => ready.clear_ready(),
                    Err(_) => std::future::pending().await,
                }
            }
        }
    }

    impl Watches {
        /// Creates watches that report nothing.
        #[cfg(test)]
        pub(in crate::file) fn none() -> Self {
            Self::default()
        }

        /// Opens the files that came under the path since the last call, the oldest first and at most `count_max`. A
        /// file is opened under its current name.
        pub(in crate::file) fn arrivals<T>(
            &mut self,
            count_max: usize,
            open: impl Fn(&OsStr) -> io::Result<T>,
        ) -> Found<T> {
            let mut found = Found::default();
            let Some(queue) = &self.queue else { return found };
            for _ in 0..ATTEMPTS_MAX {
                let Some(next) = queue.read().arrivals.next() else { break };
                if found.files.len() == count_max {
                    break;
                }
                let opened = open(&next.name);
                let is_there =
                    !opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
                if queue.read().arrivals.on_opened(&next, is_there) {
                    found.files.extend(opened);
                }
            }
            found.gone = queue.read().arrivals.take_gone();
            found
        }

        /// Watches the file that is read.
        pub(in crate::file) fn watch_file(&mut self, file: &File) {
            // Its name may have changed meanwhile.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            self.set(Watched::Open, Path::new(&path), WatchFlags::MODIFY);
        }

        /// Watches another file under the path while that file is still empty.
        pub(in crate::file) fn watch_other(&mut self, path: &Path) {
            self.set(Watched::Other, path, WatchFlags::MODIFY);
        }

        pub(in crate::file) fn directory_of(&mut self, path: &Path) {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let names = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::ONLYDIR;
            let directory = directory.unwrap_or(Path::new("."));
            self.set(Watched::Directory, directory, names);
        }

        /// Replaces a watch. A failure (too many watches, no such directory) is no error, since the next check finds
        /// the change.
        fn set(&mut self, watched: Watched, path: &Path, flags: WatchFlags) {
            let Some(queue) = &self.queue else { return };
            // Both names of a file share one watch, and its kinds of changes add up.
            let new = add_watch(&queue.fd, path, flags | WatchFlags::MASK_ADD).ok();
            let old = std::mem::replace(&mut self.watches[watched as usize], new);
            if let Some(old) = old.filter(|old| !self.watches.contains(&Some(*old))) {
                let _ = remove_watch(&queue.fd, old);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use super::Found;

    pub(in crate::file) struct Changes;

    #[derive(Debug, Default)]
    pub(in crate::file) struct Watches;

    impl Changes {
        pub(in crate::file) fn start(_: &Path) -> io::Result<(Self, Watches)> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(in crate::file) async fn changed(&self) {
            std::future::pending().await
        }

        pub(in crate::file) async fn arrived(&self) {
            std::future::pending().await
        }
    }

    impl Watches {
        #[cfg(test)]
        pub(in crate::file) fn none() -> Self {
            Self
        }

        pub(in crate::file) fn arrivals<T>(
            &mut self,
            _: usize,
            _: impl Fn(&OsStr) -> io::Result<T>,
        ) -> Found<T> {
            Found::default()
        }

        pub(in crate::file) fn watch_file(&mut self, _: &File) {}

        pub(in crate::file) fn watch_other(&mut self, _: &Path) {}

        pub(in crate::file) fn directory_of(&mut self, _: &Path) {}
    }
}
