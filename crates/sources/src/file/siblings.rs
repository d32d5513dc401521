//! Finds the older, rotated files of the followed file by their names, and orders them by the times of their last
//! writes. Names alone do not give the order: the highest number may be the oldest file (`log.1` is the newest) or the
//! newest (`log.1` is the oldest).

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::place::Id;

/// The most files that are considered, in the order of the directory. If there are as many, a possible gap is reported.
pub(super) const COUNT_MAX: usize = 10_000;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sibling {
    pub(super) path: PathBuf,
    pub(super) id: Id,
    pub(super) len: u64,
    /// The time of the last write, in nanoseconds since the Unix epoch.
    pub(super) modified: i64,
    /// The time of the last change of the file or its name, in nanoseconds since the Unix epoch.
    changed: i64,
    mark: Mark,
}

/// The part that a rotation adds to a name.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Mark {
    /// `log.1`, `app.1.log`.
    Number(u64),
    /// `log-20261122`, `log.2026-11-22_17`, `app-2026-11-22.log`. The order of the texts is the order of time.
    Date(String),
}

/// Returns the older files of this path, in no order. Compressed files are left out, since they cannot be searched.
pub(super) fn siblings(path: &Path) -> io::Result<Vec<Sibling>> {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return Ok(Vec::new()) };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut found = Vec::new();
    for entry in fs::read_dir(directory.unwrap_or(Path::new(".")))? {
        let entry = entry?;
        let Some(mark) = entry.file_name().to_str().and_then(|other| mark(other, name)) else {
            continue;
        };
        // The file has disappeared meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() && found.len() < COUNT_MAX {
            found.push(Sibling {
                path: entry.path(),
                id: (metadata.dev(), metadata.ino()),
                len: metadata.len(),
                modified: modified(&metadata),
                changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
                mark,
            });
        }
    }
    Ok(found)
}

/// Returns the time of the last write, in nanoseconds since the Unix epoch.
pub(super) fn modified(metadata: &fs::Metadata) -> i64 {
    nanoseconds(metadata.mtime(), metadata.mtime_nsec())
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// The result of [`next_after`].
#[derive(Debug)]
pub(super) struct Next<'a> {
    /// The oldest of the newer files.
    pub(super) file: Option<&'a Sibling>,
    /// A file that may be newer. It counts as older, since nothing shows their order.
    pub(super) doubtful: Option<&'a Sibling>,
}

/// Returns the file that was written after the file with this id. `modified` is the time of the last write to the
/// latter.
pub(super) fn next_after(siblings: &[Sibling], id: Id, modified: i64) -> Next<'_> {
    let own = siblings.iter().find(|sibling| sibling.id == id);
    let numbers = numbers(siblings);
    let others = || siblings.iter().filter(|sibling| sibling.id != id && sibling.len > 0);
    let order = |sibling: &Sibling| {
        sibling.modified.cmp(&modified).then(own.map_or(Ordering::Equal, |own| {
            by_mark(sibling, own, numbers.unwrap_or(Ordering::Less))
        }))
    };
    let is_doubtful = |sibling: &&Sibling| {
        let is_told = |own: &Sibling| match (&sibling.mark, &own.mark) {
            (Mark::Number(_), Mark::Number(_)) => numbers.is_some(),
            _ => by_mark(sibling, own, Ordering::Less).is_ne(),
        };
        sibling.modified == modified && order(sibling).is_le() && !own.is_some_and(is_told)
    };
    let newer = others().filter(|sibling| order(sibling).is_gt());
    let file = newer.min_by(|a, b| {
        let by_mark = by_mark(a, b, numbers.unwrap_or(Ordering::Less));
        a.modified.cmp(&b.modified).then(by_mark)
    });
    Next { file, doubtful: others().find(is_doubtful) }
}

/// Compares two files with the same time of the last write. The newer file is the greater one.
fn by_mark(a: &Sibling, b: &Sibling, numbers: Ordering) -> Ordering {
    match (&a.mark, &b.mark) {
        (Mark::Number(a), Mark::Number(b)) if numbers.is_gt() => a.cmp(b),
        (Mark::Number(a), Mark::Number(b)) => b.cmp(a),
        (Mark::Date(a), Mark::Date(b)) => a.cmp(b),
        _ => a.changed.cmp(&b.changed),
    }
}

/// Returns `Greater` if the numbers in most pairs of neighbours rise with time, and `Less` if they fall; `None` if that
/// is unknown.
fn numbers(siblings: &[Sibling]) -> Option<Ordering> {
    let number = |sibling: &Sibling| match sibling.mark {
        Mark::Number(number) => Some((number, sibling.modified, sibling.changed)),
        Mark::Date(_) => None,
    };
    let mut numbered: Vec<_> = siblings.iter().filter_map(number).collect();
    numbered.sort_unstable();
    let pairs =
        || numbered.windows(2).map(|pair| (pair[1].1, pair[1].2).cmp(&(pair[0].1, pair[0].2)));
    let rising = pairs().filter(|order| order.is_gt()).count();
    let falling = pairs().filter(|order| order.is_lt()).count();
    Some(rising.cmp(&falling)).filter(|order| order.is_ne())
}

/// Returns the mark that a rotation put into the name `other`; `None` if `other` is not `name` with a mark.
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
        return Some(Mark::Number(text.parse().ok()?));
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
        Sibling { path: name.into(), id: (1, inode), len: 1, modified, changed: 0, mark }
    }

    /// Returns the names of the next file and of a doubtful file.
    fn next(siblings: &[Sibling], inode: u64, modified: i64) -> (String, String) {
        let Next { file, doubtful } = next_after(siblings, (1, inode), modified);
        let name = |file: Option<&Sibling>| {
            file.map_or_else(String::new, |file| file.path.display().to_string())
        };
        (name(file), name(doubtful))
    }

    fn names(next: &str, doubtful: &str) -> (String, String) {
        (next.to_owned(), doubtful.to_owned())
    }

    #[test]
    fn what_was_written_next_is_found_by_time() {
        let falling = [sibling("log.1", 4, 30), sibling("log.3", 2, 10), sibling("log.2", 3, 20)];
        assert_eq!(next(&falling, 2, 10), names("log.2", ""));
        assert_eq!(next(&falling, 3, 20), names("log.1", ""));
        assert_eq!(next(&falling, 4, 30), names("", ""));
        let rising = [sibling("log.1", 4, 10), sibling("log.3", 2, 30), sibling("log.2", 3, 20)];
        assert_eq!(next(&rising, 4, 10), names("log.2", ""));
        assert_eq!(next(&rising, 3, 20), names("log.3", ""));
        assert_eq!(next(&rising, 2, 30), names("", ""));
        // Numbers that begin again.
        let ring = [sibling("log.1", 4, 30), sibling("log.2", 3, 10), sibling("log.3", 2, 20)];
        assert_eq!(next(&ring, 2, 20), names("log.1", ""));
        let dated = [sibling("log-20261122", 4, 30), sibling("log-20261121", 2, 10)];
        assert_eq!(next(&dated, 2, 10), names("log-20261122", ""));
        assert_eq!(next(&dated, 4, 30), names("", ""));
        // Files that were removed from the middle.
        assert_eq!(next(&falling, 9, 9), names("log.3", ""));
        assert_eq!(next(&falling, 9, 11), names("log.2", ""));
        assert_eq!(next(&falling, 9, 10), names("log.2", "log.3"));
    }

    #[test]
    fn of_the_same_time_the_next_is_found_by_name_as_the_others_are_named() {
        let falling = [sibling("log.1", 4, 30), sibling("log.3", 2, 10), sibling("log.2", 3, 10)];
        assert_eq!(next(&falling, 2, 10), names("log.2", ""));
        assert_eq!(next(&falling, 3, 10), names("log.1", ""));
        let rising = [sibling("log.1", 4, 10), sibling("log.2", 2, 30), sibling("log.3", 3, 30)];
        assert_eq!(next(&rising, 4, 10), names("log.2", ""));
        assert_eq!(next(&rising, 2, 30), names("log.3", ""));
        assert_eq!(next(&rising, 3, 30), names("", ""));
        let dated = [sibling("log-20261122", 4, 10), sibling("log-20261121", 2, 10)];
        assert_eq!(next(&dated, 2, 10), names("log-20261122", ""));
        assert_eq!(next(&dated, 4, 10), names("", ""));
        // Renamed or copied one after the other.
        let mut changed = [sibling("log.1", 4, 10), sibling("log.2", 3, 10)];
        changed[1].changed = 1;
        assert_eq!(next(&changed, 4, 10), names("log.2", ""));
        assert_eq!(next(&changed, 3, 10), names("", ""));
    }

    #[test]
    fn what_nothing_tells_is_doubtful() {
        let same = [sibling("log.1", 4, 10), sibling("log.2", 3, 10)];
        assert_eq!(next(&same, 3, 10), names("log.1", ""));
        assert_eq!(next(&same, 4, 10), names("", "log.2"));
        let kinds = [sibling("log.1", 4, 10), sibling("log-20261122", 3, 10)];
        assert_eq!(next(&kinds, 4, 10), names("", "log-20261122"));
    }
}
