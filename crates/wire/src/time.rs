//! The time of events ("Poll and long poll" in `docs/PROTOCOL.md`).

use std::fmt;
use std::str::FromStr;
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
    #[cfg(feature = "system")]
    #[expect(clippy::disallowed_methods, reason = "the feature is for this")]
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Makes a moment of microseconds since the Unix epoch.
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

/// An error: the text is not a number of milliseconds with up to three decimals.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not a number of milliseconds with up to three decimals")]
pub struct UnixTimeError;

impl FromStr for UnixTime {
    type Err = UnixTimeError;

    fn from_str(text: &str) -> Result<Self, UnixTimeError> {
        parse(text).ok_or(UnixTimeError)
    }
}

fn parse(text: &str) -> Option<UnixTime> {
    let (millis, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(millis) || !is_number(decimals) || !(1..=3).contains(&decimals.len()) {
        return None;
    }
    let (millis, micros): (u64, u64) =
        (millis.parse().ok()?, format!("{decimals:0<3}").parse().ok()?);
    millis.checked_mul(1_000)?.checked_add(micros).map(UnixTime)
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_time_survives_its_text(micros: u64) {
            let time = UnixTime::from_micros(micros);
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }
    }

    #[test]
    fn fewer_decimals_are_taken_and_other_texts_are_not() {
        let micros = |text: &str| text.parse().map(UnixTime::as_micros);
        assert_eq!(micros("17"), Ok(17_000));
        assert_eq!(micros("17.4"), Ok(17_400));
        for text in
            ["", ".", "1.", ".5", "1.2345", "-1", "+1", "1e3", "1 ", "noon", "18446744073709551616"]
        {
            assert_eq!(micros(text), Err(UnixTimeError), "{text:?}");
        }
    }

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

    #[cfg(feature = "system")]
    #[expect(clippy::disallowed_methods, reason = "the clock is what is tested")]
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
