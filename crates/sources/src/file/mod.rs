//! A file that is followed as it grows, like `tail -F`. Reading continues at the place where the last run ended.
//!
//! [`lines`] defines a line and its event; an event's time is the wall clock right after the read that completed its
//! line. A last line without LF is unfinished and waits for its LF.
//!
//! - **The place** up to which lines are published is stored together with them, as the note of their batch
//!   ([`Topic::note`](anemone_hub::Topic::note)). A topic on disk therefore has each line once, even after restarts,
//!   kills and rotations. The place consists of the file's device and inode, the offset, and a digest of the file's
//!   beginning and of the bytes before the offset.
//! - **Rotation by renaming**: the old file is read on, under any name, until another file with content is under the
//!   path. Then the old file is read to its end, and after that the new one from its beginning. So no line is lost if a
//!   writer keeps using the old file until it opens the new one. At the end of the old file, a last line without LF is
//!   published, too. After several rotations, the files between are found by their names (`log.1`, `log-20261122`,
//!   `app.1.log`) and read in the order of their last writes, or of their names if the times are equal.
//! - **Rotation by copying and truncating**: each check reads some bytes before the place again. A file that is
//!   shorter, or has other bytes there, was truncated. The source finds its copy by the bytes before the place, reads
//!   the rest from the copy, and then reads the file from its beginning.
//! - **Missing file**: the source looks for it at every turn, without end, and reads it from its beginning when it
//!   appears. Until then, the old file stays open and occupies its space on the disk.
//!
//! - **Files that are there for a moment**: Linux reports each file that comes under the path. The source opens it at
//!   once and reads it, even if it is renamed within its directory, replaced or deleted meanwhile. The files are read
//!   in the order in which they came. A file that is deleted or moved to another directory before it is opened, usually
//!   within 100 µs, is reported as missing. On other systems, a file that comes and goes between two checks is missed.
//!
//! **Lines that may be missing** are reported, and counted as `gaps` in the status:
//!
//! - lines written between copying and truncating;
//! - the rest of a file that was truncated and has no copy;
//! - the rest of a file that was rotated away, and deleted or compressed before it was read;
//! - a file with the same time as the one read before it, if their order is unknown;
//! - files beyond the limit of 10,000 names.
//!
//! Some cases cannot be noticed:
//!
//! - A file is rewritten with the same 512 bytes at its beginning and before the place.
//! - A writer continues with an old file after another file with content has taken its place.
//! - A file has the name of a rotated file, but never was this file. It is read as new.
//! - A rotated file was touched after it was read. It is read again as new.
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

/// The place to begin in a file that exists at the start and has no stored place.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Origin {
    /// The end of the file. Only lines that end from now on are published. An unfinished last line is published whole.
    #[default]
    End,
    /// The beginning of the file. A topic in memory then gets the whole file again at every start.
    Start,
}

/// A file and the options for following it. [`FileOptions::new`] sets the defaults given here.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The path of a regular file, or of a symbolic link to one. A link is resolved at every turn. The file need not
    /// exist yet.
    pub path: PathBuf,
    /// The place to begin if none is stored. Default [`Origin::End`].
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
