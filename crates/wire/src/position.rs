//! Positions, `EPOCH-OFFSET` ("Positions" in `docs/PROTOCOL.md`).
//!
//! The topic decides whether reading can continue from a position.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The log that an offset belongs to: drawn at random when a log begins, so that an offset of one log
/// is never mistaken for the same offset of another.
///
/// Text: 1 to 10 characters of lower-case base 36, no leading zero.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Epoch(u64);

impl Epoch {
    const RADIX: u64 = 36;
    const BITS: u32 = 48;
    /// The longest text of an epoch, in bytes: 48 bits in base 36.
    pub const TEXT_BYTES_MAX: usize = 10;

    /// Draws a new epoch. A fixed one would let readers continue from positions of an earlier log, among other events.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    #[cfg(feature = "system")]
    pub fn random() -> std::io::Result<Self> {
        Ok(Self::from_bits(getrandom::u64()?))
    }

    /// Makes an epoch of the low 48 of these bits: for stored epochs and for tests. Other code uses `Epoch::random`.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << Self::BITS) - 1))
    }

    /// The 48 bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; Self::TEXT_BYTES_MAX];
        let begin = put_digits::<{ Self::RADIX }>(self.0, &mut text);
        f.write_str(std::str::from_utf8(&text[begin..]).unwrap_or_default())
    }
}

/// Writes a number at the end of `text`, which has room for it; returns the place where it begins.
fn put_digits<const RADIX: u64>(mut number: u64, text: &mut [u8]) -> usize {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut begin = text.len();
    loop {
        begin -= 1;
        text[begin] = DIGITS[(number % RADIX) as usize];
        number /= RADIX;
        if number == 0 {
            return begin;
        }
    }
}

/// A place in a topic: the epoch of its log and the offset of the last event seen there.
///
/// Offsets count from 1, so offset 0 is the place before the first event. Text: `EPOCH-OFFSET`,
/// at most [`Position::TEXT_BYTES_MAX`] bytes, exactly one text for each position.
///
/// ```
/// use anemone_wire::Position;
///
/// let position: Position = "4zq81x-42".parse()?;
/// assert_eq!(position.offset, 42);
/// assert_eq!(position.at(43).to_string(), "4zq81x-43");
/// assert!("4zq81x-042".parse::<Position>().is_err(), "each position has one text");
/// # Ok::<(), anemone_wire::PositionError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Position {
    /// The log.
    pub epoch: Epoch,
    /// The offset of the last event seen; 0 for none.
    pub offset: u64,
}

impl Position {
    /// The longest text of a position, in bytes.
    pub const TEXT_BYTES_MAX: usize = Epoch::TEXT_BYTES_MAX + 1 + 20;

    /// The position with another offset in the same log.
    #[must_use]
    pub const fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every reply has positions. One text is written faster than its three parts.
        let mut text = [0; Self::TEXT_BYTES_MAX];
        let dash = put_digits::<10>(self.offset, &mut text) - 1;
        text[dash] = b'-';
        let begin = put_digits::<{ Epoch::RADIX }>(self.epoch.0, &mut text[..dash]);
        f.write_str(std::str::from_utf8(&text[begin..]).unwrap_or_default())
    }
}

/// An error: the text is no position.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text:?} is not a position: expected EPOCH-OFFSET, such as \"4zq81x-42\"")]
pub struct PositionError {
    /// The text, cut to 40 characters.
    pub text: String,
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        parse(text).ok_or_else(|| PositionError { text: text.chars().take(40).collect() })
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Position;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a position")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Position, E> {
        text.parse().map_err(E::custom)
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
    let bits = u64::from_str_radix(epoch, Epoch::RADIX as u32).ok()?;
    let epoch = Epoch::from_bits(bits);
    (epoch.0 == bits).then_some(Position { epoch, offset: offset.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[cfg(feature = "system")]
    #[test]
    fn each_start_has_an_epoch_of_its_own() {
        let epochs: std::collections::BTreeSet<u64> =
            (0..100).map(|_| Epoch::random().unwrap().bits()).collect();
        assert!(epochs.len() > 98, "48 random bits are hardly ever the same");
    }

    proptest! {
        #[test]
        fn a_position_survives_its_text(bits: u64, offset: u64) {
            let position = Position { epoch: Epoch::from_bits(bits), offset };
            let text = position.to_string();
            prop_assert!(text.len() <= Position::TEXT_BYTES_MAX);
            prop_assert_eq!(text.parse(), Ok(position));
            prop_assert_eq!(serde_json::from_str::<Position>(&format!("{text:?}")).unwrap(), position);
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
}
