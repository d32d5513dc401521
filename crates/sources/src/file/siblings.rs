//! The files beside the one that is followed which were it before a rotation, by their names.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::place::Id;

/// Most of them that are looked at, whichever are listed first. That something may be missing is told when there are
/// as many.
pub(super) const COUNT_MAX: usize = 10_000;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sibling {
    pub(super) path: PathBuf,
    pub(super) id: Id,
    pub(super) len: u64,
    /// In nanoseconds since the Unix epoch.
    pub(super) modified: i64,
    mark: Mark,
}

/// What a rotation puts into a name.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Mark {
    /// `log.1`, `app.1.log`: the higher, the older.
    Number(Reverse<u64>),
    /// `log-20261122`, `log.2026-11-22_17`, `app-2026-11-22.log`: sorts as time does.
    Date(String),
}

/// Those of this file, in no order. Compressed ones are none: nothing can be found in them.
pub(super) fn siblings(path: &Path) -> io::Result<Vec<Sibling>> {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return Ok(Vec::new()) };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut found = Vec::new();
    for entry in fs::read_dir(directory.unwrap_or(Path::new(".")))? {
        let entry = entry?;
        let Some(mark) = entry.file_name().to_str().and_then(|other| mark(other, name)) else {
            continue;
        };
        // One that went meanwhile is none.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() && found.len() < COUNT_MAX {
            let (id, len) = ((metadata.dev(), metadata.ino()), metadata.len());
            found.push(Sibling {
                path: entry.path(),
                id,
                len,
                modified: modified(&metadata),
                mark,
            });
        }
    }
    Ok(found)
}

/// When it was last written to, in nanoseconds since the Unix epoch.
pub(super) fn modified(metadata: &fs::Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// The oldest that is newer than a file which was last written to at `modified` and may be one of them: what was
/// written after it.
pub(super) fn next_after(siblings: &[Sibling], id: Id, modified: i64) -> Option<&Sibling> {
    let own = siblings.iter().find(|sibling| sibling.id == id).map(|own| &own.mark);
    let is_newer = |sibling: &&Sibling| {
        let by_name = match (own, &sibling.mark) {
            (Some(own @ Mark::Number(_)), other @ Mark::Number(_))
            | (Some(own @ Mark::Date(_)), other @ Mark::Date(_)) => Some(other > own),
            _ => None,
        };
        sibling.id != id
            && sibling.len > 0
            && by_name.map_or(sibling.modified > modified, |is_newer| {
                is_newer && sibling.modified >= modified
            })
    };
    siblings.iter().filter(is_newer).min_by_key(|sibling| (sibling.modified, &sibling.mark))
}

/// What rotation has put into this name, if it is `name` otherwise.
fn mark(other: &str, name: &str) -> Option<Mark> {
    let behind = other.strip_prefix(name);
    let before_extension = || {
        let (stem, extension) = name.rsplit_once('.')?;
        other.strip_prefix(stem)?.strip_suffix(extension)?.strip_suffix('.')
    };
    let text = behind.or_else(before_extension)?;
    let (separator, text) = text.split_at_checked(1)?;
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if separator == "." && digits == text.len() && (1..=6).contains(&digits) {
        return Some(Mark::Number(Reverse(text.parse().ok()?)));
    }
    let is_date = digits >= 8
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"-_.:TZ".contains(&byte));
    (is_date && ".-_".contains(separator)).then(|| Mark::Date(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_older_files_are_told_from_others() {
        for (other, name) in [
            ("log.1", "log"),
            ("log.12", "log"),
            ("app.1.log", "app.log"),
            ("log-20261122", "log"),
            ("log.2026-11-22_17", "log"),
            ("app-2026-11-22T10:00:00Z.log", "app.log"),
        ] {
            assert!(mark(other, name).is_some(), "{other}");
        }
        for other in [
            "log",
            "log.",
            "log.1.gz",
            "log-2",
            "log.old",
            "log2",
            "other.1",
            "log.1234567",
            "lo.1",
        ] {
            assert_eq!(mark(other, "log"), None, "{other}");
        }
    }

    fn sibling(name: &str, inode: u64, modified: i64) -> Sibling {
        let mark = mark(name, "log").unwrap();
        Sibling { path: name.into(), id: (1, inode), len: 1, modified, mark }
    }

    #[test]
    fn what_was_written_next_is_found_by_name_and_time() {
        let next = |siblings: &[Sibling], inode, modified| {
            next_after(siblings, (1, inode), modified).map(|next| next.path.display().to_string())
        };
        let numbered = [sibling("log.1", 4, 30), sibling("log.3", 2, 10), sibling("log.2", 3, 10)];
        assert_eq!(next(&numbered, 2, 10).as_deref(), Some("log.2"));
        assert_eq!(next(&numbered, 3, 10).as_deref(), Some("log.1"));
        assert_eq!(next(&numbered, 4, 30), None);
        // Gone from among them: by time alone.
        assert_eq!(next(&numbered, 9, 9).as_deref(), Some("log.3"));
        assert_eq!(next(&numbered, 9, 10).as_deref(), Some("log.1"));
        let dated = [sibling("log-20261122", 4, 30), sibling("log-20261121", 2, 10)];
        assert_eq!(next(&dated, 2, 10).as_deref(), Some("log-20261122"));
        assert_eq!(next(&dated, 4, 30), None);
        // Another of the same program, which is written to all the time, was never this file.
        let other = [sibling("log.1", 4, 30), sibling("log.2", 3, 99)];
        assert_eq!(next(&other, 4, 30), None);
    }
}
