//! The goals of this project for its own server, and the verdicts on its figures.

use std::time::Duration;

use crate::lab::numbers::fixed;
use crate::lab::report::{Quantity, Report, ratio};
use crate::load::{CallWay, Shape};
use crate::statistics::Estimate;

/// An upper limit for a figure of a contender, or for its ratio to that of another contender.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Goal {
    pub(crate) quantity: Quantity,
    pub(crate) case: String,
    pub(crate) of: String,
    pub(crate) to: Option<String>,
    pub(crate) limit: f64,
}

impl Goal {
    pub(crate) fn new(
        quantity: Quantity,
        case: &str,
        of: &str,
        to: Option<&str>,
        limit: f64,
    ) -> Self {
        let [case, of] = [case, of].map(str::to_owned);
        Self { quantity, case, of, to: to.map(str::to_owned), limit }
    }

    /// Returns the figure or ratio to judge, if it was measured.
    pub(crate) fn estimate(&self, report: &Report) -> Option<Estimate> {
        let of = |contender| report.find(&self.case, contender, self.quantity.name);
        match &self.to {
            Some(to) => ratio(of(&self.of)?, of(to)?),
            None => of(&self.of)?.estimate(),
        }
    }
}

/// Returns a sentence with the number of goals that are met. A run that proves nothing is not judged.
pub(crate) fn answer(goals: &[Goal], report: &Report) -> String {
    if let Some(flaw) = report.flaw().filter(|_| !goals.is_empty()) {
        return format!("No goal is judged: the run is {flaw}.");
    }
    let judged = goals.iter().filter_map(|goal| Some((goal.estimate(report)?.value, goal.limit)));
    let met: Vec<_> = judged.map(|(value, limit)| value <= limit).collect();
    match met.len() {
        0 => "These figures have no goal.".to_owned(),
        all => format!("{} of {all} goals are met.", met.iter().filter(|met| **met).count()),
    }
}

/// Returns the verdict on a result with an upper limit.
pub(crate) fn verdict(estimate: &Estimate, limit: f64) -> String {
    let verdict = if estimate.value <= limit {
        "met".to_owned()
    } else {
        format!("missed by {} %", fixed((estimate.value / limit - 1.0) * 100.0, 1))
    };
    // The interval reaches past the limit on the other side.
    let in_doubt = estimate.holds(limit) && estimate.high > limit;
    if in_doubt { verdict + ", not distinguishable" } else { verdict }
}

/// Returns the limit for the CPU time of an echo, relative to the C echo in the same run.
pub(crate) fn echo(connections: usize, shape: Shape) -> Option<f64> {
    match (connections, shape.in_flight, shape.payload_bytes) {
        (5000, 1, 125) => Some(1.10),
        (100, 1, 20 | 125 | 1024 | 16_384 | 65_536) => Some(1.05),
        (100, 1, 1_048_576) => Some(1.25),
        (100, 16, 20 | 125 | 16_384 | 65_536) => Some(1.05),
        (100, 16, 1024) => Some(1.10),
        _ => None,
    }
}

/// Returns the limit for the CPU time of a delivery, in microseconds.
pub(crate) fn broadcast(connections: usize, shape: Shape) -> Option<f64> {
    match (connections, shape.in_flight, shape.payload_bytes) {
        (1000, 1, 100) => Some(2.3),
        (1000, 8, 100) => Some(0.36),
        _ => None,
    }
}

/// Returns the limit for the CPU time of a call, relative to a WebSocket echo or to the same service in hyper.
pub(crate) fn call(way: CallWay, in_flight: usize) -> Option<f64> {
    match way {
        CallWay::Multiplexed => (in_flight == 16).then_some(1.5),
        CallWay::Http => Some(1.15),
        CallWay::Http2 => None,
    }
}

/// The most CPU time of opening and closing a connection, relative to that of the C echo.
pub(crate) const CONNECT: f64 = 1.15;
/// The most user memory of an idle connection, in bytes.
pub(crate) const MEMORY_BYTES: f64 = 512.0;

/// The least speed of our masking, relative to a u64 XOR loop, for payloads of [`MASK_BYTES_MIN`] bytes or more.
pub(crate) const MASK_SPEED: f64 = 0.8;
pub(crate) const MASK_BYTES_MIN: usize = 125;

/// The most CPU time of a delivery through a topic, relative to the broadcast that stores nothing.
pub(crate) const TOPIC_TO_BROADCAST: f64 = 1.15;

/// The most CPU time of a run's partial result, relative to an event of a topic.
pub(crate) const PARTIAL_RESULT_TO_EVENT: f64 = 1.3;

/// The most user memory of a WebSocket that reads a topic, in addition to one that does not; below, that of an SSE
/// reader.
pub(crate) const WEBSOCKET_READER_BYTES_MORE: f64 = 1024.0;
pub(crate) const SSE_READER_BYTES: f64 = 4096.0;

/// The longest wait of a normal client beside a flood on its thread, for 99 % of its echoes and requests.
pub(crate) const FLOOD_WAIT_P99: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_by_how_much_and_whether_it_can_be_told() {
        let says = |low, value, high| verdict(&Estimate { value, low, high }, 1.05);
        assert_eq!(says(1.01, 1.02, 1.03), "met");
        assert_eq!(says(1.01, 1.05, 1.05), "met");
        assert_eq!(says(1.01, 1.04, 1.06), "met, not distinguishable");
        assert_eq!(says(1.04, 1.155, 1.2), "missed by 10.0 %, not distinguishable");
        assert_eq!(says(1.06, 1.155, 1.2), "missed by 10.0 %");
    }
}
