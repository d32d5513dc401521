//! A ring of shared events in memory, consecutive, newest last. It has no bound of its own: whoever
//! owns it pops what is too much.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Event;

#[derive(Debug, Default)]
pub(super) struct Ring {
    entries: VecDeque<Entry>,
    bytes: u64,
    /// Of all that ever were in it.
    data_bytes: u64,
}

/// An event and its place in the ring.
#[derive(Debug)]
pub(crate) struct Entry {
    event: Arc<Event>,
    /// Bytes of the data of all events up to this one.
    data_end: u64,
}

impl Ring {
    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The bytes that the events cost, data and bookkeeping.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn oldest(&self) -> Option<&Arc<Event>> {
        self.entries.front().map(|entry| &entry.event)
    }

    /// Adds the event after the newest.
    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.bytes += event.cost_bytes();
        self.data_bytes += event.data.bytes().len() as u64;
        self.entries.push_back(Entry { event, data_end: self.data_bytes });
    }

    pub(super) fn pop_oldest(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry.event.cost_bytes();
        }
    }

    /// The events after `offset`.
    pub(super) fn after(&self, offset: u64) -> impl ExactSizeIterator<Item = &Arc<Event>> {
        self.entries.iter().skip(self.place_after(offset)).map(|entry| &entry.event)
    }

    /// Bytes of the data of the events after `offset`.
    pub(super) fn data_bytes_after(&self, offset: u64) -> u64 {
        let next = self.entries.get(self.place_after(offset));
        next.map_or(0, |next| {
            self.data_bytes - next.data_end + next.event.data.bytes().len() as u64
        })
    }

    /// Where the event after `offset` is, if it is there.
    fn place_after(&self, offset: u64) -> usize {
        let first = self.oldest().map_or(u64::MAX, |event| event.offset);
        let skip = offset.saturating_add(1).saturating_sub(first);
        usize::try_from(skip).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Data, UnixTime};

    #[test]
    fn the_bytes_after_an_event_are_those_of_the_events_after_it() {
        let mut ring = Ring::default();
        assert_eq!(ring.data_bytes_after(0), 0);
        for offset in 1..=9 {
            let data = Data::json(&"x".repeat(offset)).unwrap();
            let (offset, time) = (offset as u64, UnixTime::default());
            ring.push(Arc::new(Event { offset, time, data }));
        }
        for _ in 0..3 {
            ring.pop_oldest();
        }
        for offset in 0..12 {
            let sum: usize = ring.after(offset).map(|event| event.data.bytes().len()).sum();
            assert_eq!(ring.data_bytes_after(offset), sum as u64, "after {offset}");
        }
    }
}
