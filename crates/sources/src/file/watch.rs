//! Notices of changes from the system (inotify). Changes that it does not report, such as writes by other machines to
//! a network file system, are found at the next check.
//!
//! `rustix` has the three system calls and is a dependency anyway; the crate `notify` would add six more
//! dependencies, for threads and systems that are not needed here.

pub(super) use system::{Changes, Watches};

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::path::Path;
    use std::sync::Arc;

    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init, remove_watch};
    use tokio::io::unix::AsyncFd;

    /// Reports that something may have changed.
    pub(in crate::file) struct Changes(AsyncFd<Arc<OwnedFd>>);

    /// The watches: of the open file, of another one under the path, and of the names in the path's directory.
    #[derive(Debug, Default)]
    pub(in crate::file) struct Watches {
        queue: Option<Arc<OwnedFd>>,
        /// In the order of [`Watched`].
        watches: [Option<i32>; 3],
    }

    #[derive(Clone, Copy)]
    enum Watched {
        Open,
        Other,
        Directory,
    }

    impl Changes {
        /// Must be called within a runtime.
        pub(in crate::file) fn start() -> io::Result<(Self, Watches)> {
            let queue = Arc::new(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
            let watches = Watches { queue: Some(Arc::clone(&queue)), ..Watches::default() };
            Ok((Self(crate::serial::watch(queue)?), watches))
        }

        /// Waits for a change since the last call. Cancel safe.
        pub(in crate::file) async fn changed(&self) {
            let Ok(mut ready) = self.0.readable().await else {
                return std::future::pending().await;
            };
            // The kind of change does not matter: the next turn finds out.
            let mut events = [0; 4096];
            while rustix::io::read(self.0.get_ref(), &mut events).is_ok_and(|len| len > 0) {}
            ready.clear_ready();
        }
    }

    impl Watches {
        /// Creates watches that report nothing.
        #[cfg(test)]
        pub(in crate::file) fn none() -> Self {
            Self::default()
        }

        /// Watches the file that is read.
        pub(in crate::file) fn open(&mut self, file: &File) {
            // Its name may have changed meanwhile.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            self.set(Watched::Open, Path::new(&path), WatchFlags::MODIFY);
        }

        /// Watches another file under the path, which is still empty.
        pub(in crate::file) fn other(&mut self, path: &Path) {
            self.set(Watched::Other, path, WatchFlags::MODIFY);
        }

        pub(in crate::file) fn directory_of(&mut self, path: &Path) {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let names = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
            let directory = directory.unwrap_or(Path::new("."));
            self.set(Watched::Directory, directory, names);
        }

        /// Replaces a watch. A failure (too many watches, no such directory) is no error: the change is then found
        /// later.
        fn set(&mut self, watched: Watched, path: &Path, flags: WatchFlags) {
            let Some(queue) = &self.queue else { return };
            // Both names of a file share one watch, and its kinds of changes add up.
            let new = add_watch(queue, path, flags | WatchFlags::MASK_ADD).ok();
            let old = std::mem::replace(&mut self.watches[watched as usize], new);
            if let Some(old) = old.filter(|old| !self.watches.contains(&Some(*old))) {
                let _ = remove_watch(queue, old);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(in crate::file) struct Changes;

    #[derive(Debug, Default)]
    pub(in crate::file) struct Watches;

    impl Changes {
        pub(in crate::file) fn start() -> io::Result<(Self, Watches)> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(in crate::file) async fn changed(&self) {
            std::future::pending().await
        }
    }

    impl Watches {
        #[cfg(test)]
        pub(in crate::file) fn none() -> Self {
            Self
        }

        pub(in crate::file) fn open(&mut self, _: &File) {}

        pub(in crate::file) fn other(&mut self, _: &Path) {}

        pub(in crate::file) fn directory_of(&mut self, _: &Path) {}
    }
}
