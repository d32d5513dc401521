//! The replies that the documents show have the members that the server sends.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use anemone_testing::documents::document;
use anemone_testing::process::{ask, get, read_until, request, serve};
use anemone_testing::wait_until;

/// Returns the names of all members in JSON, or in what looks like it.
fn members(text: &str) -> BTreeSet<&str> {
    let parts: Vec<_> = text.split('"').collect();
    let names = parts.windows(2).skip(1).step_by(2);
    names.filter(|pair| pair[1].starts_with(':')).map(|pair| pair[0]).collect()
}

/// Returns the blocks of JSON below a heading of a document.
fn shown(path: &str, heading: &str) -> Vec<String> {
    let blocks = document(path).blocks().into_iter();
    let blocks = blocks.filter(|block| block.heading == heading && block.code.starts_with('{'));
    blocks.map(|block| block.code).collect()
}

#[test]
fn members_are_found_at_every_depth() {
    assert_eq!(members(r#"{"a":1,"b":[{"c":"d"},…]}"#), BTreeSet::from(["a", "b", "c"]));
}

/// A reader of the wind over SSE, until this is dropped.
fn reader(address: SocketAddr) -> std::net::TcpStream {
    let mut stream = request(address, "GET /topics/wind HTTP/1.1\r\nAccept: text/event-stream");
    read_until(&mut stream, b"data: ");
    stream
}

/// Waits until the body of the reply at this path has the members that a document shows.
fn becomes_as_shown(address: SocketAddr, path: &str, shown: &str) {
    let expected = members(shown);
    let mut last = String::new();
    let what = format!("{path} has not these members alone: {expected:?}");
    wait_until(&what, || {
        last = get(address, path);
        members(last.split_once("\r\n\r\n").unwrap().1) == expected
    });
}

#[test]
fn what_the_server_says_of_its_clients_is_as_docs_operate_shows_it() {
    let (_server, address) = serve(&["--demo", "--threads", "1"]);
    // One that has gone, and one that stays.
    drop(reader(address));
    let _reader = reader(address);
    let of = "docs/OPERATE.md";
    let [open, closed, threads] = &shown(of, "Who is connected")[..] else { panic!("three") };
    let [readers] = &shown(of, "`/topics/NAME/readers`")[..] else { panic!("one") };
    for (path, shown) in [
        ("/connections?limit=1", open),
        ("/connections/closed", closed),
        ("/connections/threads", threads),
        ("/topics/wind/readers", readers),
    ] {
        becomes_as_shown(address, path, shown);
    }
}

#[test]
fn topics_and_runs_answer_as_docs_protocol_shows_it() {
    let (_server, address) = serve(&["--demo", "--threads", "1", "--run", "primes=cat"]);
    let of = "docs/PROTOCOL.md";
    let one = |heading: &str| shown(of, heading).pop().expect(heading);
    let published = ask(address, "POST /topics/scratch-a HTTP/1.1", "1");
    assert_eq!(
        members(published.split_once("\r\n\r\n").unwrap().1),
        members(&one("`POST /topics/NAME`"))
    );
    becomes_as_shown(address, "/topics/scratch-a?after=earliest", &one("Poll and long poll"));
    // `next` is there only while there are more.
    becomes_as_shown(address, "/topics?limit=1", &one("`/topics`"));

    let start = "POST /primes?to=7&name=seven HTTP/1.1\r\nPrefer: respond-async\r\nContent-Type: application/json";
    let started = ask(address, start, "{\"n\":7}");
    let (_, key) = started.split_once("{\"key\":\"").expect(&started);
    let state = format!("/runs/{}?state", key.split('"').next().unwrap());
    becomes_as_shown(address, &state, &one("Runs"));
}

#[test]
fn the_first_requests_of_docs_protocol_are_answered_as_it_shows() {
    let (_server, address) = serve(&["--demo", "--threads", "1"]);
    let blocks = document("docs/PROTOCOL.md").blocks();
    let block = blocks.iter().find(|block| block.heading == "A topic").unwrap();
    let lines: Vec<_> = block.code.lines().map(|line| line.split_once("  ").unwrap()).collect();
    let [(read, page), (publish, published)] = lines[..] else { panic!("two lines") };
    // Nobody may publish to the wind, and a position is of one start of a server.
    let [publish, read] = [publish, read].map(|line| line.replace("wind", "scratch-a"));
    let reply = ask(address, &format!("{publish} HTTP/1.1"), "1");
    assert_eq!(members(reply.split_once("\r\n\r\n").unwrap().1), members(published));
    let read = read.strip_prefix("GET ").unwrap().split('?').next().unwrap();
    becomes_as_shown(address, read, page);
}
