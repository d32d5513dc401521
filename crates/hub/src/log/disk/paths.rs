//! The names of the files in a topic's directory.

use std::path::{Path, PathBuf};

/// The name of the file with the facts about a topic besides its events.
pub(super) const META_FILE: &str = "topic.json";

pub(super) fn segment_path(directory: &Path, base: u64) -> PathBuf {
    directory.join(format!("{base:020}.log"))
}

/// Returns the offset in a segment's name, if this is one.
pub(super) fn segment_base(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log").filter(|digits| digits.len() == 20)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Returns the path to which a segment without valid events is set aside. Its name contains the missing offsets, from
/// `base` to `last`.
pub(super) fn damaged_path(directory: &Path, base: u64, last: u64) -> PathBuf {
    directory.join(format!("{base:020}-{last:020}.damaged"))
}

pub(super) fn damaged_range(name: &str) -> Option<(u64, u64)> {
    let (stem, _) = name.split_once(".damaged")?;
    let (base, last) = stem.split_once('-')?;
    let number = |digits: &str| {
        let is_number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok())?
    };
    number(base).zip(number(last)).filter(|(base, last)| (1..=*last).contains(base))
}

/// Returns the path to which another damaged segment is set aside. Its name does not contain the missing offsets.
pub(super) fn aside_path(directory: &Path, base: u64) -> PathBuf {
    directory.join(format!("{base:020}.damaged"))
}

/// Returns the first free name of this path, path`.2`, path`.3` and so on.
pub(super) fn free_path(path: &Path) -> PathBuf {
    let numbered = |number| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let (mut free, mut number) = (path.to_owned(), 2_u64);
    while free.symlink_metadata().is_ok() {
        free = numbered(number);
        number += 1;
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_segments_sort_as_their_offsets() {
        let path = segment_path(Path::new("d"), 42);
        assert_eq!(path, Path::new("d/00000000000000000042.log"));
        assert_eq!(segment_base("00000000000000000042.log"), Some(42));
        assert_eq!(segment_base("18446744073709551616.log"), None);
        let damaged = damaged_path(Path::new("d"), 42, 99);
        let name = damaged.file_name().unwrap().to_str().unwrap();
        assert_eq!(damaged_range(name), Some((42, 99)));
        assert_eq!(damaged_range(&format!("{name}.2")), Some((42, 99)));
        assert_eq!(damaged_range("00000000000000000042.damaged"), None);
        assert_eq!(segment_base(name), None);
        for name in ["42.log", "0000000000000000004x.log", "00000000000000000042.new", "topic.json"]
        {
            assert_eq!(segment_base(name), None, "{name}");
        }
    }
}
