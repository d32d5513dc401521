//! `keep`: the age up to which topics keep events, and the bytes that they share.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use super::document::{Node, Value};
use super::values::{
    AGE_MAX, MIB, SECOND, Size, TIB, Time, list, parse_duration, parse_size, parsed,
};

/// One of the two limits: `30d` or `10GiB`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum KeepLimit {
    /// The age of events, for topics whose rules have none.
    Age(Duration),
    /// The bytes that topics without a limit in bytes share.
    Bytes(u64),
}

/// Both limits, if they are set.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Keep {
    pub(crate) age: Option<Duration>,
    pub(crate) bytes: Option<u64>,
}

impl Keep {
    /// The smallest number of bytes to share: an event of the largest size, and some more.
    pub(crate) const BYTES_MIN: u64 = 2 * MIB;
    const BYTES_MAX: u64 = 1024 * TIB;

    /// Combines limits, of which each kind is there once.
    pub(crate) fn of(limits: &[KeepLimit]) -> Result<Self, String> {
        let mut keep = Self::default();
        for limit in limits {
            let before = match *limit {
                KeepLimit::Age(age) => keep.age.replace(age).map(|_| "ages"),
                KeepLimit::Bytes(bytes) => keep.bytes.replace(bytes).map(|_| "sizes"),
            };
            if let Some(kind) = before {
                return Err(format!(
                    "there are two {kind}: expected one age, one size, or one of each"
                ));
            }
        }
        Ok(keep)
    }
}

impl FromStr for KeepLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = |min: &dyn Display, max: &dyn Display| {
            format!("{text:?} is not in the range from {min} to {max}")
        };
        // All units of sizes end like this, and no unit of times does.
        if text.ends_with('B') {
            let (min, max) = (Keep::BYTES_MIN, Keep::BYTES_MAX);
            let bytes = parse_size(text)?;
            let is_in = (min..=max).contains(&bytes);
            return is_in
                .then_some(Self::Bytes(bytes))
                .ok_or_else(|| range(&Size(min), &Size(max)));
        }
        let age = parse_duration(text).map_err(|_| {
            format!("{text:?} is neither an age, such as \"30d\", nor a size, such as \"10GiB\"")
        })?;
        let is_in = (SECOND..=AGE_MAX).contains(&age);
        is_in.then_some(Self::Age(age)).ok_or_else(|| range(&Time(SECOND), &Time(AGE_MAX)))
    }
}

impl Display for KeepLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age(age) => Time(*age).fmt(f),
            Self::Bytes(bytes) => Size(*bytes).fmt(f),
        }
    }
}

/// Parses an age, a size, or a list of one of each.
pub(super) fn keep(node: &Node) -> Result<Keep, String> {
    let limits = match &node.content {
        Value::List(_) | Value::Variable(_) => list(parsed)(node)?,
        _ => vec![parsed(node)?],
    };
    Keep::of(&limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_an_age_or_a_size() {
        for text in ["30d", "1s", "36500d", "2MiB", "10GiB", "1024TiB"] {
            assert_eq!(text.parse::<KeepLimit>().unwrap().to_string(), text);
        }
        for (text, expected) in [
            ("", "neither an age, such as \"30d\", nor a size, such as \"10GiB\""),
            ("30", "neither an age"),
            ("10G", "neither an age"),
            ("10GB", "the units are B, KiB, MiB, GiB and TiB"),
            ("1MiB", "is not in the range from 2MiB to 1024TiB"),
            ("999ms", "is not in the range from 1s to 36500d"),
            ("36501d", "is not in the range"),
        ] {
            let error = text.parse::<KeepLimit>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn each_kind_of_limit_is_there_once() {
        let of = |texts: &[&str]| {
            Keep::of(&texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
        };
        let age = Some(Duration::from_secs(86_400));
        assert_eq!(of(&[]), Ok(Keep::default()));
        assert_eq!(of(&["2MiB", "1d"]), Ok(Keep { age, bytes: Some(2 << 20) }));
        assert!(of(&["1d", "2d"]).unwrap_err().starts_with("there are two ages"));
        assert!(of(&["2MiB", "1d", "3MiB"]).unwrap_err().starts_with("there are two sizes"));
    }
}
