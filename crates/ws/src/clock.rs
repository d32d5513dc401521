//! The clock behind `proto`'s time.

use anemone_proto::Time;
use tokio::time::Instant;

/// Counts milliseconds from its creation; follows tokio's clock, so tests can pause it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        let millis = self.0.elapsed().as_millis();
        Time::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// The time of an instant; the beginning if it was before.
    pub(crate) fn time(self, instant: Instant) -> Time {
        let millis = instant.saturating_duration_since(self.0).as_millis();
        Time::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// The instant of a time; `None` when it never comes.
    pub(crate) fn instant(self, time: Time) -> Option<Instant> {
        if time == Time::MAX { None } else { self.0.checked_add(time.since(Time::ZERO)) }
    }
}
