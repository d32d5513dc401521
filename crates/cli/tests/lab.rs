//! `anemone lab`, as people run it: each experiment gives a whole report, and its figures are those of the protocol.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn lab(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anemone")).arg("lab").args(args).output().unwrap()
}

/// Runs an experiment quickly, and returns its report as JSON.
fn report(name: &str, args: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let output = lab(&[&[name, "--quick", "--out", out], args].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let read = |extension: &str| {
        std::fs::read_to_string(Path::new(out).join(format!("{name}.{extension}"))).unwrap()
    };
    let report: Value = serde_json::from_str(&read("json")).unwrap();
    assert_eq!(report["experiment"], name);
    assert_eq!(report["invalid"], Value::Null, "{said}");
    assert!(report["answer"].as_str().unwrap().ends_with('.'), "{report}");
    for series in report["series"].as_array().unwrap() {
        assert_eq!(series["faults"], serde_json::json!({}), "{series} {said}");
        assert_eq!(series["received"], series["expected"], "{series}");
    }
    // A file that needs nothing else, with a plot of as many layers as there are contenders.
    let html = read("html");
    assert!(html.len() < 1 << 20 && html.contains("<svg") && !html.contains("src="), "{name}");
    let markdown = read("md");
    assert_eq!(String::from_utf8_lossy(&output.stdout), markdown);
    assert!(markdown.contains(report["answer"].as_str().unwrap()));
    assert!(read("csv").lines().count() > report["series"].as_array().unwrap().len());
    report
}

/// The values of all rounds of a figure.
fn values(report: &Value, case: &str, contender: &str, quantity: &str) -> Vec<f64> {
    let all = report["series"].as_array().unwrap();
    let of = |series: &&Value| {
        series["case"] == case && series["contender"] == contender && series["quantity"] == quantity
    };
    let series =
        all.iter().find(of).unwrap_or_else(|| panic!("no {quantity} of {contender}, {case}"));
    series["rounds"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn connect_and_echo_measure_every_contender() {
    for name in ["connect", "echo"] {
        let report = report(name, &["--rounds", "2"]);
        let comparisons = report["comparisons"].as_array().unwrap();
        assert!(comparisons.iter().any(|one| one["of"] == "TCP again"), "no control");
        for series in report["series"].as_array().unwrap() {
            let rounds = series["rounds"].as_array().unwrap();
            assert!(rounds.iter().all(|value| value.as_f64().unwrap() > 0.0), "{series}");
        }
    }
}

#[test]
fn the_bytes_of_a_frame_are_those_of_the_formula() {
    let report = report("overhead", &["--rounds", "1"]);
    for (case, payload, up, down) in
        [("1 B", 1, 6, 2), ("125 B", 125, 6, 2), ("126 B", 126, 8, 4), ("1 KiB", 1024, 8, 4)]
    {
        let of = |quantity: &str| values(&report, case, "WebSocket", quantity);
        assert_eq!(of("a message to the server"), [f64::from(payload + up)], "{case}");
        assert_eq!(of("a message from the server"), [f64::from(payload + down)], "{case}");
        // A message and its echo.
        assert_eq!(of("packets with payload, each echo"), [2.0], "{case}");
    }
    let up = values(&report, "65536 B", "WebSocket", "a message to the server");
    assert_eq!(up, [f64::from(65_536 + 14)]);
}

#[test]
fn the_published_computations_take_as_many_communications_over_each_transport() {
    let report = report("progress", &["--rounds", "1"]);
    for (case, states) in [("2 states", 2.0), ("22,479 states", 22_479.0)] {
        for way in ["WebSocket", "multiplexed", "TCP", "SSE", "NDJSON"] {
            let communications = values(&report, case, way, "communications");
            assert_eq!(communications, [states + 1.0], "{case}, {way}");
        }
        for way in ["poll", "long poll"] {
            let communications = values(&report, case, way, "communications");
            assert_eq!(communications, [states + 2.0], "{case}, {way}");
        }
    }
}

#[test]
fn an_emulated_link_delays_each_event_and_polling_waits_longer() {
    let report = report("wind", &["--link", "delay=20ms"]);
    for way in ["WebSocket", "multiplexed", "TCP", "SSE", "NDJSON", "long poll", "poll"] {
        let latencies = values(&report, "4 events a second", way, "one-way latency");
        assert!(latencies.iter().all(|ms| *ms >= 20.0), "{way}: {latencies:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_counted_and_makes_the_verdict_invalid() {
    // A port of which the listener has gone.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let target = format!("http://{free}");
    let output = lab(&["connect", "--quick", "--rounds", "1", "--target", &target, "--out", out]);
    assert!(output.status.success());
    let json = std::fs::read_to_string(directory.path().join("connect.json")).unwrap();
    let report: Value = serde_json::from_str(&json).unwrap();
    assert!(report["invalid"].as_str().unwrap().contains("0 of 10 came"), "{report}");
}

#[test]
fn what_is_no_link_and_no_target_is_refused_with_words() {
    for (args, words) in [
        (&["echo", "--link", "moon"][..], "satellite"),
        (&["echo", "--target", "ftp://host"], "a target is a URL"),
        (&["echo", "--rounds", "0"], "--rounds"),
        (&["nothing"], "possible values"),
    ] {
        let output = lab(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{args:?}: {said}");
    }
}
