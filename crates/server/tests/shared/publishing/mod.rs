//! Publishing by `POST` and by plain WebSocket: the accepted events, their order, and their delivery.
#![allow(clippy::unwrap_used)]

mod deletion;
mod disk;
mod keys;
mod refusals;
mod total;
mod websocket;

use std::io::{BufReader, Write};
use std::net::TcpStream;

use anemone_hub::{Epoch, Hub, Retention};
use anemone_server::{Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::{Fixture, Reply};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const LINES: (&str, &str) = ("Content-Type", "application/x-ndjson");
const TEXT: (&str, &str) = ("Content-Type", "text/plain");
const BINARY: (&str, &str) = ("Content-Type", "application/octet-stream");

fn rule(topics: &str, publish: PublishRight) -> TopicRule {
    TopicRule { publish, ..TopicRule::new(topics.parse().unwrap()) }
}

/// A server with `wind`, which is read only, and topics that are not.
fn start() -> Fixture {
    start_with(|_| {})
}

fn start_with(change: impl FnOnce(&mut Options)) -> Fixture {
    start_of(Hub::new(Epoch::from_bits(1234)), change)
}

fn start_of(hub: Hub, change: impl FnOnce(&mut Options)) -> Fixture {
    let rules = [
        rule("chat", PublishRight::Anyone),
        rule("quiet", PublishRight::Nobody),
        rule("scratch-*", PublishRight::Loopback),
        TopicRule { topics_max: 3, ..rule("few-*", PublishRight::Anyone) },
    ];
    let change = |options: &mut Options| {
        options.topics = TopicRules::new(rules).unwrap();
        change(options);
    };
    Fixture::of(hub, change, Retention::default())
}

trait Post {
    fn post(&self, target: &str, fields: &[(&str, &str)], body: &[u8]) -> Reply;
    /// The data of every event of a topic.
    fn data(&self, target: &str) -> Vec<serde_json::Value>;
}

impl Post for Fixture {
    fn post(&self, target: &str, fields: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = self.connect();
        send(&mut stream, target, fields, body);
        Reply::read(&mut BufReader::new(stream), "POST")
    }

    fn data(&self, target: &str) -> Vec<serde_json::Value> {
        let page = self.get(&format!("{target}?after=earliest"), &[]).json();
        page["events"].as_array().unwrap().iter().map(|event| event["data"].clone()).collect()
    }
}

fn send(stream: &mut TcpStream, target: &str, fields: &[(&str, &str)], body: &[u8]) {
    let host = stream.peer_addr().unwrap();
    let mut request = format!("POST {target} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in fields {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
}

#[test]
fn a_body_is_an_event_and_the_reply_has_its_position() {
    let fixture = start();
    let reply = fixture.post("/topics/chat", &[], b"{\"text\": \"hi\"}");
    assert_eq!((reply.status, reply.field("content-type")), (201, Some("application/json")));
    assert_eq!(reply.field("cache-control"), Some("no-store"));
    assert_eq!(reply.body, "{\"position\":\"ya-1\",\"first\":\"ya-1\",\"count\":1}\n");
    let page = fixture.get("/topics/chat", &[]);
    assert_eq!(page.next(), "ya-1");
    assert!(page.body.contains("\"data\":{\"text\": \"hi\"}"), "as it was spelled: {page:?}");
    assert!(page.json()["events"][0]["time"].as_f64().unwrap() > 1.7e12);
}

#[test]
fn each_content_type_has_its_data() {
    let fixture = start();
    for (field, body, data) in [
        (JSON, &b" [1, null,\r\n \"\xc3\xa9\"]\n"[..], serde_json::json!([1, null, "é"])),
        (("Content-Type", "APPLICATION/JSON; charset=utf-8"), b"17", serde_json::json!(17)),
        (
            TEXT,
            "naïve \"日本\" 🌬\u{2028}\0\n".as_bytes(),
            serde_json::json!("naïve \"日本\" 🌬\u{2028}\0\n"),
        ),
        (TEXT, b"{\"n\":1}", serde_json::json!("{\"n\":1}")),
        (BINARY, &[0, 255, 10, 13], serde_json::json!({ "base64": "AP8KDQ==" })),
    ] {
        let reply = fixture.post("/topics/chat", &[field], body);
        assert_eq!(reply.status, 201, "{reply:?}");
        assert_eq!(fixture.get("/topics/chat", &[]).json()["events"][0]["data"], data);
    }
}

#[test]
fn what_nobody_says_the_type_of_is_json_or_else_text() {
    let fixture = start();
    // curl -d, wget and Python's urllib name the type of a form, and Python's requests none.
    for fields in [&[FORM][..], &[]] {
        for (body, data) in [
            ("hello", serde_json::json!("hello")),
            ("{\"a\":1}", serde_json::json!({ "a": 1 })),
            ("17", serde_json::json!(17)),
            ("a=1&b=%C3%A9+2", serde_json::json!("a=1&b=%C3%A9+2")),
            ("[INFO] up\n", serde_json::json!("[INFO] up\n")),
        ] {
            let reply = fixture.post("/topics/chat", fields, body.as_bytes());
            assert_eq!(reply.status, 201, "{body}: {reply:?}");
            assert_eq!(fixture.get("/topics/chat", &[]).json()["events"][0]["data"], data);
        }
    }
}

#[test]
fn a_batch_is_published_in_its_order() {
    let fixture = start();
    fixture.post("/topics/chat", &[], b"0");
    let reply = fixture.post("/topics/chat", &[LINES], b"\n{\"n\":1}\r\n \n2\n\n\"3\"");
    assert_eq!(reply.body, "{\"position\":\"ya-4\",\"first\":\"ya-2\",\"count\":3}\n");
    let expected = serde_json::json!([0, { "n": 1 }, 2, "3"]);
    assert_eq!(fixture.data("/topics/chat"), *expected.as_array().unwrap());
}

#[test]
fn of_a_batch_with_one_bad_line_nothing_is_published() {
    let fixture = start();
    fixture.post("/topics/chat", &[LINES], b"1\n2\n{\n4").problem(400, "bad-event");
    let big = format!("1\n\"{}\"\n3", "x".repeat(65_535));
    let detail =
        fixture.post("/topics/chat", &[LINES], big.as_bytes()).problem(413, "event-too-big");
    assert!(detail.starts_with("line 2: the event has 65537 bytes"), "{detail}");
    assert!(fixture.data("/topics/chat").is_empty());
}

#[test]
fn a_topic_that_a_pattern_allows_is_created_by_its_first_event() {
    let fixture = start();
    assert!(!fixture.has("scratch-1"));
    fixture.post("/topics/scratch-1", &[], b"{").problem(400, "bad-event");
    assert!(!fixture.has("scratch-1"));
    assert_eq!(fixture.post("/topics/scratch-1", &[], b"1").status, 201);
    assert_eq!(fixture.data("/topics/scratch-1"), [1]);
    let names = fixture.get("/topics", &[]).json();
    let names = names["topics"].as_array().unwrap().iter().map(|topic| topic["name"].as_str());
    let names: Vec<_> = names.map(Option::unwrap).collect();
    assert_eq!(names, ["chat", "quiet", "scratch-1", "wind"], "those declared by name are there");
}

#[test]
fn a_reader_on_another_transport_gets_what_is_published() {
    let fixture = start();
    let mut stream = fixture.events("/topics/chat", &[]);
    stream.block().unwrap();
    let mut socket = fixture.websocket("/topics/chat", &[], &[]);
    let mut events = fixture.websocket("/topics/chat", &["anemone.events"], &[]);
    events.next();
    fixture.post("/topics/chat", &[LINES], b"1\n\"two\"");
    assert_eq!(stream.event(), "id: ya-1\ndata: 1\n");
    assert_eq!(stream.event(), "id: ya-2\ndata: \"two\"\n");
    assert_eq!((socket.next(), socket.next()), ("1".to_owned(), "\"two\"".to_owned()));
    assert_eq!(events.json()["position"], "ya-1");
    assert_eq!(events.json()["data"], "two");
}

#[test]
fn those_who_publish_at_once_get_positions_of_their_own_and_batches_stay_whole() {
    const PUBLISHERS: u64 = 8;
    const BATCHES: u64 = 40;
    let fixture = start();
    // The publisher of each offset, according to the replies.
    let mut by_offset: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let publish = |publisher| {
            let fixture = &fixture;
            move || {
                let mut stream = BufReader::new(fixture.connect());
                let mut positions = Vec::new();
                for batch in 0..BATCHES {
                    let line = |n| format!("[{publisher},{batch},{n}]\n");
                    let body: String = (0..3).map(line).collect();
                    send(stream.get_mut(), "/topics/scratch-race", &[LINES], body.as_bytes());
                    let reply = Reply::read(&mut stream, "POST");
                    assert_eq!(reply.status, 201);
                    let offset = |member: &str| -> u64 {
                        let position = reply.json()[member].as_str().unwrap().to_owned();
                        position.strip_prefix("ya-").unwrap().parse().unwrap()
                    };
                    assert_eq!(offset("position"), offset("first") + 2);
                    positions.push((offset("first"), publisher));
                }
                assert!(positions.is_sorted(), "in the order they were published");
                positions
            }
        };
        let threads: Vec<_> =
            (0..PUBLISHERS).map(|publisher| scope.spawn(publish(publisher))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    by_offset.sort_unstable();
    let firsts: Vec<u64> = by_offset.iter().map(|(first, _)| *first).collect();
    assert_eq!(firsts, (0..PUBLISHERS * BATCHES).map(|batch| batch * 3 + 1).collect::<Vec<_>>());
    let data = fixture.data("/topics/scratch-race");
    for (batch, (_, publisher)) in data.chunks(3).zip(by_offset) {
        for (n, event) in batch.iter().enumerate() {
            assert_eq!((&event[0], &event[2]), (&publisher.into(), &n.into()), "{batch:?}");
            assert_eq!(event[1], batch[0][1]);
        }
    }
}

#[test]
fn a_client_that_waits_to_be_told_sends_its_body_then() {
    let fixture = start();
    let mut stream = BufReader::new(fixture.connect());
    let head = "POST /topics/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    stream.get_mut().write_all(head.as_bytes()).unwrap();
    assert_eq!(Reply::read_head(&mut stream).status, 100);
    stream.get_mut().write_all(b"true").unwrap();
    assert_eq!(Reply::read(&mut stream, "POST").status, 201);
}

#[test]
fn a_chunked_body_is_as_good_as_any() {
    let fixture = start();
    let mut stream = BufReader::new(fixture.connect());
    let request = "POST /topics/chat HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
                   2\r\n[1\r\n3\r\n,2]\r\n0\r\n\r\n";
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    assert_eq!(Reply::read(&mut stream, "POST").status, 201);
    assert_eq!(fixture.data("/topics/chat"), [serde_json::json!([1, 2])]);
}
