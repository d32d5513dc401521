//! The rate of a stream as people write it: `10` (events a second), `1/min`, `2/h`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of events in a unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    count: f64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Second,
    Minute,
    Hour,
}

impl Unit {
    fn seconds(self) -> f64 {
        match self {
            Self::Second => 1.0,
            Self::Minute => 60.0,
            Self::Hour => 3600.0,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Second => "a second",
            Self::Minute => "a minute",
            Self::Hour => "an hour",
        }
    }
}

impl Rate {
    /// The highest rate, in events a second. Programs can read more, but browsers cannot.
    const PER_SECOND_MAX: f64 = 1000.0;
    const PER_HOUR_MIN: f64 = 1.0;

    pub(crate) fn per_second(count: f64) -> Self {
        Self { count, unit: Unit::Second }
    }

    /// Returns the time from one event to the next.
    pub(crate) fn period(self) -> Duration {
        Duration::from_secs_f64(self.unit.seconds() / self.count)
    }

    pub(crate) fn per_hour(self) -> f64 {
        self.count * 3600.0 / self.unit.seconds()
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (count, unit) = text.split_once('/').unwrap_or((text, "s"));
        let unit = match unit.trim() {
            "s" => Some(Unit::Second),
            "min" => Some(Unit::Minute),
            "h" => Some(Unit::Hour),
            _ => None,
        };
        let count = count.trim().parse().ok().filter(|count: &f64| *count > 0.0);
        let rate = unit.zip(count).map(|(unit, count)| Self { count, unit });
        let range = Self::PER_HOUR_MIN..=Self::PER_SECOND_MAX * 3600.0;
        rate.filter(|rate| range.contains(&rate.per_hour())).ok_or_else(|| {
            "expected events a second, or such as 1/min or 2/h: from 1/h to 1000/s".to_owned()
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = if self.count == 1.0 { "event" } else { "events" };
        write!(f, "{} {events} {}", self.count, self.unit.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_said_as_it_was_given() {
        for (text, words, period_ms) in [
            ("10", "10 events a second", 100),
            ("0.5", "0.5 events a second", 2000),
            ("4/s", "4 events a second", 250),
            ("1/min", "1 event a minute", 60_000),
            ("6 / min", "6 events a minute", 10_000),
            ("1/h", "1 event an hour", 3_600_000),
            ("1000", "1000 events a second", 1),
        ] {
            let rate: Rate = text.parse().unwrap();
            let (said, period) = (rate.to_string(), rate.period().as_millis());
            assert_eq!((said.as_str(), period), (words, period_ms), "{text}");
        }
        assert_eq!("2/min".parse::<Rate>().unwrap().per_hour(), 120.0);
    }

    #[test]
    fn no_rate_is_guessed() {
        for text in
            ["", "NaN", "inf", "0", "-1", "1001", "0.9/h", "1/d", "1/m", "1/", "/s", "1/min/h"]
        {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
