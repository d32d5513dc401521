//! Logs on disk: a directory with one subdirectory for each topic, and one thread that writes.
//!
//! ```text
//! DIR/lock                                    held while it is open
//! DIR/state.json                              how it was opened and closed
//! DIR/witness.7                               created when it was opened for the seventh time, and never changed
//! DIR/marks.7                                 the newest acknowledged offset of each topic
//! DIR/topics/wind/topic.json                  the topic's epoch and options
//! DIR/topics/wind/00000000000000000001.log    a segment, named by its first offset
//! DIR/topics/wind/….damaged                   a segment that was set aside
//! DIR/topics/wind/keys                        keys whose segments are gone
//! DIR/deleted/                                directories that are being removed
//! ```
//!
//! **Durability.** A batch is acknowledged once it is written, and flushed if [`Fsync`] says so. `kill -9` at any
//! moment therefore loses no acknowledged event. After a crash of the machine with `interval` or `never`, events that
//! readers have seen may be lost. The topic then begins a new epoch, so every reader learns of it and none gets
//! another event under a position that it has. Systems other than Linux do not identify the current start of the
//! machine; there, every end except closing counts as a crash.
//!
//! **Retention.** Readers see exactly the events within the retention; files are removed as whole segments. A segment
//! is an eighth of the retention (at most [`DataOptions::segment_bytes_max`], at least 4 KiB, 64 events and 1
//! second), so the disk holds at most the retention, one segment and one batch. Keys that are still in their window
//! outlive their segment. Topics without a limit in bytes share [`DataOptions::bytes_max`]; a segment is an eighth of
//! what such a topic may hold. Once a write has made one topic's share smaller, the writer removes files of that topic.
//!
//! **Damage** is reported to readers as a gap; the events around it can be read. Opening a directory reads all of it
//! once and checks every record. A segment without valid records is renamed to `FIRST-LAST.damaged`, with the missing
//! offsets. A segment with some is renamed to `FIRST.damaged` when retention has passed it. A number follows if the
//! name is taken. Only deleting the topic removes such a file. The operator can examine it, replace it from a backup
//! (stop the server, put the right bytes at `FIRST.log`, padded with zeros to 20 digits, remove the `.damaged` file,
//! start), or remove it when `/health` no longer counts its events. It does not count in the topic's retention.
//!
//! **Copies.** The readers of a directory restored from a backup may be ahead of it. `state.json` identifies the file
//! `witness.N` by its device, inode, and the times of its creation and last change. The file is created anew at each
//! start and never changed. In a copy it is another file, or a changed one, and then all topics begin new epochs.
//! Renaming, reading or backing up the directory changes nothing. `chmod`, `chown`, hard links and `touch` of that
//! file do: their effect is the same as that of a copy written over the original with its times restored.
//! [`DataOptions::adopt`] is for a deliberate move. One kind of copy cannot be detected: a restored file system, such
//! as a snapshot or a disk image. In that case, delete `state.json` before the next start, and all topics begin new
//! epochs.
//!
//! **Lost ends.** The newest offset of each topic is also stored apart from its segments, in `marks.N`; a topic that
//! has fewer events begins a new epoch.
//!
//! Modules; each uses only those before it:
//!
//! - `options`, `lock` (the order of all locks), `paths` and `name` (of files and directories), `platform` (the
//!   interface to the machine), `queue`;
//! - the format: `record`, `scan`, `segments` (the places of events), `carried` (keys whose segments are gone),
//!   `marks`, `state`;
//! - the sides of one topic: `intake` for publishers, `kept` and `reading` for readers, `active` for the file that is
//!   written, `groundwork` for the changes before the first write;
//! - `shared`, the state of the directory for all topics; `log`, which joins the sides and has the writer's work;
//!   `recovery`, which reads a log at a start;
//! - `desk`, where publishers and the writer meet; `topic` for publishers, `writer` for the writer;
//! - `data_dir` on top of all, and `failing` for tests.

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
