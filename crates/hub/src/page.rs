//! Pages: the result of one read of a topic, and the gap that it tells of.

use std::sync::Arc;

use serde::Serialize;

use crate::{Event, Position};

/// The bounds on what one [`Topic::read`](crate::Topic::read) may return.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PageLimit {
    /// Most events in a page. Default 1,000.
    pub events_max: usize,
    /// Most bytes of data in a page, unless its first event alone is larger. Default 1 MiB.
    pub bytes_max: u64,
}

impl Default for PageLimit {
    fn default() -> Self {
        Self { events_max: 1_000, bytes_max: 1 << 20 }
    }
}

/// The result of a read: the events after a position, and the position to read on from.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Offset of the oldest event the log keeps, or of the next to come when it keeps none.
    pub first: u64,
    /// The gap before `events`, if there is one.
    pub gap: Option<Gap>,
    /// In the log's order, without a hole.
    pub events: Vec<Arc<Event>>,
    /// The position to read on from.
    pub next: Position,
}

/// Events a reader asked for and does not get.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gap {
    /// The reason why they are missing.
    pub reason: GapReason,
    /// The position the reader asked to read on from.
    pub after: Position,
    /// The number of missing events; `None` when that cannot be known.
    pub missed: Option<u64>,
    /// The position reading goes on from.
    pub resume: Position,
}

/// The reason why a reader does not get what it asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GapReason {
    /// The events were there and are no longer kept: retention has dropped them.
    Retention,
    /// The events would be kept, and what is on the disk is not what was written. A gap that begins with what
    /// retention has dropped ends before these, which are the next gap.
    Damaged,
    /// The position is of another log, or of this one before events of it may have been lost; how many
    /// were not seen is not known.
    Epoch,
}
