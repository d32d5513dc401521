//! Directories whose files are served: their paths, and checks of them.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http::HeaderValue;
use rustix::fs::{Access, access};

use super::open::directory;
use super::place::is_unfit;
use crate::request::own_path::{OWN_PATHS, OwnPath};

/// A directory whose files are served below a path.
///
/// ```
/// use anemone_server::{StaticDir, StaticDirError, StaticPath};
///
/// let directory = tempfile::tempdir()?;
/// let docs = StaticDir::new("/docs/".parse()?, directory.path());
/// docs.check()?;
///
/// let missing = StaticDir::new(StaticPath::root(), directory.path().join("missing"));
/// assert!(matches!(missing.check(), Err(StaticDirError::Missing { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StaticDir {
    /// The path at which the files appear.
    pub path: StaticPath,
    /// The directory. It is resolved for each request, so it can be replaced.
    pub dir: PathBuf,
    /// The `Cache-Control` of each file.
    pub cache_control: CacheControl,
}

/// The path of a directory: `/`, or `/NAME/` with any number of further names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StaticPath(String);

/// An error of a path at which no files can appear.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StaticPathError {
    /// The text is not a path, or would have to be escaped in a URL.
    #[error(
        "{path:?} is not a path for files: expected \"/\", or names of letters, digits, - . _ and ~ that do not \
         begin with a dot, such as \"/docs/\""
    )]
    Malformed {
        /// The text, or its beginning.
        path: String,
    },
    /// The path is one of the server's own.
    #[error("no file can be served at {path}: /{first} is the server's own")]
    Own {
        /// The path.
        path: String,
        /// Its first name.
        first: &'static str,
    },
}

impl FromStr for StaticPath {
    type Err = StaticPathError;

    fn from_str(text: &str) -> Result<Self, StaticPathError> {
        let malformed = || StaticPathError::Malformed { path: text.chars().take(80).collect() };
        let names = text.strip_prefix('/').ok_or_else(malformed)?;
        if names.is_empty() {
            return Ok(Self::root());
        }
        let names = names.strip_suffix('/').unwrap_or(names);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_name =
            |name: &str| !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain);
        if !names.split('/').all(is_name) {
            return Err(malformed());
        }
        let path = format!("/{names}/");
        if let Some((own, _)) = OwnPath::at(&path) {
            return Err(StaticPathError::Own { path, first: own.name() });
        }
        Ok(Self(path))
    }
}

impl StaticPath {
    /// Returns `/`, which replaces the [`Mount`](crate::Mount) there.
    #[must_use]
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// Returns the path, which ends with a slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StaticPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value of the field `Cache-Control`. Default: `no-cache`, so that browsers check each time if a file has changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CacheControl(pub(super) HeaderValue);

impl Default for CacheControl {
    fn default() -> Self {
        Self(HeaderValue::from_static("no-cache"))
    }
}

/// An error of a text that is not valid as the value of a field.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} cannot be sent as Cache-Control: expected visible ASCII, such as \"max-age=3600\"")]
pub struct CacheControlError(String);

impl FromStr for CacheControl {
    type Err = CacheControlError;

    fn from_str(text: &str) -> Result<Self, CacheControlError> {
        let is_visible = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let value = HeaderValue::from_str(text).ok().filter(|_| is_visible);
        value.map(Self).ok_or_else(|| CacheControlError(text.chars().take(80).collect()))
    }
}

/// An error of a directory whose files cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StaticDirError {
    /// The directory does not exist.
    #[error("the directory {} does not exist", dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// The path is not a directory.
    #[error("{} is not a directory", dir.display())]
    NotADirectory {
        /// The path.
        dir: PathBuf,
    },
    /// The directory is the root of the file system, or on one that the kernel makes up, such as `/proc`.
    #[error(
        "{} is the root of the file system, or on one that the kernel makes up, such as /proc: serve a directory with \
         nothing in it but files for everybody",
        dir.display()
    )]
    Unfit {
        /// The directory.
        dir: PathBuf,
    },
    /// This process may not read the directory.
    #[error("cannot read the directory {}", dir.display())]
    Unreadable {
        /// The directory.
        dir: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl StaticDir {
    /// Creates a directory whose files are served at this path.
    pub fn new(path: StaticPath, dir: impl Into<PathBuf>) -> Self {
        Self { path, dir: dir.into(), cache_control: CacheControl::default() }
    }

    /// Checks that the directory exists, can be read, and is neither the root of the file system nor on one that the kernel
    /// makes up. If that changes later, its files are not found.
    ///
    /// # Errors
    /// When the check fails.
    pub fn check(&self) -> Result<(), StaticDirError> {
        let dir = self.dir.clone();
        let examine = || {
            access(&dir, Access::READ_OK | Access::EXEC_OK)?;
            Ok(is_unfit(&directory(&dir)?)?)
        };
        let found = fs::metadata(&dir);
        if found.as_ref().is_ok_and(|found| !found.is_dir()) {
            return Err(StaticDirError::NotADirectory { dir });
        }
        match found.and_then(|_| examine()) {
            Ok(false) => Ok(()),
            Ok(true) => Err(StaticDirError::Unfit { dir }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StaticDirError::Missing { dir })
            }
            Err(source) => Err(StaticDirError::Unreadable { dir, source }),
        }
    }

    /// Returns warnings about likely mistakes: files that are never served because the path is the server's own, and
    /// a missing page.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let (path, dir) = (&self.path, self.dir.display());
        let is_there = |name: &str| self.dir.join(name).symlink_metadata().is_ok();
        let own = OWN_PATHS.iter().copied();
        let own = own.filter(|name| path.as_str() == "/" && is_there(name));
        let mut warnings: Vec<_> = own
            .map(|name| format!("{dir}/{name} is never served: /{name} is the server's own"))
            .collect();
        if !is_there("index.html") {
            warnings.push(format!("there is no index.html in {dir}, so {path} is answered 404"));
        }
        warnings
    }

    /// Returns true if a private file or directory would be served with the others.
    #[must_use]
    pub fn holds(&self, private: &Path) -> bool {
        let (Ok(dir), Ok(private)) = (self.dir.canonicalize(), nearest(private)) else {
            return false;
        };
        private.starts_with(dir)
    }
}

/// Returns the path without links of a file that may not exist yet.
fn nearest(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            match (parent, path.file_name()) {
                (Some(parent), Some(name)) => Ok(nearest(parent)?.join(name)),
                (None, Some(name)) => Ok(Path::new(".").canonicalize()?.join(name)),
                _ => Err(error),
            }
        }
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_for_files_has_plain_names_and_a_slash_at_its_end() {
        for (text, expected) in [
            ("/", "/"),
            ("/docs", "/docs/"),
            ("/docs/", "/docs/"),
            ("/a/b-c_d~e.f/", "/a/b-c_d~e.f/"),
            ("/topicsx/", "/topicsx/"),
        ] {
            assert_eq!(text.parse::<StaticPath>().unwrap().as_str(), expected);
        }
        for text in ["", "docs", "docs/", "//", "/a//b/", "/../", "/.git/", "/a b/", "/%20/", "/é/"]
        {
            let said = text.parse::<StaticPath>().unwrap_err().to_string();
            assert_eq!(
                said,
                format!(
                    "{text:?} is not a path for files: expected \"/\", or names of letters, digits, - . _ and ~ \
                     that do not begin with a dot, such as \"/docs/\""
                )
            );
        }
    }

    #[test]
    fn the_servers_own_paths_are_taken() {
        for own in OWN_PATHS {
            let said = format!("/{own}/x/").parse::<StaticPath>().unwrap_err().to_string();
            let words = format!("no file can be served at /{own}/x/: /{own} is the server's own");
            assert_eq!(said, words);
        }
    }

    #[test]
    fn the_root_of_the_file_system_is_no_directory_to_serve() {
        let check = |dir: &Path| StaticDir::new(StaticPath::root(), dir).check();
        assert!(matches!(check(Path::new("/")), Err(StaticDirError::Unfit { .. })));
        assert!(check(tempfile::tempdir().unwrap().path()).is_ok());
    }

    #[test]
    fn a_cache_control_is_visible_ascii() {
        assert!("public, max-age=3600".parse::<CacheControl>().is_ok());
        for text in ["", "a\nb", "é", "a\tb"] {
            assert!(text.parse::<CacheControl>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_private_file_is_found_in_a_directory_through_links_and_before_it_is_there() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("www/below")).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        std::os::unix::fs::symlink(at("www"), at("link")).unwrap();
        let www = StaticDir::new(StaticPath::root(), at("www"));
        for (private, is_in) in [
            ("www", true),
            ("www/below/data", true),
            ("link/not/there/yet", true),
            ("elsewhere/../www/key.pem", true),
            ("elsewhere/key.pem", false),
            ("wwwx", false),
        ] {
            assert_eq!(www.holds(&at(private)), is_in, "{private}");
        }
        let link = StaticDir::new(StaticPath::root(), at("link"));
        assert!(link.holds(&at("www/key.pem")));
    }
}
