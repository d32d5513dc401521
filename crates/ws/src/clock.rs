//! A clock that counts the time of `proto`.

use anemone_proto::Time;
use tokio::time::Instant;

/// Counts milliseconds from its creation. It follows tokio's clock, so tests can pause it.
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

    /// Converts an instant to a time; earlier instants become the beginning.
    pub(crate) fn time(self, instant: Instant) -> Time {
        let millis = instant.saturating_duration_since(self.0).as_millis();
        Time::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// Converts a time to an instant; `None` if it never comes.
    pub(crate) fn instant(self, time: Time) -> Option<Instant> {
        if time == Time::MAX { None } else { self.0.checked_add(time.since(Time::ZERO)) }
    }
}
