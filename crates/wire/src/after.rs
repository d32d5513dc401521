//! The place where a reader begins: the parameter `after` ("Positions" in `docs/PROTOCOL.md`).

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::Position;

/// The place where a reader asks to begin. Text: a position, `POSITION~`, `-N`, `earliest` or `latest`.
///
/// ```
/// use anemone_wire::After;
///
/// assert_eq!("earliest".parse(), Ok(After::Earliest));
/// assert_eq!("-10".parse::<After>()?.to_string(), "-10"); // the last ten events
/// let after: After = "4zq81x-42".parse()?;
/// assert_eq!(after.position().map(|position| position.offset), Some(42));
/// # Ok::<(), anemone_wire::AfterError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum After {
    /// Continues after this position.
    Position(Position),
    /// Begins anew after this position. A plain position tells how far earlier polls came, so a poll with one can be too
    /// slow; a poll with this cannot.
    Anew(Position),
    /// Begins with the last so many events, or with the oldest one if the log has fewer.
    Last(NonZeroU64),
    /// Begins with the oldest event in the log.
    Earliest,
    /// Begins with the next event.
    #[default]
    Latest,
}

impl After {
    /// The sign after the position of [`After::Anew`].
    pub(crate) const ANEW: char = '~';
    /// The most digits in the text of [`After::Last`]. No log has as many events.
    const DIGITS_MAX: usize = 18;
    /// The greatest number of events in the text of [`After::Last`].
    pub const LAST_MAX: u64 = 10_u64.pow(Self::DIGITS_MAX as u32) - 1;

    /// The position, if it is one.
    #[must_use]
    pub const fn position(self) -> Option<Position> {
        match self {
            Self::Position(position) | Self::Anew(position) => Some(position),
            Self::Last(_) | Self::Earliest | Self::Latest => None,
        }
    }
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(position) => write!(f, "{position}"),
            Self::Anew(position) => write!(f, "{position}{}", Self::ANEW),
            Self::Last(count) => write!(f, "-{count}"),
            Self::Earliest => f.write_str("earliest"),
            Self::Latest => f.write_str("latest"),
        }
    }
}

impl FromStr for After {
    type Err = AfterError;

    fn from_str(text: &str) -> Result<Self, AfterError> {
        parse(text).ok_or_else(|| AfterError { text: text.chars().take(40).collect() })
    }
}

/// An error: the text is no `after`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{text:?} is not a place to begin: expected a position, such as \"4zq81x-42\", or earliest, or latest, or -10 for the last 10 events"
)]
pub struct AfterError {
    /// The text, cut to 40 characters.
    pub text: String,
}

fn parse(text: &str) -> Option<After> {
    match text {
        "earliest" => Some(After::Earliest),
        "latest" => Some(After::Latest),
        _ => match (text.strip_prefix('-'), text.strip_suffix(After::ANEW)) {
            (Some(digits), _) => last(digits).map(After::Last),
            (None, Some(position)) => position.parse().ok().map(After::Anew),
            (None, None) => text.parse().ok().map(After::Position),
        },
    }
}

/// The number in `-N`, in the one form that it has.
fn last(digits: &str) -> Option<NonZeroU64> {
    let is_canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_canonical && digits.len() <= After::DIGITS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_place_has_one_text() {
        for text in ["latest", "earliest", "a-7", "a-7~", "-1", "-999999999999999999"] {
            assert_eq!(text.parse::<After>().unwrap().to_string(), text);
        }
        assert_eq!("-10".parse(), Ok(After::Last(NonZeroU64::new(10).unwrap())));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "newest",
            "now",
            "",
            "-",
            "-0",
            "-01",
            "--1",
            "-+1",
            "- 1",
            "-1 ",
            "-x",
            "-1.5",
            "-1~",
            "~",
            "a-7~~",
            "~a-7",
            "earliest~",
            "-1000000000000000000",
        ] {
            assert!(text.parse::<After>().is_err(), "{text:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn what_parses_is_the_text_of_what_it_parses_to(text in "(earliest|latest|[0-9a-z]{1,3})?-?[0-9]{0,19}~{0,2}") {
            if let Ok(after) = text.parse::<After>() {
                prop_assert_eq!(after.to_string(), text);
            }
        }
    }
}
