//! Positions as servers hand them out: which log, and which event in it was the last one seen.

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

/// A place in a topic, `EPOCH-OFFSET`: the epoch of its log and the offset of the last event seen there,
/// 0 before the first.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Position {
    epoch: String,
    offset: u64,
}

impl Position {
    /// The longest epoch that is taken, in bytes. Servers of today use 10.
    const EPOCH_BYTES_MAX: usize = 32;

    /// Which log.
    #[must_use]
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// The last event seen in it.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Another place in the same log.
    #[must_use]
    pub fn at(&self, offset: u64) -> Self {
        Self { epoch: self.epoch.clone(), offset }
    }

    /// The place with these parts, if there is one.
    pub(crate) fn of(epoch: &str, offset: u64) -> Option<Self> {
        let fits = (1..=Self::EPOCH_BYTES_MAX).contains(&epoch.len());
        let is_base36 = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
        (fits && epoch.bytes().all(is_base36)).then(|| Self { epoch: epoch.to_owned(), offset })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.offset)
    }
}

/// The text is not a position.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text:?} is not a position: expected EPOCH-OFFSET, as in \"4zq81x-42\"")]
pub struct PositionError {
    /// The text that was given instead, cut to 40 characters.
    pub text: String,
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        parse(text).ok_or_else(|| PositionError { text: text.chars().take(40).collect() })
    }
}

fn parse(text: &str) -> Option<Position> {
    let (epoch, offset) = text.split_once('-')?;
    let is_canonical = offset == "0" || !offset.starts_with('0');
    if !is_canonical || !offset.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Position::of(epoch, offset.parse().ok()?)
}

/// The place where a subscription begins.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum After {
    /// With what comes from now on.
    #[default]
    Latest,
    /// At the oldest event that is kept.
    Earliest,
    /// After this event.
    Position(Position),
    /// With so many of the newest events, or with all where fewer are kept.
    Last(NonZero<u64>),
    /// With the first event of this time or later: so long ago, as `10m`, or a time, as `2026-11-22T10:00:00Z`. It is the
    /// server that reads it, by its own clock.
    Since(String),
}

impl After {
    /// The most that can be asked for with [`After::Last`].
    pub const LAST_MAX: u64 = 999_999_999_999_999_999;

    /// The parameter that asks a server for it, percent-encoded.
    pub(crate) fn parameter(&self) -> (&'static str, String) {
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect();
        match self {
            Self::Latest => ("after", "latest".to_owned()),
            Self::Earliest => ("after", "earliest".to_owned()),
            Self::Position(position) => ("after", position.to_string()),
            Self::Last(count) => ("after", format!("-{count}")),
            Self::Since(time) => ("since", encoded(time)),
        }
    }
}

impl FromStr for After {
    type Err = AfterError;

    fn from_str(text: &str) -> Result<Self, AfterError> {
        match text {
            "latest" => Ok(Self::Latest),
            "earliest" => Ok(Self::Earliest),
            text if let Some(count) = text.strip_prefix('-').and_then(last) => {
                Ok(Self::Last(count))
            }
            // With `~` where a reader was ended; each subscription begins where it is told to.
            text => match parse(text.strip_suffix('~').unwrap_or(text)) {
                Some(position) => Ok(Self::Position(position)),
                None => Err(AfterError { text: text.chars().take(40).collect() }),
            },
        }
    }
}

/// A count of events in its one spelling.
fn last(text: &str) -> Option<NonZero<u64>> {
    let is_canonical = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    let count = text.parse().ok().filter(|count: &NonZero<u64>| count.get() <= After::LAST_MAX);
    count.filter(|_| is_canonical)
}

/// The text does not say where to begin.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{text:?} is no place to begin: expected a position, as \"4zq81x-42\", or earliest, or latest, or -10 for the last 10 events"
)]
pub struct AfterError {
    /// The text that was given instead, cut to 40 characters.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_has_exactly_one_text() {
        for text in ["4zq81x-42", "0-0", "a-18446744073709551615"] {
            assert_eq!(text.parse::<Position>().unwrap().to_string(), text);
        }
        for text in
            ["", "-", "a-", "-1", "a-01", "a-+1", "A-1", "a-1-2", "a-18446744073709551616", "ä-1"]
        {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
        assert!(format!("{}-1", "a".repeat(33)).parse::<Position>().is_err());
    }

    #[test]
    fn where_to_begin_is_a_position_or_a_word() {
        for text in ["latest", "earliest", "a-7", "-1", "-999999999999999999"] {
            assert_eq!(text.parse::<After>().unwrap().parameter(), ("after", text.to_owned()));
        }
        assert_eq!("a-7~".parse(), Ok(After::Position("a-7".parse().unwrap())), "of an end");
        for text in ["now", "-0", "-01", "--1", "-+1", "-", "-1~", "-1000000000000000000", "10"] {
            let error = text.parse::<After>().unwrap_err().to_string();
            let words = "is no place to begin: expected a position, as \"4zq81x-42\", or earliest, or latest, or -10 for the \
                         last 10 events";
            assert_eq!(error, format!("\"{text}\" {words}"));
        }
        let since = After::Since("2026-11-22 10:00:00+01:00".to_owned());
        assert_eq!(since.parameter(), ("since", "2026-11-22+10%3A00%3A00%2B01%3A00".to_owned()));
    }
}
