//! The options of a data directory.

use std::time::Duration;

/// The time at which an event is flushed, so that it survives a crash of the machine. Every event that is acknowledged
/// survives the end of the process, whatever is chosen here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fsync {
    /// Before it is acknowledged. Events that come together share a flush.
    Always,
    /// This often.
    Interval(Duration),
    /// Whenever the system does it, and when the data directory is closed.
    Never,
}

impl Default for Fsync {
    /// Each second.
    fn default() -> Self {
        Self::Interval(Duration::from_secs(1))
    }
}

/// The options of a data directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataOptions {
    /// The time at which events are flushed.
    pub fsync: Fsync,
    /// The largest segment, in bytes; a batch that alone is larger has one for itself. Opening a
    /// directory holds one segment in memory at a time. Default 16 MiB.
    pub segment_bytes_max: u64,
    /// The bytes of each topic's newest events that are held in memory. Default 1 MiB.
    pub memory_bytes_max: u64,
    /// The bytes that may wait to be written, for all topics together; as much again may be in the
    /// write that is under way. Publishers beyond that wait or are refused. Default 8 MiB.
    pub queue_bytes_max: u64,
    /// Takes a directory that was copied or restored for the one it is a copy of: its topics go on in their epochs.
    /// For one start, after a move on purpose, with all that was there. Default no.
    pub adopt: bool,
}

impl Default for DataOptions {
    fn default() -> Self {
        Self {
            fsync: Fsync::default(),
            segment_bytes_max: 16 << 20,
            memory_bytes_max: 1 << 20,
            queue_bytes_max: 8 << 20,
            adopt: false,
        }
    }
}
