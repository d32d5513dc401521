//! Gaps ("Gaps" in `docs/PROTOCOL.md`).

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::{After, Position};

/// Events that a reader asked for and does not get: `{"reason":…,"after":P,"missed":N|null,"resume":P}`.
///
/// ```
/// use anemone_wire::{Gap, GapReason, Item};
///
/// let line = br#"{"gap":{"reason":"retention","after":"4zq81x-2","missed":5,"resume":"4zq81x-7"}}"#;
/// let Some(Item::Gap(gap)) = Item::parse(line)? else { panic!("it is a gap") };
/// let Gap { reason, missed, resume, .. } = gap;
/// assert_eq!((reason, missed, resume.offset), (GapReason::Retention, Some(5), 7));
/// # Ok::<(), anemone_wire::Malformed>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq, serde::Deserialize)]
pub struct Gap {
    /// The reason why they are missing.
    pub reason: GapReason,
    /// The position that the reader asked to read on from.
    pub after: Position,
    /// The number of missing events; `None` when that cannot be known.
    pub missed: Option<u64>,
    /// The position after which reading continues.
    #[serde(deserialize_with = "resume")]
    pub resume: Position,
}

/// Reads a position; the end of a stream has `~` after it.
fn resume<'de, D: Deserializer<'de>>(from: D) -> Result<Position, D::Error> {
    let after = <Cow<'_, str>>::deserialize(from)?.parse().ok().and_then(After::position);
    after.ok_or_else(|| D::Error::custom("resume is not a position"))
}

/// The reason why events are missing.
#[derive(Clone, Debug, Eq, PartialEq, serde::Deserialize)]
#[non_exhaustive]
#[serde(from = "String")]
pub enum GapReason {
    /// The topic has evicted them.
    Retention,
    /// The server's disk does not hold what was written. These events make a gap of their own, after the evicted ones.
    Damaged,
    /// The position is of another epoch, so their number is unknown.
    Epoch,
    /// The server left them out without notice. Only a client finds this out; no server says it.
    Unannounced,
    /// Another reason, in the server's word.
    Other(String),
}

impl GapReason {
    const KNOWN: [Self; 4] = [Self::Retention, Self::Damaged, Self::Epoch, Self::Unannounced];

    /// The value of `reason`.
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
    /// Appends the object. `resume` is [`After::Position`] if the stream continues, and [`After::Anew`] if it ends with
    /// this gap, since its reader must begin anew.
    pub fn write(&self, resume: fn(Position) -> After, out: &mut String) {
        out.push_str(r#"{"reason":"#);
        out.push_str(&serde_json::Value::from(self.reason.as_str()).to_string());
        let missed = self.missed.map_or_else(|| "null".to_owned(), |missed| missed.to_string());
        // Writing to a string cannot fail.
        let (after, resume) = (self.after, resume(self.resume));
        let _ = write!(out, r#","after":"{after}","missed":{missed},"resume":"{resume}"}}"#);
    }

    /// The text for a close frame: `REASON, missed N, resume P`, at most 78 bytes for the reasons that servers give
    /// ("Plain WebSocket" in `docs/PROTOCOL.md`).
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
