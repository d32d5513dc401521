//! Opens files below a directory, and nowhere else.
//!
//! The kernel resolves the whole path beneath the directory (openat2(2)), so no link leads out of it, not even one
//! created at that moment, and nothing that is mounted below it is reached. Without that system call, no link is followed
//! at all. Only plain files are opened: opening a pipe would wait, and a device may do anything. `place` judges the
//! directory, and the names to which links lead.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};
use std::time::{Duration, SystemTime};

use ::aws_lc_rs::digest;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;

use super::place::{has_hidden_name, is_on_same, is_unfit};

/// A reason for not serving an existing file.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum FileRefusal {
    #[error(
        "a symbolic link on its path leads out of the directory or is absolute, or something is mounted on its path"
    )]
    LeadsOut,
    #[error("a symbolic link on its path leads to a name that begins with a dot")]
    Hidden,
    #[error("its directory is the root of the file system, or on one that the kernel makes up")]
    Unfit,
    #[error("the server's user may not read it")]
    NotReadable,
    #[error("it is neither a file nor a directory")]
    Special,
    #[error("it changed while it was sent")]
    Changed,
}

impl From<FileRefusal> for io::Error {
    fn from(refusal: FileRefusal) -> Self {
        let kind = match refusal {
            FileRefusal::LeadsOut
            | FileRefusal::Hidden
            | FileRefusal::Unfit
            | FileRefusal::NotReadable
            | FileRefusal::Special => io::ErrorKind::PermissionDenied,
            FileRefusal::Changed => io::ErrorKind::Other,
        };
        Self::new(kind, refusal)
    }
}

impl FileRefusal {
    /// Returns the refusal inside an error, if there is one.
    pub(super) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// The version of a file. Files with the same version have the same bytes: the system records the time of the last
/// change of any kind, even if the modification time was set back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Version {
    inode: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// The number of its names.
    links: u64,
    is_directory: bool,
}

impl Version {
    fn of(found: &Metadata) -> Result<Self, FileRefusal> {
        if !found.is_file() && !found.is_dir() {
            return Err(FileRefusal::Special);
        }
        Ok(Self {
            inode: (found.dev(), found.ino()),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
            links: found.nlink(),
            is_directory: found.is_dir(),
        })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Returns true if an open file still has the same bytes. A file that is replaced loses its name, which is a
    /// change too.
    pub(super) fn is_kept_by(&self, now: &Self) -> bool {
        let Self { changed, links, .. } = *now;
        let has_lost_a_name = links != self.links;
        (has_lost_a_name || changed == self.changed)
            && *self == Self { changed: self.changed, links: self.links, ..*now }
    }

    /// Returns the time of modification in seconds, and below that a digest of everything that distinguishes
    /// versions. `Last-Modified` contains only the seconds, and an entity tag all of it. Files with the same
    /// modification time, as from a reproducible build, therefore have different tags.
    pub(super) fn stamp(&self) -> SystemTime {
        let Self { inode, bytes, modified, changed, links, is_directory } = *self;
        let mut context = digest::Context::new(&digest::SHA256);
        for number in [inode.0, inode.1, bytes, links, u64::from(is_directory)] {
            context.update(&number.to_le_bytes());
        }
        for number in [modified.0, modified.1, changed.0, changed.1] {
            context.update(&number.to_le_bytes());
        }
        // Uses only data from the system, so a file keeps its tag when the server is restarted or rebuilt.
        let first = context.finish().as_ref().first_chunk().copied().unwrap_or_default();
        let nanos = Duration::from_nanos(u64::from_le_bytes(first) % 1_000_000_000);
        let seconds = u64::try_from(self.modified.0).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + nanos
    }
}

pub(super) fn examine(dir: &Path, path: &Path) -> io::Result<Version> {
    let found = File::from(below(dir, path, LOOK)?);
    Ok(Version::of(&found.metadata()?)?)
}

pub(super) fn file(dir: &Path, path: &Path) -> io::Result<(File, Version)> {
    // Opening can have effects, so only a plain file is opened, and the call never waits.
    if examine(dir, path)?.is_directory {
        return Err(Errno::ISDIR.into());
    }
    let file = File::from(below(dir, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
    let version = version(&file)?;
    if version.is_directory { Err(Errno::ISDIR.into()) } else { Ok((file, version)) }
}

pub(super) fn version(file: &File) -> io::Result<Version> {
    Ok(Version::of(&file.metadata()?)?)
}

/// Flags to examine something without opening it.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

fn below(dir: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let dir = directory(dir)?;
    if is_unfit(&dir).map_err(refused)? {
        return Err(FileRefusal::Unfit.into());
    }
    match beneath(&dir, path, flags, Links::Refused) {
        Err(Errno::LOOP) => by_links(&dir, path, flags),
        // The system call is missing or forbidden, or the path was changed meanwhile.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {
            without_links(dir, path, flags).map_err(refused)
        }
        opened => opened.map_err(refused),
    }
}

/// Opens a directory, to examine it.
pub(super) fn directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, LOOK | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a path that has links in it, if they lead to names that may be served.
fn by_links(dir: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let found = beneath(dir, path, flags, Links::Followed).map_err(refused)?;
    match has_hidden_name(dir, &found) {
        Some(false) => Ok(found),
        Some(true) => Err(FileRefusal::Hidden.into()),
        None => Err(FileRefusal::LeadsOut.into()),
    }
}

fn refused(error: Errno) -> io::Error {
    match error {
        Errno::XDEV | Errno::LOOP => FileRefusal::LeadsOut.into(),
        Errno::ACCESS | Errno::PERM => FileRefusal::NotReadable.into(),
        error => error.into(),
    }
}

/// The treatment of links on a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Links {
    Followed,
    Refused,
}

#[cfg(target_os = "linux")]
fn beneath(dir: &OwnedFd, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let resolve = match links {
        Links::Followed => resolve,
        Links::Refused => resolve | ResolveFlags::NO_SYMLINKS,
    };
    openat2(dir, path, flags, Mode::empty(), resolve)
}

#[cfg(not(target_os = "linux"))]
fn beneath(_: &OwnedFd, _: &Path, _: OFlags, _: Links) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Opens one name after the other, follows no link, and stays on one file system.
fn without_links(dir: OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut names: Vec<&OsStr> = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => names.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::XDEV);
            }
        }
    }
    let Some((last, above)) = names.split_last() else {
        return openat(&dir, ".", flags, Mode::empty());
    };
    let mut dir = dir;
    for name in above {
        let next = LOOK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = openat(&dir, *name, next, Mode::empty())?;
        if !is_on_same(&dir, &next)? {
            return Err(Errno::XDEV);
        }
        dir = next;
    }
    let found = openat(&dir, *last, flags | OFlags::NOFOLLOW, Mode::empty())?;
    // A descriptor for examining may be the link itself.
    let is_link = rustix::fs::fstat(&found)?.st_mode & 0o170_000 == 0o120_000;
    if is_link { Err(Errno::LOOP) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("www/below")).unwrap();
        for path in ["secret", "www/a", "www/below/b"] {
            fs::write(at(path), path).unwrap();
        }
        symlink("below/b", at("www/inside")).unwrap();
        symlink("below", at("www/folder")).unwrap();
        symlink("../secret", at("www/out")).unwrap();
        symlink(at("secret"), at("www/absolute")).unwrap();
        symlink("..", at("www/up")).unwrap();
        symlink("round", at("www/round")).unwrap();
        fs::create_dir_all(at("www/.hidden/below")).unwrap();
        fs::create_dir_all(at("www/.well-known")).unwrap();
        for path in ["www/.hidden/b", "www/.hidden/below/b", "www/below/.b", "www/.well-known/b"] {
            fs::write(at(path), path).unwrap();
        }
        symlink(".hidden/b", at("www/visible")).unwrap();
        symlink(".hidden/below", at("www/opened")).unwrap();
        symlink("below/.b", at("www/plain")).unwrap();
        symlink("visible", at("www/twice")).unwrap();
        symlink(".well-known/b", at("www/known")).unwrap();
        root
    }

    fn read(root: &tempfile::TempDir, path: &str) -> Result<String, io::Error> {
        let (mut file, version) = file(&root.path().join("www"), Path::new(path))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        assert_eq!(version.bytes(), text.len() as u64);
        Ok(text)
    }

    #[test]
    fn links_within_the_directory_are_followed_and_none_leads_out() {
        let root = tree();
        for (path, expected) in [
            ("a", "www/a"),
            ("./below/b", "www/below/b"),
            ("inside", "www/below/b"),
            ("folder/b", "www/below/b"),
            ("known", "www/.well-known/b"),
        ] {
            assert_eq!(read(&root, path).unwrap(), expected, "{path}");
        }
        for path in ["out", "absolute", "up/secret", "../secret", "round", "/etc/passwd"] {
            let error = read(&root, path).unwrap_err();
            assert_eq!(FileRefusal::of(&error), Some(FileRefusal::LeadsOut), "{path}: {error}");
        }
        let error = read(&root, "below").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn no_link_leads_to_a_hidden_name() {
        let root = tree();
        for path in ["visible", "opened/b", "plain", "twice"] {
            let error = read(&root, path).unwrap_err();
            assert_eq!(FileRefusal::of(&error), Some(FileRefusal::Hidden), "{path}: {error}");
        }
        let error = examine(&root.path().join("www"), Path::new("opened")).unwrap_err();
        assert_eq!(FileRefusal::of(&error), Some(FileRefusal::Hidden));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn nothing_is_opened_in_the_root_or_in_what_the_kernel_makes_up() {
        for (dir, path) in [
            ("/", "etc/passwd"),
            ("/", "proc/self/environ"),
            ("/proc", "self/environ"),
            ("/sys", "."),
        ] {
            let error = examine(Path::new(dir), Path::new(path)).unwrap_err();
            assert_eq!(FileRefusal::of(&error), Some(FileRefusal::Unfit), "{dir} {path}: {error}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_mounted_below_the_directory_is_not_reached() {
        // A Linux has a file system of its own at /dev/pts, or nothing.
        let (dir, mounted) = (Path::new("/dev"), Path::new("pts/ptmx"));
        let is_mounted = |found: Metadata| found.dev() != fs::metadata(dir).unwrap().dev();
        if fs::metadata(dir.join("pts")).is_ok_and(is_mounted) {
            for path in [mounted, Path::new("pts")] {
                let error = examine(dir, path).unwrap_err();
                assert_eq!(FileRefusal::of(&error), Some(FileRefusal::LeadsOut), "{error}");
            }
            let found = without_links(directory(dir).unwrap(), mounted, LOOK | OFlags::CLOEXEC);
            assert_eq!(found.unwrap_err(), Errno::XDEV);
        }
    }

    #[test]
    fn without_the_kernels_help_no_link_is_followed() {
        let root = tree();
        let open = |path: &str, flags| {
            let dir =
                open(root.path().join("www"), LOOK | OFlags::DIRECTORY, Mode::empty()).unwrap();
            without_links(dir, Path::new(path), flags).map(File::from)
        };
        for flags in [OFlags::RDONLY, LOOK] {
            for path in ["a", "./below/b", "below", "."] {
                assert!(open(path, flags).is_ok(), "{path}");
            }
            for path in ["inside", "out", "absolute", "round"] {
                assert_eq!(open(path, flags).unwrap_err(), Errno::LOOP, "{path}");
            }
            for path in ["../secret", "/etc/passwd", "below/../../secret"] {
                assert_eq!(open(path, flags).unwrap_err(), Errno::XDEV, "{path}");
            }
            for path in ["folder/b", "up/secret"] {
                assert_eq!(open(path, flags).unwrap_err(), Errno::NOTDIR, "{path}");
            }
        }
    }

    #[test]
    fn a_version_is_told_from_another_whatever_time_it_was_given() {
        let root = tree();
        let www = root.path().join("www");
        let version = || examine(&www, Path::new("a")).unwrap();
        let first = version();
        assert_eq!(version(), first);
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let mut seen = vec![first];
        for text in ["1", "2"] {
            // Another file in its place, of the same length and time.
            let other = www.join("other");
            fs::write(&other, text).unwrap();
            File::options().write(true).open(&other).unwrap().set_modified(long_ago).unwrap();
            fs::rename(&other, www.join("a")).unwrap();
            let now = version();
            assert!(!seen.contains(&now));
            assert!(!seen.iter().any(|seen| seen.stamp() == now.stamp()));
            seen.push(now);
        }
        let seconds = |version: &Version| {
            version.stamp().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
        };
        assert_eq!(seen[1..].iter().map(seconds).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn a_version_has_one_stamp_whatever_built_the_server() {
        let version = Version {
            inode: (1, 2),
            bytes: 3,
            modified: (4, 5),
            changed: (6, 7),
            links: 8,
            is_directory: false,
        };
        let stamp = version.stamp().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(stamp, Duration::new(4, 896_420_497));
    }
}
