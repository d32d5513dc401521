//! The events of a run ("Runs" in `docs/PROTOCOL.md`).

use std::fmt::Write as _;
use std::time::Duration;

use super::progress::Report;
use crate::Data;

/// Returns the event of a run that waits while `place` others start before it.
pub(crate) fn queued(place: usize) -> Data {
    Data::from_json(format!(r#"{{"state":"queued","place":{place}}}"#))
}

/// Returns the event of a run whose work begins.
pub(crate) fn running() -> Data {
    Data::from_json(r#"{"state":"running"}"#.to_owned())
}

/// Returns the event of a report.
pub(crate) fn progress(report: Report<'_>) -> Data {
    let Report { value, text, left } = report;
    // Writing to a string cannot fail.
    let mut event = format!(r#"{{"progress":{value}"#);
    if let Some(text) = text {
        let _ = write!(event, r#","text":{}"#, serde_json::Value::from(text));
    }
    if let Some(left) = left {
        let _ = write!(event, r#","left":{}"#, tenths(left));
    }
    event.push('}');
    Data::from_json(event)
}

/// Returns the event of a partial result.
pub(crate) fn partial(value: &Data) -> Data {
    Data::object(&[("partial", value)])
}

/// Returns the last event of a run that is done.
pub(crate) fn done(result: Option<&str>) -> Data {
    match result {
        Some(result) => wrapped(r#"{"state":"done","result":"#, result),
        None => Data::from_json(r#"{"state":"done"}"#.to_owned()),
    }
}

/// Returns the last event of a run that has failed.
pub(crate) fn failed(problem: &str) -> Data {
    wrapped(r#"{"state":"failed","problem":"#, problem)
}

/// Returns the last event of a run that was cancelled.
pub(crate) fn cancelled() -> Data {
    Data::from_json(r#"{"state":"cancelled"}"#.to_owned())
}

/// Returns seconds with one decimal, as exact as an estimate is.
pub(crate) fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

fn wrapped(begin: &str, value: &str) -> Data {
    let mut event = String::with_capacity(begin.len() + value.len() + 1);
    event.push_str(begin);
    event.push_str(value);
    event.push('}');
    Data::from_json(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_spelled_as_the_protocol_says() {
        let left = Some(Duration::from_millis(12_345));
        let report = |text, left| progress(Report { value: 0.42, text, left });
        let value = Data::parse(r#"{"n": 1.50}"#).unwrap();
        for (event, text) in [
            (queued(2), r#"{"state":"queued","place":2}"#),
            (running(), r#"{"state":"running"}"#),
            (report(None, None), r#"{"progress":0.42}"#),
            (report(Some("\"a\n"), left), r#"{"progress":0.42,"text":"\"a\n","left":12.3}"#),
            (partial(&value), r#"{"partial":{"n": 1.50}}"#),
            (done(None), r#"{"state":"done"}"#),
            (done(Some("[1]")), r#"{"state":"done","result":[1]}"#),
            (failed("{}"), r#"{"state":"failed","problem":{}}"#),
            (cancelled(), r#"{"state":"cancelled"}"#),
        ] {
            assert_eq!(event.as_str(), text);
            assert_eq!(Data::parse(text).unwrap(), event);
        }
    }
}
