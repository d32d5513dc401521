//! The content of a log on disk, segment by segment. Pure: which event is where, and what can go.

use std::collections::VecDeque;

use super::record::record_bytes;
use super::scan::{Span, Stride};
use crate::retention::{Holding, Without};
use crate::{Retention, UnixTime};

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// The offset in its name: that of its first event.
    pub(super) base: u64,
    /// In the order of offsets. None when all of it is too old, or damaged.
    pub(super) spans: Vec<Span>,
    /// The length of the part of the file that counts.
    pub(super) bytes: u64,
    /// True if its file, if there is one, is set aside when retention is past it, and not removed.
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

    /// The number of events from `first` on, and the bytes of the records that begin at `from` or later.
    fn rest(&self, first: u64, from: u64) -> (u64, u64) {
        let spans = self.spans.iter().filter(|span| span.last >= first);
        spans.fold((0, 0), |(events, bytes), span| {
            let more = (span.last + 1 - span.first.max(first), span.end - span.start.max(from));
            (events + more.0, bytes + more.1)
        })
    }
}

/// All files of a topic, oldest first. The last is the one that is written to.
#[derive(Debug)]
pub(super) struct Segments {
    list: VecDeque<Segment>,
    head: u64,
    first: u64,
    /// Events that are kept.
    events: u64,
    /// The bytes of their records.
    bytes: u64,
    edge: Edge,
}

/// The oldest events that are kept, as retention asks for them one by one: it goes through the middle of a file,
/// which has them still when they are gone.
#[derive(Debug, Default)]
struct Edge {
    /// The segment.
    base: u64,
    /// The beginning of the record of the oldest; 0 before one of this file has gone.
    at: u64,
    /// Its offset.
    offset: u64,
    /// The times of it and of those that follow without a hole, and the bytes of their records. Some of them: the rest is
    /// read when it is needed.
    known: VecDeque<Known>,
}

/// An event, as retention sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Known {
    pub(super) time: UnixTime,
    pub(super) bytes: u64,
}

impl Known {
    /// Most events that are known at once: 4 KiB for a topic.
    pub(super) const AT_ONCE_MAX: usize = 256;
}

impl Edge {
    /// Takes in what was appended, if it follows on what is known.
    fn append(&mut self, offset: u64, place: (u64, u64), known: Known) {
        let follows = self.base == place.0
            && self.offset + self.known.len() as u64 == offset
            && self.known.len() < Known::AT_ONCE_MAX;
        if follows && !self.known.is_empty() {
            self.known.push_back(known);
        }
    }
}

/// A segment that retention is past.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Gone {
    pub(super) base: u64,
    pub(super) is_damaged: bool,
}

/// The place of the records after an offset.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Stretch {
    /// The segment.
    pub(super) base: u64,
    /// The first offset that is wanted.
    pub(super) first: u64,
    /// An offset not after that, and where its record begins.
    pub(super) from: (u64, u64),
    /// The end of the records without a hole.
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

    /// Offset of the newest event ever appended; 0 before the first.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Offset of the oldest event that retention keeps, damaged or not, or of the next one to come when it keeps
    /// none.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The bytes that the records of the kept events take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Events that retention keeps and that are not there: they are damaged, or their file is missing.
    pub(super) fn missing(&self) -> u64 {
        self.head + 1 - self.first - self.events
    }

    /// The offset after which reading on from `after` goes on: just before the first that retention keeps, or there, or just
    /// before the next event that is not damaged.
    pub(super) fn resume(&self, after: u64) -> u64 {
        if after < self.first - 1 {
            return self.first - 1;
        }
        match self.at_or_after(after.saturating_add(1)) {
            Some((_, span)) => after.max(span.first - 1),
            None => after.max(self.head),
        }
    }

    /// The place of the event after `after`; `None` when it is not there.
    pub(super) fn locate(&self, after: u64) -> Option<Stretch> {
        let first = after.checked_add(1)?;
        let (base, span) = self.at_or_after(first)?;
        let there = span.first <= first;
        there.then(|| Stretch { base, first, from: span.seek(first), end: span.end })
    }

    /// The first stretch from `offset` on that may have an event as late as `time`: the event is in it, or behind it.
    /// The last offset in it stands beside.
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

    /// Returns whether this segment is still there.
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
        self.bytes += bytes;
        let offset = self.head;
        let known = Known { time, bytes };
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

    /// Takes in that there is a new and empty last segment.
    pub(super) fn begin(&mut self, base: u64, bytes: u64) {
        let before = self.list.back().map_or(0, |last| last.before + last.bytes);
        self.list.push_back(Segment { before, ..Segment::new(base, Vec::new(), bytes) });
    }

    /// Says anew what is in a segment. How many events are no longer in it.
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

    /// The bytes of a segment that count, and the offset that its events are below.
    pub(super) fn bounds(&self, base: u64) -> Option<(u64, u64)> {
        let place = self.list.iter().position(|segment| segment.base == base)?;
        let below = self.list.get(place + 1).map_or(self.head + 1, |next| next.base);
        self.list.get(place).map(|segment| (segment.bytes, below))
    }

    /// Returns whether the last segment has nothing that is still kept.
    pub(super) fn is_spent(&self) -> bool {
        self.list.back().is_some_and(|segment| segment.spans.is_empty())
    }

    /// Drops what retention no longer keeps, to the event, and returns the segments whose files can go; and where to
    /// read what it has to know to go on, for [`Segments::learn`]. The last file stays, if only for its name: it says
    /// what the next offset is. A segment without one good record goes with the next that has some, for nothing says
    /// how old it is.
    pub(super) fn expire(
        &mut self,
        retention: Retention,
        now: UnixTime,
    ) -> (Vec<Gone>, Option<Stretch>) {
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

    /// Drops whole segments while what is behind them reaches the bounds.
    fn expire_whole(&mut self, retention: Retention, now: UnixTime, gone: &mut Vec<Gone>) {
        while let Some(place) = self.list.iter().position(|segment| !segment.spans.is_empty()) {
            let oldest = &self.list[place];
            let (events, bytes) = oldest.rest(self.first, self.gone_bytes(oldest.base));
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

    /// Nothing is kept.
    fn clear(&mut self) {
        self.list.iter_mut().for_each(|segment| segment.spans.clear());
        (self.first, self.events, self.bytes) = (self.head + 1, 0, 0);
        self.edge = Edge::default();
    }

    /// Takes the segments out that are before the first event that is kept.
    fn pop_passed(&mut self, gone: &mut Vec<Gone>) {
        while self.list.get(1).is_some_and(|next| next.base <= self.first) {
            gone.extend(self.pop_oldest());
        }
    }

    /// Takes the oldest segment out; the next one is the first then.
    fn pop_oldest(&mut self) -> Option<Gone> {
        let segment = self.list.pop_front()?;
        if self.edge.base == segment.base {
            self.edge = Edge::default();
        }
        self.first = self.list.front().map_or(self.head + 1, |next| next.base).max(self.first);
        Some(Gone { base: segment.base, is_damaged: segment.is_damaged })
    }

    /// The contents that are kept, and when the oldest of them is of.
    fn held(&self, oldest: UnixTime) -> Holding {
        Holding { events: self.events, bytes: self.bytes, oldest }
    }

    /// The bytes of this segment's records that are no longer kept, its header included.
    fn gone_bytes(&self, base: u64) -> u64 {
        if self.edge.base == base { self.edge.at } else { 0 }
    }

    /// Counts what is kept.
    fn count(&mut self) {
        let rest = |segment: &Segment| segment.rest(self.first, self.gone_bytes(segment.base));
        let rests = self.list.iter().map(rest);
        let sum =
            |(events, bytes), (more_events, more_bytes)| (events + more_events, bytes + more_bytes);
        (self.events, self.bytes) = rests.fold((0, 0), sum);
    }

    /// The place of the oldest event that is kept, if there is one.
    fn unknown(&self) -> Option<Stretch> {
        let (base, span) = self.at_or_after(self.first)?;
        let first = self.first.max(span.first);
        let at = self.gone_bytes(base);
        let is_next = self.edge.offset == first && (span.start..span.end).contains(&at);
        let from = if is_next { (first, at) } else { span.seek(first) };
        Some(Stretch { base, first, from, end: span.end })
    }

    /// Takes in what is known of events, `first` and those behind it, the record of which begins at `at` in `base`.
    pub(super) fn learn(&mut self, base: u64, first: u64, at: u64, known: Vec<Known>) {
        // Someone else may have been faster.
        let is_oldest =
            self.unknown().is_some_and(|place| (place.base, place.first) == (base, first));
        if self.edge.known.is_empty() && is_oldest {
            self.edge = Edge { base, at, offset: first, known: known.into() };
        }
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

    /// Applies retention to the end, with what is read of the files.
    fn expire(segments: &mut Segments, retention: Retention, now: UnixTime) -> Vec<Gone> {
        let mut all = Vec::new();
        loop {
            let (gone, unknown) = segments.expire(retention, now);
            all.extend(gone);
            let Some(Stretch { base, first, .. }) = unknown else { return all };
            let known = Known { time: at(first), bytes: 100 };
            segments.learn(base, first, 32 + (first - base) * 100, vec![known]);
        }
    }

    fn bases(gone: &[Gone]) -> Vec<u64> {
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
        assert_eq!(gone, [Gone { base: 1, is_damaged: false }]);
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
