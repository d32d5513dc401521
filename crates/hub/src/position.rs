//! Positions: which log, and which event in it was the last one seen.
//!
//! Owns their one textual form, `EPOCH-OFFSET`. Whether a position can still be read from is the
//! topic's business.

use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::UnixTime;

/// Which log an offset belongs to: drawn at random when a log begins, so that an offset of one log
/// is never mistaken for the same offset of another.
///
/// Text: 1 to 10 characters of lower-case base 36, no leading zero.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Epoch(u64);

impl Epoch {
    const RADIX: u32 = 36;
    const BITS: u32 = 48;
    /// The longest text of an epoch, in bytes: 48 bits in base 36.
    pub const TEXT_BYTES_MAX: usize = 10;

    /// A new epoch, for the start of a hub: no other has had it. A fixed one would have readers of the start before
    /// believe that they go on where they were, among other events.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn random() -> io::Result<Self> {
        Ok(Self::from_bits(getrandom::u64()?))
    }

    /// An epoch of the low 48 of these bits: one that was kept, or a test's. [`Epoch::random`] is for all else.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << Self::BITS) - 1))
    }

    /// The bits it was made of.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0_u8; Self::TEXT_BYTES_MAX];
        let mut rest = self.0;
        let mut at = digits.len();
        loop {
            at -= 1;
            let digit = u32::try_from(rest % u64::from(Self::RADIX)).unwrap_or(0);
            digits[at] = char::from_digit(digit, Self::RADIX).map_or(b'0', |c| c as u8);
            rest /= u64::from(Self::RADIX);
            if rest == 0 {
                break;
            }
        }
        f.write_str(std::str::from_utf8(&digits[at..]).unwrap_or_default())
    }
}

/// A place in a topic: the epoch of its log and the offset of the last event seen there.
///
/// Offsets count from 1, so offset 0 is the place before the first event. Text: `EPOCH-OFFSET`,
/// at most [`Position::TEXT_BYTES_MAX`] bytes, exactly one text for each position.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Position {
    /// Which log.
    pub epoch: Epoch,
    /// The last event seen in it; 0 for none.
    pub offset: u64,
}

impl Position {
    /// The longest text of a position, in bytes.
    pub const TEXT_BYTES_MAX: usize = Epoch::TEXT_BYTES_MAX + 1 + 20;
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

/// Accepts the one form that `Display` writes: no sign, no upper case, no leading zero.
fn parse(text: &str) -> Option<Position> {
    let (epoch, offset) = text.split_once('-')?;
    let canonical = |digits: &str, allowed: fn(u8) -> bool| {
        digits.bytes().all(allowed) && (digits == "0" || !digits.starts_with('0'))
    };
    let base36 = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    if !canonical(epoch, base36) || !canonical(offset, |byte| byte.is_ascii_digit()) {
        return None;
    }
    let bits = u64::from_str_radix(epoch, Epoch::RADIX).ok()?;
    let epoch = Epoch::from_bits(bits);
    (epoch.0 == bits).then_some(Position { epoch, offset: offset.parse().ok()? })
}

/// The place where a reader asks to begin: after a position, some way back, or now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum After {
    /// After this position: resume.
    Position(Position),
    /// From the oldest event the log still has.
    Earliest,
    /// Only what comes from now on.
    Latest,
    /// From the newest event, that one included, if there is one.
    Newest,
    /// From so many events back, or from the oldest event kept where there are fewer.
    Last(NonZeroU64),
    /// From the oldest event kept whose time is this or later, and then in the log's order: where a clock went back,
    /// earlier times may follow. Where there is no such event, only what comes from now on.
    Since(UnixTime),
}

impl FromStr for After {
    type Err = PositionError;

    /// `earliest`, `latest`, a position, or `-N` for the last N events. `Newest` has no text: it is what a bare poll
    /// means; nor has `Since`.
    fn from_str(text: &str) -> Result<Self, PositionError> {
        match text {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            other => match last(other) {
                Some(count) => Ok(Self::Last(count)),
                None => other.parse().map(Self::Position),
            },
        }
    }
}

/// The number in `-N`: in the one form that it has.
fn last(text: &str) -> Option<NonZeroU64> {
    /// Longest number, in digits: more events than any log gets.
    const DIGITS_MAX: usize = 18;
    let digits = text.strip_prefix('-').filter(|digits| digits.len() <= DIGITS_MAX)?;
    let is_canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_canonical)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_start_has_an_epoch_of_its_own() {
        let epochs: HashSet<u64> = (0..100).map(|_| Epoch::random().unwrap().bits()).collect();
        assert!(epochs.len() > 98, "48 random bits are hardly ever the same");
    }

    proptest! {
        #[test]
        fn a_position_survives_its_text(bits: u64, offset: u64) {
            let position = Position { epoch: Epoch::from_bits(bits), offset };
            let text = position.to_string();
            prop_assert!(text.len() <= Position::TEXT_BYTES_MAX);
            prop_assert_eq!(text.parse(), Ok(position));
        }

        #[test]
        fn what_parses_is_the_text_of_what_it_parses_to(text in "[0-9a-zA-Z+-]{0,24}") {
            if let Ok(position) = text.parse::<Position>() {
                prop_assert_eq!(position.to_string(), text);
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "-",
            "a",
            "a-",
            "-1",
            "a--1",
            "a-+1",
            "A-1",
            "a-01",
            "0a-1",
            "a-1-2",
            "a-1 ",
            "zzzzzzzzzz-1",
            "a-18446744073709551616",
            "é-1",
        ] {
            assert!(text.parse::<Position>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn a_long_text_is_cut_in_the_error() {
        let error = "x".repeat(9_000).parse::<Position>().unwrap_err();
        assert_eq!(error.text.len(), 40);
    }

    #[test]
    fn earliest_and_latest_are_words() {
        assert_eq!("earliest".parse(), Ok(After::Earliest));
        assert_eq!("latest".parse(), Ok(After::Latest));
        assert!("newest".parse::<After>().is_err());
    }

    #[test]
    fn a_number_of_events_back_has_one_text() {
        for (text, count) in
            [("-1", 1), ("-10", 10), ("-999999999999999999", 999_999_999_999_999_999)]
        {
            assert_eq!(text.parse(), Ok(After::Last(NonZeroU64::new(count).unwrap())), "{text}");
        }
        for text in
            ["-", "-0", "-01", "--1", "-+1", "- 1", "-1 ", "-x", "-1.5", "-1000000000000000000"]
        {
            assert!(text.parse::<After>().is_err(), "{text:?} was accepted");
        }
    }
}
