//! A file that is followed as it grows, like `tail -F`, from the place of the last run.
//!
//! [`lines`] defines a line and its event; an event's time is the wall clock right after the read that completed its
//! line. A last line without LF is unfinished and waits for its LF.
//!
//! - **The place** up to which lines are published is stored with them, as the note of their batch
//!   ([`Topic::note`](anemone_hub::Topic::note)): both or neither. A topic on disk therefore has each line once,
//!   across restarts, kills and rotations meanwhile. The place consists of the file's device and inode, the offset,
//!   and a digest of the file's beginning and of the bytes before the offset.
//! - **Rotation by renaming**: the old file is read on, under any name, until another file with content is under the
//!   path. Then the old file is read to its end, and only then the new one from its beginning. So no line is lost if
//!   a writer keeps using the old file until it opens the new one. A last line without LF in the old file is then
//!   finished. After several rotations, the files between are found by their names (`log.1`, `log-20261122`,
//!   `app.1.log`) and read in the order of their last writes, or of their names if the times are equal.
//! - **Rotation by copying and truncating**: each look reads some bytes before the place again. A file that is
//!   shorter, or has other bytes there, has changed. The unread rest is read from its copy, which is found by the
//!   bytes before the place; then the file is read from its beginning.
//! - **Missing file**: looked for at every turn, without end, and read from its beginning when it appears. Until then
//!   the old file stays open, and occupies its space on the disk.
//!
//! - **Files that are there for a moment**: the system tells each file that comes under the path, and it is opened at once
//!   and read, wherever it goes meanwhile: renamed to any name in its directory, replaced or deleted. So every such file
//!   is either read, in the order in which they came, or reported as missing: if it was deleted or moved to another
//!   directory before it could be opened, within some 100 µs as a rule. Only Linux tells; elsewhere a file is missed if
//!   it comes and goes between two checks.
//!
//! **Lines that may be missing** are reported, and counted as `gaps` in the status: lines written between copying and
//! truncating; the rest of a file that was truncated and has no copy, or was rotated away and deleted or compressed
//! before it was read; a file with the same time as the one read before it, if their order is unknown; and files
//! beyond the limit of 10,000 names. Some cases cannot be noticed: a rewritten file with the same 512 bytes at its
//! beginning and before the place; a writer that continues with an old file after another with content has taken its
//! place; a file with the name of a rotated one that never was this file, or was touched since it was read, and is
//! read as new.
//!
//! The system reports changes if it can (inotify). The file is also checked at an interval, since network file
//! systems do not report writes by other machines.
//!
//! Its state ([`status`](crate::status)) is `opening` until its first line, then `live`, and `lost` when the file is
//! missing or cannot be read.

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux tells what comes"))]
mod arrivals;
mod follow;
mod open_file;
mod place;
mod run;
mod siblings;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

pub use run::run;

use crate::lines;

/// The place to begin in a file that exists already and has no stored place.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Origin {
    /// The end: only lines that end from now on. A line that has begun is published whole.
    #[default]
    End,
    /// The beginning. A topic in memory then gets the whole file again at every start.
    Start,
}

/// A file and the options for following it. [`FileOptions::new`] sets the defaults given here.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The path of a regular file, or of a symbolic link to one, which is resolved at every turn. The file need not
    /// exist yet.
    pub path: PathBuf,
    /// The place to begin. Default [`Origin::End`].
    pub from: Origin,
    /// The interval at which to check for changes that the system does not report. Default 1 s; at least 1 ms.
    pub interval: Duration,
    /// The longest line. Default 64 KiB, see [`lines`].
    pub line_bytes_max: usize,
    /// The time between two reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
}

impl FileOptions {
    /// Creates the default options for this file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            from: Origin::default(),
            interval: Duration::from_secs(1),
            line_bytes_max: lines::BYTES_MAX_DEFAULT,
            report_interval: Duration::from_secs(10),
        }
    }
}
