//! Publishing by a request.

use std::io::{Read, Write};

use anemone_hub::Retention;
use anemone_server::{Options, PublishRight, TopicRule, TopicRules};

use crate::client::{BOTH, Client};
use crate::start;

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
        let other = client.ask(&format!("POST p /topics/{name}?key=k1\n8"));
        other.problem(422, "p", "key-reused");
    }
}

#[test]
fn what_cannot_be_published_is_told_as_by_http() {
    let fixture = start(with_right(PublishRight::Anyone), Retention::default());
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.ask("POST p /topics/scratch-x").problem(400, "p", "bad-body");
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
    let fixture = start(with_right(PublishRight::Loopback), Retention::default());
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
