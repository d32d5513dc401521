//! The total that the topics of a pattern keep together.

use anemone_hub::Retention;
use anemone_server::{PublishRight, TopicRule, TopicRules};
use anemone_testing::{Fixture, wait_until};
use anemone_ws::proto::Message;

use super::{LINES, Post, rule, start_with};

const EACH: u64 = 4_000;
const TOTAL: u64 = 10_000;

/// Topics `small-*`, each of which keeps less than half of what all of them may.
fn start() -> Fixture {
    let retention = Retention { bytes_max: EACH, ..Retention::default() };
    let small = TopicRule {
        retention,
        event_bytes_max: 1_000,
        bytes_total_max: Some(TOTAL),
        ..rule("small-*", PublishRight::Anyone)
    };
    let named = TopicRule { bytes_total_max: Some(0), ..rule("chat", PublishRight::Anyone) };
    start_with(|options| options.topics = TopicRules::new([small, named]).unwrap())
}

/// Returns the bytes that the topics keep together, according to `GET /topics`.
fn kept(fixture: &Fixture) -> u64 {
    let list = fixture.get("/topics", &[]).json();
    let topics = list["topics"].as_array().unwrap().iter();
    let small = topics.filter(|topic| topic["name"].as_str().unwrap().starts_with("small-"));
    small.map(|topic| topic["bytes"].as_u64().unwrap()).sum()
}

/// Publishes 500 bytes at a time until that is refused, and returns the number of successes.
fn fill(fixture: &Fixture, target: &str) -> u64 {
    let event = format!("\"{}\"", "x".repeat(498));
    let mut count = 0;
    loop {
        let reply = fixture.post(target, &[], event.as_bytes());
        assert!(kept(fixture) <= TOTAL);
        if reply.status != 201 || count == 100 {
            break;
        }
        count += 1;
    }
    count
}

#[test]
fn what_would_pass_the_bound_is_refused_on_every_way_and_what_is_there_stays() {
    let fixture = start();
    assert_eq!(fill(&fixture, "/topics/small-a"), 100, "one alone drops its oldest");
    assert_eq!(fill(&fixture, "/topics/small-b"), 100);
    // 2,000 bytes are left; an event counts for up to 256 more than its data until it is summed up.
    let some = fill(&fixture, "/topics/small-c");
    assert!((1..=4).contains(&some), "{some}");
    let event = format!("\"{}\"", "x".repeat(998));
    let detail = "topics small-* together have reached their limit of 10000 bytes";
    for target in ["/topics/small-c", "/topics/small-new"] {
        for fields in [&[][..], &[LINES]] {
            let reply = fixture.post(target, fields, event.as_bytes());
            assert_eq!(reply.problem(507, "storage-full"), detail);
        }
    }
    assert!(!fixture.has("small-new"));
    let mut socket = fixture.websocket("/topics/small-c", &[], &[]);
    socket.send(Message::Text(&event));
    assert_eq!(socket.next(), format!("close 1013 {detail}"));
    let mut multiplexed = fixture.websocket("/ws", &["anemone.v1"], &[]);
    multiplexed.send(Message::Text(&format!("POST p /topics/small-c\n{event}")));
    assert!(multiplexed.next().starts_with("507 p\n"));
    assert_eq!(fixture.data("/topics/small-c").len() as u64, some);
    assert_eq!(fixture.post("/topics/small-a", &[], event.as_bytes()).status, 201, "it is full");
    assert_eq!(fixture.post("/topics/chat", &[], event.as_bytes()).status, 201, "it is named");
}

#[test]
fn what_is_deleted_makes_room_at_once() {
    let fixture = start();
    for target in ["/topics/small-a", "/topics/small-b", "/topics/small-c"] {
        fill(&fixture, target);
    }
    fixture.post("/topics/small-d", &[], &[b'1'; 900]).problem(507, "storage-full");
    assert_eq!(fixture.request("DELETE", "/topics/small-a", &[]).status, 204);
    assert_eq!(fixture.post("/topics/small-d", &[], &[b'1'; 900]).status, 201);
}

#[test]
fn a_retry_of_what_was_published_is_told_so_though_there_is_no_room_any_more() {
    let fixture = start();
    let key = [("Idempotency-Key", "a")];
    let first = fixture.post("/topics/small-c", &key, &[b'1'; 900]);
    assert_eq!(first.status, 201);
    for target in ["/topics/small-a", "/topics/small-b"] {
        fill(&fixture, target);
    }
    wait_until("there is still room", || {
        fixture.post("/topics/small-c", &[], &[b'1'; 100]).status != 201
    });
    let again = fixture.post("/topics/small-c", &key, &[b'1'; 900]);
    assert_eq!((again.status, &again.body), (200, &first.body));
}

#[test]
fn keys_count_too() {
    let fixture = start();
    let post = |number: u32| {
        let target = format!("/topics/small-{}?key={number}", number % 4);
        fixture.post(&target, &[], b"1").status
    };
    let count = (0..1_000).take_while(|number| post(*number) == 201).count();
    // An event of a byte counts for 153 in memory, and its key for 64.
    let most = TOTAL / (153 + 64);
    assert!((most - 8..=most).contains(&(count as u64)), "{count}");
    assert!(kept(&fixture) <= TOTAL);
}
