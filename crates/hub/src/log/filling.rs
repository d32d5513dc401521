//! A page of a log that is being filled.

use std::sync::Arc;

use crate::{Event, PageLimit};

#[derive(Debug)]
pub(super) struct Filling {
    limit: PageLimit,
    bytes: u64,
    pub(super) events: Vec<Arc<Event>>,
    pub(super) is_full: bool,
}

impl Filling {
    pub(super) fn new(limit: PageLimit, available: u64) -> Self {
        let expected = usize::try_from(available).unwrap_or(usize::MAX).min(limit.events_max);
        let events = Vec::with_capacity(expected);
        Self { limit, bytes: 0, events, is_full: limit.events_max == 0 }
    }

    /// Returns true if an event with this much data fits; otherwise the page is full.
    pub(super) fn fits(&mut self, data_bytes: usize) -> bool {
        let bytes = self.bytes + data_bytes as u64;
        let fits = self.events.is_empty() || bytes <= self.limit.bytes_max;
        self.is_full |= !fits;
        fits && !self.is_full
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.bytes += event.data.bytes().len() as u64;
        self.events.push(event);
        self.is_full = self.events.len() >= self.limit.events_max;
    }

    /// Adds as many of these as fit.
    pub(super) fn extend<'a>(&mut self, events: impl Iterator<Item = &'a Arc<Event>>) {
        for event in events {
            if !self.fits(event.data.bytes().len()) {
                return;
            }
            self.push(Arc::clone(event));
        }
    }
}
