//! Reads a whole segment. Pure: bytes in, a [`Scan`] out.
//!
//! Consecutive records form a [`Span`]. After damage, the next record begins a new span: the events between are
//! missing, and those around them are not.

use super::record::{self, Fault, Origin, Record, decode_segment_header, find_marker};
use crate::keys::{Keyed, Place, Seen};
use crate::{Note, UnixTime};

/// The bytes of records for each entry of the index in memory.
pub(super) const INDEX_STRIDE_BYTES: u64 = 64 << 10;

/// Consecutive records of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Span {
    /// The offset of the first event.
    pub(super) first: u64,
    /// The offset of the last event.
    pub(super) last: u64,
    /// The place where the first record begins.
    pub(super) start: u64,
    /// The place where the last record ends.
    pub(super) end: u64,
    /// The time of the first event.
    pub(super) oldest: UnixTime,
    /// The latest time of an event.
    pub(super) newest: UnixTime,
    /// At most one entry for each stride.
    index: Vec<IndexEntry>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct IndexEntry {
    offset: u64,
    /// The place where its record begins.
    at: u64,
    /// The latest time of the events before the next entry.
    newest: UnixTime,
}

/// The records from one entry of the index to the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stride {
    /// Its first offset, and the place of that record.
    pub(super) from: (u64, u64),
    /// Its last offset.
    pub(super) last: u64,
    /// The place where the last record ends.
    pub(super) end: u64,
}

impl Span {
    pub(super) fn new(offset: u64, time: UnixTime, start: u64, bytes: u64) -> Self {
        let end = start + bytes;
        let index = vec![IndexEntry { offset, at: start, newest: time }];
        Self { first: offset, last: offset, start, end, oldest: time, newest: time, index }
    }

    pub(super) fn extend(&mut self, time: UnixTime, bytes: u64) {
        self.last += 1;
        match self.index.last_mut() {
            Some(entry) if self.end - entry.at < INDEX_STRIDE_BYTES => {
                entry.newest = time.max(entry.newest);
            }
            _ => self.index.push(IndexEntry { offset: self.last, at: self.end, newest: time }),
        }
        self.end += bytes;
        self.newest = self.newest.max(time);
    }

    /// Returns an offset not after `offset`, and the place of its record: at most a stride and a record before.
    pub(super) fn seek(&self, offset: u64) -> (u64, u64) {
        let entries = self.index.partition_point(|entry| entry.offset <= offset);
        match entries.checked_sub(1).and_then(|entry| self.index.get(entry)) {
            Some(entry) => (entry.offset, entry.at),
            None => (self.first, self.start),
        }
    }

    /// Returns the first stride that may contain an event from `offset` on with a time as late as `time`; an event
    /// before `offset` may be the reason.
    pub(super) fn since(&self, offset: u64, time: UnixTime) -> Option<Stride> {
        let ends = self.index.iter().skip(1).map(|next| (next.offset - 1, next.at));
        let mut strides = self.index.iter().zip(ends.chain([(self.last, self.end)]));
        let found = strides.find(|(entry, (last, _))| *last >= offset && entry.newest >= time);
        found.map(|(entry, (last, end))| Stride { from: (entry.offset, entry.at), last, end })
    }

    pub(super) fn events(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// The end of a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tail {
    /// A record, or the header.
    Whole,
    /// The beginning of a record, left by an interrupted write.
    Torn,
    /// Bytes that are no record.
    Garbage,
}

/// The contents of a segment.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub(super) spans: Vec<Span>,
    /// The keys with their batches, in the order of offsets.
    pub(super) keys: Vec<Seen>,
    pub(super) tail: Tail,
    /// The end of the valid part.
    pub(super) end: u64,
    /// The beginning of the first damage before valid records, and the offset that is missing there.
    pub(super) damage: Option<(u64, u64)>,
    /// The newest offset that was certainly flushed.
    pub(super) flushed: u64,
    /// The beginning of the last batch, if some of its records are missing.
    pub(super) open_batch: Option<u64>,
    /// The length of the records of the last batch.
    pub(super) batch_bytes: u64,
    /// The newest note.
    pub(super) note: Option<Note>,
}

/// Scans the segment `origin`, whose offsets are all below `below`.
pub(super) fn scan(bytes: &[u8], origin: Origin, below: u64) -> Scan {
    let mut scan = Scan {
        spans: Vec::new(),
        keys: Vec::new(),
        tail: Tail::Whole,
        end: 0,
        damage: None,
        flushed: 0,
        open_batch: None,
        batch_bytes: 0,
        note: None,
    };
    let (mut at, mut has_header, mut is_short) = (0, false, false);
    match decode_segment_header(bytes, origin) {
        Ok(header) => {
            scan.end = header.bytes;
            has_header = true;
            scan.take_note(header.note.filter(|_| header.is_here));
            at = usize::try_from(header.bytes).unwrap_or(usize::MAX);
        }
        // The beginning of a header, unless records follow: then the length of its note is damaged.
        Err(Fault::Short(_)) => is_short = true,
        Err(Fault::Garbage) => {}
    }
    let mut expected = origin.base;
    let mut follows = true;
    while at < bytes.len() {
        match record::decode(&bytes[at..], origin) {
            Ok(record) if record.offset < below && fits(&record, expected, follows) => {
                scan.take(&record, at as u64, (!follows).then_some(expected));
                expected = record.offset + 1;
                at += usize::try_from(record.bytes).unwrap_or(usize::MAX);
                follows = true;
            }
            found => {
                if follows {
                    let is_header = is_short && scan.spans.is_empty();
                    let torn = is_header || has_header && matches!(found, Err(Fault::Short(_)));
                    scan.tail = if torn { Tail::Torn } else { Tail::Garbage };
                }
                follows = false;
                match find_marker(bytes, at + 1) {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
    }
    scan
}

/// Returns true for the next offset; after damage, for any later one.
fn fits(record: &Record<'_>, expected: u64, follows: bool) -> bool {
    if follows { record.offset == expected } else { record.offset >= expected }
}

impl Scan {
    /// Adds a record. `missing` is the offset that should be here, if there is damage before it.
    fn take(&mut self, record: &Record<'_>, at: u64, missing: Option<u64>) {
        let follows = missing.is_none();
        if let Some(missing) = missing {
            self.damage = self.damage.or(Some((self.end, missing)));
            self.tail = Tail::Whole;
        }
        match self.spans.last_mut() {
            Some(span) if follows => span.extend(record.time, record.bytes),
            _ => self.spans.push(Span::new(record.offset, record.time, at, record.bytes)),
        }
        let goes_on = follows && self.open_batch.is_some();
        self.batch_bytes = record.bytes + if goes_on { self.batch_bytes } else { 0 };
        self.open_batch = match self.open_batch {
            _ if record.left == 0 => None,
            Some(start) if follows => Some(start),
            _ => Some(at),
        };
        self.end = at + record.bytes;
        self.flushed = self.flushed.max(record.flushed);
        let key = record.key.and_then(Keyed::from_bytes);
        if let Some(key) = key {
            let last = record.offset.saturating_add(record.left.into());
            let place = Place { first: record.offset, last };
            self.keys.push(Seen::new(key, record.time, place));
        }
        self.take_note(record.note);
    }

    fn take_note(&mut self, note: Option<&str>) {
        if let Some(note) = note.and_then(|note| note.parse().ok()) {
            self.note = Some(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::super::record::{Framing, SEGMENT_HEADER_BYTES, encode, encode_segment_header};
    use super::*;
    use crate::{Data, Epoch, Event};

    fn origin(base: u64) -> Origin {
        Origin::new(Path::new("wind"), base)
    }

    fn keyed(offset: u64) -> Keyed {
        Keyed { key: format!("k{offset}").parse().unwrap(), content: offset }
    }

    fn scan(bytes: &[u8], base: u64, below: u64) -> Scan {
        super::scan(bytes, origin(base), below)
    }

    /// A segment of batches of so many events, and where each record begins and the last ends.
    fn segment(base: u64, batches: &[u32]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        encode_segment_header(origin(base), Epoch::from_bits(1), None, &mut bytes);
        let mut starts = Vec::new();
        let mut offset = base;
        for events in batches {
            for left in (0..*events).rev() {
                starts.push(bytes.len());
                let time = UnixTime::from_micros(1_000 * offset);
                let event = Event { offset, time, data: Data::json(&offset).unwrap() };
                let is_first = left + 1 == *events;
                let key = is_first.then(|| keyed(offset));
                let note = is_first.then(|| format!("n{offset}").parse().unwrap());
                let note = note.as_ref();
                encode(&event, Framing { key, note, left, flushed: 0 }, origin(base), &mut bytes);
                offset += 1;
            }
        }
        starts.push(bytes.len());
        (bytes, starts)
    }

    fn header_len() -> usize {
        usize::try_from(SEGMENT_HEADER_BYTES).unwrap()
    }

    fn last(scan: &Scan) -> Option<u64> {
        scan.spans.last().map(|span| span.last)
    }

    fn spans(scan: &Scan) -> Vec<(u64, u64)> {
        scan.spans.iter().map(|span| (span.first, span.last)).collect()
    }

    #[test]
    fn a_whole_segment_is_one_span() {
        let (bytes, starts) = segment(7, &[1, 3]);
        let scan = scan(&bytes, 7, u64::MAX);
        assert_eq!((spans(&scan), scan.tail), (vec![(7, 10)], Tail::Whole));
        assert_eq!((scan.end, scan.open_batch, scan.damage), (bytes.len() as u64, None, None));
        assert_eq!(scan.batch_bytes, (starts[4] - starts[1]) as u64);
        let keys: Vec<_> = scan.keys.iter().map(|seen| (seen.keyed, seen.place())).collect();
        let places = [(7, Place { first: 7, last: 7 }), (8, Place { first: 8, last: 10 })];
        assert_eq!(keys, places.map(|(offset, place)| (keyed(offset), place)));
        assert_eq!(scan.note, "n8".parse().ok());
    }

    #[test]
    fn a_segment_of_another_topic_or_place_has_nothing() {
        let (bytes, _) = segment(7, &[1, 3]);
        for origin in [Origin::new(Path::new("rain"), 7), origin(8)] {
            let scan = super::scan(&bytes, origin, u64::MAX);
            assert_eq!((spans(&scan), scan.tail), (vec![], Tail::Garbage));
            assert!(scan.note.is_none());
        }
    }

    #[test]
    fn a_cut_anywhere_leaves_a_prefix_and_names_the_open_batch() {
        let (bytes, starts) = segment(1, &[1, 2, 1]);
        for len in header_len()..bytes.len() {
            let scan = scan(&bytes[..len], 1, u64::MAX);
            let whole = starts.iter().filter(|start| **start <= len).count() as u64 - 1;
            assert_eq!(last(&scan).unwrap_or(0), whole, "cut at {len}");
            let torn = !starts.contains(&len);
            assert_eq!(scan.tail, if torn { Tail::Torn } else { Tail::Whole }, "cut at {len}");
            assert_eq!(scan.open_batch, (whole == 2).then_some(starts[1] as u64), "cut at {len}");
        }
        for len in 1..header_len() {
            let scan = scan(&bytes[..len], 1, u64::MAX);
            assert_eq!((scan.tail, last(&scan), scan.end), (Tail::Torn, None, 0), "cut at {len}");
        }
    }

    #[test]
    fn damage_in_the_middle_costs_the_damaged_record_alone() {
        let (mut bytes, starts) = segment(1, &[1, 1, 1, 1]);
        bytes[starts[1] + 30] ^= 1;
        let scan = scan(&bytes, 1, u64::MAX);
        assert_eq!((spans(&scan), scan.tail), (vec![(1, 1), (3, 4)], Tail::Whole));
        assert_eq!(scan.damage, Some((starts[1] as u64, 2)));
    }

    #[test]
    fn a_damaged_length_does_not_hide_what_follows() {
        let (mut bytes, starts) = segment(1, &[1, 1, 1]);
        bytes[starts[0] + 6] = 1;
        assert_eq!(spans(&scan(&bytes, 1, u64::MAX)), [(2, 3)]);
    }

    #[test]
    fn a_damaged_header_costs_no_record() {
        // The length of the note is at 10 and 11: a long one would be the beginning of a header alone.
        for (at, damage) in [(3, 0), (11, 2), (10, 255), (11, 255)] {
            let (mut bytes, _) = segment(5, &[1, 1]);
            bytes[at] = damage;
            let scan = scan(&bytes, 5, u64::MAX);
            assert_eq!((spans(&scan), scan.tail), (vec![(5, 6)], Tail::Whole), "byte {at}");
        }
    }

    #[test]
    fn what_the_next_segment_has_is_not_taken_from_this_one() {
        let (bytes, starts) = segment(1, &[1, 1, 1]);
        let scan = scan(&bytes, 1, 3);
        assert_eq!((spans(&scan), scan.end), (vec![(1, 2)], starts[2] as u64));
    }

    #[test]
    fn the_index_has_an_entry_for_each_stride() {
        let mut span = Span::new(1, UnixTime::default(), 32, 1_000);
        for _ in 0..999 {
            span.extend(UnixTime::default(), 1_000);
        }
        assert_eq!(span.index.len(), 16);
        for offset in [1, 2, 66, 67, 500, 1_000] {
            let (indexed, at) = span.seek(offset);
            assert!(indexed <= offset && (offset - indexed) * 1_000 <= INDEX_STRIDE_BYTES + 1_000);
            assert_eq!(at, 32 + (indexed - 1) * 1_000);
        }
    }

    proptest! {
        #[test]
        fn whatever_is_overwritten_what_is_found_was_written(
            at in 0_usize..400, garbage in prop::collection::vec(any::<u8>(), 1..90),
        ) {
            let (mut bytes, _) = segment(1, &[1, 2, 3, 1, 1]);
            let at = at.min(bytes.len() - 1);
            for (byte, garbage) in bytes[at..].iter_mut().zip(&garbage) {
                *byte = *garbage;
            }
            let scan = scan(&bytes, 1, u64::MAX);
            let mut last = 0;
            for span in &scan.spans {
                prop_assert!(span.first > last && span.last <= 8);
                last = span.last;
            }
            prop_assert!(scan.spans.iter().map(Span::events).sum::<u64>() >= 4, "{:?}", scan.spans);
        }
    }
}
