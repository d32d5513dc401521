//! Retention: how much a log keeps. A pure rule; the log applies it.

use std::time::Duration;

use crate::UnixTime;

/// The bounds of a log. The oldest events go first, as soon as any one bound is passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// Most events kept. Default 10,000; at least 1 is always kept by count.
    pub events_max: u64,
    /// Most bytes kept, data and bookkeeping together: in memory an event counts for its data and 152 bytes,
    /// about what it takes, and on disk for its record, which is its data and 40 bytes. Default 16 MiB.
    pub bytes_max: u64,
    /// Longest time an event is kept after [`Event::time`](crate::Event::time). Default 1 hour.
    pub age_max: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self { events_max: 10_000, bytes_max: 16 << 20, age_max: Duration::from_secs(3600) }
    }
}

/// The contents of a log, as the rule sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) oldest: UnixTime,
}

/// The contents of a log without its oldest piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Without {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl Retention {
    /// Returns whether a piece of a log can go as a whole: without it the bounds are still reached, or its
    /// newest event is too old.
    pub(crate) fn lets_go(self, without: Without, newest: UnixTime, now: UnixTime) -> bool {
        without.events >= self.events_max.max(1)
            || without.bytes >= self.bytes_max
            || now.since(newest) > self.age_max
    }

    /// Returns whether the oldest event has to go.
    pub(crate) fn is_passed(&self, held: Holding, now: UnixTime) -> bool {
        held.events > self.events_max.max(1)
            || held.bytes > self.bytes_max
            || now.since(held.oldest) > self.age_max
    }
}
