//! `anemone lab`, as people run it: each experiment gives a whole report, and its figures are those of the protocol.
#![allow(clippy::unwrap_used)]

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
        // A connection costs a round trip, which comes on top of each poll.
        let new = of("poll, new connections");
        assert!(new.iter().all(|ms| *ms >= 2.0 * delay), "{new:?}");
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
    for (flag, value) in
        [("--rate", "0.1"), ("--rate", "NaN"), ("--size", "3"), ("--distance", "9s")]
    {
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
    /// Connects as a lab does, and returns the first line after the greeting, or the refusal in its place.
    fn begin(&self) -> (BufReader<std::net::TcpStream>, String) {
        let stream = std::net::TcpStream::connect(&self.1).unwrap();
        let (mut line, mut lines) = (String::new(), BufReader::new(stream));
        lines.read_line(&mut line).unwrap();
        if line.starts_with("{\"hello\"") {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
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
    assert!(said.contains("is no agent of a lab"), "{said}");
}

#[test]
fn what_fails_is_counted_and_makes_the_verdict_invalid() {
    // A server that closes every connection.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let file = directory.path().join("server.toml");
    std::fs::write(&file, format!("url = \"http://{address}\"\nget = \"/\"\n")).unwrap();
    let file = file.to_str().unwrap();
    let output = lab(&["connect", "--quick", "--rounds", "1", "--target", file, "--out", out]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(12), "{said}");
    assert!(said.contains("server.toml, get: "), "tried before: {said}");
    assert!(said.contains("invalid: connect: HTTP in case "), "{said}");
    let json = std::fs::read_to_string(directory.path().join("connect.json")).unwrap();
    let report: Value = serde_json::from_str(&json).unwrap();
    let reason = report["invalid"].as_str().unwrap();
    assert!(reason.contains("0 of 10 came (closed by the server: 10)"), "{reason}");
    // Of all, that which the file has enough for.
    let output = lab(&["all", "--quick", "--rounds", "1", "--target", file]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("left out, ") && said.contains(" wind"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).matches("\n## ").count(), 0, "only connect");
}

#[test]
fn a_silent_server_is_not_asked_in_each_case() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.toml");
    let echo = "[echo]\nwebsocket = \"/echo\"\nhttp = \"/echo\"\n";
    std::fs::write(&file, format!("url = \"http://{address}\"\n{echo}")).unwrap();
    let out = directory.path().to_str().unwrap();
    let output = lab(&["sizes", "--quick", "--target", file.to_str().unwrap(), "--out", out]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(12), "{said}");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("nothing came in time: 1"), "{told}");
    // What was not asked has no figures of this machine either, and the report says how much that is.
    let json = std::fs::read_to_string(directory.path().join("sizes.json")).unwrap();
    let report: Value = serde_json::from_str(&json).unwrap();
    let series = report["series"].as_array().unwrap();
    let of = |kind: &str| series.iter().filter(|one| one["faults"].get(kind).is_some()).count();
    assert_eq!((of("stalled"), of("not-asked"), series.len()), (8, 16, 24), "{json}");
    for one in series {
        assert_eq!(one["strain"].is_null(), one["faults"].get("stalled").is_none(), "{one}");
        assert_eq!(one["received"], 0, "{one}");
    }
    let method = report["method"].to_string();
    assert!(method.contains("Not asked: 16 of 24, each a contender in a case"), "{method}");
    assert!(told.contains("| 0 / 1 | – | – | not asked: 1 |"), "{told}");
    // The kernel has opened them; nobody has accepted one.
    listener.set_nonblocking(true).unwrap();
    let opened = std::iter::from_fn(|| listener.accept().ok()).count();
    // One looks whether a server is there, two try what the file says, and one is for each case that is asked, of 24.
    assert!((9..=16).contains(&opened), "{opened} connections");
}

#[test]
fn a_server_that_is_not_there_has_a_status_of_its_own() {
    // A port of which the listener has gone.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.toml");
    std::fs::write(&file, format!("url = \"http://{free}\"\nget = \"/\"\n")).unwrap();
    for target in [&format!("http://{free}"), file.to_str().unwrap()] {
        let output = lab(&["connect", "--quick", "--target", target]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && said.contains("no server at"), "{said}");
    }
    // An HTTP server that is not Anemone.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut String::new());
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let output = lab(&["connect", "--quick", "--target", &target]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && said.contains("is no Anemone server"), "{said}");
}

#[test]
fn a_server_is_measured_within_tls() {
    let args = ["serve", "--listen", "127.0.0.1:0", "--threads", "1", "--demo", "--tls-dev"];
    let mut server = Process::start(&args);
    let line = server.line();
    let url = line.strip_prefix("listening on ").unwrap();
    assert!(url.starts_with("https://"), "{url}");
    let target = ["--target", url, "--rounds", "2"];
    let opening = report("connect", &target);
    for contender in ["HTTP over TLS", "WebSocket over TLS"] {
        values(&opening, "until an answer is there", contender, "opening");
    }
    // Long messages, too: they are sent and read at the same time.
    report("sizes", &target);
    report("wind", &target);
    report("progress", &target);
    // A record of TLS 1.3 has 22 bytes more than what is in it: a header of 5, the type, and a tag of 16.
    let overhead = report("overhead", &target);
    for (case, bytes) in [("1 B", 1 + 6 + 22), ("1 KiB", 1024 + 8 + 22)] {
        let bytes = f64::from(bytes);
        assert_eq!(values(&overhead, case, "WebSocket", "a message to the server")[0], bytes);
    }
    let output = lab(&["amortise", "--quick", "--target", url]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("without TLS"), "{said}");
}

#[test]
fn the_kernel_emulates_a_link_if_it_can_and_says_what_it_lacks_if_not() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    // The loopback of this machine is for the other tests, so it has one of its own where that is allowed.
    let script = "[ -z \"$0\" ] || ip link set lo up; \"$@\"; status=$?; echo \"left: $(tc qdisc show dev lo)\" >&2; exit $status";
    let has_own = Command::new("unshare").args(["-n", "true"]).status();
    let own = ["unshare", "-n", "sh", "-c", script, "own"];
    let same = ["sh", "-c", script, ""];
    let is_own = has_own.is_ok_and(|status| status.success());
    let words = if is_own { &own[..] } else { &same[..] };
    let output = Command::new(words[0])
        .args(&words[1..])
        .args([
            env!("CARGO_BIN_EXE_anemone"),
            "lab",
            "connect",
            "--quick",
            "--rounds",
            "1",
            "--netem",
        ])
        .args(["--link", "delay=20ms,rate=10mbit", "--out", out])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        // Nothing is left of it, and this says why.
        assert!(said.contains("--netem: tc qdisc add dev lo"), "{said}");
        assert!(said.contains("it needs root, tc, and a kernel with sch_prio"), "{said}");
    } else {
        let json = std::fs::read_to_string(directory.path().join("connect.json")).unwrap();
        let report: Value = serde_json::from_str(&json).unwrap();
        // The opening and the first echo.
        assert!(values(&report, "until an answer is there", "TCP", "opening")[0] >= 80.0, "{said}");
        assert!(report["environment"]["has_netem"].as_bool().unwrap());
        // Beside other tests, the link or the generator may be late, and says so.
        let reason = report["invalid"].as_str().unwrap_or_default();
        assert!(is_late(reason), "{reason} {said}");
    }
    let (_, left) = said.rsplit_once("left: ").unwrap();
    assert!(!left.contains("netem"), "{left}");
}

#[test]
fn a_server_without_the_demonstration_is_told_what_it_lacks() {
    let mut server = Process::start(&["serve", "--listen", "127.0.0.1:0", "--threads", "1"]);
    let line = server.line();
    let url = line.strip_prefix("listening on ").unwrap();
    for (name, words) in [
        ("connect", "has no /echo: start it with --demo or --echo"),
        ("echo", "has no /echo: start it with --demo or --echo"),
        ("wind", "has no topics scratch-lab-* for the lab: start it with --demo"),
    ] {
        let output = lab(&[name, "--quick", "--target", url]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && said.contains(words), "{name}: {said}");
        assert!(!said.contains('{') && said.lines().count() == 1, "one sentence: {said}");
    }
}

#[test]
fn an_interruption_before_anything_was_measured_leaves_earlier_reports_alone() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.toml");
    std::fs::write(&file, format!("url = \"http://{address}\"\nget = \"/\"\n")).unwrap();
    let earlier = directory.path().join("connect.json");
    std::fs::write(&earlier, "earlier").unwrap();
    let [file, out] = [file.as_path(), directory.path()].map(|path| path.to_str().unwrap());
    let child = Command::new(env!("CARGO_BIN_EXE_anemone"))
        .args(["lab", "connect", "--quick", "--target", file, "--out", out])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It has come so far that it listens for signals.
    let first = listener.accept().unwrap();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    drop(first);
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(130) && output.stdout.is_empty(), "{said}");
    assert!(said.contains("connect was interrupted before anything was measured"), "{said}");
    assert_eq!(std::fs::read_to_string(&earlier).unwrap(), "earlier");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_quick_run_has_too_few_rounds_and_says_so() {
    let report = report("connect", &[]);
    let answer = report["answer"].as_str().unwrap();
    assert!(
        answer.ends_with("With 4 rounds, no difference is sure: measure at least 6 (--rounds 6)."),
        "{answer}"
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("connect.json");
    std::fs::write(&path, report.to_string()).unwrap();
    let out = directory.path().join("all.html");
    let output = lab(&["report", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(output.status.success());
    let html = std::fs::read_to_string(&out).unwrap();
    assert!(html.contains("too few rounds") && !html.contains("not distinguishable"), "{html}");
    assert!(String::from_utf8_lossy(&lab(&["--help"]).stdout).contains("too few"));
}

#[test]
fn what_is_no_link_and_no_target_is_refused_with_words() {
    for (args, words) in [
        (&["echo", "--link", "moon"][..], "satellite"),
        (&["echo", "--target", "ftp://host"], "not the URL of a server"),
        (&["echo", "--target", "http://:8080"], "not the URL of a server"),
        (&["echo", "--target", "http://127.0.0.1:99999"], "a port is a number from 1 to 65535"),
        (&["echo", "--rounds", "0"], "expected 1 to 1000 rounds"),
        (&["echo", "--rounds", "many"], "expected 1 to 1000 rounds"),
        (&["echo", "--seed", "any"], "expected a whole number"),
        (&["agent", "--listen", "7000"], "a port without an address: expected 0.0.0.0:7000"),
        (&["agent", "--listen", "here"], "expected IP:PORT, such as 192.0.2.7:7000"),
        (&["wind", "--agent", "127.0.0.1"], "expected HOST:PORT, such as 192.0.2.7:7000"),
        (&["nothing"], "possible values"),
        (&["wind", "--rate", "4"], "advise"),
        (&["wind", "--netem"], "without --link there is none"),
        (&["wind", "--target", "127.0.0.1:1"], "no URL such as http://127.0.0.1:1"),
    ] {
        let output = lab(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{args:?}: {said}");
    }
    let output = lab(&["wind", "--out", "/proc/nowhere"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("creating the directory"), "{said}");
    // Nobody can create a file there. It is told before anything is measured.
    let output = lab(&["wind", "--out", "/proc"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{said}");
    assert!(said.contains("writing into the directory /proc"), "{said}");
}

#[test]
fn a_url_that_no_server_has_is_wrong_use_of_the_doctor() {
    for (url, words) in [
        ("http://127.0.0.1:99999", "a port is a number from 1 to 65535"),
        ("http://:8080", "not the URL of a server, such as"),
        ("http://127.0.0.1/?a", "no query"),
    ] {
        let doctor = Command::new(env!("CARGO_BIN_EXE_anemone")).args(["doctor", url]).output();
        let output = doctor.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{url}: {said}");
    }
}

/// Writes a run of an experiment below a directory, and returns its report's path. Beside other tests, the generator may be
/// late, and a run that is invalid for that counts less: what is tested is the report, so it is made valid.
fn run_into(directory: &Path, name: &str, rounds: &str, seed: &str) -> String {
    let out = directory.join(seed);
    let out = out.to_str().unwrap();
    let output = lab(&[name, "--quick", "--rounds", rounds, "--seed", seed, "--out", out]);
    assert!(is_measured(&output), "{}", String::from_utf8_lossy(&output.stderr));
    let path = Path::new(out).join(format!("{name}.json"));
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    report["invalid"] = Value::Null;
    std::fs::write(&path, report.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn two_runs_are_compared_with_a_status_for_scripts() {
    let directory = tempfile::tempdir().unwrap();
    let path = run_into(directory.path(), "overhead", "8", "1");
    let compare = |to: &str, more: &[&str]| {
        let output = lab(&[&["compare", &path, to], more].concat());
        let [told, said] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        (output.status.code().unwrap(), told, said)
    };
    let (status, told, said) = compare(&path, &["--fail-on", "0%"]);
    assert_eq!(status, 0, "{said}");
    assert!(told.contains("## overhead: B against A") && told.contains(" equal"), "{told}");

    // The same run with a message that has grown by 10 %.
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for value in report["series"][0]["rounds"].as_array_mut().unwrap() {
        *value = (value.as_f64().unwrap() * 1.1).into();
    }
    let grown = directory.path().join("grown.json");
    std::fs::write(&grown, report.to_string()).unwrap();
    let grown = grown.to_str().unwrap();
    let (status, told, _) = compare(grown, &[]);
    assert!(status == 0 && told.contains("10.0 [10.0, 10.0] | worse"), "{told}");
    let (status, _, said) = compare(grown, &["--fail-on", "5%"]);
    assert!(status == 12 && said.contains("worse by more than 5 %: "), "{status} {said}");
    assert_eq!(compare(grown, &["--fail-on", "15%"]).0, 0);

    for series in report["series"].as_array_mut().unwrap() {
        series["rounds"].as_array_mut().unwrap().truncate(3);
    }
    std::fs::write(grown, report.to_string()).unwrap();
    let (status, _, said) = compare(grown, &["--fail-on", "5%"]);
    assert!(status == 12 && said.contains("repeat both runs with --rounds "), "{status} {said}");

    report["version"] = 99.into();
    std::fs::write(grown, report.to_string()).unwrap();
    let (status, _, said) = compare(grown, &[]);
    assert!(status == 1 && said.contains("has version 99"), "{status} {said}");
    report["version"] = 1.into();
    report["experiment"] = "wind".into();
    std::fs::write(grown, report.to_string()).unwrap();
    let (status, _, said) = compare(grown, &[]);
    assert!(
        status == 1 && said.contains("A has the experiment overhead, and B has wind"),
        "{said}"
    );
}

#[test]
fn runs_of_several_times_and_machines_are_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let first = run_into(directory.path(), "connect", "3", "1");
    let second = run_into(directory.path(), "connect", "3", "2");
    let log = std::fs::read_to_string(first.replace(".json", ".hlog")).unwrap();
    assert!(log.contains("Tag=") && log.contains("/TCP,"), "{log}");
    // What another machine has measured, in a list as a page exports it.
    let mut other: Value = serde_json::from_str(&std::fs::read_to_string(&first).unwrap()).unwrap();
    other["environment"]["processor"] = "another processor".into();
    let far = directory.path().join("far.json");
    std::fs::write(&far, Value::from(vec![other]).to_string()).unwrap();
    let out = directory.path().join("all.html");
    let folder = |path: &str| Path::new(path).parent().unwrap().to_str().unwrap().to_owned();
    let places = [&folder(&first), &folder(&second), far.to_str().unwrap()];
    let output = lab(&["report", places[0], places[1], places[2], "--out", out.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let html = std::fs::read_to_string(&out).unwrap();
    assert_eq!(html.matches("<section").count(), 2, "two runs of one machine, and another machine");
    assert!(html.contains("The newest of 2 runs") && html.contains("another processor"));
    let empty = directory.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let output = lab(&["report", empty.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("there is no report"), "{said}");
}
