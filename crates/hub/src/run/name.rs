//! The name that its starter gives a run.

use std::str::FromStr;

use anemone_wire::printable;
use serde::Serialize;

/// A name for people: 1 to 100 characters, which a terminal can show as they are.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct RunName(String);

impl RunName {
    /// The most characters: a name stands in a list beside others.
    pub const CHARS_MAX: usize = 100;

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An error of a text that is no name of a run.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunNameError {
    /// It has nothing but blanks.
    #[error("is empty")]
    Empty,
    /// It is too long.
    #[error("has {chars} characters, at most {max} allowed", max = RunName::CHARS_MAX)]
    TooLong {
        /// The number of its characters.
        chars: usize,
    },
    /// It has characters that control a terminal or the direction of text.
    #[error("has characters that cannot be shown: {0}")]
    Unprintable(String),
}

impl FromStr for RunName {
    type Err = RunNameError;

    fn from_str(text: &str) -> Result<Self, RunNameError> {
        let (chars, shown) = (text.chars().count(), printable(text));
        if text.trim().is_empty() {
            Err(RunNameError::Empty)
        } else if chars > Self::CHARS_MAX {
            Err(RunNameError::TooLong { chars })
        } else if shown != text || text.contains('\t') {
            Err(RunNameError::Unprintable(shown.replace('\t', "\\t")))
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_100_characters_that_can_be_shown() {
        let longest = "é".repeat(100);
        for name in ["a", "up to a million", " x ", "Läufe 😀 <b>&amp;</b>", &*longest] {
            assert_eq!(name.parse::<RunName>().unwrap().as_str(), name);
        }
        let error = |name: &str| name.parse::<RunName>().unwrap_err().to_string();
        assert_eq!([error(""), error(" \u{a0}")], ["is empty", "is empty"]);
        assert_eq!(error(&"é".repeat(101)), "has 101 characters, at most 100 allowed");
        assert_eq!(error("a\u{1b}[2J"), "has characters that cannot be shown: a\\u001b[2J");
        assert_eq!(error("a\tb\n"), "has characters that cannot be shown: a\\tb\\n");
        assert!(error("a\u{202e}b").contains("\\u202e"));
    }
}
