//! The table of mounts: which service answers for a path.

use std::sync::Arc;

use super::mount::Mount;
use super::starter::RunStarter;

/// Two mounts have this path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct MountedTwice(pub(crate) String);

/// All mounts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mounts {
    /// Those at paths of their own, the longest path first.
    below: Vec<Arc<Mount>>,
    /// The one at `/`.
    root: Option<Arc<Mount>>,
}

impl Mounts {
    /// Creates the table, unless two mounts have the same path.
    pub(crate) fn new(mut mounts: Vec<Mount>) -> Result<Self, MountedTwice> {
        mounts.sort_by(|a, b| b.path.len().cmp(&a.path.len()).then_with(|| a.path.cmp(&b.path)));
        if let Some(twice) = mounts.windows(2).find(|pair| pair[0].path == pair[1].path) {
            return Err(MountedTwice(twice[0].path.to_string()));
        }
        let root = mounts.pop_if(|last| &*last.path == "/");
        Ok(Self { below: mounts.into_iter().map(Arc::new).collect(), root: root.map(Arc::new) })
    }

    /// Lets the mounts start runs.
    pub(crate) fn starting(self, starter: &Arc<RunStarter>) -> Self {
        let starting = |mount: Arc<Mount>| Arc::new(Arc::unwrap_or_clone(mount).starting(starter));
        Self {
            below: self.below.into_iter().map(starting).collect(),
            root: self.root.map(starting),
        }
    }

    /// Returns the mount with the longest path that a normalized path is or begins with, except the one at `/`.
    pub(crate) fn at(&self, path: &str) -> Option<&Arc<Mount>> {
        let has = |mount: &&Arc<Mount>| {
            let below = path.strip_prefix(&*mount.path);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        self.below.iter().find(has)
    }

    /// Returns all mounts.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Mount>> {
        self.below.iter().chain(&self.root)
    }

    /// Returns the mount at `/`.
    pub(crate) fn root(&self) -> Option<&Arc<Mount>> {
        self.root.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use std::task::{Context, Poll};

    use http::{Request, Response};

    use super::*;
    use crate::reply::body::{Body, full};

    #[derive(Clone)]
    struct Nothing;

    impl tower_service::Service<Request<Body>> for Nothing {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = Ready<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            ready(Ok(Response::new(full(""))))
        }
    }

    fn mount(path: &str) -> Mount {
        Mount::new(path, Nothing).unwrap()
    }

    #[test]
    fn the_longest_path_that_fits_answers() {
        let mounts = Mounts::new(["/", "/a", "/a/b", "/ab"].map(mount).to_vec()).unwrap();
        for (path, expected) in [
            ("/a", Some("/a")),
            ("/a/", Some("/a")),
            ("/a/c/b", Some("/a")),
            ("/a/b", Some("/a/b")),
            ("/a/b/c", Some("/a/b")),
            ("/a/bc", Some("/a")),
            ("/ab", Some("/ab")),
            ("/abc", None),
            ("/", None),
        ] {
            assert_eq!(mounts.at(path).map(|mount| mount.path()), expected, "{path}");
        }
        assert_eq!(mounts.root().map(|mount| mount.path()), Some("/"));
    }

    #[test]
    fn no_two_mounts_have_the_same_path() {
        for path in ["/", "/a"] {
            let twice = Mounts::new([path, "/b", path].map(mount).to_vec());
            assert_eq!(twice.unwrap_err(), MountedTwice(path.to_owned()));
        }
    }
}
