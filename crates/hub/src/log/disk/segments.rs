//! What a log on disk has, segment by segment. Pure: which event is where, and what can go.

use std::collections::VecDeque;

use super::record::record_bytes;
use super::scan::Span;
use crate::retention::Without;
use crate::{Retention, UnixTime};

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// The offset in its name: that of its first event.
    pub(super) base: u64,
    /// In the order of offsets. None when all of it is too old, or damaged.
    pub(super) spans: Vec<Span>,
    /// How much of the file counts.
    pub(super) bytes: u64,
    /// Whether its file, if there is one, is set aside when retention is past it, and not removed.
    pub(super) is_damaged: bool,
    /// Bytes of all files before it, also of those that are gone.
    before: u64,
}

impl Segment {
    pub(super) fn new(base: u64, spans: Vec<Span>, bytes: u64) -> Self {
        Self { base, spans, bytes, is_damaged: false, before: 0 }
    }

    /// One of which something, or everything, is damaged.
    pub(super) fn damaged(base: u64, spans: Vec<Span>, bytes: u64) -> Self {
        // What has nothing left to read takes nothing of what a topic may keep.
        let bytes = if spans.is_empty() { 0 } else { bytes };
        Self { is_damaged: true, ..Self::new(base, spans, bytes) }
    }

    fn newest(&self) -> Option<UnixTime> {
        self.spans.iter().map(|span| span.newest).max()
    }

    fn places(&self) -> impl Iterator<Item = (u64, &Span)> {
        self.spans.iter().map(|span| (self.base, span))
    }

    fn events(&self) -> u64 {
        self.spans.iter().map(Span::events).sum()
    }
}

/// All files of a topic, oldest first. The last is the one that is written to.
#[derive(Debug)]
pub(super) struct Segments {
    list: VecDeque<Segment>,
    head: u64,
    first: u64,
    /// Of all segments.
    events: u64,
    /// Of all segments.
    bytes: u64,
}

/// A segment that retention is past.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Gone {
    pub(super) base: u64,
    pub(super) is_damaged: bool,
}

/// Where the records after an offset are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Stretch {
    /// The segment.
    pub(super) base: u64,
    /// The first offset that is wanted.
    pub(super) first: u64,
    /// An offset not after that, and where its record begins.
    pub(super) from: (u64, u64),
    /// Where records without a hole end.
    pub(super) end: u64,
}

impl Segments {
    pub(super) fn new(mut list: Vec<Segment>, head: u64) -> Self {
        let mut before = 0;
        for segment in &mut list {
            segment.before = before;
            before += segment.bytes;
        }
        let events = list.iter().map(Segment::events).sum();
        let bytes = list.iter().map(|segment| segment.bytes).sum();
        let first = list.first().map_or(head + 1, |segment| segment.base);
        Self { list: list.into(), head, first, events, bytes }
    }

    /// Offset of the newest event ever appended; 0 before the first.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Offset of the oldest event that retention keeps, damaged or not, or of the next one to come when it keeps
    /// none.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// What the files hold.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Events that retention keeps and that are not there: they are damaged, or their file is missing.
    pub(super) fn missing(&self) -> u64 {
        self.head + 1 - self.first - self.events
    }

    /// Where reading on after `after` goes on: just before the first that retention keeps, or there, or just before
    /// the next event that is not damaged.
    pub(super) fn resume(&self, after: u64) -> u64 {
        if after < self.first - 1 {
            return self.first - 1;
        }
        match self.at_or_after(after.saturating_add(1)) {
            Some((_, span)) => after.max(span.first - 1),
            None => after.max(self.head),
        }
    }

    /// Where the event after `after` is; `None` when it is not there.
    pub(super) fn locate(&self, after: u64) -> Option<Stretch> {
        let first = after.checked_add(1)?;
        let (base, span) = self.at_or_after(first)?;
        let there = span.first <= first;
        there.then(|| Stretch { base, first, from: span.seek(first), end: span.end })
    }

    /// About how many bytes the data of the events after `after` has: what their records take, from the entry
    /// of the index before them on, without what a record has beside its data.
    pub(super) fn data_bytes_after(&self, after: u64) -> u64 {
        let first = after.saturating_add(1);
        let (Some((base, span)), Some(last)) = (self.at_or_after(first), self.list.back()) else {
            return 0;
        };
        let (offset, at) = span.seek(first);
        let begun = self.list.partition_point(|segment| segment.base <= base);
        let before = self.list.get(begun.saturating_sub(1)).map_or(0, |segment| segment.before);
        let records = last.before + last.bytes - before - at;
        records.saturating_sub((self.head + 1 - offset) * record_bytes(None, None, 0))
    }

    /// The first offset of each file.
    pub(super) fn bases(&self) -> impl Iterator<Item = u64> {
        self.list.iter().map(|segment| segment.base)
    }

    /// Whether this segment is still there.
    pub(super) fn has(&self, base: u64) -> bool {
        self.list.iter().any(|segment| segment.base == base)
    }

    /// Takes the next event in, whose record begins at `at` in the segment `base`.
    pub(super) fn append(&mut self, base: u64, time: UnixTime, at: u64, bytes: u64) {
        if self.list.back().is_none_or(|segment| segment.base != base) {
            self.begin(base, at);
        }
        self.head += 1;
        self.events += 1;
        let offset = self.head;
        if let Some(segment) = self.list.back_mut() {
            self.bytes += at + bytes - segment.bytes;
            segment.bytes = at + bytes;
            match segment.spans.last_mut() {
                Some(span) if span.last + 1 == offset && span.end == at => {
                    span.extend(time, bytes);
                }
                _ => segment.spans.push(Span::new(offset, time, at, bytes)),
            }
        }
    }

    /// Takes in that there is a new and empty last segment.
    pub(super) fn begin(&mut self, base: u64, bytes: u64) {
        self.bytes += bytes;
        let before = self.list.back().map_or(0, |last| last.before + last.bytes);
        self.list.push_back(Segment { before, ..Segment::new(base, Vec::new(), bytes) });
    }

    /// Says anew what is in a segment. How many events are no longer in it.
    pub(super) fn replace(&mut self, base: u64, spans: Vec<Span>) -> u64 {
        let before = self.events;
        if let Some(segment) = self.list.iter_mut().find(|segment| segment.base == base) {
            self.events -= segment.events();
            segment.spans = spans;
            segment.is_damaged = true;
            self.events += segment.events();
        }
        before.saturating_sub(self.events)
    }

    /// How much of a segment counts, and which offset its events are below.
    pub(super) fn bounds(&self, base: u64) -> Option<(u64, u64)> {
        let place = self.list.iter().position(|segment| segment.base == base)?;
        let below = self.list.get(place + 1).map_or(self.head + 1, |next| next.base);
        self.list.get(place).map(|segment| (segment.bytes, below))
    }

    /// Whether the last segment has nothing that is still kept.
    pub(super) fn is_spent(&self) -> bool {
        self.list.back().is_some_and(|segment| segment.spans.is_empty())
    }

    /// Drops what retention no longer keeps, and returns the segments whose files can go. The last
    /// file stays, if only for its name: it says what the next offset is. A segment without one good record goes
    /// with the next that has some, for nothing says how old it is.
    pub(super) fn expire(&mut self, retention: Retention, now: UnixTime) -> Vec<Gone> {
        let mut gone = Vec::new();
        while let Some(place) = self.list.iter().position(|segment| !segment.spans.is_empty()) {
            let oldest = &self.list[place];
            let (events, bytes) = (self.events - oldest.events(), self.bytes - oldest.bytes);
            let goes = oldest
                .newest()
                .is_none_or(|newest| retention.lets_go(Without { events, bytes }, newest, now));
            if !goes {
                break;
            }
            self.events = events;
            if place + 1 == self.list.len() {
                self.list.iter_mut().for_each(|segment| segment.spans.clear());
                self.first = self.head + 1;
                break;
            }
            gone.extend((0..=place).filter_map(|_| self.pop_oldest()));
        }
        while self.list.get(1).is_some_and(|next| next.base <= self.first) {
            gone.extend(self.pop_oldest());
        }
        gone
    }

    /// Takes the oldest segment out; the next one is the first then.
    fn pop_oldest(&mut self) -> Option<Gone> {
        let segment = self.list.pop_front()?;
        self.bytes -= segment.bytes;
        self.first = self.list.front().map_or(self.head + 1, |next| next.base).max(self.first);
        Some(Gone { base: segment.base, is_damaged: segment.is_damaged })
    }

    /// The span of this offset, or else the next one.
    fn at_or_after(&self, offset: u64) -> Option<(u64, &Span)> {
        let begun = self.list.partition_point(|segment| segment.base <= offset);
        let mut spans = self.list.iter().skip(begun.saturating_sub(1)).flat_map(Segment::places);
        spans.find(|(_, span)| span.last >= offset)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KEEP_ALL: Retention =
        Retention { events_max: u64::MAX, bytes_max: u64::MAX, age_max: Duration::MAX };

    fn at(seconds: u64) -> UnixTime {
        UnixTime::from_micros(seconds * 1_000_000)
    }

    /// Segments of so many events of 100 bytes, one a second.
    fn segments(counts: &[u64]) -> Segments {
        let mut segments = Segments::new(Vec::new(), 0);
        for count in counts {
            let base = segments.head() + 1;
            for number in 0..*count {
                let time = at(segments.head() + 1);
                segments.append(base, time, 32 + number * 100, 100);
            }
        }
        segments
    }

    #[test]
    fn the_oldest_segment_goes_when_the_rest_reaches_the_bound() {
        for (events_max, first) in [(1, 7), (2, 7), (3, 4), (5, 4), (6, 1), (8, 1)] {
            let mut segments = segments(&[3, 3, 2]);
            segments.expire(Retention { events_max, ..KEEP_ALL }, at(8));
            assert_eq!(segments.first(), first, "{events_max} events");
        }
        for (bytes_max, first) in [(232, 7), (233, 4), (564, 4), (565, 1)] {
            let mut segments = segments(&[3, 3, 2]);
            segments.expire(Retention { bytes_max, ..KEEP_ALL }, at(8));
            assert_eq!(segments.first(), first, "{bytes_max} bytes");
        }
    }

    #[test]
    fn a_segment_goes_once_its_newest_event_is_too_old() {
        let retention = Retention { age_max: Duration::from_secs(10), ..KEEP_ALL };
        for (now, first, gone) in [(13, 1, vec![]), (14, 4, vec![1]), (17, 7, vec![1, 4])] {
            let mut segments = segments(&[3, 3, 2]);
            let found = segments.expire(retention, at(now));
            assert_eq!(found.iter().map(|gone| gone.base).collect::<Vec<_>>(), gone);
            assert_eq!(segments.first(), first, "at {now} s");
        }
    }

    #[test]
    fn the_last_file_stays_when_all_of_it_is_too_old() {
        let mut segments = segments(&[3, 3]);
        let retention = Retention { age_max: Duration::from_secs(10), ..KEEP_ALL };
        assert_eq!(segments.expire(retention, at(60)), [Gone { base: 1, is_damaged: false }]);
        assert_eq!((segments.first(), segments.head(), segments.is_spent()), (7, 6, true));
        assert_eq!((segments.resume(2), segments.locate(6)), (6, None));
        assert_eq!(segments.missing(), 0);
    }

    #[test]
    fn the_bytes_after_an_event_are_counted_through_all_segments() {
        let mut segments = segments(&[3, 3, 2]);
        let data_bytes = 100 - record_bytes(None, None, 0);
        // In each span the index has its first record alone; a segment begins with 32 bytes.
        for (after, bytes) in [
            (0, 8 * data_bytes + 64),
            (1, 8 * data_bytes + 64),
            (3, 5 * data_bytes + 32),
            (5, 5 * data_bytes + 32),
            (6, 2 * data_bytes),
            (8, 0),
            (u64::MAX, 0),
        ] {
            assert_eq!(segments.data_bytes_after(after), bytes, "after {after}");
        }
        segments.expire(Retention { events_max: 5, ..KEEP_ALL }, at(8));
        assert_eq!(segments.data_bytes_after(0), 5 * data_bytes + 32);
        assert_eq!(segments.data_bytes_after(6), 2 * data_bytes);
    }

    #[test]
    fn what_is_damaged_from_the_first_on_is_missing_until_retention_is_past_what_follows() {
        let mut segments = segments(&[3, 3, 3, 3]);
        assert_eq!(segments.replace(1, Vec::new()), 3);
        assert_eq!(segments.replace(4, Vec::new()), 3);
        assert_eq!((segments.first(), segments.missing()), (1, 6));
        assert_eq!([0, 2, 6, 8].map(|after| segments.resume(after)), [6, 6, 6, 8]);
        let retention = Retention { events_max: 5, ..KEEP_ALL };
        assert_eq!(segments.expire(retention, at(12)), []);
        let retention = Retention { events_max: 3, ..KEEP_ALL };
        let gone = segments.expire(retention, at(12));
        let places = gone.iter().map(|gone| (gone.base, gone.is_damaged)).collect::<Vec<_>>();
        assert_eq!(places, [(1, true), (4, true), (7, false)]);
        assert_eq!((segments.first(), segments.missing(), segments.resume(0)), (10, 0, 9));
    }

    #[test]
    fn what_retention_is_past_is_told_apart_from_what_is_damaged() {
        let mut segments = segments(&[3, 3, 3]);
        segments.expire(Retention { events_max: 6, ..KEEP_ALL }, at(9));
        segments.replace(4, Vec::new());
        assert_eq!((segments.first(), segments.missing()), (4, 3));
        assert_eq!([0, 2, 3, 4, 6].map(|after| segments.resume(after)), [3, 3, 6, 6, 6]);
    }

    #[test]
    fn reading_goes_on_before_the_next_event_there_is() {
        let mut segments = segments(&[3, 3, 2]);
        let span = Span::new(6, at(6), 232, 100);
        segments.replace(4, vec![span]);
        assert_eq!(segments.missing(), 2);
        assert_eq!([0, 2, 3, 4, 5, 7].map(|after| segments.resume(after)), [0, 2, 5, 5, 5, 7]);
        assert_eq!(segments.locate(3), None);
        let stretch = Stretch { base: 4, first: 6, from: (6, 232), end: 332 };
        assert_eq!(segments.locate(5), Some(stretch));
        assert_eq!(segments.locate(u64::MAX), None);
    }
}
