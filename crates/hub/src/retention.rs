//! Retention: the limits of a log. Pure; the log applies it.

use std::time::Duration;

use crate::UnixTime;

/// The limits of a log. The oldest events are dropped beyond any limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// The most events kept. Default 10,000; at least 1 event is kept.
    pub events_max: u64,
    /// The most bytes kept, data and overhead together. In memory an event counts for its data and 152 bytes, about
    /// what it takes; on disk for its record, which is its data and 40 bytes. Default 16 MiB.
    pub bytes_max: u64,
    /// The longest time that an event is kept after [`Event::time`](crate::Event::time). Default 1 hour.
    pub age_max: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self { events_max: 10_000, bytes_max: 16 << 20, age_max: Duration::from_secs(3600) }
    }
}

/// The size of a log's contents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) oldest: UnixTime,
}

/// The size of a log's contents without its oldest piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Without {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl Retention {
    /// Returns true if a piece of a log can be dropped as a whole: the limits are reached without it, or its newest
    /// event is too old.
    pub(crate) fn lets_go(self, without: Without, newest: UnixTime, now: UnixTime) -> bool {
        without.events >= self.events_max.max(1)
            || without.bytes >= self.bytes_max
            || now.since(newest) > self.age_max
    }

    /// Returns true if the oldest event must be dropped.
    pub(crate) fn is_passed(&self, held: Holding, now: UnixTime) -> bool {
        held.events > self.events_max.max(1)
            || held.bytes > self.bytes_max
            || now.since(held.oldest) > self.age_max
    }
}
