//! Moments, as a server tells them.

use std::fmt;

/// A moment, in microseconds since the Unix epoch. Text: milliseconds, with three decimals when there are any.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UnixTime(u64);

impl UnixTime {
    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// A number of milliseconds, if it is a moment at all.
    pub(crate) fn from_millis(millis: f64) -> Option<Self> {
        /// 2^53 microseconds, the year 2255: up to here a number of JSON has them exactly.
        const MILLIS_MAX: f64 = 9_007_199_254_740.992;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked"
        )]
        let micros = |millis: f64| (millis * 1000.0).round() as u64;
        (0.0..=MILLIS_MAX).contains(&millis).then(|| Self(micros(millis)))
    }

    /// The same as text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().and_then(Self::from_millis)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_numbers_that_can_be_one() {
        assert_eq!(
            UnixTime::from_millis(1_789_000_000_123.456).unwrap().as_micros(),
            1_789_000_000_123_456
        );
        assert_eq!(UnixTime::from_millis(17.0).unwrap().to_string(), "17");
        for millis in [-1.0, 1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(UnixTime::from_millis(millis), None);
        }
    }
}
