//! The contents of a log on disk by segment: the places of events, and the segments that can be removed. Pure.

use std::collections::VecDeque;

use super::record::record_bytes;
use super::scan::{Span, Stride};
use crate::retention::{Holding, Without};
use crate::{Retention, UnixTime};

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// The offset in its name, that of its first event.
    pub(super) base: u64,
    /// Its valid records in the order of offsets. Empty if all are too old or damaged.
    pub(super) spans: Vec<Span>,
    /// The length of the valid part of the file.
    pub(super) bytes: u64,
    /// True if its file is set aside instead of removed when retention has passed it.
    pub(super) is_damaged: bool,
    /// The bytes of all files before it, including removed ones.
    before: u64,
}

impl Segment {
    pub(super) fn new(base: u64, spans: Vec<Span>, bytes: u64) -> Self {
        Self { base, spans, bytes, is_damaged: false, before: 0 }
    }

    /// Creates a segment that is damaged in part or as a whole.
    pub(super) fn damaged(base: u64, spans: Vec<Span>, bytes: u64) -> Self {
        // A segment without readable events does not count in the retention.
        let bytes = if spans.is_empty() { 0 } else { bytes };
        Self { is_damaged: true, ..Self::new(base, spans, bytes) }
    }

    fn newest(&self) -> Option<UnixTime> {
        self.spans.iter().map(|span| span.newest).max()
    }

    fn places(&self) -> impl Iterator<Item = (u64, &Span)> {
        self.spans.iter().map(|span| (self.base, span))
    }

    /// Returns the number of events from `first` on, and the bytes of the records from `from` on.
    fn rest(&self, first: u64, from: u64) -> (u64, u64) {
        let spans = self.spans.iter().filter(|span| span.last >= first);
        spans.fold((0, 0), |(events, bytes), span| {
            let more = (span.last + 1 - span.first.max(first), span.end - span.start.max(from));
            (events + more.0, bytes + more.1)
        })
    }
}

/// All files of a topic, oldest first. The last one is being written.
#[derive(Debug)]
pub(super) struct Segments {
    list: VecDeque<Segment>,
    head: u64,
    first: u64,
    events: u64,
    /// The bytes of their records.
    bytes: u64,
    edge: Edge,
}

/// The oldest kept events, which retention drops one by one. They begin in the middle of a file, which still contains
/// the dropped ones.
#[derive(Debug, Default)]
struct Edge {
    /// The segment of the oldest event.
    base: u64,
    /// The place of its record; 0 while all events of this file are kept.
    at: u64,
    offset: u64,
    /// The times of it and of consecutive events after it, and the lengths of their records. Only some are here; the
    /// rest is read when needed.
    known: VecDeque<KnownEvent>,
}

/// The facts about an event that retention needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct KnownEvent {
    pub(super) time: UnixTime,
    pub(super) bytes: u64,
}

impl KnownEvent {
    /// The most events that are known at once: 4 KiB for a topic.
    pub(super) const AT_ONCE_MAX: usize = 256;
}

impl Edge {
    /// Adds an appended event, if it follows on the known ones.
    fn append(&mut self, offset: u64, place: (u64, u64), known: KnownEvent) {
        let follows = self.base == place.0
            && self.offset + self.known.len() as u64 == offset
            && self.known.len() < KnownEvent::AT_ONCE_MAX;
        if follows && !self.known.is_empty() {
            self.known.push_back(known);
        }
    }
}

/// A segment that retention has passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct GoneSegment {
    pub(super) base: u64,
    pub(super) is_damaged: bool,
}

/// The place of the records after an offset.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Stretch {
    pub(super) base: u64,
    /// The first wanted offset.
    pub(super) first: u64,
    /// An offset that is not after it, and the place of its record.
    pub(super) from: (u64, u64),
    /// The end of the consecutive records.
    pub(super) end: u64,
}

impl Segments {
    pub(super) fn new(mut list: Vec<Segment>, head: u64) -> Self {
        let mut before = 0;
        for segment in &mut list {
            segment.before = before;
            before += segment.bytes;
        }
        let first = list.first().map_or(head + 1, |segment| segment.base);
        let edge = Edge::default();
        let mut segments = Self { list: list.into(), head, first, events: 0, bytes: 0, edge };
        segments.count();
        segments
    }

    /// Returns the offset of the newest event ever appended; 0 before the first.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Returns the offset of the oldest event within the retention, damaged or not, or else that of the next event.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the time of the oldest event, if one is kept, or else that of one before it in its file.
    pub(super) fn oldest(&self) -> Option<UnixTime> {
        let (_, span) = self.at_or_after(self.first)?;
        let known = self.edge.known.front().filter(|_| self.edge.offset == self.first);
        Some(known.map_or(span.oldest, |known| known.time))
    }

    /// Returns the latest time in the newest file that has events, if one is kept.
    pub(super) fn newest(&self) -> Option<UnixTime> {
        let newest = || self.list.iter().rev().find_map(Segment::newest);
        if self.first > self.head { None } else { newest() }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of events within the retention that are damaged, or whose file is missing.
    pub(super) fn missing(&self) -> u64 {
        self.head + 1 - self.first - self.events
    }

    /// Returns the offset after which reading from `after` continues: just before the first event within the
    /// retention, at `after`, or just before the next undamaged event.
    pub(super) fn resume(&self, after: u64) -> u64 {
        if after < self.first - 1 {
            return self.first - 1;
        }
        match self.at_or_after(after.saturating_add(1)) {
            Some((_, span)) => after.max(span.first - 1),
            None => after.max(self.head),
        }
    }

    /// Returns the place of the event after `after`; `None` if it is missing.
    pub(super) fn locate(&self, after: u64) -> Option<Stretch> {
        let first = after.checked_add(1)?;
        let (base, span) = self.at_or_after(first)?;
        let there = span.first <= first;
        there.then(|| Stretch { base, first, from: span.seek(first), end: span.end })
    }

    /// Returns the first stretch from `offset` on that may contain an event as late as `time`, with its last offset.
    /// The event is in it or after it.
    pub(super) fn since(&self, offset: u64, time: UnixTime) -> Option<(Stretch, u64)> {
        let first = offset.max(self.first);
        let begun = self.list.partition_point(|segment| segment.base <= first);
        let mut spans = self.list.iter().skip(begun.saturating_sub(1)).flat_map(Segment::places);
        spans.find_map(|(base, span)| {
            let is_late = span.last >= first && span.newest >= time;
            let stride = if is_late { span.since(first, time) } else { None }?;
            let Stride { from, last, end } = stride;
            Some((Stretch { base, first: first.max(from.0), from, end }, last))
        })
    }

    /// Returns the approximate length of the data of the events after `after`: the bytes of their records from the
    /// index entry before them on, without the record headers.
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

    /// Returns the first offset of each file.
    pub(super) fn bases(&self) -> impl Iterator<Item = u64> {
        self.list.iter().map(|segment| segment.base)
    }

    pub(super) fn has(&self, base: u64) -> bool {
        self.list.iter().any(|segment| segment.base == base)
    }

    /// Adds the next event, whose record begins at `at` in the segment `base`.
    pub(super) fn append(&mut self, base: u64, time: UnixTime, at: u64, bytes: u64) {
        if self.list.back().is_none_or(|segment| segment.base != base) {
            self.begin(base, at);
        }
        self.head += 1;
        self.events += 1;
        self.bytes += bytes;
        let offset = self.head;
        let known = KnownEvent { time, bytes };
        if self.events == 1 {
            self.edge = Edge { base, at, offset, known: VecDeque::from([known]) };
        } else {
            self.edge.append(offset, (base, at), known);
        }
        if let Some(segment) = self.list.back_mut() {
            segment.bytes = at + bytes;
            match segment.spans.last_mut() {
                Some(span) if span.last + 1 == offset && span.end == at => {
                    span.extend(time, bytes);
                }
                _ => segment.spans.push(Span::new(offset, time, at, bytes)),
            }
        }
    }

    /// Adds a new, empty last segment.
    pub(super) fn begin(&mut self, base: u64, bytes: u64) {
        let before = self.list.back().map_or(0, |last| last.before + last.bytes);
        self.list.push_back(Segment { before, ..Segment::new(base, Vec::new(), bytes) });
    }

    /// Replaces the contents of a segment. Returns the number of events that are no longer in it.
    pub(super) fn replace(&mut self, base: u64, spans: Vec<Span>) -> u64 {
        let before = self.events;
        if let Some(segment) = self.list.iter_mut().find(|segment| segment.base == base) {
            segment.spans = spans;
            segment.is_damaged = true;
            self.edge.known.clear();
            self.count();
        }
        before.saturating_sub(self.events)
    }

    /// Returns the valid length of a segment, and the upper limit of its offsets.
    pub(super) fn bounds(&self, base: u64) -> Option<(u64, u64)> {
        let place = self.list.iter().position(|segment| segment.base == base)?;
        let below = self.list.get(place + 1).map_or(self.head + 1, |next| next.base);
        self.list.get(place).map(|segment| (segment.bytes, below))
    }

    /// Returns true if the last segment has no kept events.
    pub(super) fn is_spent(&self) -> bool {
        self.list.back().is_some_and(|segment| segment.spans.is_empty())
    }

    /// Drops the events beyond the retention. Returns the segments whose files can be removed, and the place to read
    /// for [`Segments::learn`] in order to continue. The last file always stays, since its name contains the next
    /// offset. A segment without valid records is removed with the next one that has some, since its age is unknown.
    pub(super) fn expire(
        &mut self,
        retention: Retention,
        now: UnixTime,
    ) -> (Vec<GoneSegment>, Option<Stretch>) {
        let mut gone = Vec::new();
        self.expire_whole(retention, now, &mut gone);
        let unknown = loop {
            let Some(oldest) = self.edge.known.front().copied() else { break self.unknown() };
            let Holding { events, bytes, .. } = self.held(oldest.time);
            if !retention.is_passed(self.held(oldest.time), now) {
                break None;
            }
            self.edge.known.pop_front();
            self.edge.at += oldest.bytes;
            self.edge.offset += 1;
            self.first = self.edge.offset;
            (self.events, self.bytes) = (events - 1, bytes - oldest.bytes);
            if self.events == 0 {
                self.clear();
            }
            self.pop_passed(&mut gone);
        };
        (gone, unknown)
    }

    /// Drops whole segments while the ones after them fill the limits.
    fn expire_whole(&mut self, retention: Retention, now: UnixTime, gone: &mut Vec<GoneSegment>) {
        while let Some(place) = self.list.iter().position(|segment| !segment.spans.is_empty()) {
            let oldest = &self.list[place];
            let (events, bytes) = oldest.rest(self.first, self.removed_bytes(oldest.base));
            let without = Without { events: self.events - events, bytes: self.bytes - bytes };
            if !oldest.newest().is_none_or(|newest| retention.lets_go(without, newest, now)) {
                break;
            }
            if place + 1 == self.list.len() {
                self.clear();
                break;
            }
            (self.events, self.bytes) = (without.events, without.bytes);
            gone.extend((0..=place).filter_map(|_| self.pop_oldest()));
        }
        self.pop_passed(gone);
    }

    fn clear(&mut self) {
        self.list.iter_mut().for_each(|segment| segment.spans.clear());
        (self.first, self.events, self.bytes) = (self.head + 1, 0, 0);
        self.edge = Edge::default();
    }

    /// Takes the segments before the first kept event.
    fn pop_passed(&mut self, gone: &mut Vec<GoneSegment>) {
        while self.list.get(1).is_some_and(|next| next.base <= self.first) {
            gone.extend(self.pop_oldest());
        }
    }

    fn pop_oldest(&mut self) -> Option<GoneSegment> {
        let segment = self.list.pop_front()?;
        if self.edge.base == segment.base {
            self.edge = Edge::default();
        }
        self.first = self.list.front().map_or(self.head + 1, |next| next.base).max(self.first);
        Some(GoneSegment { base: segment.base, is_damaged: segment.is_damaged })
    }

    /// Returns the size of the kept contents, with the time of the oldest event.
    fn held(&self, oldest: UnixTime) -> Holding {
        Holding { events: self.events, bytes: self.bytes, oldest }
    }

    /// Returns the bytes of this segment's dropped records, with its header.
    fn removed_bytes(&self, base: u64) -> u64 {
        if self.edge.base == base { self.edge.at } else { 0 }
    }

    fn count(&mut self) {
        let rest = |segment: &Segment| segment.rest(self.first, self.removed_bytes(segment.base));
        let rests = self.list.iter().map(rest);
        let sum =
            |(events, bytes), (more_events, more_bytes)| (events + more_events, bytes + more_bytes);
        (self.events, self.bytes) = rests.fold((0, 0), sum);
    }

    /// Returns the place of the oldest kept event, if its facts are unknown.
    fn unknown(&self) -> Option<Stretch> {
        let (base, span) = self.at_or_after(self.first)?;
        let first = self.first.max(span.first);
        let at = self.removed_bytes(base);
        let is_next = self.edge.offset == first && (span.start..span.end).contains(&at);
        let from = if is_next { (first, at) } else { span.seek(first) };
        Some(Stretch { base, first, from, end: span.end })
    }

    /// Adds the facts about events from `first` on, whose records begin at `at` in `base`.
    pub(super) fn learn(&mut self, base: u64, first: u64, at: u64, known: Vec<KnownEvent>) {
        // Another thread may have been faster.
        let is_oldest =
            self.unknown().is_some_and(|place| (place.base, place.first) == (base, first));
        if self.edge.known.is_empty() && is_oldest {
            self.edge = Edge { base, at, offset: first, known: known.into() };
        }
    }

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

    /// Applies retention to the end, with what is read of the files.
    fn expire(segments: &mut Segments, retention: Retention, now: UnixTime) -> Vec<GoneSegment> {
        let mut all = Vec::new();
        loop {
            let (gone, unknown) = segments.expire(retention, now);
            all.extend(gone);
            let Some(Stretch { base, first, .. }) = unknown else { return all };
            let known = KnownEvent { time: at(first), bytes: 100 };
            segments.learn(base, first, 32 + (first - base) * 100, vec![known]);
        }
    }

    fn bases(gone: &[GoneSegment]) -> Vec<u64> {
        gone.iter().map(|gone| gone.base).collect()
    }

    #[test]
    fn the_oldest_events_go_one_by_one_and_their_segment_once_it_has_none() {
        for (max, first, gone) in [
            (1, 8, vec![1, 4]),
            (2, 7, vec![1, 4]),
            (3, 6, vec![1]),
            (5, 4, vec![1]),
            (6, 3, vec![]),
        ] {
            let events = Retention { events_max: max, ..KEEP_ALL };
            let bytes = Retention { bytes_max: max * 100, ..KEEP_ALL };
            let more_bytes = Retention { bytes_max: max * 100 + 99, ..KEEP_ALL };
            for retention in [events, bytes, more_bytes] {
                let mut segments = segments(&[3, 3, 2]);
                assert_eq!(bases(&expire(&mut segments, retention, at(8))), gone);
                assert_eq!((segments.first(), segments.bytes()), (first, max * 100));
                assert_eq!(segments.resume(0), first - 1);
                assert_eq!(segments.locate(first - 1).unwrap().first, first);
                assert_eq!(segments.missing(), 0);
                // A restart comes to the same.
                let mut found = Segments::new(segments.list.into(), 8);
                expire(&mut found, retention, at(8));
                assert_eq!((found.first(), found.bytes()), (first, max * 100));
            }
        }
    }

    #[test]
    fn an_event_goes_once_it_is_too_old() {
        let retention = Retention { age_max: Duration::from_secs(10), ..KEEP_ALL };
        for (now, first, gone) in [
            (11, 1, vec![]),
            (13, 3, vec![]),
            (14, 4, vec![1]),
            (16, 6, vec![1]),
            (17, 7, vec![1, 4]),
        ] {
            let mut segments = segments(&[3, 3, 2]);
            assert_eq!(bases(&expire(&mut segments, retention, at(now))), gone);
            assert_eq!(segments.first(), first, "at {now} s");
        }
    }

    #[test]
    fn what_is_appended_counts_whatever_has_gone_before() {
        let retention = Retention { events_max: 2, ..KEEP_ALL };
        let mut segments = segments(&[300]);
        for number in 300..900 {
            segments.append(1, at(number + 1), 32 + number * 100, 100);
            expire(&mut segments, retention, at(number + 1));
            assert_eq!((segments.first(), segments.bytes()), (number, 200));
        }
    }

    #[test]
    fn the_last_file_stays_when_all_of_it_is_too_old() {
        let mut segments = segments(&[3, 3]);
        let retention = Retention { age_max: Duration::from_secs(10), ..KEEP_ALL };
        let gone = expire(&mut segments, retention, at(60));
        assert_eq!(gone, [GoneSegment { base: 1, is_damaged: false }]);
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
        expire(&mut segments, Retention { events_max: 5, ..KEEP_ALL }, at(8));
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
        let retention = Retention { events_max: 6, ..KEEP_ALL };
        assert_eq!(expire(&mut segments, retention, at(12)), []);
        let retention = Retention { events_max: 5, ..KEEP_ALL };
        let gone = expire(&mut segments, retention, at(12));
        let places = gone.iter().map(|gone| (gone.base, gone.is_damaged)).collect::<Vec<_>>();
        assert_eq!(places, [(1, true), (4, true)]);
        let retention = Retention { events_max: 3, ..KEEP_ALL };
        assert_eq!(bases(&expire(&mut segments, retention, at(12))), [7]);
        assert_eq!((segments.first(), segments.missing(), segments.resume(0)), (10, 0, 9));
    }

    #[test]
    fn what_retention_is_past_is_told_apart_from_what_is_damaged() {
        let mut segments = segments(&[3, 3, 3]);
        expire(&mut segments, Retention { events_max: 6, ..KEEP_ALL }, at(9));
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
