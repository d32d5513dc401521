//! The replies that the documents show have the members that the server sends.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anemone_testing::documents::document;
use anemone_testing::process::{LONG, ask, get, read_until, request, serve};
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
fn reader(address: SocketAddr) -> TcpStream {
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
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("anemone.toml");
    std::fs::write(&config, "[[topic]]\nname = \"a\"\nunits = { speed = \"m/s\" }\n").unwrap();
    let config = config.to_str().unwrap();
    let (_server, address) = serve(&["--demo", "--config", config, "--run", "primes=cat"]);
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

/// Sends a message of `anemone.v1` over TCP.
fn send(tcp: &mut TcpStream, message: &str) {
    let length = u32::try_from(message.len()).unwrap();
    tcp.write_all(&[&length.to_be_bytes(), message.as_bytes()].concat()).unwrap();
}

/// Receives the next message of `anemone.v1` over TCP.
fn receive(tcp: &mut TcpStream) -> String {
    let mut length = [0; 4];
    tcp.read_exact(&mut length).unwrap();
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    tcp.read_exact(&mut message).unwrap();
    String::from_utf8(message).unwrap()
}

/// Returns the status, and the id, of a message.
fn answered(message: &str) -> Vec<&str> {
    message.split([' ', '\n', '\u{23ce}']).take(2).collect()
}

#[test]
fn the_messages_of_docs_protocol_are_answered_as_it_shows() {
    let flags = ["--demo", "--threads", "1", "--run", "primes=cat", "--tcp", "127.0.0.1:0"];
    let (mut server, address) = serve(&flags);
    let line = server.line();
    let mut tcp = TcpStream::connect(line.strip_prefix("tcp on ").expect(&line)).unwrap();
    tcp.set_read_timeout(Some(LONG)).unwrap();
    // The first record has the id 1, as the one that is patched.
    let record = "POST /messages HTTP/1.1\r\nContent-Type: application/json";
    let created = ask(address, record, "{\"text\":\"hi\"}");
    let tag = created.split_once("etag: ").expect(&created).1.split("\r\n").next().unwrap();
    let tag = tag.replace('"', "%22");

    let blocks = document("docs/PROTOCOL.md").blocks();
    let block = blocks.iter().find(|block| block.code.contains("GET 7 /clock")).unwrap();
    let mut count = 0;
    for line in block.code.lines() {
        let (client, server) = line.split_once("server   ").unwrap();
        if let Some(message) = client.trim_end().strip_prefix("client   ") {
            let message = message
                .replace("?after=4zq81x-41", "?after=-1")
                .replace("%22…-1%22", &tag)
                .replace("{…}", "{\"text\":\"new\"}")
                .replace('\u{23ce}', "\n");
            send(&mut tcp, &message);
        }
        // The wind goes on meanwhile.
        let is_of_wind = |reply: &str| reply.starts_with("206 8 ") && !server.starts_with("206 ");
        let mut reply = receive(&mut tcp);
        while is_of_wind(&reply) {
            reply = receive(&mut tcp);
        }
        assert_eq!(answered(&reply), answered(server), "{line}: {reply}");
        count += 1;
    }
    assert_eq!(count, 10);
}
