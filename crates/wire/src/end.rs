//! The end of a stream ("Notices" and "Slow readers" in `docs/PROTOCOL.md`).

use std::fmt::{self, Write as _};

use serde::Deserialize;

use crate::{After, Gap, Position};

/// The reason why a stream has ended, in JSON `{"reason":…}`, perhaps with a `gap`.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize)]
#[non_exhaustive]
#[serde(from = "EndObject")]
pub enum EndReason {
    /// The topic was deleted.
    Deleted,
    /// The run has ended, and the reader has all of it.
    Ended,
    /// The topic closes slow readers, and events were evicted before this reader got them.
    TooSlow {
        /// The events that the reader missed. It can begin anew after `resume`.
        gap: Option<Gap>,
    },
    /// Another reason, in the server's word.
    Other(String),
}

#[derive(Deserialize)]
struct EndObject {
    reason: String,
    gap: Option<Gap>,
}

impl From<EndObject> for EndReason {
    fn from(EndObject { reason, gap }: EndObject) -> Self {
        match reason.as_str() {
            "deleted" => Self::Deleted,
            "ended" => Self::Ended,
            "too-slow" => Self::TooSlow { gap },
            _ => Self::Other(reason),
        }
    }
}

impl EndReason {
    /// The value of `reason`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Deleted => "deleted",
            Self::Ended => "ended",
            Self::TooSlow { .. } => "too-slow",
            Self::Other(word) => word,
        }
    }

    /// Appends `{"reason":…,"gap":{…}}`; `gap` only when there is one. `resume` is as in [`Gap::write`].
    pub fn write(&self, resume: fn(Position) -> After, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = write!(out, r#"{{"reason":{}"#, serde_json::Value::from(self.as_str()));
        if let Self::TooSlow { gap: Some(gap) } = self {
            out.push_str(r#","gap":"#);
            gap.write(resume, out);
        }
        out.push('}');
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted => f.write_str("the topic was deleted"),
            Self::Ended => f.write_str("the run has ended"),
            Self::TooSlow { gap } => {
                f.write_str("this reader was too slow, and the topic closes slow readers")?;
                let Some(gap) = gap else { return Ok(()) };
                f.write_str(": ")?;
                gap.fmt_missed(f)?;
                write!(f, "; you can resume after {}", gap.resume)
            }
            Self::Other(word) => write!(f, "the topic has ended: {}", word.escape_debug()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GapReason;

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
