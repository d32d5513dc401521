//! A file that is followed as it grows, as `tail -F` does.
//!
//! What a line is and what becomes of it says [`lines`]; an event's time is the wall
//! clock right after the read that brought the end of its line. A last line without LF is not
//! finished: it waits for its LF.
//!
//! - **Rotation by renaming**: the old file is read on, under whatever name it has now, until another
//!   file with something in it stands under the path; then once more to its end, and only then the
//!   new one from its beginning. So nothing is lost of a writer that goes on with the old file until
//!   it has opened the new one. A last line without LF in the old file is finished then.
//! - **Rotation by copying and truncating**: a file shorter than what was read of it is read again
//!   from its beginning. What was written between the last read and the truncation is lost, as it is
//!   for anybody who reads the file; and one that has grown again beyond the place where reading
//!   stopped, within one interval, is not known from one that only grew.
//! - **Not there (any more)**: looked for at every turn, for ever; when it appears, it is read from
//!   its beginning. Until then the old one stays open, and with it its space on the disk stays taken.
//!
//! It is looked at in an interval, not watched by inotify: three system calls four times a second
//! cost nothing that could be measured, work the same on every system and file system (inotify sees
//! no writes that other machines make on NFS, or that are made below an overlay), and need no second
//! way for a directory that is not there yet or a queue that has overflowed.
//!
//! Its state ([`status`](crate::status)): `opening` until its first line, `live` from then on, `lost`
//! when there is no such file or it cannot be read.

mod follow;
mod run;

use std::path::PathBuf;
use std::time::Duration;

pub use run::run;

use crate::lines;

/// Where to begin in a file that is there already.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Origin {
    /// At its end: only lines that end from now on. One that was begun is given whole.
    #[default]
    End,
    /// At its beginning. At every start of the source that publishes all of it again.
    Start,
}

/// What to follow and how. [`Options::new`] has the defaults named here.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file. It need not be there yet. A regular file, or a symbolic link to one, which is
    /// looked up again at every turn.
    pub path: PathBuf,
    /// Where to begin. Default [`Origin::End`].
    pub from: Origin,
    /// How often to look when there was nothing more to read. Default 250 ms; at least 1 ms.
    pub interval: Duration,
    /// Longest line. Default 64 KiB, see [`lines`].
    pub line_bytes_max: usize,
    /// Time between two reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
}

impl Options {
    /// The defaults, for this file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            from: Origin::default(),
            interval: Duration::from_millis(250),
            line_bytes_max: lines::BYTES_MAX_DEFAULT,
            report_interval: Duration::from_secs(10),
        }
    }
}
