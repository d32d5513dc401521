//! The results of runs.

use std::fmt::Write as _;
use std::time::Duration;

use super::{busy, disturbed, estimate, figure, interval, ratios, show, verdict};
use crate::experiment::Sample;
use crate::experiment::runs::{RESULTS, RUNS, RunsResults};
use crate::goals::{FLOOD_WAIT_P99, PARTIAL_RESULT_TO_EVENT};
use crate::statistics::median;

/// A table of the costs, and one of the waits.
pub(crate) fn of_runs(results: &RunsResults) -> String {
    let costs = |samples: &[Sample]| samples.iter().map(|sample| sample.cost).collect::<Vec<_>>();
    let (partial, event) = (costs(&results.results), costs(&results.events));
    let ratio = estimate(&ratios(&partial, &event));
    let mut text = format!(
        "\n### Server CPU for each partial result of a run with one watcher, µs\n\n\
         | | CPU | event of a topic with one reader | ratio | at most | | busy, %: server, generator, others |\n\
         |---|--:|--:|--:|--:|---|--:|\n\
         | {RESULTS} results | {} | {} | {} | {PARTIAL_RESULT_TO_EVENT:.2} | {} | {} |\n",
        show(median(&partial), figure),
        show(median(&event), figure),
        show(ratio, |estimate| interval(&estimate)),
        show(ratio, |estimate| verdict(&estimate, PARTIAL_RESULT_TO_EVENT)),
        busy(results.results.iter().map(|sample| sample.busy)),
    );
    text += "\n### What a normal client waits for an echo beside runs that compute, ms\n\n\
             | beside | p50 | p99 | p99.9 | longest | p99 at most | |\n|---|--:|--:|--:|--:|--:|---|\n";
    let ms = |time: Duration| figure(time.as_secs_f64() * 1e3);
    for (beside, waits) in [(0, &results.alone), (RUNS, &results.beside)] {
        let at = |share| show(waits.times.percentile(share), ms);
        let is_met = waits.times.percentile(0.99).is_some_and(|p99| p99 <= FLOOD_WAIT_P99);
        let _ = writeln!(
            text,
            "| {beside} runs | {} | {} | {} | {} | {} | {} |",
            at(0.5),
            at(0.99),
            at(0.999),
            ms(waits.longest),
            FLOOD_WAIT_P99.as_millis(),
            if is_met { "met" } else { "missed" },
        );
    }
    text += "\nOnce; the server and its runs have one core. An echo of 125 B every 15 ms, timed from when it was planned.\n";
    let samples = results.results.iter().chain(&results.events);
    text + &disturbed(samples.map(|sample| sample.busy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Busy;

    #[test]
    fn a_result_is_judged_by_an_event() {
        let samples = |cost| vec![Sample { cost, busy: Busy::default() }; 2];
        let results =
            RunsResults { results: samples(1.43), events: samples(1.0), ..RunsResults::default() };
        let text = of_runs(&results);
        assert!(
            text.contains("| 1.43 | 1.00 | 1.430 [1.430, 1.430] | 1.30 | missed by 10.0 % |"),
            "{text}"
        );
        assert!(text.contains("| 16 runs | – | – | – |"));
    }
}
