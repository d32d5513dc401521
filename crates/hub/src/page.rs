//! Pages, the results of reading a topic.

use std::sync::Arc;

use anemone_wire::{Gap, Position};

use crate::Event;

/// The limits of a page of [`Topic::read`](crate::Topic::read).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PageLimit {
    /// The most events in a page. Default 1,000.
    pub events_max: usize,
    /// The most bytes of data in a page; a larger first event is returned alone. Default 1 MiB.
    pub bytes_max: u64,
}

impl Default for PageLimit {
    fn default() -> Self {
        Self { events_max: 1_000, bytes_max: 1 << 20 }
    }
}

/// The result of a read: the events after a position, and the position to continue from.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The offset of the oldest kept event, or else that of the next one.
    pub first: u64,
    /// The gap before `events`, if there is one.
    pub gap: Option<Gap>,
    /// The events in the log's order, without a hole.
    pub events: Vec<Arc<Event>>,
    /// The position to continue from.
    pub next: Position,
    /// True if nothing follows: the topic has ended, and these are its last events.
    pub is_last: bool,
}
