//! `since`: the time at which reading begins.
//!
//! It has three forms that cannot be confused: a duration before now, a date with a time, and milliseconds like
//! `time` in events. Durations count from this machine's clock, which also sets the times of events.

use std::time::Duration;

use anemone_hub::UnixTime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const AGO_DIGITS_MAX: usize = 15;

/// The fewest digits of milliseconds since 1970, for a time in 1973: a shorter number means seconds, or lacks its
/// unit.
const MILLIS_DIGITS_MIN: usize = 12;

/// Returns the time that `since` means at `now`; `None` if it is invalid.
pub(super) fn parse(text: &str, now: UnixTime) -> Option<UnixTime> {
    ago(text).map(|ago| before(now, ago)).or_else(|| millis(text)).or_else(|| date(text))
}

fn before(now: UnixTime, ago: Duration) -> UnixTime {
    let ago = u64::try_from(ago.as_micros()).unwrap_or(u64::MAX);
    UnixTime::from_micros(now.as_micros().saturating_sub(ago))
}

/// Parses a whole number and a unit, such as `10m`.
fn ago(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(unit);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60 * 1_000,
        "h" => 60 * 60 * 1_000,
        "d" => 24 * 60 * 60 * 1_000,
        _ => return None,
    };
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= AGO_DIGITS_MAX)?;
    Some(Duration::from_millis(number.saturating_mul(millis)))
}

/// Parses milliseconds since 1970, with up to three decimals, such as `1789000000123.456`.
fn millis(text: &str) -> Option<UnixTime> {
    let digits = text.find('.').unwrap_or(text.len());
    text.parse().ok().filter(|_| digits >= MILLIS_DIGITS_MIN)
}

/// Parses RFC 3339, such as `2026-11-22T10:00:00Z`. An unescaped `+` in a query means a space, which cannot precede
/// an offset.
fn date(text: &str) -> Option<UnixTime> {
    const OFFSET_BYTES: usize = "+01:00".len();
    /// The length of `2026-11-22T10:00:00.123456789+01:00`.
    const BYTES_MAX: usize = 35;
    let sign = text.len().checked_sub(OFFSET_BYTES)?;
    let text = match text.split_at_checked(sign)? {
        (time, offset) if offset.starts_with(' ') => format!("{time}+{}", &offset[1..]),
        _ => text.to_owned(),
    };
    // RFC 3339 allows other separators, which are refused here.
    let is_parted = matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' '));
    if !is_parted || text.len() > BYTES_MAX {
        return None;
    }
    let date = OffsetDateTime::parse(&text, &Rfc3339).ok()?;
    // All events are later than 1970.
    let micros = date.unix_timestamp_nanos().max(0) / 1_000;
    u64::try_from(micros).ok().map(UnixTime::from_micros)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: UnixTime = UnixTime::from_micros(1_789_000_000_123_456);

    proptest! {
        #[test]
        fn the_time_of_an_event_stands_for_itself(micros in 100_000_000_000_000_u64..u64::MAX) {
            let time = UnixTime::from_micros(micros);
            prop_assert_eq!(parse(&time.to_string(), NOW), Some(time));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}", like in "[0-9TZ:+ .-]{0,40}") {
            let _ = (parse(&text, NOW), parse(&like, NOW));
        }
    }

    #[test]
    fn how_long_ago_ends_where_time_begins() {
        for (text, micros) in [
            ("0s", 1_789_000_000_123_456),
            ("1ms", 1_789_000_000_122_456),
            ("1d", 1_788_913_600_123_456),
            ("999999999999999d", 0),
        ] {
            assert_eq!(parse(text, NOW), Some(UnixTime::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn a_date_needs_all_its_parts() {
        let whole = "2026-11-22T10:00:00.5+01:00";
        assert_eq!(parse(whole, NOW), Some(UnixTime::from_micros(1_795_338_000_500_000)));
        for len in 0..whole.len() {
            assert_eq!(parse(&whole[..len], NOW), None, "{}", &whole[..len]);
        }
        for text in ["2026-11-22_10:00:00Z", "é026-11-22T10:00:00Z", "2026-11-22T10:00:0é:00"] {
            assert_eq!(parse(text, NOW), None, "{text}");
        }
    }
}
