//! Helpers for tests.

use crate::{Batch, Data, NewEvent, Page, UnixTime};

/// Returns a time this many seconds after a moment in 2026.
pub(crate) fn at(seconds: u64) -> UnixTime {
    UnixTime::from_micros((1_789_000_000 + seconds) * 1_000_000)
}

pub(crate) fn batch(time: UnixTime, numbers: impl IntoIterator<Item = u64>) -> Batch {
    let event = |number| NewEvent { time, data: Data::json(&number).unwrap() };
    Batch::new(numbers.into_iter().map(event).collect())
}

pub(crate) fn numbers(page: &Page) -> Vec<u64> {
    page.events.iter().map(|event| event.data.as_str().parse().unwrap()).collect()
}

pub(crate) fn offsets(page: &Page) -> Vec<u64> {
    page.events.iter().map(|event| event.offset).collect()
}
