//! A moment by both clocks.

use std::time::{Duration, Instant};

use crate::UnixTime;

/// A moment by the clock of the day, which people read and which may jump, and by the monotonic one, which measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) time: UnixTime,
    pub(crate) instant: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { time: UnixTime::now(), instant: Instant::now() }
    }

    /// Returns the moment after this time, or one that never comes if there is none.
    pub(crate) fn after(self, time: Duration) -> Instant {
        let never = Duration::from_secs(100 * 365 * 86_400);
        self.instant.checked_add(time).unwrap_or_else(|| self.instant + never)
    }
}
