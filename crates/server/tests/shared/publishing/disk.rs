//! Publishing to topics on disk: acknowledged events are kept.

use std::path::Path;

use anemone_hub::{DataDir, DataOptions, Epoch, Hub};
use anemone_testing::Fixture;
use anemone_ws::proto::Message;
use tempfile::tempdir;

use super::{LINES, Post, start_of};

const KEY: (&str, &str) = ("Idempotency-Key", "8e03978e-40d5-43e8-bc93-6894a57f9324");

fn start(folder: &Path) -> Fixture {
    let data = DataDir::open(folder, DataOptions::default()).unwrap();
    start_of(Hub::with_data(Epoch::from_bits(1234), data).unwrap(), |_| {})
}

fn stop(mut fixture: Fixture) {
    fixture.stop();
    fixture.hub.close().unwrap();
}

#[test]
fn a_retry_after_a_restart_is_told_the_positions_of_the_first_time() {
    let folder = tempdir().unwrap();
    let fixture = start(folder.path());
    let first = fixture.post("/topics/scratch-a", &[KEY, LINES], b"1\n2");
    assert_eq!(first.status, 201);
    stop(fixture);

    let fixture = start(folder.path());
    let again = fixture.post("/topics/scratch-a", &[KEY, LINES], b"1\n2");
    assert_eq!((again.status, again.field("idempotent-replayed")), (200, Some("true")));
    assert_eq!(again.body, first.body);
    assert_eq!(fixture.data("/topics/scratch-a"), [1, 2]);
}

#[test]
fn a_key_with_another_body_is_refused_after_a_restart_too() {
    let folder = tempdir().unwrap();
    let fixture = start(folder.path());
    let first = fixture.post("/topics/scratch-a", &[KEY, LINES], b"1\n2");
    stop(fixture);

    let fixture = start(folder.path());
    fixture.post("/topics/scratch-a", &[KEY], b"1").problem(422, "key-reused");
    let again = fixture.post("/topics/scratch-a", &[KEY, LINES], b"1\n2");
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(fixture.data("/topics/scratch-a"), [1, 2]);
}

#[test]
fn a_key_whose_event_has_gone_is_known_after_a_restart() {
    let folder = tempdir().unwrap();
    let few = |options: &mut anemone_server::Options| {
        let retention = anemone_hub::Retention { events_max: 20, ..Default::default() };
        let chat = super::rule("chat", anemone_server::PublishRight::Anyone);
        let rule = anemone_server::TopicRule { retention, ..chat };
        options.topics = anemone_server::TopicRules::new([rule]).unwrap();
    };
    let start = || {
        let data = DataDir::open(folder.path(), DataOptions::default()).unwrap();
        start_of(Hub::with_data(Epoch::from_bits(1234), data).unwrap(), few)
    };
    let fixture = start();
    let first = fixture.post("/topics/chat", &[KEY], b"0");
    for _ in 0..10 {
        fixture.post("/topics/chat", &[LINES], "1\n".repeat(50).as_bytes());
    }
    stop(fixture);
    let fixture = start();
    let again = fixture.post("/topics/chat", &[KEY], b"0");
    assert_eq!((again.status, &again.body), (200, &first.body));
    fixture.post("/topics/chat", &[KEY], b"2").problem(422, "key-reused");
    assert!(!fixture.data("/topics/chat").contains(&0.into()));
}

#[test]
fn topics_of_before_count_and_can_be_deleted() {
    let folder = tempdir().unwrap();
    let fixture = start(folder.path());
    for name in ["a", "b", "c"] {
        assert_eq!(fixture.post(&format!("/topics/few-{name}"), &[], b"1").status, 201);
    }
    stop(fixture);

    let fixture = start(folder.path());
    fixture.post("/topics/few-d", &[], b"1").problem(507, "too-many-topics");
    assert_eq!(fixture.request("DELETE", "/topics/few-a", &[]).status, 204);
    assert_eq!(fixture.post("/topics/few-d", &[], b"1").status, 201);
}

#[test]
fn messages_keep_their_order_and_come_back_once_they_are_kept() {
    let folder = tempdir().unwrap();
    let fixture = start(folder.path());
    let mut socket = fixture.websocket("/topics/chat", &[], &[]);
    for number in 1..=200 {
        socket.connection.sender().send(Message::Text(&number.to_string())).unwrap();
    }
    socket.flush();
    for number in 1..=200 {
        assert_eq!(socket.next(), number.to_string());
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let folder = tempdir().unwrap();
    let fixture = start(folder.path());
    let mut socket = fixture.websocket("/topics/chat", &[], &[]);
    fixture.hub.close().unwrap();
    fixture.post("/topics/chat", &[], b"1").problem(503, "stopping");
    fixture.post("/topics/scratch-new", &[], b"1").problem(503, "stopping");
    socket.send(Message::Text("1"));
    assert!(socket.next().starts_with("close 1013 "));
}
