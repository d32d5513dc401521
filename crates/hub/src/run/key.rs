//! The keys of runs.

use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The key of a run: 128 random bits. Whoever has it may read the run and cancel it, so `Debug` prints only its first
/// digits; `Display` prints all 32.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct RunKey(u128);

impl RunKey {
    /// The length of its text: hexadecimal digits in lower case.
    pub const DIGITS: usize = 32;

    /// Draws a key with random bits of the operating system.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    /// Returns its first 6 digits, which name a run in logs and open nothing.
    #[must_use]
    pub fn short(&self) -> String {
        format!("{:06x}", self.0 >> 104)
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunKey({}…)", self.short())
    }
}

impl Serialize for RunKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An error: the text is not a run's key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a run's key is 32 hexadecimal digits in lower case")]
pub struct RunKeyError;

impl FromStr for RunKey {
    type Err = RunKeyError;

    fn from_str(text: &str) -> Result<Self, RunKeyError> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != Self::DIGITS || !text.bytes().all(is_digit) {
            return Err(RunKeyError);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| RunKeyError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_text_and_debug_keeps_the_secret() {
        let key = RunKey::random().unwrap();
        let text = key.to_string();
        assert_eq!((text.len(), text.parse()), (32, Ok(key)));
        assert_eq!(format!("{key:?}"), format!("RunKey({}…)", &text[..6]));
        assert_eq!(RunKey(7).to_string(), format!("{:0>32}", 7));
        assert_ne!(RunKey::random().unwrap(), key);
    }

    #[test]
    fn a_key_has_one_spelling() {
        let good = "0f".repeat(16);
        assert!(good.parse::<RunKey>().is_ok());
        let long = format!("{good}0");
        let plus = format!("+{}", &good[1..]);
        for bad in ["", "0f", &good.to_uppercase(), &long, &plus, &good[1..], &"g".repeat(32)] {
            assert_eq!(bad.parse::<RunKey>(), Err(RunKeyError), "{bad:?}");
        }
    }
}
