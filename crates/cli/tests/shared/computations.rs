//! The computations of the demo, through the binary: the examples over every transport, and bad input.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anemone_testing::process::{ask, command, get, output, read_until, request, serve};
use anemone_testing::ways::{self, Told, Wire};
use anemone_testing::{connect, wait_until};
use serde_json::{Value, json};
use std::io::Write as _;

const ENDLESS: &str = r#"{"actions":[{"id":"list","do":"list","size":1000},
    {"id":"a","after":"list","do":"sort","algorithm":"bubble"},
    {"id":"b","after":"list","do":"sort","algorithm":"quick"}]}"#;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/computations").join(name)
}

/// Starts a run that goes on without its client, and returns its path.
#[track_caller]
fn start(address: SocketAddr, query: &str, body: &str) -> String {
    let head = format!("POST /computations{query} HTTP/1.1\r\nPrefer: respond-async");
    let reply = ask(address, &head, body);
    assert!(reply.starts_with("HTTP/1.1 202 "), "{reply}");
    let (_, location) = reply.split_once("\r\nlocation: ").expect(&reply);
    format!("/{}", location.lines().next().unwrap())
}

fn state(address: SocketAddr, run: &str) -> Value {
    let reply = get(address, &format!("{run}?state"));
    serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn states(events: &[Value]) -> usize {
    let partials = events.iter().filter_map(|event| event["partial"]["changes"].as_array());
    partials.map(Vec::len).sum()
}

#[test]
fn the_examples_have_their_states_over_every_transport_and_a_reader_resumes() {
    let (mut server, address) = serve(&["--threads", "1", "--tcp", "127.0.0.1:0", "--demo"]);
    let tcp = server.line().strip_prefix("tcp on ").unwrap().parse().unwrap();
    for (name, expected) in [("smallest.json", 2), ("22479-states.json", 22_479)] {
        let document = fs::read_to_string(example(name)).unwrap();
        let run = start(address, "?batch=500", &document);
        for way in ways::ALL {
            let mut events: Vec<Value> = Vec::new();
            let mut after = "earliest".to_owned();
            // The connection is left after each 15 events, and the next one goes on.
            'all: loop {
                let wire = Wire::new(connect(if way.is_tcp() { tcp } else { address }));
                let mut reader = way.read_path(wire, &run, &format!("after={after}")).unwrap();
                for _ in 0..15 {
                    match reader.next() {
                        Told::Event { data, .. } => events.push(data),
                        Told::Position(_) => {}
                        Told::Ended => break 'all,
                        told => panic!("{}: {told:?}", way.name),
                    }
                }
                let epoch = page_epoch(address, &run);
                after = format!("{epoch}-{}", events.len());
            }
            assert_eq!(states(&events), expected, "{} {name}", way.name);
            assert_eq!(events.last().unwrap()["result"]["states"], expected, "{}", way.name);
        }
    }
}

fn page_epoch(address: SocketAddr, run: &str) -> String {
    let reply = get(address, run);
    let page: Value = serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap();
    page["epoch"].as_str().unwrap().to_owned()
}

#[test]
fn the_command_run_shows_the_smallest_computation() {
    let (_server, address) = serve(&["--threads", "1", "--demo"]);
    let document = format!("@{}", example("smallest.json").display());
    let said = output(command(&["run", &format!("http://{address}/computations"), &document]), "");
    assert!(said.status.success(), "{said:?}");
    let lines = String::from_utf8(said.stdout).unwrap();
    let last: Vec<&str> = lines.lines().rev().take(2).collect();
    let counts = r#""comparisons":6,"writes":4"#;
    assert_eq!(
        last,
        [
            format!(r#"{{"states":2,"sorts":[{{"id":"sort","changes":2,{counts}}}]}}"#),
            format!(
                r#"{{"action":1,"changes":[["s",0,3],["s",1,2]],"state":2,{counts},"done":true}}"#
            ),
        ]
    );
}

#[test]
fn a_computation_is_cancelled_and_one_that_belongs_to_its_client_ends_with_it() {
    let (_server, address) = serve(&["--threads", "1", "--demo"]);
    let run = start(address, "?pace=1", ENDLESS);
    let reply = ask(address, &format!("DELETE {run} HTTP/1.1"), "");
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("\"cancelled\""), "{reply}");
    assert_eq!(state(address, &run)["state"], "cancelled");

    let head = |query: &str| {
        format!("POST /computations?pace=1{query} HTTP/1.1\r\nContent-Length: {}", ENDLESS.len())
    };
    let follow = |query: &str| {
        let mut client = request(address, &head(query));
        client.write_all(ENDLESS.as_bytes()).unwrap();
        read_until(&mut client, b"\"changes\":[[");
        client
    };
    drop((follow("&attach"), follow("")));
    let listed = || -> Vec<Value> {
        let reply = get(address, "/runs");
        let list: Value = serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap();
        let runs = list["runs"].as_array().unwrap().iter();
        runs.map(|run| run["state"].clone()).collect()
    };
    // The attached one and the one before it have ended, and the other one goes on.
    let expected = [json!("running"), json!("cancelled"), json!("cancelled")];
    wait_until("the attached run does not end", || listed() == expected);
}

#[test]
fn a_document_that_does_not_fit_gets_its_place_and_what_is_allowed() {
    let (_server, address) = serve(&["--threads", "1", "--demo"]);
    for (query, body, status, words) in [
        ("", "{\"actions\":\n nope}", 400, "line 2"),
        ("?states=every:0", "{}", 400, "a whole number from 1 to 1000000000"),
        ("", r#"{"actions":[{"id":"a","do":"list","size":100001}]}"#, 422, "/actions/0/size"),
        (
            "",
            r#"{"actions":[{"id":"a","after":"a","do":"sort","algorithm":"quick"}]}"#,
            422,
            "/actions/0/after",
        ),
    ] {
        let reply = ask(address, &format!("POST /computations{query} HTTP/1.1"), body);
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        assert!(reply.contains("application/problem+json") && reply.contains(words), "{reply}");
    }
}
