//! The retention of a topic in words.

use std::fmt;
use std::time::Duration;

use crate::Retention;

/// The retention of a topic. Its text continues "keeps": `7 d, at most 64 MiB`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Keeps {
    /// Its limits.
    pub retention: Retention,
    /// The bytes that it shares with other topics, if it has no limit in bytes.
    pub shared_bytes_max: Option<u64>,
}

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// An age from 100 years on counts as no limit.
const AGE_NO_LIMIT: Duration = DAY.saturating_mul(36_500);

/// The units, the largest first.
const TIME_UNITS: [(&str, Duration); 5] = [
    ("d", DAY),
    ("h", Duration::from_secs(3600)),
    ("min", Duration::from_secs(60)),
    ("s", SECOND),
    ("ms", Duration::from_millis(1)),
];
const SIZE_UNITS: [(&str, u64); 4] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl fmt::Display for Keeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Retention { events_max, bytes_max, age_max } = self.retention;
        let is_limit = |limit: &u64| *limit != Retention::NO_LIMIT;
        let age = Some(age_max).filter(|age| *age < AGE_NO_LIMIT).map(time);
        let events = Some(events_max).filter(is_limit).map(count);
        let bytes = Some(bytes_max).filter(is_limit).map(size);
        let most: Vec<_> = events.into_iter().chain(bytes).collect();
        let most = (!most.is_empty()).then(|| format!("at most {}", most.join(" or ")));
        let limits: Vec<_> = age.into_iter().chain(most).collect();
        let limits = limits.join(", ");
        match (self.shared_bytes_max.map(size), limits.as_str()) {
            (Some(shared), "") => write!(f, "what fits in {shared} shared by all topics"),
            (Some(shared), _) => write!(f, "{limits}, if it fits in {shared} shared by all topics"),
            (None, "") => f.write_str("everything"),
            (None, _) => f.write_str(&limits),
        }
    }
}

/// Returns the time in the largest unit that needs no fraction.
fn time(time: Duration) -> String {
    let millis = time.as_millis();
    let whole = |unit: &Duration| millis != 0 && millis.is_multiple_of(unit.as_millis());
    let unit = TIME_UNITS.iter().find(|(_, unit)| whole(unit));
    unit.map_or_else(
        || "0 s".into(),
        |(name, unit)| format!("{} {name}", millis / unit.as_millis()),
    )
}

/// Returns the size in the largest unit that it fills, with two digits after the point if they are needed.
fn size(bytes: u64) -> String {
    let Some((name, unit)) = SIZE_UNITS.iter().find(|(_, unit)| bytes >= *unit) else {
        return format!("{bytes} bytes");
    };
    let hundredths = u128::from(bytes) * 100 / u128::from(*unit);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn count(events: u64) -> String {
    let digits = events.to_string();
    let grouped = digits.char_indices().fold(String::new(), |mut text, (place, digit)| {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
        text
    });
    format!("{grouped} event{}", if events == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_said_in_words() {
        const NONE: u64 = Retention::NO_LIMIT;
        let days = |days: u64| Duration::from_secs(86_400 * days);
        for (events_max, bytes_max, age_max, shared, expected) in [
            (NONE, 64 << 20, days(7), None, "7 d, at most 64 MiB"),
            (10_000, 16 << 20, days(1) / 24, None, "1 h, at most 10,000 events or 16 MiB"),
            (1, NONE, Duration::MAX, None, "at most 1 event"),
            (1_234_567, 1500, Duration::MAX, None, "at most 1,234,567 events or 1.46 KiB"),
            (NONE, 999, Duration::from_millis(1500), None, "1500 ms, at most 999 bytes"),
            (NONE, NONE, days(36_500), None, "everything"),
            (NONE, NONE, Duration::MAX, Some(1 << 30), "what fits in 1 GiB shared by all topics"),
            (NONE, NONE, days(30), Some(1 << 40), "30 d, if it fits in 1 TiB shared by all topics"),
        ] {
            let retention = Retention { events_max, bytes_max, age_max };
            assert_eq!(Keeps { retention, shared_bytes_max: shared }.to_string(), expected);
        }
    }
}
