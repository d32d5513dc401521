//! The default limit on memory held for peers: half of the available memory.

use std::fs;
use std::path::{Path, PathBuf};

use anemone_ws::Memory;
use bytes::Bytes;

/// The limit if the available memory is unknown.
const UNKNOWN_BYTES_MAX: usize = 512 << 20;

/// Shorter replies are not counted: the [cost](crate::cost) of a connection or request includes that much.
const COUNTED_BYTES_MIN: usize = 4096;

/// Returns the bytes of a reply, counted until they are written.
pub(crate) fn counted(
    memory: &Memory,
    bytes: impl AsRef<[u8]> + Into<Bytes> + Send + 'static,
) -> Bytes {
    let len = bytes.as_ref().len();
    if len < COUNTED_BYTES_MIN {
        return bytes.into();
    }
    Bytes::from_owner(CountedBytes { bytes, _held: memory.reserve(len) })
}

/// The cost of a piece of a body beside its bytes. A client can send pieces of one byte.
const PIECE_BYTES: usize = 128;

/// Returns a piece of a request's body, counted until it is dropped.
pub(crate) fn counted_piece(memory: &Memory, bytes: Bytes) -> Bytes {
    let held = memory.reserve(PIECE_BYTES + bytes.len());
    Bytes::from_owner(CountedBytes { bytes, _held: held })
}

struct CountedBytes<B> {
    bytes: B,
    _held: anemone_ws::Reservation,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for CountedBytes<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Returns half of the memory of the machine, or of the limit of this process's control group if that is less.
pub(crate) fn bytes_max() -> usize {
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_bytes(&text));
    let of_groups = fs::read_to_string("/proc/self/cgroup").ok();
    let of_groups = of_groups.iter().flat_map(|text| limits(text)).filter_map(|path| {
        fs::read_to_string(path).ok()?.trim().parse::<u64>().ok() // an unlimited group says "max"
    });
    let least = of_machine.into_iter().chain(of_groups).min();
    least.map_or(UNKNOWN_BYTES_MAX, |bytes| usize::try_from(bytes / 2).unwrap_or(usize::MAX))
}

/// Parses `/proc/meminfo` (proc_meminfo(5)).
fn total_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// Returns the files with the limits of the control groups in `/proc/self/cgroup` (cgroups(7)): those of each group
/// and of its parents.
fn limits(text: &str) -> Vec<PathBuf> {
    const ROOT: &str = "/sys/fs/cgroup";
    let mut files = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, name) = match controllers {
            "" => (ROOT.into(), "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                (format!("{ROOT}/memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(group.ancestors().map(|group| Path::new(&root).join(group).join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_has() {
        let text = "MemTotal:       16303492 kB\nMemFree:         1094768 kB\n";
        assert_eq!(total_bytes(text), Some(16_303_492 << 10));
        assert_eq!(total_bytes("nonsense"), None);
        assert!(bytes_max() > 1 << 20);
    }

    #[test]
    fn a_group_is_bound_by_all_it_is_in() {
        let of = |text| -> Vec<String> {
            limits(text).into_iter().map(|path| path.to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(
            of("0::/a/b\n"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            of("5:cpu,cpuacct:/x\n4:memory:/y\n"),
            [
                "/sys/fs/cgroup/memory/y/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ]
        );
    }

    #[test]
    fn a_reply_counts_until_it_is_gone() {
        let memory = Memory::new(1 << 20);
        let mut page = counted(&memory, vec![7; 10_000]);
        let small = counted(&memory, vec![7; 100]);
        assert_eq!(memory.held_bytes(), 10_000);
        let piece = page.split_to(9000);
        drop(page);
        assert_eq!((memory.held_bytes(), piece.len(), small.len()), (10_000, 9000, 100));
        drop(piece);
        assert_eq!(memory.held_bytes(), 0);
    }
}
