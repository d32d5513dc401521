//! A ring of shared events in memory, consecutive, newest last. It has no bound of its own: whoever
//! owns it pops what is too much.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Event;

#[derive(Debug, Default)]
pub(super) struct Ring {
    events: VecDeque<Arc<Event>>,
    bytes: u64,
}

impl Ring {
    pub(super) fn len(&self) -> u64 {
        self.events.len() as u64
    }

    /// What the events cost, data and bookkeeping.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn oldest(&self) -> Option<&Arc<Event>> {
        self.events.front()
    }

    /// Adds the event after the newest.
    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.bytes += event.cost_bytes();
        self.events.push_back(event);
    }

    pub(super) fn pop_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.bytes -= event.cost_bytes();
        }
    }

    /// The events after `offset`.
    pub(super) fn after(&self, offset: u64) -> impl ExactSizeIterator<Item = &Arc<Event>> {
        let first = self.oldest().map_or(u64::MAX, |event| event.offset);
        let skip = offset.saturating_add(1).saturating_sub(first);
        self.events.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX))
    }
}
