//! The options of a data directory.

use std::time::Duration;

/// The time at which an event is flushed, so that it survives a crash of the machine. Acknowledged events survive the
/// end of the process with every choice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fsync {
    /// Flushes each event before it is acknowledged. Events that arrive together share a flush.
    Always,
    /// Flushes at this interval.
    Interval(Duration),
    /// Leaves the time to the system. Closing the data directory flushes, too.
    Never,
}

impl Default for Fsync {
    /// Flushes each second.
    fn default() -> Self {
        Self::Interval(Duration::from_secs(1))
    }
}

/// The options of a data directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataOptions {
    /// The bytes that all topics without a limit in bytes keep together, and share fairly; on disk about an eighth
    /// more. Default 1 GiB. See [`Retention::bytes_max`](crate::Retention::bytes_max).
    pub bytes_max: u64,
    /// The time at which events are flushed. Default: each second.
    pub fsync: Fsync,
    /// The largest segment in bytes; a larger batch has its own segment. Opening a directory holds one segment in
    /// memory at a time. Default 16 MiB.
    pub segment_bytes_max: u64,
    /// The bytes of each topic's newest events that are also held in memory. Default 1 MiB.
    pub memory_bytes_max: u64,
    /// The bytes that may wait to be written, for all topics together; the same again may be in the current write.
    /// Beyond that, publishers wait or are refused. Default 8 MiB.
    pub queue_bytes_max: u64,
    /// Treats a copied or restored directory as the original, so that its topics keep their epochs. Set it for one
    /// start after a deliberate move of the whole directory. Default false.
    pub adopt: bool,
}

impl Default for DataOptions {
    fn default() -> Self {
        Self {
            bytes_max: 1 << 30,
            fsync: Fsync::default(),
            segment_bytes_max: 16 << 20,
            memory_bytes_max: 1 << 20,
            queue_bytes_max: 8 << 20,
            adopt: false,
        }
    }
}
