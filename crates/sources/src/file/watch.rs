//! Being told of changes, where the system does (inotify). What it does not tell of - writes by other machines to a
//! network file system, say - is seen at the next look.
//!
//! `rustix` has the three calls and is here anyway; the `notify` crate would bring six more for threads and systems
//! that need none of this.

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

    /// Tells that something may have changed.
    pub(in crate::file) struct Changes(AsyncFd<Arc<OwnedFd>>);

    /// Watches of changes: of the open file, of another one under the path, and of the names in the
    /// path's directory.
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
        /// Within a runtime.
        pub(in crate::file) fn start() -> io::Result<(Self, Watches)> {
            let queue = Arc::new(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
            let watches = Watches { queue: Some(Arc::clone(&queue)), ..Watches::default() };
            Ok((Self(crate::serial::watch(queue)?), watches))
        }

        /// Waits until there was a change since it was last asked. Cancel safe.
        pub(in crate::file) async fn changed(&self) {
            let Ok(mut ready) = self.0.readable().await else {
                return std::future::pending().await;
            };
            // What it was is not asked: the next look sees more.
            let mut events = [0; 4096];
            while rustix::io::read(self.0.get_ref(), &mut events).is_ok_and(|len| len > 0) {}
            ready.clear_ready();
        }
    }

    impl Watches {
        /// None: nothing is told.
        #[cfg(test)]
        pub(in crate::file) fn none() -> Self {
            Self::default()
        }

        /// The file that is read.
        pub(in crate::file) fn open(&mut self, file: &File) {
            // Under no name it might have lost meanwhile.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            self.set(Watched::Open, Path::new(&path), WatchFlags::MODIFY);
        }

        /// Another one that stands under the path, and has nothing in it yet.
        pub(in crate::file) fn other(&mut self, path: &Path) {
            self.set(Watched::Other, path, WatchFlags::MODIFY);
        }

        pub(in crate::file) fn directory_of(&mut self, path: &Path) {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let names = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
            let directory = directory.unwrap_or(Path::new("."));
            self.set(Watched::Directory, directory, names);
        }

        /// Puts a watch in the place of another. That there can be none (too many, no such directory) is no
        /// fault: changes are seen later then.
        fn set(&mut self, watched: Watched, path: &Path, flags: WatchFlags) {
            let Some(queue) = &self.queue else { return };
            // One watch is for both names of the same file, and its kinds of changes add up.
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
