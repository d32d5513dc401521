//! The results of calls.

use std::fmt::Write as _;

use super::{busy, disturbed, estimate, figure, interval, ratios, show, verdict};
use crate::experiment::calls::{CallTarget, CallsCase};
use crate::goals::{HTTP_CALL_TO_HYPER, MULTIPLEXED_CALL_TO_ECHO};
use crate::load::CallWay;
use crate::statistics::median;

/// One row for each way of calling and each number in flight.
pub(crate) fn of_calls(cases: &[CallsCase]) -> String {
    let mut text = "\n### Server CPU for each call of a trivial service, µs\n\n\
         | | CPU | beside | its CPU | ratio | at most | | busy, %: server, generator, others |\n\
         |---|--:|---|--:|--:|--:|---|--:|\n"
        .to_owned();
    for case in cases {
        for way in [CallWay::Multiplexed, CallWay::Http, CallWay::Http2] {
            let called = CallTarget::Service(way);
            let (beside, name) = match way {
                CallWay::Multiplexed => (CallTarget::Echo, "WebSocket echo"),
                CallWay::Http | CallWay::Http2 => (CallTarget::Hyper(way), "hyper alone"),
            };
            let ratio = estimate(&ratios(&case.costs(called), &case.costs(beside)));
            let limit = limit(way, case.in_flight);
            let _ = writeln!(
                text,
                "| {way}, {} in flight | {} | {name} | {} | {} | {} | {} | {} |",
                case.in_flight,
                show(median(&case.costs(called)), figure),
                show(median(&case.costs(beside)), figure),
                show(ratio, |estimate| interval(&estimate)),
                show(limit, |limit| format!("{limit:.2}")),
                show(ratio.zip(limit), |(estimate, limit)| verdict(&estimate, limit)),
                busy(case.samples.get(&called).into_iter().flatten().map(|sample| sample.busy)),
            );
        }
    }
    let samples = cases.iter().flat_map(|case| case.samples.values().flatten());
    text + "\n" + &disturbed(samples.map(|sample| sample.busy))
}

/// Returns the most CPU time of a call, relative to what is beside it.
fn limit(way: CallWay, in_flight: usize) -> Option<f64> {
    match way {
        CallWay::Multiplexed => (in_flight == 16).then_some(MULTIPLEXED_CALL_TO_ECHO),
        CallWay::Http => Some(HTTP_CALL_TO_HYPER),
        CallWay::Http2 => None,
    }
}

impl CallsCase {
    fn costs(&self, called: CallTarget) -> Vec<f64> {
        let samples = self.samples.get(&called).into_iter().flatten();
        samples.map(|sample| sample.cost).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Busy;
    use crate::experiment::Sample;

    #[test]
    fn a_call_is_judged_by_what_is_beside_it() {
        let mut case = CallsCase { in_flight: 16, ..CallsCase::default() };
        for (called, cost) in CallTarget::ALL.into_iter().zip([1.0, 1.65, 5.0, 5.0, 9.0, 6.0]) {
            let sample = Sample { cost, busy: Busy::default() };
            case.samples.insert(called, vec![sample; 2]);
        }
        let text = of_calls(&[case]);
        assert!(text.contains(
            "| multiplexed WebSocket, 16 in flight | 1.65 | WebSocket echo | 1.00 | 1.650 [1.650, 1.650] | 1.50 | missed by \
             10.0 % |"
        ));
        assert!(text.contains("| HTTP/1.1, 16 in flight | 5.00 | hyper alone | 5.00 |"));
        assert!(text.contains("| 1.15 | met |"), "{text}");
        assert!(
            text.contains("| HTTP/2, 16 in flight | 9.00 | hyper alone | 6.00 | 1.500 [1.500, 1.500] | – | – |"),
            "{text}"
        );
    }
}
