//! The table of mounts: which service answers for a path.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::mount::Mount;
use super::mounted::Mounted;
use super::starter::RunStarter;
use crate::request::own_path::OwnPath;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum MountsError {
    /// Two mounts have this path.
    Twice { path: String },
    /// A mount describes what is not at its own path or below it.
    Described { mount: String, path: String },
}

#[derive(Debug)]
pub(crate) struct Mounts {
    /// Those at paths of their own, the longest path first.
    below: Vec<Arc<Mounted>>,
    /// The one at `/`.
    root: Option<Arc<Mounted>>,
}

impl Mounts {
    /// Creates the table of mounts whose runs `starter` starts, unless two have the same path, or one describes the paths
    /// of others.
    pub(crate) fn new(mut mounts: Vec<Mount>, starter: RunStarter) -> Result<Self, MountsError> {
        mounts.iter().try_for_each(check_description)?;
        mounts.sort_by(|a, b| b.path.len().cmp(&a.path.len()).then_with(|| a.path.cmp(&b.path)));
        if let Some(twice) = mounts.windows(2).find(|pair| pair[0].path == pair[1].path) {
            return Err(MountsError::Twice { path: twice[0].path.to_string() });
        }
        let root = mounts.pop_if(|last| &*last.path == "/");
        let starter = Arc::new(starter);
        let mounted = |mount| Arc::new(Mounted { mount, starter: Arc::clone(&starter) });
        Ok(Self { below: mounts.into_iter().map(mounted).collect(), root: root.map(mounted) })
    }

    /// Returns the mount with the longest path that a normalized path is or begins with, except the one at `/`.
    pub(crate) fn at(&self, path: &str) -> Option<&Arc<Mounted>> {
        self.below.iter().find(|mount| is_within(&mount.path, path))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Mounted>> {
        self.below.iter().chain(&self.root)
    }

    pub(crate) fn root(&self) -> Option<&Arc<Mounted>> {
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
    use anemone_hub::run::Runs;
    use axum::Router;

    use super::*;
    use crate::Limits;

    fn mount(path: &str) -> Mount {
        Mount::new(path, Router::new()).unwrap()
    }

    fn mounts(mounts: Vec<Mount>) -> Result<Mounts, MountsError> {
        let limits = Limits::default();
        Mounts::new(mounts, RunStarter::new(&Runs::new(limits.of_runs()), &limits))
    }

    #[test]
    fn the_longest_path_that_fits_answers() {
        let all = mounts(["/", "/a", "/a/b", "/ab"].map(mount).to_vec()).unwrap();
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
            assert_eq!(all.at(path).map(|mount| mount.path()), expected, "{path}");
        }
        assert_eq!(all.root().map(|mount| mount.path()), Some("/"));
    }

    #[test]
    fn no_two_mounts_have_the_same_path() {
        for path in ["/", "/a"] {
            let twice = mounts([path, "/b", path].map(mount).to_vec());
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
            let told = mounts(vec![mount(path).describe(paths)]).map(|_| ());
            let (mount, foreign) = (path.to_owned(), described.to_owned());
            let refused = Err(MountsError::Described { mount, path: foreign });
            assert_eq!(told, if is_own { Ok(()) } else { refused }, "{path} {described}");
        }
    }
}
