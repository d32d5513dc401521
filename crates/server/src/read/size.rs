//! The size of pages, beside the limit of a turn. Pure.

use std::ops::Add;

use anemone_hub::PageLimit;

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
            bytes: size.bytes + (event.data.as_str().len() + overhead) as u64,
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

#[cfg(test)]
mod tests {
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
}
