//! The reasons for which events are missing, or no more come.

use std::fmt;

use crate::Position;
use crate::text::{quoted, shown};

/// A gap: events that are missing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gap {
    /// Why.
    pub reason: GapReason,
    /// The last event seen before.
    pub after: Position,
    /// The number of missing events, if that can be known.
    pub missed: Option<u64>,
    /// Reading goes on after this.
    pub resume: Position,
}

impl Gap {
    pub(crate) fn to_json(&self) -> String {
        let Self { reason, after, missed, resume } = self;
        let missed = missed.map_or_else(|| "null".to_owned(), |missed| missed.to_string());
        let reason = quoted(reason.as_str());
        format!(r#"{{"reason":{reason},"after":"{after}","missed":{missed},"resume":"{resume}"}}"#)
    }
}

impl Gap {
    fn fmt_missed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// The reason why events are missing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum GapReason {
    /// They are no longer kept.
    Retention,
    /// The server kept them, and they are damaged there.
    Damaged,
    /// The position is of another log.
    Epoch,
    /// The server left them out, twice, and did not say so: found by the subscription itself.
    Unannounced,
    /// In the server's word.
    Other(String),
}

impl GapReason {
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "retention" => Self::Retention,
            "damaged" => Self::Damaged,
            "epoch" => Self::Epoch,
            "unannounced" => Self::Unannounced,
            word => Self::Other(word.to_owned()),
        }
    }

    /// As it stands in JSON.
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

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retention => f.write_str("no longer retained"),
            Self::Damaged => f.write_str("damaged on the server's disk"),
            Self::Epoch => f.write_str("the topic began a new epoch"),
            Self::Unannounced => f.write_str("the server did not say why"),
            Self::Other(word) => write!(f, "{}", shown(word)),
        }
    }
}

/// The reason why nothing more comes of a topic.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EndReason {
    /// It was deleted.
    Deleted,
    /// It ends readers who are too slow for what it keeps, and this one was.
    TooSlow {
        /// The events that this one missed. Reading can go on after its `resume`.
        gap: Option<Gap>,
    },
    /// In the server's word.
    Other(String),
}

impl EndReason {
    pub(crate) fn of(word: &str, gap: Option<Gap>) -> Self {
        match word {
            "deleted" => Self::Deleted,
            "too-slow" => Self::TooSlow { gap },
            word => Self::Other(word.to_owned()),
        }
    }

    /// As it stands in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Deleted => "deleted",
            Self::TooSlow { .. } => "too-slow",
            Self::Other(word) => word,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let reason = quoted(self.as_str());
        match self {
            Self::TooSlow { gap: Some(gap) } => {
                format!(r#"{{"reason":{reason},"gap":{}}}"#, gap.to_json())
            }
            _ => format!(r#"{{"reason":{reason}}}"#),
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted => f.write_str("the topic was deleted"),
            Self::TooSlow { gap } => {
                f.write_str("this reader was too slow, and the topic closes slow readers")?;
                let Some(gap) = gap else { return Ok(()) };
                f.write_str(": ")?;
                gap.fmt_missed(f)?;
                write!(f, "; you can resume after {}", gap.resume)
            }
            Self::Other(word) => write!(f, "the topic has ended: {}", shown(word)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_ended_is_told_where_to_go_on() {
        let at = |text: &str| text.parse::<Position>().unwrap();
        let reason = GapReason::Retention;
        let gap = Gap { reason, after: at("a-1"), missed: Some(2), resume: at("a-3") };
        let missing = "2 events are missing after a-1, no longer retained";
        assert_eq!(gap.to_string(), format!("{missing}; reading continues after a-3"));
        let end = EndReason::TooSlow { gap: Some(gap) }.to_string();
        assert!(end.ends_with(&format!(": {missing}; you can resume after a-3")), "{end}");
    }
}
