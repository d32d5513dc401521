//! Reads and writes files safely. A file of somebody else is read only up to a limit. A file of this program is written
//! completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, ensure};

/// Reads a text of at most `bytes_max` bytes from a file. Pipes and devices are refused, since they may never end.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> anyhow::Result<String> {
    let reading = || format!("reading {}", path.display());
    // Without waiting for somebody who writes into it, if it is a pipe.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.with_context(reading)?;
    let is_file = file.metadata().with_context(reading)?.is_file();
    ensure!(is_file, "{} is not a regular file", path.display());
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).with_context(reading)?;
    ensure!(
        bytes.len() as u64 <= bytes_max,
        "{} has more than {bytes_max} bytes, which is the most that is read",
        path.display()
    );
    String::from_utf8(bytes).ok().with_context(|| format!("{} is not text", path.display()))
}

/// Writes a file completely. Writes it under another name in the same directory, and then renames it. If that fails,
/// the old file stays, and no other one is left. Writes directly into pipes and devices.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link leads to the file still afterwards.
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if place.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return fs::write(path, bytes);
    }
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let part = place.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        // Some disks say only now that they are full.
        file.sync_all()?;
        fs::rename(&part, &place)
    });
    if written.is_err() {
        // Also a file that is cut takes room.
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let directory = std::env::temp_dir().join(format!("lab-whole-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("taken")).unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.join(name));
        std::os::unix::fs::symlink("file", &link).unwrap();
        fs::write(&file, "earlier").unwrap();
        write_whole(&link, b"later").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"later");
        assert!(link.is_symlink());
        assert!(write_whole(&directory.join("taken"), b"later").is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 3, "nothing is left of the try");
        fs::remove_dir_all(&directory).unwrap();
        // It cannot be replaced, nor can anything be made beside it by all.
        let error = write_whole("/dev/full".as_ref(), b"later").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn only_regular_files_within_a_bound_are_read() {
        let told = |path: &str, max| format!("{:#}", read_text(path.as_ref(), max).unwrap_err());
        assert_eq!(told("/dev/zero", 10), "/dev/zero is not a regular file");
        assert_eq!(told("/dev", 10), "/dev is not a regular file");
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
        assert!(refused.unwrap_err().to_string().ends_with("is not a regular file"));
    }
}
