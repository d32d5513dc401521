//! Tests of table rows, with invented samples.

use std::time::Duration;

use super::*;
use crate::experiment::hostile::witness::{WAIT, waits};
use crate::experiment::publish::{ACKNOWLEDGED, EVENT, EVENTS, Storage};
use crate::experiment::work::{DELIVERY, Work};
use crate::experiment::{calls, compare, fan_out, publish, runs};
use crate::goals::{Goal, PARTIAL_RESULT_TO_EVENT, answer};
use crate::histogram::Histogram;
use crate::lab::report::tests::report;
use crate::lab::report::{Report, Series};
use crate::lab::rounds::{Cell, Sample, series};
use crate::load::{Closing, Shape};

/// Returns the series of a contender in a case, for these samples.
fn of(case: &str, contender: &str, samples: Vec<Sample>) -> Vec<Series> {
    series(samples[0].figures[0].0, &Cell::new(case, contender, ()), &samples)
}

fn sample(figures: &[(Quantity, f64)]) -> Sample {
    let busy = Busy { server: 0.5, generator: 0.984, others: 0.0 };
    Sample { figures: figures.to_vec(), busy: Some(busy), ..Sample::default() }
}

fn costs(case: &str, contender: &str, quantity: Quantity, values: &[f64]) -> Vec<Series> {
    of(case, contender, values.iter().map(|value| sample(&[(quantity, *value)])).collect())
}

fn measured(series: &[Vec<Series>]) -> Report {
    Report { series: series.concat(), ..report() }
}

/// Returns the other cells of the row that begins with these cells.
fn row(table: &Table, begin: &[&str]) -> String {
    let begins = |row: &&Vec<String>| row.iter().zip(begin).all(|(cell, text)| cell == text);
    let row = table.rows.iter().find(begins);
    row.map(|row| row[begin.len()..].join(" | ")).unwrap_or_default()
}

#[test]
fn a_row_pairs_the_samples_of_a_round() {
    let shape = Shape { payload_bytes: 125, in_flight: 16 };
    let works = [Work::Echo { connections: 100, shape }];
    let (case, quantity) = (works[0].to_string(), works[0].quantity());
    let costs = |contender, values: [f64; 2]| costs(&case, contender, quantity, &values);
    let series =
        vec![costs("C", [2.0, 4.0]), costs("C again", [2.0, 4.0]), costs("WebSocket", [3.0, 6.0])];
    let table = compare::layout(works[0]).table(&measured(&series), &compare::goals(&works));
    assert_eq!(table.title, "server CPU for each message, µs");
    assert_eq!(
        row(&table, &["125 B, 16 in flight, 100 connections"]),
        "3.00 | 3.00 | – | 4.50 | 1.000 [1.000, 1.000] | – | 1.500 [1.500, 1.500] | 1.05 | missed by 42.9 % | – | 50, 98, 0"
    );
}

#[test]
fn a_run_of_which_nothing_may_be_concluded_meets_no_goal() {
    let works = [Work::Connect { closing: Closing::Tcp }];
    let costs =
        |contender| costs("open, close the socket", contender, works[0].quantity(), &[4.0; 2]);
    let whole = measured(&[costs("C"), costs("WebSocket")]);
    let goals = compare::goals(&works);
    let told = |report: &Report| {
        let table = compare::layout(works[0]).table(report, &goals);
        (answer(&goals, report), row(&table, &["open, close the socket"]))
    };
    let (answered, judged) = told(&whole);
    assert_eq!(answered, "1 of 1 goals are met.");
    assert!(judged.contains("| 1.15 | met |"), "{judged}");
    let invalid = Report { invalid: Some("too busy".to_owned()), ..whole.clone() };
    for (report, flaw) in
        [(invalid, "invalid"), (Report { is_interrupted: true, ..whole }, "interrupted")]
    {
        let (answered, judged) = told(&report);
        assert_eq!(answered, format!("No goal is judged: the run is {flaw}."));
        assert!(judged.contains(&format!("| 1.15 | {flaw} |")), "{judged}");
    }
    assert_eq!(answer(&[], &report()), "These figures have no goal.");
}

#[test]
fn a_goal_in_microseconds_is_judged_by_the_cost_itself() {
    let shape = Shape { payload_bytes: 100, in_flight: 8 };
    let works = [Work::Broadcast { connections: 1000, shape }];
    let (case, quantity) = (works[0].to_string(), works[0].quantity());
    let costs = |contender, value| costs(&case, contender, quantity, &[value; 2]);
    let series = vec![costs("C", 0.2), costs("WebSocket", 0.396), costs("topic", 0.495)];
    let table = compare::layout(works[0]).table(&measured(&series), &compare::goals(&works));
    assert_eq!(
        row(&table, &["100 B to 1000 connections, 8 outstanding"]),
        "0.200 | – | 0.396 | 0.495 | – | 1.980 [1.980, 1.980] | 0.36 µs | missed by 10.0 % | 1.250 [1.250, 1.250] | 1.15 | \
         missed by 8.7 % | 50, 98, 0"
    );
}

#[test]
fn a_control_has_the_c_echo_alone() {
    let works = [Work::Connect { closing: Closing::Tcp }];
    let costs = |contender, value| {
        costs("open, close the socket", contender, works[0].quantity(), &[value; 2])
    };
    let series = vec![costs("C", 4.0), costs("C again", 5.0)];
    let table = compare::layout(works[0]).table(&measured(&series), &compare::goals(&works));
    assert_eq!(
        row(&table, &["open, close the socket"]),
        "4.00 | 5.00 | – | – | 1.250 [1.250, 1.250] | – | – | 1.15 | – | – | 50, 98, 0"
    );
}

#[test]
fn a_call_is_judged_by_what_is_beside_it() {
    let costs = |way: &str, contender, value| {
        costs(&format!("{way}, 16 in flight"), contender, calls::CALL, &[value; 2])
    };
    let series = vec![
        costs("multiplexed WebSocket", "WebSocket echo", 1.0),
        costs("multiplexed WebSocket", "service", 1.65),
        costs("HTTP/1.1", "service", 5.0),
        costs("HTTP/1.1", "hyper alone", 5.0),
        costs("HTTP/2", "service", 9.0),
        costs("HTTP/2", "hyper alone", 6.0),
    ];
    let table = calls::layout().table(&measured(&series), &calls::goals());
    let row = |way: &str| row(&table, &[&format!("{way}, 16 in flight")]);
    assert_eq!(
        row("multiplexed WebSocket"),
        "1.65 | 1.00 | – | 1.650 [1.650, 1.650] | – | 1.50 | missed by 10.0 % | 50, 98, 0"
    );
    assert_eq!(
        row("HTTP/1.1"),
        "5.00 | – | 5.00 | – | 1.000 [1.000, 1.000] | 1.15 | met | 50, 98, 0"
    );
    assert_eq!(row("HTTP/2"), "9.00 | – | 6.00 | – | 1.500 [1.500, 1.500] | – | – | 50, 98, 0");
}

#[test]
fn a_result_is_judged_by_an_event_and_a_wait_by_its_99th_percentile() {
    let mut durations = Histogram::default();
    (1..=200).for_each(|ms| durations.record(Duration::from_millis(ms)));
    let case = "22479 results";
    let series = vec![
        costs(case, runs::PARTIAL, runs::RESULT, &[1.43; 2]),
        costs(case, runs::EVENT, runs::RESULT, &[1.0; 2]),
        waits("16 runs", runs::ECHO, &durations),
    ];
    let goals = vec![
        Goal::new(runs::RESULT, case, runs::PARTIAL, Some(runs::EVENT), PARTIAL_RESULT_TO_EVENT),
        Goal::new(WAIT, "16 runs", runs::ECHO, None, 5.0),
    ];
    let report = measured(&series);
    assert_eq!(answer(&goals, &report), "0 of 2 goals are met.");
    let [table, waits] = &runs::layouts()[..] else { panic!("two tables") };
    let [table, waits] = [table, waits].map(|layout| layout.table(&report, &goals));
    assert_eq!(
        row(&table, &[case]),
        "1.43 | 1.00 | 1.430 [1.430, 1.430] | 1.30 | missed by 10.0 % | 50, 98, 0"
    );
    // Of 200 waits, 99.9 % are all.
    let waits = row(&waits, &["16 runs"]);
    assert!(waits.starts_with("100 | 198 | – | 200 | 5.00 ms | missed by 3,86"), "{waits}");
}

#[test]
fn a_reader_is_judged_by_what_it_takes_more_than_a_bare_connection() {
    let case = "10 readers, 5.00 events a second";
    let bare = vec![sample(&[(fan_out::OPENED, 283.0), (fan_out::SERVED, 283.0)])];
    let reading = |bytes, cpu_us| {
        let mut sample = sample(&[
            (fan_out::LATENCY, 2.0),
            (DELIVERY, cpu_us),
            (fan_out::OPENED, bytes),
            (fan_out::SERVED, bytes),
        ]);
        (sample.expected, sample.received) = (1_000_000, 999_999);
        vec![sample]
    };
    let series = vec![
        of(case, fan_out::BARE, bare),
        of(case, "WebSocket", reading(1437.7, 5.0)),
        of(case, "SSE", reading(4096.0, 10.0)),
    ];
    let report = measured(&series);
    let goals = fan_out::goals(&report);
    let [table, memory] = fan_out::layouts().map(|layout| layout.table(&report, &goals));
    assert_eq!(
        row(&table, &[case, "SSE"]),
        "10.0 | 2.000 [2.000, 2.000] | – | – | 999,999 / 1,000,000 | – | 50, 98, 0"
    );
    assert_eq!(
        row(&memory, &[case, "WebSocket"]),
        "1,438 [1,438, 1,438] | 1,438 [1,438, 1,438] | 1,307 B | missed by 10.0 %"
    );
    assert!(row(&memory, &[case, "SSE"]).ends_with("| 4,096 B | met"));
    assert!(row(&memory, &[case, fan_out::BARE]).ends_with("| – | –"));
}

#[test]
fn what_the_disk_costs_is_told_beside_memory() {
    let case = |storage: Storage, rate, cpu_us| {
        let sample = || sample(&[(ACKNOWLEDGED, 1.0), (EVENTS, rate), (EVENT, cpu_us)]);
        of("POST, 64 publishers", &storage.to_string(), vec![sample(), sample()])
    };
    let series = vec![case(Storage::Memory, 1000.0, 10.0), case(Storage::Always, 100.0, 25.0)];
    let table = publish::layout().table(&measured(&series), &[]);
    let row = |storage: Storage| row(&table, &["POST, 64 publishers", &storage.to_string()]);
    assert!(row(Storage::Memory).starts_with("1,000 | – | 10.0 | – | – | – |"));
    assert!(
        row(Storage::Always)
            .starts_with("100 | 0.100 [0.100, 0.100] | 25.0 | 2.500 [2.500, 2.500] |")
    );
}
