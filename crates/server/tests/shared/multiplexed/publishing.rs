//! Publishing by a request.

use std::io::{Read, Write};

use anemone_hub::Retention;
use anemone_server::{Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::multiplexed::{BOTH, Client};

use crate::multiplexed::start;

fn with_right(right: PublishRight) -> impl FnOnce(&mut Options) {
    move |options| {
        let rule = TopicRule { publish: right, ..TopicRule::new("scratch-*".parse().unwrap()) };
        options.topics = TopicRules::new([rule]).unwrap();
    }
}

#[test]
fn what_is_published_has_a_position_and_is_read_like_anything_else() {
    let fixture = start(with_right(PublishRight::Loopback), Retention::default());
    for (carrier, name) in BOTH.into_iter().zip(["scratch-a", "scratch-b"]) {
        let mut client = Client::open(carrier, &fixture);
        let reply = client.ask(&format!("POST p /topics/{name}\n{{\"n\": 1}}"));
        assert_eq!((reply.status, &*reply.id, reply.position.as_deref()), (201, "p", Some("ya-1")));
        assert_eq!(reply.payload, r#"{"position":"ya-1","first":"ya-1","count":1}"#);
        client.ask(&format!("GET r /topics/{name}?after=earliest"));
        assert_eq!(client.next().number(), 1);
        let posts: Vec<String> =
            (2..=50).map(|n| format!("POST p{n} /topics/{name}\n{{\"n\":{n}}}")).collect();
        client.send_all(&posts);
        let (mut positions, mut numbers) = (Vec::new(), Vec::new());
        for _ in 0..98 {
            let reply = client.next();
            match reply.status {
                201 => positions.push(reply.position.unwrap()),
                _ => numbers.push(reply.number()),
            }
        }
        assert_eq!(numbers, (2..=50).collect::<Vec<_>>(), "in the order they were sent in");
        assert_eq!(positions, (2..=50).map(|n| format!("ya-{n}")).collect::<Vec<_>>());
    }
}

#[test]
fn a_key_makes_a_retry_safe() {
    let fixture = start(with_right(PublishRight::Anyone), Retention::default());
    for (carrier, name) in BOTH.into_iter().zip(["scratch-a", "scratch-b"]) {
        let mut client = Client::open(carrier, &fixture);
        let post = format!("POST p /topics/{name}?key=k1\n7");
        let first = client.ask(&post);
        assert_eq!(first.status, 201);
        drop(client);
        let mut client = Client::open(carrier, &fixture);
        let again = client.ask(&post);
        assert_eq!((again.status, &again.payload), (200, &first.payload));
        assert_eq!(again.position, first.position, "as the first time");
        let other = client.ask(&format!("POST p /topics/{name}?key=k1\n8"));
        other.problem(422, "p", "key-reused");
    }
}

#[test]
fn what_cannot_be_published_is_told_as_by_http() {
    let fixture = start(with_right(PublishRight::Anyone), Retention::default());
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.ask("POST p /topics/scratch-x").problem(400, "p", "bad-event");
        client.ask("POST p /topics/scratch-x\n{").problem(400, "p", "bad-event");
        client.ask("POST p /topics/scratch-x?after=latest\n1").problem(400, "p", "bad-parameter");
        let large = format!("POST p /topics/scratch-x\n\"{}\"", "x".repeat(64 << 10));
        client.ask(&large).problem(413, "p", "event-too-big");
        let largest = format!("POST p /topics/scratch-x\n\"{}\"", "x".repeat((64 << 10) - 2));
        assert_eq!(client.ask(&largest).status, 201);
        client.ask("POST p /topics/wind\n1").problem(405, "p", "method-not-allowed");
        client.ask("POST p /topics/nothing\n1").problem(404, "p", "unknown-topic");
    }
}

#[test]
fn a_batch_is_published_whole_and_once_and_each_type_has_its_data() {
    let fixture = start(with_right(PublishRight::Anyone), Retention::default());
    for (carrier, name) in BOTH.into_iter().zip(["scratch-a", "scratch-b"]) {
        let mut client = Client::open(carrier, &fixture);
        let batch = format!("POST p /topics/{name}?type=ndjson&key=k\n1\n\n{{\"n\": 2}}\n\"3\"\n");
        let first = client.ask(&batch);
        assert_eq!((first.status, first.position.as_deref()), (201, Some("ya-3")));
        assert_eq!(first.payload, r#"{"position":"ya-3","first":"ya-1","count":3}"#);
        let again = client.ask(&batch);
        assert_eq!((again.status, &again.payload), (200, &first.payload));
        client.ask(&format!("POST p /topics/{name}?type=json&key=k\n1")).problem(
            422,
            "p",
            "key-reused",
        );
        for (kind, payload) in [
            ("text", "\n17 \"é\"\n"),
            ("binary", "\nab"),
            ("json", "\n 4 "),
            ("text", "\n"),
            ("binary", ""),
        ] {
            let reply = client.ask(&format!("POST p /topics/{name}?type={kind}{payload}"));
            assert_eq!(reply.status, 201, "{reply:?}");
        }
        let page = fixture.get(&format!("/topics/{name}?after=earliest"), &[]).json();
        let data: Vec<_> =
            page["events"].as_array().unwrap().iter().map(|event| &event["data"]).collect();
        let expected = serde_json::json!(
            [1, { "n": 2 }, "3", "17 \"é\"\n", { "base64": "YWI=" }, 4, "", { "base64": "" }]
        );
        assert_eq!(data, expected.as_array().unwrap().iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_batch_has_the_limits_and_problems_that_it_has_by_http() {
    let fixture = start(with_right(PublishRight::Anyone), Retention::default());
    for (carrier, name) in BOTH.into_iter().zip(["scratch-a", "scratch-b"]) {
        let mut client = Client::open(carrier, &fixture);
        let post = |payload: &str| format!("POST p /topics/{name}?type=ndjson\n{payload}");
        client.ask(&post("1\n{\n3")).problem(400, "p", "bad-event");
        client.ask(&post("")).problem(400, "p", "bad-event");
        client.ask(&post("\n \n")).problem(400, "p", "bad-event");
        client.ask(&post(&"1\n".repeat(1001))).problem(413, "p", "body-too-big");
        let large = format!("1\n\"{}\"", "x".repeat((64 << 10) - 1));
        let detail = client.ask(&post(&large)).problem(413, "p", "event-too-big");
        assert!(detail.starts_with("line 2: "), "{detail}");
        let padded = |bytes: usize| " ".repeat(bytes - 1) + "1";
        let detail = client.ask(&post(&padded((1 << 20) + 1))).problem(413, "p", "body-too-big");
        assert_eq!(detail, "the payload has 1048577 bytes, at most 1048576 are allowed");
        assert_eq!(client.ask(&post(&padded(1 << 20))).status, 201, "up to the last byte");
        assert_eq!(client.ask(&post(&"1\n".repeat(1000))).status, 201);
        for query in ["type=xml", "type=ndjson&type=ndjson", "limit=1"] {
            let target = format!("/topics/{name}?{query}");
            client.ask(&format!("POST p {target}\n1")).problem(400, "p", "bad-parameter");
        }
        let page = fixture.get(&format!("/topics/{name}"), &[]);
        assert_eq!(page.next(), "ya-1001", "what was refused is not there");
    }
}

#[test]
fn a_topic_that_was_made_by_publishing_can_be_deleted() {
    let fixture = start(with_right(PublishRight::Anyone), Retention::default());
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        assert_eq!(client.ask("POST p /topics/scratch-x\n1").status, 201);
        client.ask("DELETE d /topics/scratch-x?x=1").problem(400, "d", "bad-parameter");
        client.ask("DELETE d /topics/scratch-x").is_line(204, "d", "");
        client.ask("DELETE d /topics/scratch-x").problem(404, "d", "unknown-topic");
        client.ask("DELETE d /topics/wind").problem(405, "d", "method-not-allowed");
    }
}

#[test]
fn a_page_by_a_name_that_may_be_anybodys_is_not_local() {
    let change = |options: &mut Options| {
        with_right(PublishRight::Loopback)(options);
        options.allowed_hosts = vec!["rebound.example".parse().unwrap()];
    };
    let fixture = start(change, Retention::default());
    let port = fixture.address.port();
    for (host, status) in [("localhost", 201), ("rebound.example", 403)] {
        let origin = format!("http://{host}:{port}");
        let mut stream = fixture.connect();
        let mut handshake = anemone_ws::proto::handshake::ClientHandshake::new(
            anemone_ws::proto::handshake::Nonce([7; 16]),
            &["anemone.v1"],
        );
        let request = handshake.request(&format!("{host}:{port}"), "/ws", &[("Origin", &origin)]);
        stream.write_all(request.as_bytes()).unwrap();
        let mut byte = [0];
        while {
            stream.read_exact(&mut byte).unwrap();
            handshake.receive(&byte).unwrap().is_none()
        } {}
        let mut message = b"\x82\x9b\0\0\0\0POST p /topics/scratch-x\n12".to_vec();
        message.truncate(6 + 27);
        stream.write_all(&message).unwrap();
        let mut reply = [0; 7];
        stream.read_exact(&mut reply).unwrap();
        let reply = String::from_utf8_lossy(&reply).into_owned();
        assert!(reply.contains(&status.to_string()), "{host}: {reply:?}");
    }
}
