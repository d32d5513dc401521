//! A file that is followed as it grows, as `tail -F` does, and as far as it was read before.
//!
//! [`lines`] says what a line is and what becomes of it; an event's time is the wall
//! clock right after the read that brought the end of its line. A last line without LF is not
//! finished: it waits for its LF.
//!
//! - **The place** up to which lines are published is kept with them, as the note of their batch
//!   ([`Topic::note`](anemone_hub::Topic::note)): both or none. A topic that is kept on the disk so has each line once,
//!   across restarts, kills and what was rotated meanwhile. The place has the file's device and inode, the offset, and a
//!   digest of the file's beginning and of what stands before the offset.
//! - **Rotation by renaming**: the old file is read on, under whatever name it has now, until another
//!   file with something in it stands under the path; then once more to its end, and only then the
//!   new one from its beginning. So nothing is lost of a writer that goes on with the old file until
//!   it has opened the new one. A last line without LF in the old file is finished then. When there were several
//!   rotations, the files between are found by their names (`log.1`, `log-20261122`, `app.1.log`) and read in the order
//!   in which they were last written to; of those of the same time the names decide.
//! - **Rotation by copying and truncating**: at each look a little of what stands before the place is read again; a
//!   file that is shorter, or has something else there, is not what it was. What was not read of it yet is read from
//!   its copy, which is found by what it has before the place, and then the file from its beginning.
//! - **Not there (any more)**: looked for at every turn, for ever; when it appears, it is read from
//!   its beginning. Until then the old one stays open, and with it its space on the disk stays taken.
//!
//! **What may be missing** is told, and counted as `gaps` in the status: what was written between copying and
//! truncating; the rest of a file that was truncated and has no copy, or was rotated away and deleted or compressed
//! while this was not running, or before it was read; a file of the same time as the one that was read before it, if
//! nothing tells which is the newer; and files beyond the 10,000 names that are looked at. What cannot be noticed: that a
//! file was rewritten which has the same 512 bytes at its beginning and before the place; that a writer goes on with an
//! old file after another has taken its place and has something in it; that a file with the name of a rotated one never
//! was this one, or was touched since it was read: it is read as if it were new.
//!
//! Changes are told by the system where it does (inotify); besides, it is looked at in an interval: network file
//! systems do not tell of what other machines write.
//!
//! Its state ([`status`](crate::status)): `opening` until its first line, `live` from then on, `lost`
//! when there is no such file or it cannot be read.

mod follow;
mod place;
mod run;
mod siblings;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

pub use run::run;

use crate::lines;

/// The place to begin in a file that is there already, and of which no place is known.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Origin {
    /// At its end: only lines that end from now on. One that was begun is given whole.
    #[default]
    End,
    /// At its beginning. For a topic in memory that publishes all of it again at every start.
    Start,
}

/// The file to follow, and how. [`Options::new`] has the defaults named here.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file. It need not be there yet. A regular file, or a symbolic link to one, which is
    /// looked up again at every turn.
    pub path: PathBuf,
    /// The place to begin. Default [`Origin::End`].
    pub from: Origin,
    /// The interval at which to look at a file of which the system does not tell changes. Default 1 s; at least 1 ms.
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
            interval: Duration::from_secs(1),
            line_bytes_max: lines::BYTES_MAX_DEFAULT,
            report_interval: Duration::from_secs(10),
        }
    }
}
