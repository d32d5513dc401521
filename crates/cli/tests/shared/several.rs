//! Several topics on one stream, read from the real server by the client crate and by `anemone sub`, through a relay
//! that cuts connections.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Output;
use std::thread;
use std::time::Duration;

use anemone_client::{Content, Item, Publisher, Retry, Subscribe, Timeouts, Via};
use anemone_testing::process::{Process, command, output, serve};

const EVENTS: u64 = 600;
const TOPICS: [&str; 3] = ["scratch-a", "scratch-b1", "scratch-b2"];
/// The least number of cuts of a stream. A poll has few connections to cut.
const CUTS: usize = 20;

fn server() -> (Process, SocketAddr) {
    serve(&["--threads", "1", "--demo"])
}

/// Leads connections to the server, and cuts each after a random number of bytes from there.
fn cutting(server: SocketAddr, seed: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut random = fastrand::Rng::with_seed(seed);
        for client in listener.incoming() {
            let (client, bytes) = (client.unwrap(), random.usize(300..4000));
            let server = TcpStream::connect(server).unwrap();
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || copy(&from, &to, usize::MAX));
            thread::spawn(move || copy(&server, &client, bytes));
        }
    });
    address
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, mut bytes: usize) {
    let mut buffer = [0; 4096];
    while bytes > 0 {
        let most = buffer.len().min(bytes);
        match from.read(&mut buffer[..most]) {
            Ok(read) if read > 0 && to.write_all(&buffer[..read]).is_ok() => bytes -= read,
            _ => break,
        }
    }
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}

/// Publishes to all topics in turn. The last of them is created by its first event, in the middle.
async fn publish(server: SocketAddr) {
    let mut publishers = Vec::new();
    for topic in TOPICS {
        publishers.push(Publisher::new(&format!("http://{server}/topics/{topic}")).unwrap());
    }
    for begin in (0..EVENTS).step_by(20) {
        for (number, publisher) in publishers.iter_mut().enumerate() {
            let all =
                if number == 2 && begin < EVENTS / 2 { begin..begin } else { begin..begin + 20 };
            let all = if number == 2 && begin == EVENTS / 2 { 0..begin + 20 } else { all };
            for event in all {
                publisher.publish(Content::Json, event.to_string()).await.unwrap();
            }
        }
    }
}

/// Reads all events of all topics through cuts, and returns those of each, and the number of cuts.
async fn read(relay: SocketAddr, via: Option<Via>) -> (BTreeMap<String, Vec<u64>>, usize) {
    let (delay_min, delay_max) = (Duration::from_millis(1), Duration::from_millis(4));
    let retry = Retry { delay_min, delay_max, ..Retry::default() };
    let timeouts = Timeouts { poll_interval: Duration::from_millis(1), ..Timeouts::default() };
    // A page has to fit between two cuts.
    let is_page = matches!(via, None | Some(Via::LongPoll | Via::Poll));
    let limit = if is_page { "&limit=10" } else { "" };
    let subscribe = Subscribe::new(format!("http://{relay}/topics?after=earliest{limit}"));
    let subscribe =
        subscribe.topic("scratch-a").topic("scratch-b*").retry(retry).timeouts(timeouts);
    let subscribe = match via {
        Some(via) => subscribe.via(via),
        None => subscribe,
    };
    let mut subscription = subscribe.start().unwrap();
    let (mut read, mut cuts) = (BTreeMap::<String, Vec<u64>>::new(), 0);
    while read.values().map(Vec::len).sum::<usize>() < TOPICS.len() * EVENTS as usize {
        match subscription.next().await.unwrap().unwrap() {
            Item::Of { topic, item } => {
                let Item::Event { data, .. } = *item else { panic!("{item:?}") };
                read.entry(topic.to_string()).or_default().push(data.parse().unwrap());
            }
            Item::Disconnected { .. } => cuts += 1,
            _ => {}
        }
    }
    (read, cuts)
}

#[tokio::test]
async fn no_event_of_any_topic_is_lost_or_doubled_by_cuts() {
    let ways = [None, Some(Via::Ndjson), Some(Via::Sse), Some(Via::LongPoll), Some(Via::Poll)];
    for (seed, via) in (1..).zip(ways) {
        let (_server, address) = server();
        let relay = cutting(address, seed);
        let (_, (read, cuts)) = tokio::join!(publish(address), read(relay, via));
        for topic in TOPICS {
            assert!(
                read[topic].iter().copied().eq(0..EVENTS),
                "{via:?} {topic}: {:?}",
                read[topic]
            );
        }
        if matches!(via, Some(Via::Ndjson | Via::Sse)) {
            assert!(cuts >= CUTS, "{via:?}: {cuts} cuts");
        }
    }
}

fn lines(args: &[&str]) -> Vec<String> {
    let Output { status, stdout, stderr } = output(command(args), "");
    assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_command_reads_several_topics_and_goes_on_after_their_positions() {
    let (_server, address) = server();
    for (topic, data) in [("a", "1"), ("b1", "{\"n\": 2}"), ("b2", "3"), ("c", "4")] {
        lines(&["pub", &format!("http://{address}/topics/scratch-{topic}"), data]);
    }
    let url = format!("http://{address}");
    let all = ["--topic", "scratch-a", "--topic", "scratch-b*"];
    for via in ["auto", "ndjson", "sse", "long-poll", "poll"] {
        let sub = ["sub", &url, "--via", via, "--after", "earliest", "--count", "3"];
        let sub = [&sub[..], &all].concat();
        let mut events = lines(&sub);
        events.sort();
        assert!(events[0].starts_with(r#"{"topic":"scratch-a","position":""#), "{via}: {events:?}");
        assert!(
            events[1].starts_with(r#"{"topic":"scratch-b1","position":""#),
            "{via}: {events:?}"
        );
        assert!(events[2].ends_with(r#","data":3}"#), "{via}: {events:?}");
        let mut data = lines(&[&sub[..], &["--output", "data"]].concat());
        data.sort();
        assert_eq!(data, ["1", "3", "{\"n\": 2}"], "{via}");
        let position = |event: &str| event.split('"').nth(7).unwrap().to_owned();
        let end = position(&events[0]);
        let begin = position(&events[1]).replace("-1", "-0");
        let after = format!("scratch-a:{end},scratch-b1:{begin}");
        let sub = ["sub", &url, "--via", via, "--after", &after, "--count", "1"];
        let sub = [&sub[..], &["--topic", "scratch-a", "--topic", "scratch-b1"]].concat();
        assert_eq!(lines(&sub), [events[1].clone()], "{via}");
    }
    // The URL of a topic is one of them, and a URL may have them all.
    let topic = format!("{url}/topics/scratch-a");
    let sub = ["sub", &topic, "--topic", "scratch-c", "--after", "earliest", "--count", "2"];
    assert_eq!(lines(&sub).len(), 2);
    let query = format!("{url}/topics?topic=scratch-a&topic=scratch-c");
    assert_eq!(lines(&["sub", &query, "--after", "earliest", "--count", "2"]).len(), 2);
}

#[test]
fn what_several_topics_cannot_do_is_said_with_what_can() {
    let (_server, address) = server();
    let url = format!("http://{address}");
    for (args, status, part) in [
        (["--topic", "nix", "--via", "auto"], 3, "there is no topic \"nix\""),
        (["--topic", "a b", "--via", "auto"], 3, "is not a valid name"),
        (
            ["--topic", "host", "--via", "ws"],
            2,
            "several are read over ndjson, sse, long-poll or poll",
        ),
        (["--topic", "host", "--after", "x:y"], 2, "--after"),
        (["--topic", "host", "--after", "wind:a-1"], 3, "no topic= asks for"),
    ] {
        let Output { status: ended, stderr, .. } =
            output(command(&[&["sub", &url][..], &args].concat()), "");
        let said = String::from_utf8(stderr).unwrap();
        assert!(said.contains(part), "{args:?}: {said}");
        assert_eq!(ended.code(), Some(status), "{args:?}: {said}");
    }
}
