//! Files that others may have made: only those that come to an end are read, and only to a bound.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, ensure};

/// Reads a text of at most `bytes_max` bytes from a file. What never comes to an end, as a pipe or a device, is refused.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> anyhow::Result<String> {
    let reading = || format!("reading {}", path.display());
    // Without waiting for somebody who writes into it, if it is a pipe.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.with_context(reading)?;
    let is_file = file.metadata().with_context(reading)?.is_file();
    ensure!(is_file, "{} is no regular file", path.display());
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).with_context(reading)?;
    ensure!(
        bytes.len() as u64 <= bytes_max,
        "{} has more than {bytes_max} bytes, which is the most that is read",
        path.display()
    );
    String::from_utf8(bytes).ok().with_context(|| format!("{} is no text", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_a_bound_are_read() {
        let told = |path: &str, max| format!("{:#}", read_text(path.as_ref(), max).unwrap_err());
        assert_eq!(told("/dev/zero", 10), "/dev/zero is no regular file");
        assert_eq!(told("/dev", 10), "/dev is no regular file");
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(
            told(manifest, 10).ends_with("has more than 10 bytes, which is the most that is read")
        );
        assert!(read_text(manifest.as_ref(), 1 << 20).unwrap().contains("[package]"));
        // A pipe that nobody writes into.
        let pipe = std::env::temp_dir().join(format!("anemone-lab-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let refused = read_text(&pipe, 10);
        std::fs::remove_file(&pipe).unwrap();
        assert!(refused.unwrap_err().to_string().ends_with("is no regular file"));
    }
}
