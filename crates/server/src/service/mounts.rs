//! The table of mounts: which service answers for a path.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::mount::Mount;
use super::starter::RunStarter;
use crate::request::own_path::OwnPath;

/// An error of the mounts of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum MountsError {
    /// Two mounts have this path.
    Twice { path: String },
    /// A mount describes what is not at its own path or below it.
    Described { mount: String, path: String },
}

/// All mounts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mounts {
    /// Those at paths of their own, the longest path first.
    below: Vec<Arc<Mount>>,
    /// The one at `/`.
    root: Option<Arc<Mount>>,
}

impl Mounts {
    /// Creates the table, unless two mounts have the same path, or one describes the paths of others.
    pub(crate) fn new(mut mounts: Vec<Mount>) -> Result<Self, MountsError> {
        mounts.iter().try_for_each(check_description)?;
        mounts.sort_by(|a, b| b.path.len().cmp(&a.path.len()).then_with(|| a.path.cmp(&b.path)));
        if let Some(twice) = mounts.windows(2).find(|pair| pair[0].path == pair[1].path) {
            return Err(MountsError::Twice { path: twice[0].path.to_string() });
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
        self.below.iter().find(|mount| is_within(&mount.path, path))
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

/// Returns true for a path itself, and for one below it.
fn is_within(mount: &str, path: &str) -> bool {
    let below = path.strip_prefix(mount);
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// Checks that a mount describes only what it can answer: paths that are its own or below it, and not the server's.
fn check_description(mount: &Mount) -> Result<(), MountsError> {
    let mut described =
        mount.description().and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let above = mount.path.trim_end_matches('/');
    let foreign = |path: &&String| !is_within(above, path) || OwnPath::at(path).is_some();
    match described.find(|path| path.is_empty() || foreign(path)) {
        Some(path) => {
            Err(MountsError::Described { mount: mount.path.to_string(), path: path.clone() })
        }
        None => Ok(()),
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
            assert_eq!(twice.unwrap_err(), MountsError::Twice { path: path.to_owned() });
        }
    }

    #[test]
    fn a_mount_describes_only_its_own_paths() {
        for (path, described, is_own) in [
            ("/a", "/a", true),
            ("/a", "/a/{id}", true),
            ("/", "/", true),
            ("/", "/a/{id}", true),
            ("/a", "/ab", false),
            ("/a", "/", false),
            ("/a", "a", false),
            ("/a", "", false),
            ("/", "", false),
            ("/", "a", false),
            ("/", "/topics/{name}", false),
            ("/", "/runs", false),
        ] {
            let paths = serde_json::json!({ described: {} });
            let mounts = Mounts::new(vec![mount(path).describe(paths)]).map(|_| ());
            let (mount, foreign) = (path.to_owned(), described.to_owned());
            let refused = Err(MountsError::Described { mount, path: foreign });
            assert_eq!(mounts, if is_own { Ok(()) } else { refused }, "{path} {described}");
        }
    }
}
