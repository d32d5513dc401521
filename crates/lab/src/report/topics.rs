//! The results of topics: fan-out to readers, and publishing.

use std::fmt::Write as _;
use std::time::Duration;

use super::{NONE, busy, disturbed, estimate, figure, interval, ratios, show, verdict};
use crate::experiment::fan_out::{self, Role};
use crate::experiment::publish::{self, PublishResults, Storage};
use crate::goals::{SSE_READER_BYTES, WEBSOCKET_READER_BYTES_MORE};
use crate::load::Delivery;
use crate::statistics::{Estimate, median};

/// One row for each transport and number of readers, in a table of deliveries and in one of memory.
pub(crate) fn of_fan_out(cases: &[fan_out::FanOutCase]) -> String {
    let mut text = "\n### Fan-out of one topic: events of 100 B\n\n\
         | | events a second | server CPU for each delivery, µs | to WebSocket's | p50, ms | p99, ms | reach | \
         generator's lag p99, ms | busy, %: server, generator, others |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for case in cases {
        let Role::Reader(delivery) = case.role else { continue };
        let websocket = find(cases, Role::Reader(Delivery::WebSocket), case.readers);
        let to_websocket =
            websocket.and_then(|websocket| estimate(&ratios(&case.cpu(), &websocket.cpu())));
        let deliveries = &case.deliveries;
        let _ = writeln!(
            text,
            "| {delivery}, {} readers | {} | {} | {} | {} | {} | {} | {} | {} |",
            case.readers,
            figure(case.events_per_second),
            show(median(&case.cpu()), figure),
            show(to_websocket, |estimate| interval(&estimate)),
            show(deliveries.latency.percentile(0.5), millis),
            show(deliveries.latency.percentile(0.99), millis),
            reach(deliveries.received, deliveries.expected),
            show(deliveries.lag.percentile(0.99), millis),
            busy(case.samples.iter().map(|sample| sample.busy)),
        );
    }
    text += "\nA delivery's time counts from when its event was planned to be sent until a reader has it, over all \
             rounds; reach is what came of what was expected.\n\
             \n### User memory of the server for each idle reader of a topic, bytes\n\n\
             | | before any event | after some | at most | |\n|---|--:|--:|--:|---|\n";
    for case in cases {
        let bytes = |estimate: Estimate| {
            let Estimate { median, low, high } = estimate;
            format!("{median:.0} [{low:.0}, {high:.0}]")
        };
        let limit = limit(cases, case);
        let opened = estimate(&case.bytes(|sample| sample.opened_bytes));
        let served = estimate(&case.bytes(|sample| sample.served_bytes));
        let name = match case.role {
            Role::Bare => "WebSocket, no topic".to_owned(),
            Role::Reader(delivery) => delivery.to_string(),
        };
        let _ = writeln!(
            text,
            "| {name}, {} connections | {} | {} | {} | {} |",
            case.readers,
            show(opened, bytes),
            show(served, bytes),
            show(limit, |limit| format!("{limit:.0}")),
            show(served.zip(limit), |(estimate, limit)| verdict(&estimate, limit)),
        );
    }
    text + &disturbed(cases.iter().flat_map(|case| case.samples.iter().map(|sample| sample.busy)))
}

/// The most that a reader of a case may take.
fn limit(cases: &[fan_out::FanOutCase], case: &fan_out::FanOutCase) -> Option<f64> {
    match case.role {
        Role::Reader(Delivery::WebSocket) => {
            let bare = find(cases, Role::Bare, case.readers)?;
            let bytes = median(&bare.bytes(|sample| sample.opened_bytes))?;
            Some(bytes + WEBSOCKET_READER_BYTES_MORE)
        }
        Role::Reader(Delivery::Sse) => Some(SSE_READER_BYTES),
        Role::Reader(Delivery::Ndjson | Delivery::LongPoll) | Role::Bare => None,
    }
}

fn find(cases: &[fan_out::FanOutCase], role: Role, readers: usize) -> Option<&fan_out::FanOutCase> {
    cases.iter().find(|case| case.role == role && case.readers == readers)
}

impl fan_out::FanOutCase {
    fn cpu(&self) -> Vec<f64> {
        self.samples.iter().filter_map(|sample| sample.cpu_us).collect()
    }

    fn bytes(&self, of: impl Fn(&fan_out::FanOutSample) -> f64) -> Vec<f64> {
        self.samples.iter().map(of).collect()
    }
}

/// One row for each way of publishing and each storage.
pub(crate) fn of_publishing(results: &PublishResults) -> String {
    let mut text = "\n### Publishing events of 100 B\n\n\
         | | events a second | to memory's | server CPU for each event, µs | to memory's | p50, ms | p99, ms | \
         busy, %: server, generator, others |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for case in &results.cases {
        let memory = results
            .cases
            .iter()
            .find(|other| other.way == case.way && other.storage == Storage::Memory)
            .filter(|_| case.storage != Storage::Memory);
        let (rate, cpu) =
            (case.values(|sample| sample.events_per_second), case.values(|sample| sample.cpu_us));
        let to_memory = |values: &[f64], of: fn(&publish::PublishSample) -> f64| {
            let ratio = memory.and_then(|memory| estimate(&ratios(values, &memory.values(of))));
            show(ratio, |estimate| interval(&estimate))
        };
        let _ = writeln!(
            text,
            "| {}, {} | {} | {} | {} | {} | {} | {} | {} |",
            case.way,
            case.storage,
            show(median(&rate), |rate| format!("{rate:.0}")),
            to_memory(&rate, |sample| sample.events_per_second),
            show(median(&cpu), figure),
            to_memory(&cpu, |sample| sample.cpu_us),
            show(case.latency.percentile(0.5), millis),
            show(case.latency.percentile(0.99), millis),
            busy(case.samples.iter().map(|sample| sample.busy)),
        );
    }
    let _ = writeln!(
        text,
        "\nTimes are those from a request until it is acknowledged, of all rounds. The disk is {}; one write of \
         128 B and its flush take {} ms there without a server{}.",
        results.file_system,
        millis(results.flush),
        if results.file_system == "tmpfs" { ", for it is memory" } else { "" },
    );
    let samples = results.cases.iter().flat_map(|case| &case.samples);
    text + &disturbed(samples.map(|sample| sample.busy))
}

impl publish::PublishCase {
    fn values(&self, of: impl Fn(&publish::PublishSample) -> f64) -> Vec<f64> {
        self.samples.iter().map(of).collect()
    }
}

fn millis(time: Duration) -> String {
    figure(time.as_secs_f64() * 1e3)
}

fn reach(received: u64, expected: u64) -> String {
    if expected == 0 {
        return NONE.to_owned();
    }
    // Rounded down: only all of them are 100 %.
    let share = (received as f64 / expected as f64 * 1e4).floor() / 1e2;
    format!("{share:.2} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Busy;
    use crate::load::{Deliveries, Way};

    fn reading(role: Role, bytes: f64, cpu_us: Option<f64>) -> fan_out::FanOutCase {
        let (opened_bytes, served_bytes) = (bytes, bytes);
        let sample =
            fan_out::FanOutSample { opened_bytes, served_bytes, cpu_us, busy: Busy::default() };
        let mut deliveries = Deliveries { expected: 3, received: 2, ..Deliveries::default() };
        deliveries.latency.record(Duration::from_millis(2));
        deliveries.lag.record(Duration::from_micros(3));
        let samples = vec![sample; 2];
        fan_out::FanOutCase { role, readers: 10, events_per_second: 5.0, samples, deliveries }
    }

    #[test]
    fn a_reader_is_judged_by_what_it_takes_more_than_a_bare_connection() {
        let text = of_fan_out(&[
            reading(Role::Bare, 283.0, None),
            reading(Role::Reader(Delivery::WebSocket), 1437.7, Some(5.0)),
            reading(Role::Reader(Delivery::Sse), 4096.0, Some(10.0)),
        ]);
        let row = |begin: &str| {
            let mut rows = text.lines().filter(|line| line.starts_with(begin));
            rows.next().unwrap_or_default().to_owned()
        };
        assert_eq!(
            row("| SSE, 10 readers"),
            "| SSE, 10 readers | 5.00 | 10.0 | 2.000 [2.000, 2.000] | 2.00 | 2.00 | 66.66 % | 0.003 | 0, 0, 0 |"
        );
        assert_eq!(
            row("| WebSocket, 10 connections"),
            "| WebSocket, 10 connections | 1438 [1438, 1438] | 1438 [1438, 1438] | 1307 | missed by 10.0 % |"
        );
        assert!(row("| SSE, 10 connections").ends_with("| 4096 | met |"));
        assert!(row("| WebSocket, no topic, 10").ends_with("| – | – |"));
    }

    #[test]
    fn only_everything_is_a_hundred_per_cent() {
        assert_eq!(reach(1_000_000, 1_000_000), "100.00 %");
        assert_eq!(reach(999_999, 1_000_000), "99.99 %");
        assert_eq!(reach(0, 0), "–");
    }

    #[test]
    fn what_the_disk_costs_is_told_beside_memory() {
        let case = |storage, events_per_second, cpu_us| {
            let sample =
                publish::PublishSample { events_per_second, cpu_us, busy: Busy::default() };
            let (way, latency) = (Way::Post { publishers: 64 }, Default::default());
            publish::PublishCase { storage, way, samples: vec![sample; 2], latency }
        };
        let results = PublishResults {
            cases: vec![case(Storage::Memory, 1000.0, 10.0), case(Storage::Always, 100.0, 25.0)],
            file_system: "tmpfs".to_owned(),
            flush: Duration::from_micros(2),
        };
        let text = of_publishing(&results);
        assert!(text.contains("| POST, 64 publishers, memory | 1000 | – | 10.0 | – | – | – |"));
        let row = "| POST, 64 publishers, disk, always | 100 | 0.100 [0.100, 0.100] | 25.0 | 2.500 [2.500, 2.500] |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("The disk is tmpfs") && text.contains("for it is memory"));
    }
}
