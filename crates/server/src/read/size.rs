//! The size of pages, beside the limit of a turn. Pure.

use std::ops::Add;

use anemone_hub::{Event, PageLimit};

use crate::read::reader::Page;

/// The events of pages, and their bytes as they are sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Size {
    pub(crate) events: usize,
    pub(crate) bytes: u64,
}

impl Size {
    /// Returns the size of pages whose events take `overhead` bytes each beside their data.
    pub(crate) fn of<'a>(pages: impl IntoIterator<Item = &'a Page>, overhead: usize) -> Self {
        let events = pages.into_iter().flat_map(|page| &page.events);
        events.fold(Self::default(), |size, event| Self {
            events: size.events + 1,
            bytes: size.bytes + bytes_of(event, overhead),
        })
    }

    /// Returns how much more each of so many pages may take, if later events are as long as these.
    pub(crate) fn more_for_each(self, pages: usize, limit: PageLimit) -> Self {
        if pages == 0 || self.events == 0 {
            return Self::default();
        }
        let bytes = limit.bytes_max.saturating_sub(self.bytes) / pages as u64;
        let event_bytes = (self.bytes / self.events as u64).max(1);
        let events = limit.events_max.saturating_sub(self.events) / pages;
        let events = events.min(usize::try_from(bytes / event_bytes).unwrap_or(events));
        Self { events, bytes }
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { events: self.events + other.events, bytes: self.bytes + other.bytes }
    }
}

impl From<Size> for PageLimit {
    fn from(size: Size) -> Self {
        Self { events_max: size.events, bytes_max: size.bytes }
    }
}

/// Returns the limit of each topic's page if so many share a limit: as many events as fit, even without data, and at least one.
pub(crate) fn share(limit: PageLimit, topics: usize, overhead: usize) -> PageLimit {
    let topics = topics.max(1);
    let bytes_max = (limit.bytes_max / topics as u64).max(1);
    let fitting = usize::try_from(bytes_max / overhead.max(1) as u64).unwrap_or(usize::MAX);
    let events_max = (limit.events_max / topics).min(fitting).max(1);
    PageLimit { events_max, bytes_max }
}

/// Cuts a page to so many bytes, but not below one event.
pub(crate) fn cut(page: &mut Page, bytes_max: u64, overhead: usize) {
    let mut bytes = 0;
    let fitting = page.events.iter().take_while(|event| {
        bytes += bytes_of(event, overhead);
        bytes <= bytes_max
    });
    let fitting = fitting.count().max(1);
    if fitting < page.events.len() {
        page.events.truncate(fitting);
        page.is_last = false;
        page.next.offset = page.events.last().map_or(page.next.offset, |event| event.offset);
    }
}

fn bytes_of(event: &Event, overhead: usize) -> u64 {
    (event.data.as_str().len() + overhead) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anemone_hub::{Data, Epoch, Position, UnixTime};

    use super::*;

    #[test]
    fn what_is_left_is_shared_by_events_and_by_bytes() {
        let limit = PageLimit { events_max: 100, bytes_max: 1_000 };
        let used = |events, bytes| Size { events, bytes };
        for (size, pages, events, bytes) in [
            (used(50, 50), 2, 25, 475),
            (used(50, 500), 1, 50, 500),
            (used(50, 750), 2, 8, 125),
            (used(99, 99), 2, 0, 450),
            (used(100, 100), 1, 0, 900),
            (used(10, 2_000), 1, 0, 0),
            (used(10, 10), 0, 0, 0),
            (used(0, 0), 3, 0, 0),
        ] {
            let expected = Size { events, bytes };
            assert_eq!(size.more_for_each(pages, limit), expected, "{size:?} {pages}");
        }
    }
    fn page(bytes: &[usize]) -> Page {
        let event = |(offset, bytes): (u64, &usize)| {
            let data = Data::json(&"x".repeat(bytes - 2)).unwrap();
            Arc::new(Event { offset, time: UnixTime::default(), data })
        };
        let begin = Position { epoch: Epoch::from_bits(1), offset: 0 };
        let events: Vec<_> = (1..).zip(bytes).map(event).collect();
        let next = begin.at(events.len() as u64);
        Page { first: 1, gap: None, begin, skipped: 0, events, next, is_last: true }
    }

    #[test]
    fn a_share_counts_what_is_around_events() {
        let limit = |events_max, bytes_max| PageLimit { events_max, bytes_max };
        assert_eq!(share(limit(100, 1_000), 2, 100), limit(5, 500));
        assert_eq!(share(limit(8, 1_000), 2, 100), limit(4, 500));
        assert_eq!(share(limit(8, 1_000), 20, 100), limit(1, 50));
        assert_eq!(share(limit(8, 1_000), 2_000, 100), limit(1, 1));
        assert_eq!(share(limit(8, 1_000), 0, 100), limit(8, 1_000));
    }

    #[test]
    fn a_page_is_cut_to_the_events_that_fit() {
        for (bytes_max, events) in [(600, 3), (599, 2), (400, 2), (200, 1), (1, 1)] {
            let mut page = page(&[100, 100, 100]);
            cut(&mut page, bytes_max, 100);
            assert_eq!((page.events.len(), page.next.offset), (events, events as u64));
            assert_eq!(page.is_last, events == 3, "{bytes_max}");
        }
        let mut none = page(&[]);
        cut(&mut none, 100, 100);
        assert_eq!(none, page(&[]));
    }
}
