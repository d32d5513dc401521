//! Time as this crate sees it: a number that the caller hands in.

use std::ops::Add;
use std::time::Duration;

/// A moment, in milliseconds since a start of the caller's choice. It never goes back.
///
/// Eight bytes rather than `Instant`'s sixteen, and it can be made up in a test.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Time(u64);

impl Time {
    /// The start.
    pub const ZERO: Self = Self(0);
    /// Never.
    pub const MAX: Self = Self(u64::MAX);

    /// This many milliseconds after the start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the start.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates, so that a duration of "never" stays never.
    fn add(self, duration: Duration) -> Self {
        let millis = duration.as_secs().saturating_mul(1000);
        let millis = millis.saturating_add(u64::from(duration.subsec_millis()));
        Self(self.0.saturating_add(millis))
    }
}
