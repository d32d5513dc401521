//! `anemone sub` and `anemone pub` beside `anemone serve`, as in a shell.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::thread;

use anemone_client::{Content, Publisher};
use rustix::process::Signal;
use support::{Process, Watchdog, command, output, serve};

/// A server that takes events from here, and where it listens: by HTTP, and by TCP.
fn server() -> (Process, SocketAddr, SocketAddr) {
    let (mut server, address) = serve(&["--threads", "1", "--demo", "--tcp", "127.0.0.1:0"]);
    let line = server.line();
    let tcp = line.strip_prefix("tcp on ").expect(&line).parse().unwrap();
    (server, address, tcp)
}

/// What the command says, when it is given this input, and how it ends.
fn run(args: &[&str], input: &str) -> Output {
    output(command(args), input)
}

/// The lines of a command that succeeds.
fn lines(args: &[&str], input: &str) -> Vec<String> {
    let output = run(args, input);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// What a command says that fails.
fn failure(args: &[&str]) -> String {
    let output = run(args, "");
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_published_comes_by_every_transport() {
    let (_server, address, tcp) = server();
    let url = format!("http://{address}/topics/scratch-a");
    let positions = lines(&["pub", &url, "-"], "{\"n\": 1.50}\nhello\n\nnull\n");
    let expected = ["{\"n\": 1.50}", "\"hello\"", "null"];
    assert_eq!(positions.len(), expected.len());

    let tcp_url = format!("tcp://{tcp}/topics/scratch-a");
    for (via, url) in [
        ("auto", &url),
        ("ws", &url),
        ("mux", &url),
        ("sse", &url),
        ("ndjson", &url),
        ("long-poll", &url),
        ("poll", &url),
        ("tcp", &tcp_url),
        ("auto", &tcp_url),
    ] {
        let sub = ["sub", url, "--via", via, "--after", "earliest", "--count", "3"];
        let data = lines(&[&sub[..], &["--output", "data"]].concat(), "");
        assert_eq!(data, expected, "{via}");
        let events = lines(&sub, "");
        let events: Vec<_> = events.iter().filter(|line| line.contains("\"data\":")).collect();
        for (event, position) in events.iter().zip(&positions) {
            assert!(
                event.starts_with(&format!("{{\"position\":\"{position}\",")),
                "{via}: {event}"
            );
        }
        let latest = [&sub[..6], &["--mode", "latest", "--count", "1"]].concat();
        let latest = lines(&latest, "");
        assert_eq!(latest[latest.len() - 2..], ["{\"skipped\":2}", events[2]], "{via}");
        let sub = ["sub", url, "--via", via, "--after", &positions[1], "--count", "1"];
        assert_eq!(lines(&sub, "").last(), events.last().map(|event| (*event).clone()).as_ref());
    }
}

#[test]
fn a_server_that_is_begun_anew_is_told_from_the_one_before() {
    let (first, first_address, _) = server();
    let (_second, second_address, _) = server();
    let relay = relay(vec![first_address, second_address]);
    for address in [first_address, second_address] {
        lines(&["pub", &format!("http://{address}/topics/scratch-a"), "1"], "");
    }

    let url = format!("http://{relay}/topics/scratch-a?after=earliest");
    let mut sub = Process::start(&["sub", &url, "--via", "ws", "--count", "2"]);
    let begin = sub.line();
    let event = sub.line();
    assert!(
        begin.starts_with("{\"position\":") && event.ends_with("\"data\":1}"),
        "{begin} {event}"
    );
    first.signal(Signal::KILL);
    let gap = sub.line();
    assert!(gap.starts_with("{\"gap\":{\"reason\":\"epoch\",\"after\":"), "{gap}");
    let event = sub.line();
    assert!(event.ends_with("\"data\":1}"), "{event}");
    assert_eq!(sub.wait().code(), Some(0));
}

/// Leads the first connection to the first address, and so on, and all others to the last.
fn relay(to: Vec<SocketAddr>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let client = client.unwrap();
            let server = TcpStream::connect(to[number.min(to.len() - 1)]).unwrap();
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    address
}

#[test]
fn what_cannot_work_is_said_at_once() {
    let (_server, address, tcp) = server();
    let url = |rest: &str| format!("http://{address}/{rest}");
    for (args, part) in [
        (["sub", &url("topics/nix"), "--count", "1"], "there is no topic \"nix\""),
        (["sub", &url("clock"), "--via", "mux"], "/topics/NAME"),
        (["sub", &url("clock"), "--via", "poll"], "not an Anemone server"),
        (["sub", &format!("https://{address}/topics/host"), "--count", "1"], "TLS"),
        (["sub", &format!("http://{tcp}/topics/host"), "--via", "tcp"], "tcp://"),
        (["sub", "127.0.0.1:8080/topics/host", "--count", "1"], "URL cannot be used"),
        (["pub", &url("topics/host"), "1", "--key=a"], "405"),
        (["pub", &url("topics/nix"), "1", "--key=a"], "404"),
        (["pub", &format!("tcp://{tcp}/topics/scratch-a"), "1", "--key=a"], "not by tcp"),
        (["pub", &url("topics/scratch-a"), "{", "--type=json"], "line 1, column 1"),
        (["pub", &url("topics/scratch-a"), "1", "--key="], "idempotency key"),
    ] {
        let said = failure(&args);
        assert!(said.contains(part), "{args:?}: {said}");
    }
}

#[test]
fn a_key_makes_it_safe_to_publish_again() {
    let (_server, address, _) = server();
    let url = format!("http://{address}/topics/scratch-a");
    let publish = ["pub", &url, "-", "--key", "k"];
    let positions = lines(&publish, "1\n2\n");
    assert_eq!(positions.len(), 2);
    assert_eq!(lines(&publish, "1\n2\n"), positions);
    let other = run(&publish, "1\n3\n");
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&other.stderr).contains("422"));
    let bytes = lines(&["pub", &url, "-", "--type", "binary"], "\0\n");
    assert_eq!(bytes.len(), 1);
    let sub = ["sub", &url, "--after", "earliest", "--count", "3", "--output", "data"];
    assert_eq!(lines(&sub, ""), ["1", "2", "{\"base64\":\"AAo=\"}"]);
}

#[test]
fn an_event_published_multiplexed_is_there_once() {
    let (_server, address, _) = server();
    let url = format!("http://{address}/topics/scratch-a");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut publisher = Publisher::new(&url).unwrap().multiplexed();
    for _ in 0..2 {
        let published = publisher.publish_with_key(Content::Text, "hi", "a/b+c");
        assert_eq!(runtime.block_on(published).unwrap().position.offset(), 1);
    }
    let published = runtime.block_on(publisher.publish(Content::Json, "{\"n\": 2}")).unwrap();
    assert_eq!(published.position.offset(), 2);
    let sub = ["sub", &url, "--after", "earliest", "--count", "2", "--output", "data"];
    assert_eq!(lines(&sub, ""), ["\"hi\"", "{\"n\": 2}"]);
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let (_server, address, _) = server();
    let url = format!("http://{address}/topics/host");
    let mut sub = command(&["sub", &url]);
    let mut sub = sub.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _watchdog = Watchdog::of(&sub);
    // The next line finds nobody.
    drop(sub.stdout.take());
    let output = sub.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("connected by ws") && !said.contains("ERROR"), "{said}");
}
