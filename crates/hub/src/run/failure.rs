//! The ways in which the work of a run ends.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anemone_wire::problem::{Details, Kind};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::Data;

/// The outcome of a run's work: a result, or none, or a failure.
pub type RunOutcome = Result<Option<Data>, RunFailure>;

/// The reason why a run's work must stop: its run has ended, and nothing that it says counts any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// The run was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// The run took longer than it may.
    #[error("the run took too long")]
    TimedOut,
    /// The run has ended in another way: one of its results was too big, or its work has returned.
    #[error("the run has ended")]
    Ended,
}

/// The failure of a run's work.
#[derive(Clone, Debug)]
pub struct RunFailure {
    detail: String,
    problem: Json,
}

impl RunFailure {
    /// The most characters of a detail; the rest is cut off. A detail is for people, and each watcher gets it.
    pub const DETAIL_CHARS_MAX: usize = 2_000;

    /// The most bytes of the JSON of a problem; instead of a longer one there is `run-failed` with its status. The list of
    /// runs has the problem of each, and an error needs no more.
    pub const PROBLEM_BYTES_MAX: usize = 16 << 10;

    /// Creates a failure with a sentence for people: the problem `run-failed`.
    #[must_use]
    pub fn new(detail: impl Into<String>) -> Self {
        Self::of(Kind::RunFailed, detail.into())
    }

    /// Creates a failure with a problem of its own: the JSON object of RFC 9457 that a service has answered, say. With
    /// any other JSON value the failure is like [`RunFailure::new`], and with a problem of more than
    /// [`PROBLEM_BYTES_MAX`](Self::PROBLEM_BYTES_MAX) it is that with the status of the problem.
    #[must_use]
    pub fn with_problem(detail: impl Into<String>, problem: &Data) -> Self {
        let own = Json::of(problem).filter(|problem| problem.as_str().starts_with('{'));
        match own {
            None => Self::new(detail),
            Some(own) if own.as_str().len() > Self::PROBLEM_BYTES_MAX => {
                Self::with_status(Kind::RunFailed, own.status(), detail.into())
            }
            Some(problem) => Self { detail: cut(detail.into()), problem },
        }
    }

    /// Creates the failure of work that took longer than `limit`: the problem `run-timeout`.
    #[must_use]
    pub fn timed_out(limit: Duration) -> Self {
        let detail = format!("the run did not end within {} s", limit.as_secs_f64());
        Self::of(Kind::RunTimeout, detail)
    }

    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let message = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::new(format!("the work panicked: {}", message.unwrap_or("it said nothing")))
    }

    fn of(kind: Kind, detail: String) -> Self {
        Self::with_status(kind, kind.status(), detail)
    }

    fn with_status(kind: Kind, status: u16, detail: String) -> Self {
        let detail = cut(detail);
        let (name, title) = (kind.name().into(), kind.title().into());
        let details = Details {
            name,
            title,
            status,
            detail: detail.as_str().into(),
            gap: None,
            pointer: None,
        };
        let problem = RawValue::from_string(details.to_json()).ok().map(|json| Json(json.into()));
        Self { detail, problem: problem.unwrap_or_default() }
    }

    /// Returns the sentence for people.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn problem(&self) -> &Json {
        &self.problem
    }
}

fn cut(mut detail: String) -> String {
    if let Some((end, _)) = detail.char_indices().nth(RunFailure::DETAIL_CHARS_MAX) {
        detail.truncate(end);
        detail.push('…');
    }
    detail
}

impl From<Stopped> for RunFailure {
    /// Lets work stop with `?`. A run that was stopped has ended already, so nobody sees this failure.
    fn from(stopped: Stopped) -> Self {
        Self::new(stopped.to_string())
    }
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for RunFailure {}

/// A JSON value that many share and that is never parsed again.
#[derive(Clone, Debug)]
pub(crate) struct Json(Arc<RawValue>);

impl Json {
    /// Copies the value.
    pub(crate) fn of(data: &Data) -> Option<Self> {
        let value: Box<RawValue> = serde_json::from_str(data.as_str()).ok()?;
        Some(Self(value.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.get()
    }

    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.0
    }

    fn status(&self) -> u16 {
        #[derive(Deserialize)]
        struct Members {
            status: u16,
        }
        let members = serde_json::from_str::<Members>(self.as_str());
        members.map_or(Kind::RunFailed.status(), |members| members.status)
    }
}

impl Default for Json {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned().into())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_problem_with_its_words() {
        let failure = RunFailure::new("no \"such\" file");
        assert_eq!(
            failure.problem.as_str(),
            r#"{"type":"/problems/run-failed","title":"The run failed","status":500,"detail":"no \"such\" file"}"#
        );
        let failure = RunFailure::timed_out(Duration::from_millis(1_500));
        assert_eq!(
            failure.problem.as_str(),
            r#"{"type":"/problems/run-timeout","title":"The run took too long","status":504,"detail":"the run did not end within 1.5 s"}"#
        );
    }

    #[test]
    fn a_problem_of_its_own_stays_as_it_is_and_another_value_is_none() {
        let own = Data::parse(r#"{"type":"/problems/conflict", "more":1}"#).unwrap();
        assert_eq!(RunFailure::with_problem("x", &own).problem.as_str(), own.as_str());
        let failure = RunFailure::with_problem("x", &Data::json("words").unwrap());
        assert!(failure.problem.as_str().contains("run-failed"));
    }

    #[test]
    fn a_problem_of_its_own_that_is_too_long_is_told_in_words_with_its_status() {
        let own = |len| Data::json(&serde_json::json!({ "a": "x".repeat(len), "status": 409 }));
        let around = own(0).unwrap().as_str().len();
        let longest = own(RunFailure::PROBLEM_BYTES_MAX - around).unwrap();
        assert_eq!(RunFailure::with_problem("x", &longest).problem.as_str(), longest.as_str());
        let longer = own(RunFailure::PROBLEM_BYTES_MAX - around + 1).unwrap();
        assert_eq!(
            RunFailure::with_problem("words", &longer).problem.as_str(),
            r#"{"type":"/problems/run-failed","title":"The run failed","status":409,"detail":"words"}"#
        );
        // JSON takes 6 bytes for such a character.
        let failure = RunFailure::with_problem("\u{1}".repeat(1 << 20), &longer);
        assert!(failure.problem.as_str().len() <= RunFailure::PROBLEM_BYTES_MAX);
    }

    #[test]
    fn a_panic_is_told_in_its_words_and_long_ones_are_cut() {
        let failure = |payload: Box<dyn Any + Send>| RunFailure::panicked(&*payload).detail;
        assert_eq!(failure(Box::new("ouch")), "the work panicked: ouch");
        assert_eq!(failure(Box::new("ouch".to_owned())), "the work panicked: ouch");
        assert_eq!(failure(Box::new(7)), "the work panicked: it said nothing");
        let long = failure(Box::new("é".repeat(5_000)));
        assert_eq!(long.chars().count(), RunFailure::DETAIL_CHARS_MAX + 1);
    }
}
