//! The places from which no file is served: the root of the file system, file systems that the kernel makes up, what
//! is mounted below a directory, and hidden names.

use std::ffi::OsStr;
use std::fs::read_link;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Component;

use rustix::fs::{AtFlags, Stat, fstat, statat};
use rustix::io::Errno;

/// Returns true for a name that is not served: one that begins with a dot, except `.well-known` (RFC 8615) at the top of a
/// directory. `depth` is the number of names before it.
pub(super) fn is_hidden(depth: usize, name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") && (depth > 0 || name != ".well-known")
}

/// Returns true if an open directory cannot be served at all: it is the root of the file system, or on one that the kernel
/// makes up, such as `/proc`. Files there tell about processes and the machine, and were never meant for others.
pub(super) fn is_unfit(dir: &OwnedFd) -> Result<bool, Errno> {
    let identity = |found: Stat| (found.st_dev, found.st_ino);
    // Only the root is its own parent.
    let is_root = identity(fstat(dir)?) == identity(statat(dir, "..", AtFlags::empty())?);
    Ok(is_root || is_made_up(dir)?)
}

/// Returns true for a file system that the kernel makes up (statfs(2)): proc, sysfs, cgroup, cgroup2, debugfs, tracefs,
/// securityfs, configfs, bpf, pstore, efivarfs, selinuxfs, mqueue and devpts.
#[cfg(target_os = "linux")]
fn is_made_up(dir: &OwnedFd) -> Result<bool, Errno> {
    const MADE_UP: [u64; 14] = [
        0x9FA0,
        0x6265_6572,
        0x0027_E0EB,
        0x6367_7270,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0x6265_6570,
        0xCAFE_4A11,
        0x6165_676C,
        0xDE5E_81E4,
        0xF97C_FF8C,
        0x1980_0202,
        0x1CD1,
    ];
    let kind = u64::try_from(rustix::fs::fstatfs(dir)?.f_type);
    Ok(kind.is_ok_and(|kind| MADE_UP.contains(&kind)))
}

#[cfg(not(target_os = "linux"))]
fn is_made_up(_: &OwnedFd) -> Result<bool, Errno> {
    Ok(false)
}

/// Returns true if two open directories are on the same file system.
pub(super) fn is_on_same(one: &OwnedFd, other: &OwnedFd) -> Result<bool, Errno> {
    Ok(fstat(one)?.st_dev == fstat(other)?.st_dev)
}

/// Returns true if what was opened below a directory, by way of links, has a hidden name there. `None` if the system does
/// not tell its name.
pub(super) fn has_hidden_name(dir: &OwnedFd, found: &OwnedFd) -> Option<bool> {
    // These paths have no links in them.
    let path = |opened: &OwnedFd| read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).ok();
    let (dir, found) = (path(dir)?, path(found)?);
    let below = found.strip_prefix(dir).ok()?;
    Some(below.components().enumerate().any(|(depth, part)| match part {
        Component::Normal(name) => is_hidden(depth, name),
        _ => true,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    fn is_unfit(path: impl AsRef<Path>) -> bool {
        super::is_unfit(&File::open(path).unwrap().into()).unwrap()
    }

    #[test]
    fn the_root_is_unfit_whatever_it_is_called() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/", &link).unwrap();
        for root in [Path::new("/"), Path::new("//."), Path::new("/tmp/.."), &link] {
            assert!(is_unfit(root), "{}", root.display());
        }
        assert!(!is_unfit(directory.path()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_kernel_makes_up_is_unfit() {
        for made_up in ["/proc", "/proc/self", "/proc/self/task", "/sys"] {
            assert!(is_unfit(made_up), "{made_up}");
        }
    }
}
