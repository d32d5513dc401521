//! The results, as Markdown.
//!
//! A ratio is the median over the rounds of the ratio within a round, with its 95 % interval; a cost is the
//! median over the rounds.

mod calls;
mod floods;
mod runs;
mod topics;

use std::fmt::Write as _;

use crate::cpu::{Busy, OTHERS_MAX};
use crate::experiment::hostile::{self, Outcome};
use crate::experiment::mask::MaskCase;
use crate::experiment::rounds::{Case, Results};
use crate::experiment::{Bytes, Contender, Sample, Work};
use crate::goals::{Goal, MASK_BYTES_MIN, MASK_SPEED, TOPIC_TO_BROADCAST};
use crate::statistics::{Estimate, Random, median};

pub(crate) use calls::of_calls;
pub(crate) use floods::of_floods;
pub(crate) use runs::of_runs;
pub(crate) use topics::{of_fan_out, of_publishing};

/// The seed of resampling, so that the same samples always give the same intervals.
const SEED: u64 = 1;
const NONE: &str = "–";

/// Returns one table for each kind of work, and below them signs of disturbances.
pub(crate) fn of_results(results: &Results) -> String {
    let (mut echo, mut broadcast) = (Vec::new(), Vec::new());
    let (mut connect, mut memory) = (Vec::new(), Vec::new());
    for case in &results.cases {
        match case.work {
            Work::Echo { .. } => echo.push(case),
            Work::Broadcast { .. } => broadcast.push(case),
            Work::Connect { .. } => connect.push(case),
            Work::Memory { .. } => memory.push(case),
        }
    }
    let mut text = String::new();
    if !echo.is_empty() {
        text += &cpu_table("Server CPU for each message, µs", &echo);
    }
    if !broadcast.is_empty() {
        text += &broadcast_table(&broadcast);
    }
    if !connect.is_empty() {
        text += &cpu_table("Server CPU for each connection, µs", &connect);
    }
    if !memory.is_empty() {
        text += &memory_table(&memory);
    }
    text + &notes(results)
}

fn cpu_table(title: &str, cases: &[&Case]) -> String {
    let mut text = format!(
        "\n### {title}\n\n\
         | | C | C again | TCP | WebSocket | C again / C | TCP / C | WebSocket / C | at most | | WebSocket / TCP | \
         busy, %: server, generator, others |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|\n"
    );
    for case in cases {
        let cost = |contender| show(median(&case.costs(contender)), figure);
        let ratio = |of, to| show(case.ratio(of, to), |estimate| interval(&estimate));
        let (at_most, verdict) = case.judged();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            case.work,
            cost(Contender::Floor),
            cost(Contender::Control),
            cost(Contender::Tcp),
            cost(Contender::WebSocket),
            ratio(Contender::Control, Contender::Floor),
            ratio(Contender::Tcp, Contender::Floor),
            ratio(Contender::WebSocket, Contender::Floor),
            at_most,
            verdict,
            ratio(Contender::WebSocket, Contender::Tcp),
            case.busy(),
        );
    }
    text
}

/// The server's own bare TCP has no broadcast. Its broadcast through a topic is compared with the other.
fn broadcast_table(cases: &[&Case]) -> String {
    let mut text = "\n### Server CPU for each delivery, µs\n\n\
         | | C | C again | broadcast | topic | C again / C | broadcast / C | at most | | topic / broadcast | at most | | \
         busy, %: server, generator, others |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|---|--:|\n"
        .to_owned();
    for case in cases {
        let cost = |contender| show(median(&case.costs(contender)), figure);
        let ratio = |of, to| show(case.ratio(of, to), |estimate| interval(&estimate));
        let (at_most, of_broadcast) = case.judged();
        let topic = case.ratio(Contender::Topic, Contender::WebSocket);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {at_most} | {of_broadcast} | {} | {TOPIC_TO_BROADCAST:.2} | {} | {} |",
            case.work,
            cost(Contender::Floor),
            cost(Contender::Control),
            cost(Contender::WebSocket),
            cost(Contender::Topic),
            ratio(Contender::Control, Contender::Floor),
            ratio(Contender::WebSocket, Contender::Floor),
            ratio(Contender::Topic, Contender::WebSocket),
            show(topic, |estimate| verdict(&estimate, TOPIC_TO_BROADCAST)),
            case.busy(),
        );
    }
    text
}

fn memory_table(cases: &[&Case]) -> String {
    let mut text = "\n### User memory of the server for each idle connection, bytes\n\n\
         | | C | TCP | WebSocket | at most | |\n|---|--:|--:|--:|--:|---|\n"
        .to_owned();
    for case in cases {
        let bytes = |contender| {
            let estimate = estimate(&case.costs(contender));
            show(estimate, |Estimate { median, low, high }| {
                format!("{median:.0} [{low:.0}, {high:.0}]")
            })
        };
        let limit = match Goal::of(&case.work) {
            Some(Goal::Bytes(limit)) => Some(limit),
            Some(Goal::RatioToFloor(_) | Goal::CpuMicros(_)) | None => None,
        };
        let ours = estimate(&case.costs(Contender::WebSocket));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            case.work,
            bytes(Contender::Floor),
            bytes(Contender::Tcp),
            bytes(Contender::WebSocket),
            show(limit, |limit| format!("{limit:.0}")),
            show(ours.zip(limit), |(estimate, limit)| verdict(&estimate, limit)),
        );
    }
    text
}

fn notes(results: &Results) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut text = format!(
        "\nCPU time of all servers over the run: {:.2} s by /proc/PID/task/*/schedstat (used here), {:.2} s by \
         /proc/PID/stat, user and system.\n",
        seconds(results.schedstat_ns),
        seconds(results.stat_ns)
    );
    let samples = results.cases.iter().flat_map(|case| case.samples.values().flatten());
    text += &disturbed(samples.map(|sample| sample.busy));
    if let Some(idle) = median(&results.idle) {
        let _ = writeln!(text, "The server without connections: {idle:.0} µs of CPU a second.");
    }
    text
}

/// Returns the number of disturbed samples.
fn disturbed(samples: impl Iterator<Item = Busy>) -> String {
    let (mut all, mut disturbed) = (0, 0);
    for busy in samples {
        all += 1;
        disturbed += usize::from(busy.is_disturbed());
    }
    format!(
        "Other processes used more than {:.0} % of a core during {disturbed} of {all} samples{}.\n",
        OTHERS_MAX * 100.0,
        if disturbed * 10 > all { ": do not rely on this run" } else { "" }
    )
}

/// Returns the median shares of the time.
fn busy(samples: impl Iterator<Item = Busy>) -> String {
    let samples: Vec<_> = samples.collect();
    let share = |of: fn(&Busy) -> f64| {
        let shares: Vec<_> = samples.iter().map(|busy| of(busy) * 100.0).collect();
        show(median(&shares), |share| format!("{share:.0}"))
    };
    let shares = [share(|busy| busy.server), share(|busy| busy.generator), share(|b| b.others)];
    shares.join(", ")
}

/// One row for each size and place.
pub(crate) fn of_masking(cases: &[MaskCase]) -> String {
    let mut text = "\n### Masking, ns for each call\n\n\
         | | u64 XOR in C, -O3 | ours | C again / C | our speed / C's | at least | |\n\
         |---|--:|--:|--:|--:|--:|---|\n"
        .to_owned();
    for case in cases {
        let limit = (case.payload_bytes >= MASK_BYTES_MIN).then_some(MASK_SPEED);
        let speed = estimate(&ratios(&case.xor, &case.ours));
        let time = estimate(&ratios(&case.ours, &case.xor));
        let _ = writeln!(
            text,
            "| {}, {} bytes after a cache line | {} | {} | {} | {} | {} | {} |",
            Bytes(case.payload_bytes),
            case.offset,
            show(median(&case.xor), figure),
            show(median(&case.ours), figure),
            show(estimate(&ratios(&case.xor_again, &case.xor)), |estimate| interval(&estimate)),
            show(speed, |estimate| interval(&estimate)),
            show(limit, |limit| format!("{limit:.2}")),
            show(time.zip(limit), |(estimate, limit)| verdict(&estimate, 1.0 / limit)),
        );
    }
    text
}

/// One row for each kind.
pub(crate) fn of_hostile_peers(outcomes: &[Outcome]) -> String {
    let mut text = "\n### Hostile peers, for each connection\n\n\
         | | connections | sent, KiB | server memory at most, KiB | server CPU, µs | ended after, s | with |\n\
         |---|--:|--:|--:|--:|--:|---|\n"
        .to_owned();
    for outcome in outcomes {
        let cpu = match outcome.kind.pings() {
            Some(pings) => {
                let each = figure(outcome.cpu_us / pings as f64);
                format!("{}, {each} a ping", figure(outcome.cpu_us))
            }
            None => figure(outcome.cpu_us),
        };
        let ended_after = show(outcome.ended_after, |time| format!("{:.1}", time.as_secs_f64()));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {cpu} | {ended_after} | {} |",
            outcome.kind,
            outcome.connections,
            figure(outcome.sent_bytes / 1024.0),
            figure(outcome.memory_bytes / 1024.0),
            if outcome.ends.is_empty() { NONE.to_owned() } else { outcome.ends.join(", ") },
        );
    }
    let watched = hostile::TIME_MAX.as_secs();
    text + &format!("\nOnce, each kind at a server of its own, watched for {watched} s at most.\n")
}

impl Case {
    fn samples(&self, contender: Contender) -> &[Sample] {
        self.samples.get(&contender).map_or(&[], Vec::as_slice)
    }

    fn costs(&self, contender: Contender) -> Vec<f64> {
        self.samples(contender).iter().map(|sample| sample.cost).collect()
    }

    fn ratio(&self, of: Contender, to: Contender) -> Option<Estimate> {
        estimate(&ratios(&self.costs(of), &self.costs(to)))
    }

    /// Returns the most CPU time for the WebSocket, and the verdict.
    fn judged(&self) -> (String, String) {
        match Goal::of(&self.work) {
            Some(Goal::RatioToFloor(limit)) => {
                let ours = self.ratio(Contender::WebSocket, Contender::Floor);
                (format!("{limit:.2}"), show(ours, |estimate| verdict(&estimate, limit)))
            }
            Some(Goal::CpuMicros(limit)) => {
                let ours = estimate(&self.costs(Contender::WebSocket));
                (format!("{limit:.2} µs"), show(ours, |estimate| verdict(&estimate, limit)))
            }
            Some(Goal::Bytes(_)) | None => (NONE.to_owned(), NONE.to_owned()),
        }
    }

    /// Returns the share of time in which the WebSocket keeps its core busy, or else the C echo.
    fn busy(&self) -> String {
        let mut samples = self.samples(Contender::WebSocket);
        if samples.is_empty() {
            samples = self.samples(Contender::Floor);
        }
        busy(samples.iter().map(|sample| sample.busy))
    }
}

fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

fn estimate(values: &[f64]) -> Option<Estimate> {
    Estimate::of(values, &mut Random::new(SEED))
}

fn show<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), format)
}

/// Formats three significant digits, or all before the point.
pub(crate) fn figure(value: f64) -> String {
    format!("{value:.*}", decimals(value))
}

/// Returns the decimals of a number with three significant digits, or all before the point.
pub(crate) fn decimals(value: f64) -> usize {
    // A number that is rounded up to 1, 10 or 100 gets a digit more before the point.
    match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    }
}

fn interval(Estimate { median, low, high }: &Estimate) -> String {
    format!("{median:.3} [{low:.3}, {high:.3}]")
}

/// Returns the verdict on a result with an upper limit.
fn verdict(estimate: &Estimate, limit: f64) -> String {
    let verdict = if estimate.median <= limit {
        "met".to_owned()
    } else {
        format!("missed by {:.1} %", (estimate.median / limit - 1.0) * 100.0)
    };
    // The interval reaches past the limit on the other side.
    let in_doubt = estimate.holds(limit) && estimate.high > limit;
    if in_doubt { verdict + ", not distinguishable" } else { verdict }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::load::Shape;

    #[test]
    fn a_verdict_says_by_how_much_and_whether_it_can_be_told() {
        let says = |low, median, high| verdict(&Estimate { median, low, high }, 1.05);
        assert_eq!(says(1.01, 1.02, 1.03), "met");
        assert_eq!(says(1.01, 1.05, 1.05), "met");
        assert_eq!(says(1.01, 1.04, 1.06), "met, not distinguishable");
        assert_eq!(says(1.04, 1.155, 1.2), "missed by 10.0 %, not distinguishable");
        assert_eq!(says(1.06, 1.155, 1.2), "missed by 10.0 %");
    }

    #[test]
    fn figures_have_three_digits() {
        let shown = [0.1934, 3.044, 13.67, 200.4, 1234.5].map(figure);
        assert_eq!(shown, ["0.193", "3.04", "13.7", "200", "1234"]);
    }

    #[test]
    fn a_row_pairs_the_samples_of_a_round() {
        let shape = Shape { payload_bytes: 125, in_flight: 16 };
        let sample = |cost| Sample { cost, busy: Busy::default() };
        let samples = BTreeMap::from([
            (Contender::Floor, vec![sample(2.0), sample(4.0)]),
            (Contender::Control, vec![sample(2.0), sample(4.0)]),
            (Contender::WebSocket, vec![sample(3.0), sample(6.0)]),
        ]);
        let case = Case { work: Work::Echo { connections: 100, shape }, samples };
        let results = Results { cases: vec![case], schedstat_ns: 0, stat_ns: 0, idle: vec![] };
        let text = of_results(&results);
        let row = text.lines().find(|line| line.contains("125 B")).unwrap();
        assert_eq!(
            row,
            "| 125 B, 16 in flight, 100 connections | 3.00 | 3.00 | – | 4.50 | 1.000 [1.000, 1.000] | – | \
             1.500 [1.500, 1.500] | 1.05 | missed by 42.9 % | – | 0, 0, 0 |"
        );
        assert!(!text.contains("idle connection"));
    }

    #[test]
    fn a_goal_in_microseconds_is_judged_by_the_cost_itself() {
        let sample = |cost| Sample { cost, busy: Busy::default() };
        let samples = BTreeMap::from([
            (Contender::Floor, vec![sample(0.2), sample(0.2)]),
            (Contender::WebSocket, vec![sample(0.396), sample(0.396)]),
            (Contender::Topic, vec![sample(0.495), sample(0.495)]),
        ]);
        let shape = Shape { payload_bytes: 100, in_flight: 8 };
        let case = Case { work: Work::Broadcast { connections: 1000, shape }, samples };
        let results = Results { cases: vec![case], schedstat_ns: 0, stat_ns: 0, idle: vec![] };
        let text = of_results(&results);
        let row = text.lines().find(|line| line.contains("100 B")).unwrap();
        assert_eq!(
            row,
            "| 100 B to 1000 connections, 8 outstanding | 0.200 | – | 0.396 | 0.495 | – | 1.980 [1.980, 1.980] | \
             0.36 µs | missed by 10.0 % | 1.250 [1.250, 1.250] | 1.15 | missed by 8.7 % | 0, 0, 0 |"
        );
    }
}
