//! The state and the events of a run ("Runs" in `docs/PROTOCOL.md`).

use std::borrow::Cow;
use std::time::Duration;

use anemone_wire::{RunMembers, RunState};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::problem::RunProblem;
use crate::{Error, Malformed, Position};

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunProgress {
    /// The share that is done, from 0 to 1; `None` if the run does not say.
    pub done: Option<f64>,
    /// The words about the current work.
    pub text: Option<String>,
    /// An estimate of the time until the end.
    pub left: Option<Duration>,
}

/// A change of the state of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunChange {
    /// The state.
    pub state: RunState,
    /// The number of runs that will start before this one, while this one is queued.
    pub place: Option<u64>,
    /// The result of a run that is done, as JSON; `None` if it has none.
    pub result: Option<String>,
    /// The reason why a run has failed.
    pub problem: Option<RunProblem>,
}

/// An event of a run.
///
/// ```
/// use anemone_client::{RunEvent, RunState};
///
/// let Some(RunEvent::Progress(progress)) = RunEvent::parse(r#"{"progress":0.42,"text":"reading"}"#)
/// else { panic!("it is progress") };
/// assert_eq!((progress.done, progress.text.as_deref()), (Some(0.42), Some("reading")));
///
/// let Some(RunEvent::State(change)) = RunEvent::parse(r#"{"state":"done","result":14}"#)
/// else { panic!("it is a state") };
/// assert_eq!((change.state, change.result.as_deref()), (RunState::Done, Some("14")));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// The state has changed.
    State(RunChange),
    /// The run has made progress.
    Progress(RunProgress),
    /// A partial result, as JSON.
    Partial(String),
}

impl RunEvent {
    /// Parses the data of an event; `None` for an event of an unknown kind.
    #[must_use]
    pub fn parse(data: &str) -> Option<Self> {
        let object: RunMembers<'_> = serde_json::from_str(data).ok()?;
        let json = |value: &RawValue| value.get().to_owned();
        if let Some(state) = object.state {
            let problem = object.problem.and_then(|problem| RunProblem::parse(problem.get()));
            let (place, result) = (object.place, object.result.map(json));
            return Some(Self::State(RunChange { state, place, result, problem }));
        }
        if let Some(partial) = object.partial {
            return Some(Self::Partial(json(partial)));
        }
        let (done, text) = (object.progress?, object.text.map(Cow::into_owned));
        Some(Self::Progress(RunProgress { done: Some(done), text, left: seconds(object.left) }))
    }
}

impl RunChange {
    /// Returns the result of a run that has ended; `None` if it has not.
    ///
    /// # Errors
    /// [`Error::RunFailed`] and [`Error::RunCancelled`].
    #[must_use]
    pub fn outcome(self) -> Option<Result<Option<String>, Error>> {
        Some(match self.state {
            RunState::Done => Ok(self.result),
            RunState::Failed => Err(Error::RunFailed { problem: self.problem.map(Box::new) }),
            RunState::Cancelled => Err(Error::RunCancelled),
            RunState::Queued | RunState::Running => return None,
        })
    }
}

fn seconds(seconds: Option<f64>) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds?).ok()
}

/// The status of a run, as the server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStatus {
    /// The key.
    pub key: String,
    /// The path of its service.
    pub service: String,
    /// The name that the client gave it when it started the run.
    pub name: Option<String>,
    /// The state, with the result or the problem.
    pub change: RunChange,
    /// The latest progress.
    pub progress: RunProgress,
    /// The position of the newest event.
    pub next: Position,
    /// The end of the standard error, if the run is a program.
    pub stderr: Option<String>,
    /// The whole status as JSON, exactly as the server sent it.
    pub json: String,
}

#[derive(Deserialize)]
struct StatusObject<'a> {
    key: String,
    service: String,
    name: Option<String>,
    state: RunState,
    progress: Option<f64>,
    text: Option<String>,
    left: Option<f64>,
    place: Option<u64>,
    next: Position,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    problem: Option<&'a RawValue>,
    stderr: Option<String>,
}

impl RunStatus {
    /// Parses a run's state.
    pub(super) fn parse(json: &[u8]) -> Result<Self, Malformed> {
        let object: StatusObject<'_> = serde_json::from_slice(json)?;
        let result = object.result.map(|result| result.get().to_owned());
        let problem = object.problem.and_then(|problem| RunProblem::parse(problem.get()));
        let StatusObject { key, service, name, state, place, text, next, stderr, .. } = object;
        let progress = RunProgress { done: object.progress, text, left: seconds(object.left) };
        let change = RunChange { state, place, result, problem };
        let json = String::from_utf8_lossy(json).trim().to_owned();
        Ok(Self { key, service, name, change, progress, next, stderr, json })
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> RunState {
        self.change.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(data: &str) -> RunChange {
        let Some(RunEvent::State(change)) = RunEvent::parse(data) else { panic!("{data}") };
        change
    }

    #[test]
    fn events_are_told_by_their_members() {
        let queued = change(r#"{"state":"queued","place":2}"#);
        assert_eq!((queued.state, queued.place), (RunState::Queued, Some(2)));
        assert!(queued.outcome().is_none());
        let done = change(r#"{"state":"done","result":null}"#).outcome();
        assert!(matches!(done, Some(Ok(Some(json))) if json == "null"));
        assert!(matches!(change(r#"{"state":"done"}"#).outcome(), Some(Ok(None))));
        let failed = change(
            r#"{"state":"failed","problem":{"type":"/problems/run-failed","title":"The program failed",
                "status":500,"detail":"exit status 3"}}"#,
        );
        let Some(Err(error)) = failed.outcome() else { panic!() };
        assert_eq!(error.to_string(), "the run has failed: exit status 3");
        assert!(matches!(
            change(r#"{"state":"cancelled"}"#).outcome(),
            Some(Err(Error::RunCancelled))
        ));
        for (data, json) in [
            (r#"{"partial":{"state":"done"}}"#, r#"{"state":"done"}"#),
            (r#"{"partial":null}"#, "null"),
        ] {
            assert_eq!(RunEvent::parse(data), Some(RunEvent::Partial(json.to_owned())));
        }
        let progress = RunProgress { done: Some(0.5), text: Some("x".to_owned()), left: None };
        assert_eq!(
            RunEvent::parse(r#"{"progress":0.5,"text":"x","left":-1}"#),
            Some(RunEvent::Progress(progress))
        );
        for data in ["{}", "[]", "1", r#"{"state":"odd"}"#, r#"{"later":1}"#] {
            assert_eq!(RunEvent::parse(data), None, "{data}");
        }
    }

    #[test]
    fn a_state_says_all_that_is_known() {
        let json = br#"{"key":"0f","service":"/primes","state":"running","progress":0.42,"text":"up to 420,000",
            "left":12.3,"place":null,"created":1789000000123.456,"started":1789000000124.001,"ended":null,
            "next":"a-7","result":null,"problem":null,"later":1}"#;
        let status = RunStatus::parse(json).unwrap();
        assert_eq!(
            (status.state(), &*status.service, status.progress.done),
            (RunState::Running, "/primes", Some(0.42))
        );
        assert_eq!(status.progress.left, Some(Duration::from_millis(12_300)));
        assert_eq!((status.change.result, status.stderr, status.name), (None, None, None));
        let named =
            br#"{"key":"0f","service":"/primes","name":"mine","state":"done","next":"a-7"}"#;
        assert_eq!(RunStatus::parse(named).unwrap().name.as_deref(), Some("mine"));
        assert!(RunStatus::parse(b"{}").is_err());
    }
}
