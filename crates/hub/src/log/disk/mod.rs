//! Logs on disk: a directory with one sub-directory for each topic, and one thread that writes to it.
//!
//! ```text
//! DIR/lock                                    held while it is open
//! DIR/state.json                              how it was opened and closed
//! DIR/witness.7                               made when it was opened for the seventh time, and never touched again
//! DIR/marks.7                                 how far each topic has come
//! DIR/topics/wind/topic.json                  the topic's epoch and options
//! DIR/topics/wind/00000000000000000001.log    a segment, named by its first offset
//! DIR/topics/wind/….damaged                   a segment that was set aside
//! DIR/topics/wind/keys                        keys whose segments are gone
//! DIR/deleted/                                what is being removed
//! ```
//!
//! **What is kept.** A batch is acknowledged once it is written ([`Fsync`] says whether it is flushed by
//! then), so `kill -9` at any moment loses no acknowledged event. After a crash of the machine with
//! `interval` or `never`, events that readers have seen may be gone; then the topic begins a new epoch, so
//! that every reader is told and none gets another event under a position it has. Where the system does
//! not say which start of the machine this is (Linux does), every end but a close counts as a crash.
//!
//! **What goes.** Readers see what retention keeps, to the event; files go as whole segments. A segment is an eighth
//! of what the topic keeps (at most [`DataOptions::segment_bytes_max`], at least 4 KiB, 64 events and 1 second), so on
//! disk there is at most what retention says, one segment and one batch. Keys that are still in their window outlive
//! their segment.
//!
//! **What is damaged** is told to readers as a gap; what is around it is read. Opening a directory
//! reads all of it once and checks every record. A segment without one good record is renamed
//! `FIRST-LAST.damaged`, with the offsets that are missing; one with some is renamed `FIRST.damaged` when retention is
//! past it; a number follows where the name is taken. Nothing but deleting its topic removes such a file: it is the
//! operator's, to look at, to bring back from a backup of (stop the server, put the right bytes at `FIRST.log`, padded
//! with zeros to 20 digits, remove the `.damaged` file, start), or to remove when `/health` no
//! longer counts its events. It takes nothing of what a topic may keep.
//!
//! **What a copy is.** A directory that was restored from a backup is in the past of its readers. `state.json` says which
//! file `witness.N` was, by its device, inode and the times of its making and its last change; it is made anew at each
//! start and never touched again. A copy of it is another file, or a changed one, and then all topics begin new epochs.
//! Renaming the directory, reading it and backing it up change nothing; `chmod`, `chown`, hard links and `touch` of that
//! file do: they change nothing else than a copy does that is written over the original and set back to its times, so
//! nothing tells them from it; and what might is put back with it. [`DataOptions::adopt`] is for a move on purpose. What cannot be told from the original: a whole file system
//! that is put back, as a snapshot or an image of its disk. Delete `state.json` then before the next start, and all
//! topics begin new epochs.
//!
//! **What is cut short.** The newest offset of each topic is kept apart from its segments, too, in `marks.N`; a topic
//! that has less than that begins a new epoch.
//!
//! Modules, each of which uses only those before it:
//!
//! - `options`, `lock` (the order of all locks), `paths` and `name` (of files and directories), `platform` (all that the
//!   machine is asked for), `queue`;
//! - the format: `record`, `scan`, `segments` (what is where), `carried` (keys whose segments are gone), `marks`, `state`;
//! - the sides of one topic: `intake` is the publishers', `kept` and `reading` the readers', `active` the file that is
//!   written, `groundwork` what comes before the first write;
//! - `shared`, what all topics need of the directory; `log`, the three sides together and what the writer does;
//!   `recovery`, which reads one at a start;
//! - `desk`, where publishers and the writer meet; `topic` on the one side of it, `writer` on the other;
//! - `data_dir` on top of all, and `failing` on it, for tests.

mod active;
mod carried;
mod data_dir;
mod desk;
#[cfg(feature = "testing")]
mod failing;
mod groundwork;
mod intake;
mod kept;
mod lock;
mod log;
mod marks;
mod name;
mod options;
mod paths;
mod platform;
mod queue;
mod reading;
mod record;
mod recovery;
mod scan;
mod segments;
mod shared;
mod state;
mod topic;
mod writer;

#[cfg(test)]
pub(super) mod tests;

pub use self::data_dir::DataDir;
#[cfg(feature = "testing")]
pub use self::failing::{DiskFault, FailingDisk};
pub use self::options::{DataOptions, Fsync};
