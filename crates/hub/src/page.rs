//! Pages: the result of one read of a topic.

use std::sync::Arc;

use anemone_wire::{Gap, Position};

use crate::Event;

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
