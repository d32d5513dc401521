//! Wall-clock time as events carry it. Owns the format; the hub itself reads no clock, its callers do.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};

/// A moment, in microseconds since the Unix epoch.
///
/// On the wire it is **milliseconds**, with the microseconds as three decimals when there are any:
/// `1789000000123.456`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UnixTime(u64);

impl UnixTime {
    /// This moment, by the system's clock.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// A moment given in microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero when `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for UnixTime {
    /// A system clock set before 1970 gives the Unix epoch itself.
    fn from(time: SystemTime) -> Self {
        let elapsed = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 1000, self.0 % 1000) {
            (millis, 0) => write!(f, "{millis}"),
            (millis, micros) => write!(f, "{millis}.{micros:03}"),
        }
    }
}

impl Serialize for UnixTime {
    /// A JSON number of milliseconds.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 us, the year 2255")]
        let millis = self.0 as f64 / 1000.0;
        match self.0 % 1000 {
            0 => serializer.serialize_u64(self.0 / 1000),
            _ => serializer.serialize_f64(millis),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_formatted_as_milliseconds_with_three_decimals() {
        assert_eq!(UnixTime::from_micros(1_789_000_000_123_456).to_string(), "1789000000123.456");
        assert_eq!(UnixTime::from_micros(1_789_000_000_123_000).to_string(), "1789000000123");
        assert_eq!(UnixTime::from_micros(1_000_007).to_string(), "1000.007");
    }

    #[test]
    fn json_and_display_say_the_same() {
        for micros in [0, 1_000, 1_789_000_000_123_000] {
            let time = UnixTime::from_micros(micros);
            assert_eq!(serde_json::to_string(&time).unwrap(), time.to_string());
        }
        let time = UnixTime::from_micros(1_789_000_000_123_456);
        assert_eq!(serde_json::to_string(&time).unwrap(), "1789000000123.456");
    }

    #[test]
    fn now_is_between_before_and_after() {
        let before = UnixTime::from(SystemTime::now());
        let now = UnixTime::now();
        assert!((before..=SystemTime::now().into()).contains(&now));
    }

    #[test]
    fn since_saturates_when_the_clock_was_set_back() {
        let (early, late) = (UnixTime::from_micros(5), UnixTime::from_micros(9));
        assert_eq!(late.since(early), Duration::from_micros(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
