//! `anemone lab`, as people run it: each experiment gives a whole report, and its figures are those of the protocol.
#![allow(clippy::unwrap_used)]

mod compared;
mod refused;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Output};

use anemone_testing::process::Process;
use serde_json::Value;

fn lab(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anemone")).arg("lab").args(args).output().unwrap()
}

/// Returns true if there is a report, though of one that says it is invalid: beside other tests, the generator may be late.
fn is_measured(output: &Output) -> bool {
    matches!(output.status.code(), Some(0 | 12))
}

/// Runs an experiment quickly, and returns its report as JSON.
fn report(name: &str, args: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let output = lab(&[&[name, "--quick", "--out", out], args].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(is_measured(&output), "{said}");
    let read = |extension: &str| {
        std::fs::read_to_string(Path::new(out).join(format!("{name}.{extension}"))).unwrap()
    };
    let report: Value = serde_json::from_str(&read("json")).unwrap();
    assert_eq!(report["experiment"], name);
    // Beside other tests, a generator or a link may be late, and says so; everything must have come nevertheless.
    let reason = report["invalid"].as_str().unwrap_or_default();
    assert!(is_late(reason), "{reason} {said}");
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

/// Returns true if a report is invalid for nothing but the speed of this machine, or not at all.
fn is_late(reason: &str) -> bool {
    let who = ["the generator was ", "the emulated link "];
    reason.is_empty() || who.iter().any(|who| reason.starts_with(who))
}

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
        if name == "connect" {
            for contender in ["HTTP over TLS", "WebSocket over TLS", "HTTP/2 over TLS"] {
                values(&report, "until an answer is there", contender, "opening");
            }
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
fn a_calibration_compares_equals_and_finds_the_same_clock_at_both_ends() {
    let report = report("calibrate", &["--rounds", "2"]);
    for pair in ["peer in this process", "TCP", "WebSocket", "HTTP"] {
        let compared: Vec<_> = report["comparisons"].as_array().unwrap().iter().collect();
        for of in ["again", "and 1 ms"].map(|more| format!("{pair} {more}")) {
            assert!(
                compared.iter().any(|one| one["of"] == of.as_str() && one["to"] == pair),
                "{of}"
            );
        }
        let later = values(&report, pair, &format!("{pair} and 1 ms"), "round trip");
        assert!(later.iter().all(|ms| *ms >= 1.0), "{pair}: {later:?}");
    }
    let of = |quantity| values(&report, "clock", "server", quantity);
    let (offsets, bounds) = (of("clock of the server less this one"), of("bound of that"));
    for (offset, bound) in offsets.iter().zip(&bounds) {
        // Events have times of whole milliseconds or better.
        assert!(offset.abs() <= bound + 1.0, "{offsets:?} within {bounds:?}");
    }
}

#[test]
fn a_multiplexed_call_has_as_many_bytes_as_published_and_http_several_times_as_many() {
    let report = report("calls", &["--rounds", "1"]);
    let bytes =
        |contender| values(&report, "one after the other", contender, "a call and its reply")[0];
    // Two frames with `GET 1 /messages/testing` and `200 1`, the reply and a line feed; later ids are longer.
    assert!((53.0..58.0).contains(&bytes("multiplexed")), "{}", bytes("multiplexed"));
    assert!((53.0..58.0).contains(&bytes("TCP")), "{}", bytes("TCP"));
    assert!(bytes("HTTP/1.1") > 3.0 * bytes("multiplexed"));
    assert!(bytes("HTTP/2") < bytes("HTTP/1.1"));
    for contender in ["HTTP/1.1", "HTTP/1.1, 6 connections", "HTTP/2", "multiplexed", "TCP"] {
        assert!(values(&report, "50 at once", contender, "time")[0] > 0.0, "{contender}");
    }
}

#[test]
fn the_set_up_of_a_socket_is_shared_by_its_calls() {
    let report = report("amortise", &["--rounds", "1"]);
    let quantity = "a call with its share of the set-up, on the wire";
    let bytes =
        |case| ["HTTP/1.1", "multiplexed"].map(|way| values(&report, case, way, quantity)[0]);
    let [[http, socket], [later_http, later_socket]] = ["1 call", "50 calls"].map(bytes);
    assert!(socket > http, "{socket} and {http} bytes");
    assert!(later_socket < later_http, "{later_socket} and {later_http} bytes");
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
fn a_poll_far_away_waits_for_its_next_cycle() {
    let report = report("distance", &[]);
    for delay in [20.0, 90.0, 130.0] {
        let of = |name| {
            let case = format!("{delay} ms each way");
            values(&report, &case, name, "one-way latency")
        };
        for name in ["WebSocket", "long poll", "poll, new connections"] {
            assert!(of(name).iter().all(|ms| *ms >= delay), "{name}: {:?}", of(name));
        }
        // A connection costs a round trip, which comes on top of each poll. A round has few events, which may come just before a poll.
        let mut new = of("poll, new connections");
        new.sort_by(f64::total_cmp);
        assert!(new[new.len() / 2] >= 2.0 * delay, "{new:?}");
    }
    assert_eq!(report["models"].as_array().unwrap().len(), 15);
}

#[test]
fn data_of_each_size_comes_back_over_http_and_web_socket() {
    let report = report("sizes", &["--rounds", "2"]);
    for network in ["this machine", "wan"] {
        for size in ["5 x 1 B", "5 x 1 kB", "1 x 100 kB", "1 x 1 MB"] {
            let case = format!("{network}, {size}");
            let of = |contender| values(&report, &case, contender, "time of all messages");
            assert!(of("HTTP").iter().all(|ms| *ms > 0.0), "{case}");
            let shares = values(&report, &case, "WebSocket", "share of masking");
            assert!(shares.iter().all(|share| (0.0..100.0).contains(share)), "{case}: {shares:?}");
        }
    }
    // Five round trips of 40 ms, and as many openings.
    let new = values(&report, "wan, 5 x 1 B", "HTTP, new connections", "time of all messages");
    assert!(new.iter().all(|ms| *ms >= 400.0), "{new:?}");
}

#[test]
fn a_cut_reader_goes_on_without_loss_and_without_doubles() {
    let report = report("reconnect", &["--rounds", "2"]);
    for way in ["WebSocket", "multiplexed", "TCP", "SSE", "NDJSON", "long poll", "poll"] {
        let of = |quantity| values(&report, "100 events a second", way, quantity);
        assert!(of("from a cut to the next event").iter().all(|ms| *ms > 0.0), "{way}");
        assert_eq!(
            (of("events lost"), of("events doubled")),
            (vec![0.0; 2], vec![0.0; 2]),
            "{way}"
        );
    }
}

#[test]
fn readers_are_counted_until_their_transport_bends_and_weighed_while_they_wait() {
    let report_of = |name| report(name, &["--rounds", "1"]);
    let (fanout, idle) = (report_of("fanout"), report_of("idle"));
    for way in ["WebSocket", "SSE", "NDJSON", "long poll"] {
        assert_eq!(values(&fanout, "50 readers", way, "reach"), [100.0], "{way}");
        let cpu = values(&fanout, "50 readers", way, "server CPU of a delivery")[0];
        assert!(cpu > 0.0, "{way}: {cpu}");
        let bytes = values(&idle, "a quiet reader", way, "memory of the server for a reader")[0];
        assert!((100.0..100_000.0).contains(&bytes), "{way}: {bytes}");
    }
    let output = lab(&["idle", "--quick", "--target", "http://127.0.0.1:1"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("leave --target out"), "{said}");
}

#[test]
fn advice_names_a_transport_and_what_it_saves() {
    let stream = ["--rate", "20", "--size", "100", "--readers", "1000", "--distance", "10ms"];
    let report = report("advise", &stream);
    let (question, answer) = (&report["question"], report["answer"].as_str().unwrap());
    assert!(question.as_str().unwrap().contains("1,000 readers, 10 ms away"), "{question}");
    assert!(answer.starts_with("Take ") && answer.contains("Against a poll it saves"), "{answer}");
    let case = "20 events a second of 100 B";
    let bytes = |way| values(&report, case, way, "on the wire, each reader")[0];
    assert!(bytes("long poll") > 2.0 * bytes("WebSocket"), "{answer}");
    for (flag, value) in [
        ("--rate", "0.5/h"),
        ("--rate", "NaN"),
        ("--size", "3"),
        ("--distance", "9s"),
        ("--poll-every", "11min"),
        ("--poll-every", "10"),
    ] {
        let output = lab(&["advise", flag, value]);
        assert_eq!(output.status.code(), Some(2), "{flag} {value}");
    }
}

/// An agent that is killed when dropped.
struct Agent(std::process::Child, String);

impl Agent {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_anemone"))
            .args(["lab", "agent", "--listen", "127.0.0.1:0"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child, line.trim().strip_prefix("agent on ").unwrap().to_owned())
    }
}

impl Agent {
    /// Connects as a lab does, and returns the first line after the greetings.
    fn begin(&self) -> (BufReader<std::net::TcpStream>, String) {
        let stream = std::net::TcpStream::connect(&self.1).unwrap();
        let (mut line, mut lines) = (String::new(), BufReader::new(stream));
        lines.read_line(&mut line).unwrap();
        // Both say the same.
        lines.get_mut().write_all(line.as_bytes()).unwrap();
        line.clear();
        lines.read_line(&mut line).unwrap();
        (lines, line)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_connection_that_says_nothing_takes_no_place_of_an_agent() {
    let agent = Agent::start();
    let silent = || BufReader::new(std::net::TcpStream::connect(&agent.1).unwrap());
    let mut silent: Vec<_> = (0..8).map(|_| silent()).collect();
    let (_lab, line) = agent.begin();
    assert!(line.starts_with("{\"ready\""), "{line}");
    // Clients that say nothing or something else are left soon.
    silent[0].get_mut().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    for lines in &mut silent {
        lines.read_line(&mut String::new()).unwrap();
        // Bytes that nobody read may reset the connection.
        assert!(matches!(lines.read_line(&mut String::new()), Ok(0) | Err(_)));
    }
}

#[test]
fn an_agent_publishes_on_its_own_clock_and_its_latencies_are_those_of_the_link() {
    let agent = Agent::start();
    // Whoever sends something else ends only his own lab.
    for wrong in [
        &b"no\n"[..],
        b"{}\n",
        &[b'a'; 10_000],
        b"{\"publish\":{\"topic\":\"/x\",\"first\":1,\"count\":1,\"period_ms\":1,\"bytes\":9}}\n",
    ] {
        let (mut lines, mut line) = agent.begin();
        assert!(line.starts_with("{\"ready\""), "{line}");
        lines.get_mut().write_all(wrong).unwrap();
        line.clear();
        // A refusal, or the end; bytes that nobody read may reset the connection.
        let _ = lines.read_line(&mut line);
        assert!(line.is_empty() || line.starts_with("{\"failed\""), "{line}");
    }
    // The servers of those labs end with them, and then there is room for four.
    let mut labs = Vec::new();
    while labs.len() < 4 {
        let (lab, line) = agent.begin();
        if line.starts_with("{\"ready\"") {
            labs.push(lab);
        }
    }
    assert!(agent.begin().1.contains("the most"));
    drop(labs);
    while !agent.begin().1.starts_with("{\"ready\"") {}
    let report = report("wind", &["--link", "delay=20ms", "--agent", &agent.1]);
    for way in ["WebSocket", "multiplexed", "TCP", "SSE", "NDJSON", "long poll", "poll"] {
        let latencies = values(&report, "4 events a second", way, "one-way latency");
        // The same machine: both clocks run alike, and their difference is known to some ms even where the machine is busy.
        assert!(latencies.iter().all(|ms| *ms >= 15.0), "{way}: {latencies:?}");
    }
    let method = report["method"].to_string();
    assert!(method.contains("Its clock is known to ±") && method.contains("drifts by"), "{method}");
    let output = lab(&["fanout", "--quick", "--agent", &agent.1]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("needs the server on this machine"),
        "{said}"
    );
    let gone = agent.1.clone();
    drop(agent);
    let output = lab(&["wind", "--quick", "--agent", &gone]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("is anemone lab agent running there"), "{said}");
    // One that listens, and is something else.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = silent.local_addr().unwrap().to_string();
    let output = lab(&["wind", "--quick", "--agent", &place]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("is not an agent of anemone lab"), "{said}");
}
