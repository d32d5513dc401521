//! The state of a run as its watchers see it.

use anemone_wire::{Position, RunState};
use serde::{Serialize, Serializer};

use super::failure::Json;
use super::key::RunKey;
use super::name::RunName;
use super::shown_input::ShownInput;
use crate::UnixTime;

/// The state of a run at a moment. Its JSON is the state of `docs/PROTOCOL.md`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RunStatus {
    /// The key of the run.
    pub key: RunKey,
    /// The path of its service.
    pub service: String,
    /// The name that its starter gave it.
    pub name: Option<RunName>,
    /// The input that started it, as far as it is kept; `None` if no request did.
    pub input: Option<ShownInput>,
    /// The state.
    pub state: RunState,
    /// From 0 to 1; `None` before the first progress.
    pub progress: Option<f64>,
    /// The latest words about the progress.
    pub text: Option<String>,
    /// An estimate of the seconds left, while it is running: the rest of the progress by its exponentially weighted
    /// mean speed, to which a report of 30 s ago contributes half as much as one of now. It counts down between
    /// reports, and once it has run down, nothing is known.
    pub left: Option<f64>,
    /// The number of runs that start before it, if it is queued.
    pub place: Option<usize>,
    /// The time at which it was created.
    pub created: UnixTime,
    /// The time at which its work began.
    pub started: Option<UnixTime>,
    /// The time at which it ended.
    pub ended: Option<UnixTime>,
    /// The position of its newest event.
    #[serde(serialize_with = "as_text")]
    pub next: Position,
    /// `None` in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Option<Json>>,
    pub(crate) problem: Option<Json>,
    /// The last standard error of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

impl RunStatus {
    /// Returns the JSON of its result, if it has one.
    #[must_use]
    pub fn result(&self) -> Option<&str> {
        self.result.as_ref()?.as_ref().map(Json::as_str)
    }

    /// Returns the JSON of the problem, if it has failed.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_ref().map(Json::as_str)
    }

    /// Leaves out what is long, for a list of many runs: the result, the standard error and most of the input.
    #[must_use]
    pub fn brief(self) -> Self {
        let input = self.input.as_ref().map(ShownInput::brief);
        Self { result: None, stderr: None, input, ..self }
    }
}

fn as_text<S: Serializer>(position: &Position, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(position)
}
