//! A ring of shared events in memory, consecutive, newest last. It has no limit; its owner pops events.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Data, Event, UnixTime};

/// The number of offsets in a block. A search for a time looks at each block, and at the events of one.
const BLOCK: u64 = 256;

#[derive(Debug, Default)]
pub(super) struct Ring {
    entries: VecDeque<Entry>,
    /// The latest time in each block of offsets that has an event here, including removed events. A block begins at a
    /// multiple of [`BLOCK`].
    blocks: VecDeque<UnixTime>,
    bytes: u64,
    /// The bytes of data of all events that were ever in the ring.
    data_bytes: u64,
}

/// An event and its place in the ring.
#[derive(Debug)]
struct Entry {
    event: Arc<Event>,
    /// The bytes of data of all events up to this one.
    data_end: u64,
}

/// The memory of an event besides its data: the event and the owner of its data with their reference counts, its
/// entry in the log, and the overhead of the allocator for three pieces.
const EVENT_OVERHEAD_BYTES: u64 =
    (size_of::<Event>() + COUNTS_BYTES + OWNER_BYTES + size_of::<Entry>() + 3 * PIECE_BYTES) as u64;

/// The reference counts of an `Arc`.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// The owner that `Bytes` makes for shared data: pointer, length and count.
const OWNER_BYTES: usize = 3 * size_of::<usize>();

/// The approximate overhead of an allocator for each piece: a header of 8 bytes, and up to 16 for rounding.
const PIECE_BYTES: usize = 16;

/// Returns the bytes of an event with this data that count in [`Retention::bytes_max`](crate::Retention::bytes_max)
/// of a topic in memory.
pub(crate) fn cost_bytes(data: &Data) -> u64 {
    data.bytes().len() as u64 + EVENT_OVERHEAD_BYTES
}

impl Ring {
    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns the memory of the events in bytes, data and overhead.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn oldest(&self) -> Option<&Arc<Event>> {
        self.entries.front().map(|entry| &entry.event)
    }

    pub(super) fn newest(&self) -> Option<&Arc<Event>> {
        self.entries.back().map(|entry| &entry.event)
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        match self.blocks.back_mut() {
            Some(latest) if !event.offset.is_multiple_of(BLOCK) => {
                *latest = event.time.max(*latest)
            }
            _ => self.blocks.push_back(event.time),
        }
        self.bytes += cost_bytes(&event.data);
        self.data_bytes += event.data.bytes().len() as u64;
        self.entries.push_back(Entry { event, data_end: self.data_bytes });
    }

    pub(super) fn pop_oldest(&mut self) -> Option<Arc<Event>> {
        let Entry { event, .. } = self.entries.pop_front()?;
        self.bytes -= cost_bytes(&event.data);
        let is_last_of_block = (event.offset + 1).is_multiple_of(BLOCK);
        if is_last_of_block || self.entries.is_empty() {
            self.blocks.pop_front();
        }
        Some(event)
    }

    /// Returns the oldest event from `offset` on whose time is `time` or later.
    pub(super) fn since(&self, offset: u64, time: UnixTime) -> Option<&Arc<Event>> {
        let first = self.oldest()?.offset;
        let offset = offset.max(first);
        let block_of = |offset: u64| offset / BLOCK - first / BLOCK;
        let begun = usize::try_from(block_of(offset)).unwrap_or(usize::MAX);
        let blocks = (first / BLOCK..).zip(&self.blocks).skip(begun);
        let mut late = blocks.filter(|(_, latest)| **latest >= time);
        late.find_map(|(block, _)| {
            // The latest event of the first block may have been removed.
            let from = offset.max(block * BLOCK);
            let events = self.after(from - 1).take_while(|event| event.offset / BLOCK == block);
            events.into_iter().find(|event| event.time >= time)
        })
    }

    pub(super) fn after(&self, offset: u64) -> impl ExactSizeIterator<Item = &Arc<Event>> {
        self.entries.iter().skip(self.place_after(offset)).map(|entry| &entry.event)
    }

    pub(super) fn data_bytes_after(&self, offset: u64) -> u64 {
        let next = self.entries.get(self.place_after(offset));
        next.map_or(0, |next| {
            self.data_bytes - next.data_end + next.event.data.bytes().len() as u64
        })
    }

    /// Returns the index of the event after `offset`, if it is there.
    fn place_after(&self, offset: u64) -> usize {
        let first = self.oldest().map_or(u64::MAX, |event| event.offset);
        let skip = offset.saturating_add(1).saturating_sub(first);
        usize::try_from(skip).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_event_since_a_time_is_found_whatever_has_gone() {
        // Up and down again and again, and one that is far ahead of all others.
        let time_of = |offset: u64| match offset {
            300 => UnixTime::from_micros(1_000_000),
            _ => UnixTime::from_micros(offset * 7919 % 5003 + offset),
        };
        for gone in [0, 1, 255, 256, 299, 300, 511, 700, 999, 1000] {
            let mut ring = Ring::default();
            for offset in 1..=1000 {
                let (time, data) = (time_of(offset), Data::json(&1).unwrap());
                ring.push(Arc::new(Event { offset, time, data }));
            }
            for _ in 0..gone {
                ring.pop_oldest();
            }
            for (from, micros) in
                [(1, 0), (1, 5000), (1, 5900), (1, 20_000), (400, 3000), (2000, 0)]
            {
                let time = UnixTime::from_micros(micros);
                let kept = from.max(gone + 1)..=1000;
                let expected = kept.into_iter().find(|offset| time_of(*offset) >= time);
                let found = ring.since(from, time).map(|event| event.offset);
                assert_eq!(found, expected, "{gone} gone, from {from}, since {micros}");
            }
            for offset in 1001..=1003 {
                let (time, data) = (time_of(offset), Data::json(&1).unwrap());
                ring.push(Arc::new(Event { offset, time, data }));
            }
            let newest = ring.since(1001, UnixTime::default()).map(|event| event.offset);
            assert_eq!(newest, Some(1001), "{gone} gone");
        }
    }

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
