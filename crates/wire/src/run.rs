//! The state and the events of a run.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The state of a run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It waits for other runs to end.
    Queued,
    /// Its work is being done.
    Running,
    /// Its work is done.
    Done,
    /// Its work has failed, or took too long.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl RunState {
    /// All states, in the order in which a run may have them.
    pub const ALL: [Self; 5] =
        [Self::Queued, Self::Running, Self::Done, Self::Failed, Self::Cancelled];

    /// Returns the state with this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns true if nothing follows.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The members of an event of a run: it has `state`, `progress` or `partial`, and those that belong to it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct RunMembers<'a> {
    /// The new state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<RunState>,
    /// The number of runs that start before one that is queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// The result of a run that is done, which may be `null`.
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<&'a RawValue>,
    /// The problem of a run that has failed.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub problem: Option<&'a RawValue>,
    /// The progress, from 0 to 1.
    #[serde(serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// The words about the progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// An estimate of the seconds left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<f64>,
    /// A partial result, which may be `null`.
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub partial: Option<&'a RawValue>,
}

/// Takes a `null` that is there as a value, too.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Writes 0 and 1 without a fraction, as people do.
fn number<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(1.0) => serializer.serialize_u8(1),
        Some(0.0) => serializer.serialize_u8(0),
        number => number.serialize(serializer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written() {
        for text in [
            r#"{"state":"queued","place":2}"#,
            r#"{"state":"running"}"#,
            r#"{"state":"done"}"#,
            r#"{"state":"done","result":null}"#,
            r#"{"state":"done","result":{"n": 1.50}}"#,
            r#"{"state":"failed","problem":{}}"#,
            r#"{"state":"cancelled"}"#,
            r#"{"progress":0.42}"#,
            r#"{"progress":1,"text":"\"a\n","left":12.3}"#,
            r#"{"partial":null}"#,
        ] {
            let members: RunMembers<'_> = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&members).unwrap(), text);
        }
    }

    #[test]
    fn a_state_is_told_by_its_name() {
        for (state, name, is_end) in [
            (RunState::Queued, "queued", false),
            (RunState::Running, "running", false),
            (RunState::Done, "done", true),
            (RunState::Failed, "failed", true),
            (RunState::Cancelled, "cancelled", true),
        ] {
            assert_eq!((state.to_string(), state.is_end()), (name.to_owned(), is_end));
            assert_eq!(serde_json::to_value(state).unwrap(), name);
            assert_eq!(RunState::of(name), Some(state));
        }
        assert_eq!((RunState::of("odd"), RunState::of("")), (None, None));
        assert!(serde_json::from_str::<RunState>(r#""odd""#).is_err());
    }
}
