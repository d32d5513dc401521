//! The events of a run ("Runs" in `docs/PROTOCOL.md`).

use std::time::Duration;

use anemone_wire::{RunMembers, RunState};

use super::failure::Json;
use super::progress::Report;
use crate::Data;

/// Returns the event of a run that waits while `place` others start before it.
pub(crate) fn queued(place: usize) -> Data {
    let members = RunMembers { place: Some(place as u64), ..in_state(RunState::Queued) };
    event(&members)
}

/// Returns the event of a run whose work begins.
pub(crate) fn running() -> Data {
    event(&in_state(RunState::Running))
}

pub(crate) fn progress(report: Report<'_>) -> Data {
    let Report { value, text, left } = report;
    let (text, left) = (text.map(Into::into), left.map(tenths));
    event(&RunMembers { progress: Some(value), text, left, ..RunMembers::default() })
}

/// Returns the event of a partial result, which costs little more than its copy.
pub(crate) fn partial(value: &Data) -> Data {
    Data::object(&[("partial", value)])
}

pub(crate) fn done(result: Option<&Json>) -> Data {
    event(&RunMembers { result: result.map(Json::as_raw), ..in_state(RunState::Done) })
}

pub(crate) fn failed(problem: &Json) -> Data {
    event(&RunMembers { problem: Some(problem.as_raw()), ..in_state(RunState::Failed) })
}

pub(crate) fn cancelled() -> Data {
    event(&in_state(RunState::Cancelled))
}

/// Returns seconds with one decimal, as exact as an estimate is.
pub(crate) fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

fn in_state<'a>(state: RunState) -> RunMembers<'a> {
    RunMembers { state: Some(state), ..RunMembers::default() }
}

fn event(members: &RunMembers<'_>) -> Data {
    // Members with names and JSON values always have a JSON form.
    Data::from_json(serde_json::to_string(members).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_spelled_as_the_protocol_says() {
        let left = Some(Duration::from_millis(12_345));
        let report = |text, left| progress(Report { value: 0.42, text, left });
        let value = Data::parse(r#"{"n": 1.50}"#).unwrap();
        let json = |text| Json::of(&Data::parse(text).unwrap()).unwrap();
        for (event, text) in [
            (queued(2), r#"{"state":"queued","place":2}"#),
            (running(), r#"{"state":"running"}"#),
            (report(None, None), r#"{"progress":0.42}"#),
            (report(Some("\"a\n"), left), r#"{"progress":0.42,"text":"\"a\n","left":12.3}"#),
            (partial(&value), r#"{"partial":{"n": 1.50}}"#),
            (done(None), r#"{"state":"done"}"#),
            (done(Some(&json("[1]"))), r#"{"state":"done","result":[1]}"#),
            (failed(&json("{}")), r#"{"state":"failed","problem":{}}"#),
            (cancelled(), r#"{"state":"cancelled"}"#),
        ] {
            assert_eq!(event.as_str(), text);
            assert_eq!(Data::parse(text).unwrap(), event);
        }
    }
}
