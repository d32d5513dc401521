//! The parameters of a start: which states are sent, and how fast they are made.

use std::time::Duration;

use anemone_hub::run::RunRefusal;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ComputationOptions {
    pub(super) states: SentStates,
    /// The most states in one event.
    pub(super) batch: u64,
    /// The most changes of each list in a second; `None` for as many as the processor makes.
    pub(super) pace: Option<u64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SentStates {
    /// Each one.
    All,
    /// Every n-th one, and the last one.
    Every(u64),
    /// The newest one at most so many times a second, and the last one.
    Rate(u64),
}

const EVERY_MAX: u64 = 1_000_000_000;
const RATE_MAX: u64 = 1_000;
/// The most bytes in a second of the states of a list that are sent at a rate.
const RATE_BYTES_MAX: f64 = 1_048_576.0;
const BATCH_MAX: u64 = 1_000;
const PACE_MAX: u64 = 1_000_000;

impl Default for ComputationOptions {
    fn default() -> Self {
        Self { states: SentStates::All, batch: BATCH_MAX, pace: None }
    }
}

impl ComputationOptions {
    /// Describes the parameters, as objects of OpenAPI 3.1.
    pub(super) fn describe() -> Value {
        let parameter = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "query", "description": description, "schema": schema});
        let states = format!(
            "The states of the lists that are sent: all; every:N, each N-th one, 1 to {EVERY_MAX}; or rate:N, the newest one at most N times a second, 1 to {RATE_MAX}."
        );
        json!([
            parameter(
                "states",
                &states,
                json!({"type": "string", "pattern": "^(all|(every|rate):[0-9]+)$", "default": "all"})
            ),
            parameter(
                "batch",
                "The most states in one event.",
                json!({"type": "integer", "minimum": 1, "maximum": BATCH_MAX, "default": BATCH_MAX})
            ),
            parameter(
                "pace",
                "The most changes of each list in a second. Without it, as many as the processor makes.",
                json!({"type": "integer", "minimum": 1, "maximum": PACE_MAX})
            ),
        ])
    }

    /// Parses a query, without the question mark.
    ///
    /// # Errors
    /// For a parameter that is unknown, given twice, or out of its range.
    pub(super) fn parse(query: &str) -> Result<Self, RunRefusal> {
        let (mut options, mut seen) = (Self::default(), Vec::new());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "states" => options.states = SentStates::parse(&value)?,
                "batch" => options.batch = number("batch", &value, BATCH_MAX)?,
                "pace" => options.pace = Some(number("pace", &value, PACE_MAX)?),
                _ => return Err(bad("the parameters are states, batch and pace".to_owned())),
            }
            if seen.contains(&name) {
                return Err(bad(format!("{name} is given twice")));
            }
            seen.push(name);
        }
        Ok(options)
    }
}

impl SentStates {
    fn parse(value: &str) -> Result<Self, RunRefusal> {
        match value.split_once(':') {
            None if value == "all" => Ok(Self::All),
            Some(("every", count)) => number("states=every:N", count, EVERY_MAX).map(Self::Every),
            Some(("rate", rate)) => number("states=rate:N", rate, RATE_MAX).map(Self::Rate),
            _ => Err(bad(format!(
                "states is all, every:N (1 to {EVERY_MAX}) or rate:N (1 to {RATE_MAX} a second)"
            ))),
        }
    }

    /// Returns the parameter's value.
    pub(super) fn name(self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Every(count) => format!("every:{count}"),
            Self::Rate(rate) => format!("rate:{rate}"),
        }
    }

    pub(super) fn is_rate(self) -> bool {
        matches!(self, Self::Rate(_))
    }

    /// Returns the shortest time between a state of so many bytes and the next one. It is that of the rate, or longer where the
    /// states would have more than [`RATE_BYTES_MAX`] a second.
    pub(super) fn interval(self, state_bytes: usize) -> Duration {
        match self {
            Self::Rate(rate) => {
                let bytes = state_bytes as f64 / RATE_BYTES_MAX;
                Duration::from_secs_f64(bytes.max((rate as f64).recip()))
            }
            Self::All | Self::Every(_) => Duration::ZERO,
        }
    }
}

fn number(name: &str, value: &str, max: u64) -> Result<u64, RunRefusal> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_plain.then(|| value.parse().ok()).flatten();
    number
        .filter(|number| (1..=max).contains(number))
        .ok_or_else(|| bad(format!("{name} takes a whole number from 1 to {max}")))
}

fn bad(detail: String) -> RunRefusal {
    RunRefusal::BadParameter(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_up_to_their_limits() {
        let states = |states| ComputationOptions { states, ..ComputationOptions::default() };
        for (query, expected) in [
            ("", ComputationOptions::default()),
            ("states=all", ComputationOptions::default()),
            ("states=every:1", states(SentStates::Every(1))),
            ("states=every%3A1000000000", states(SentStates::Every(1_000_000_000))),
            ("states=rate:1000", states(SentStates::Rate(1_000))),
            (
                "pace=1000000&batch=1",
                ComputationOptions { batch: 1, pace: Some(1_000_000), ..Default::default() },
            ),
        ] {
            assert_eq!(ComputationOptions::parse(query), Ok(expected), "{query}");
        }
    }

    #[test]
    fn what_is_described_is_what_is_taken() {
        let described = ComputationOptions::describe();
        let names: Vec<_> = described.as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["states", "batch", "pace"]);
        for parameter in described.as_array().unwrap() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let is_taken =
                |value: u64| ComputationOptions::parse(&format!("{name}={value}")).is_ok();
            if let (Some(min), Some(max)) = (schema["minimum"].as_u64(), schema["maximum"].as_u64())
            {
                assert_eq!([min - 1, min, max, max + 1].map(is_taken), [false, true, true, false]);
            }
        }
        let by_default = format!("states={}", described[0]["schema"]["default"].as_str().unwrap());
        let by_default = format!("{by_default}&batch={}", described[1]["schema"]["default"]);
        assert_eq!(ComputationOptions::parse(&by_default), Ok(ComputationOptions::default()));
    }

    #[test]
    fn other_parameters_are_refused_with_the_allowed_range() {
        for (query, words) in [
            ("states", "states is all, every:N (1 to 1000000000) or rate:N (1 to 1000 a second)"),
            ("states=some", "states is all"),
            ("states=every:0", "states=every:N takes a whole number from 1 to 1000000000"),
            ("states=every:1000000001", "1 to 1000000000"),
            ("states=every:99999999999999999999", "1 to 1000000000"),
            ("states=rate:1001", "states=rate:N takes a whole number from 1 to 1000"),
            ("states=rate:0.5", "1 to 1000"),
            ("states=rate:+5", "1 to 1000"),
            ("batch=0", "batch takes a whole number from 1 to 1000"),
            ("batch=1001", "1 to 1000"),
            ("pace=NaN", "pace takes a whole number from 1 to 1000000"),
            ("pace=1000001", "1 to 1000000"),
            ("pace=1&pace=1", "pace is given twice"),
            ("speed=1", "the parameters are states, batch and pace"),
        ] {
            let refusal = ComputationOptions::parse(query).unwrap_err();
            assert!(matches!(refusal, RunRefusal::BadParameter(_)), "{query}");
            assert!(refusal.to_string().contains(words), "{query}: {refusal}");
        }
    }
}
