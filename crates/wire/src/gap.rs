//! Gaps: events that a reader asked for and does not get.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::{After, Position};

/// Events that a reader asked for and does not get.
#[derive(Clone, Debug, Eq, PartialEq, serde::Deserialize)]
pub struct Gap {
    /// The reason why they are missing.
    pub reason: GapReason,
    /// The position that the reader asked to read on from.
    pub after: Position,
    /// The number of missing events; `None` when that cannot be known.
    pub missed: Option<u64>,
    /// The position that reading goes on from.
    #[serde(deserialize_with = "resume")]
    pub resume: Position,
}

/// Reads a position, with `~` where a reader was ended: reading begins there.
fn resume<'de, D: Deserializer<'de>>(from: D) -> Result<Position, D::Error> {
    let after = <Cow<'_, str>>::deserialize(from)?.parse().ok().and_then(After::position);
    after.ok_or_else(|| D::Error::custom("resume is not a position"))
}

/// The reason why a reader does not get what it asked for.
#[derive(Clone, Debug, Eq, PartialEq, serde::Deserialize)]
#[non_exhaustive]
#[serde(from = "String")]
pub enum GapReason {
    /// The events were there and are no longer kept: retention has dropped them.
    Retention,
    /// The events would be kept, and what is on the server's disk is not what was written. A gap that begins with what
    /// retention has dropped ends before these, which are the next gap.
    Damaged,
    /// The position is of another log, or of this one before events of it may have been lost; how many
    /// were not seen is not known.
    Epoch,
    /// The server left them out and did not say so. No server says this: a client finds it out.
    Unannounced,
    /// A word that is not known here.
    Other(String),
}

impl GapReason {
    const KNOWN: [Self; 4] = [Self::Retention, Self::Damaged, Self::Epoch, Self::Unannounced];

    /// The word for it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Retention => "retention",
            Self::Damaged => "damaged",
            Self::Epoch => "epoch",
            Self::Unannounced => "unannounced",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for GapReason {
    fn from(word: String) -> Self {
        let known = Self::KNOWN.into_iter().find(|reason| reason.as_str() == word);
        known.unwrap_or(Self::Other(word))
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retention => f.write_str("no longer retained"),
            Self::Damaged => f.write_str("damaged on the server's disk"),
            Self::Epoch => f.write_str("the topic began a new epoch"),
            Self::Unannounced => f.write_str("the server did not say why"),
            Self::Other(word) => write!(f, "{}", word.escape_debug()),
        }
    }
}

impl Gap {
    /// Appends `{"reason":…,"after":P,"missed":N|null,"resume":P}`.
    ///
    /// `resume` is [`After::Position`] when reading goes on there, and [`After::Anew`] when a server has ended it: a
    /// reader that asks for that begins anew.
    pub fn write(&self, resume: fn(Position) -> After, out: &mut String) {
        out.push_str(r#"{"reason":"#);
        out.push_str(&serde_json::Value::from(self.reason.as_str()).to_string());
        let missed = self.missed.map_or_else(|| "null".to_owned(), |missed| missed.to_string());
        // Writing to a string cannot fail.
        let (after, resume) = (self.after, resume(self.resume));
        let _ = write!(out, r#","after":"{after}","missed":{missed},"resume":"{resume}"}}"#);
    }

    /// The form for where no object can stand: `REASON, missed N, resume P`. It fits a close frame.
    #[must_use]
    pub fn in_words(&self) -> String {
        let missed = self.missed.map_or_else(|| "unknown".to_owned(), |missed| missed.to_string());
        format!("{}, missed {missed}, resume {}", self.reason.as_str(), self.resume)
    }

    pub(crate) fn fmt_missed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.missed {
            Some(1) => f.write_str("1 event is missing")?,
            Some(missed) => write!(f, "{missed} events are missing")?,
            None => f.write_str("events may be missing")?,
        }
        write!(f, " after {}, {}", self.after, self.reason)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_missed(f)?;
        write!(f, "; reading continues after {}", self.resume)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Epoch;
    use crate::testing::gap;

    #[test]
    fn the_words_fit_a_close_frame() {
        let position = |offset| Position { epoch: Epoch::from_bits(9), offset };
        let reason = GapReason::Retention;
        let gap = Gap { reason, after: position(1), missed: Some(2), resume: position(3) };
        assert_eq!(gap.in_words(), "retention, missed 2, resume 9-3");
        let last = Position { epoch: Epoch::from_bits(u64::MAX), offset: u64::MAX };
        let words = |missed| Gap { after: last, missed, resume: last, ..gap.clone() }.in_words();
        assert!(words(None).contains("missed unknown"));
        assert_eq!(words(Some(u64::MAX)).len(), 78); // a close frame's reason has room for 123
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(gap in gap()) {
            let (mut plain, mut ended) = (String::new(), String::new());
            gap.write(After::Position, &mut plain);
            gap.write(After::Anew, &mut ended);
            for text in [plain, ended] {
                prop_assert_eq!(&serde_json::from_str::<Gap>(&text).unwrap(), &gap);
            }
        }
    }
}
