//! A symbolic link to the pseudo-terminal. It is removed when the emulation ends. If the process is killed, the link
//! remains, and the next emulator replaces it.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::error::OpenError;

#[derive(Debug)]
pub(crate) struct Link {
    path: PathBuf,
    target: PathBuf,
}

impl Link {
    /// Creates the link. Replaces a symbolic link at this path; anything else there is an error.
    pub(crate) fn make(path: PathBuf, target: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Link { path: path.clone(), source };
        match std::fs::symlink_metadata(&path) {
            Ok(there) if !there.is_symlink() => return Err(OpenError::LinkTaken(path)),
            Ok(_) => std::fs::remove_file(&path).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        symlink(target, &path).map_err(failed)?;
        Ok(Self { path, target: target.to_path_buf() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Another emulator may have replaced the link meanwhile.
        if std::fs::read_link(&self.path).is_ok_and(|target| target == self.target) {
            // An error here is ignored: the next emulator replaces the link.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_stale_link_is_replaced_and_the_new_one_is_removed_at_the_end() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("wind");
        symlink("/no/such/terminal", &path).unwrap();
        let link = Link::make(path.clone(), Path::new("/dev/null")).unwrap();
        assert_eq!(std::fs::read_link(&path).unwrap(), Path::new("/dev/null"));
        drop(link);
        assert!(std::fs::symlink_metadata(&path).is_err());
    }

    #[test]
    fn what_is_not_a_link_is_left_alone() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("wind");
        std::fs::write(&path, "precious").unwrap();
        let error = Link::make(path.clone(), Path::new("/dev/null")).unwrap_err();
        assert!(matches!(&error, OpenError::LinkTaken(taken) if *taken == path));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_link_that_another_took_over_is_left_to_it() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("wind");
        let first = Link::make(path.clone(), Path::new("/dev/null")).unwrap();
        let second = Link::make(path.clone(), Path::new("/dev/zero")).unwrap();
        drop(first);
        assert_eq!(std::fs::read_link(&path).unwrap(), Path::new("/dev/zero"));
        drop(second);
    }
}
