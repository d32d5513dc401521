//! Deleting topics that a pattern allowed to be created.

use super::refusals::refused_origin;
use super::{Post, start};

#[test]
fn a_topic_that_was_created_can_be_deleted_and_created_again() {
    let fixture = start();
    let key = [("Idempotency-Key", "a")];
    fixture.post("/topics/scratch-a", &key, b"1");
    let reply = fixture.request("DELETE", "/topics/scratch-a", &[]);
    assert_eq!((reply.status, &*reply.body), (204, ""));
    fixture.request("DELETE", "/topics/scratch-a", &[]).problem(404, "unknown-topic");
    let none_yet = fixture.get("/topics/scratch-a", &[]);
    assert_eq!((none_yet.status, none_yet.numbers()), (200, vec![]));
    assert!(none_yet.next().ends_with("-0") && !fixture.has("scratch-a"));

    let again = fixture.post("/topics/scratch-a", &key, b"2");
    assert_eq!(again.status, 201, "its keys went with it: {again:?}");
    assert_eq!(fixture.data("/topics/scratch-a"), [2]);
    let gap = fixture.get("/topics/scratch-a?after=ya-1", &[]).json();
    assert_eq!(gap["gap"]["reason"], "epoch", "positions of the topic before are no others'");
}

#[test]
fn a_deleted_topic_makes_room_for_another() {
    let fixture = start();
    for name in ["a", "b", "c"] {
        fixture.post(&format!("/topics/few-{name}"), &[], b"1");
    }
    fixture.post("/topics/few-d", &[], b"1").problem(507, "too-many-topics");
    fixture.request("DELETE", "/topics/few-b", &[]);
    assert_eq!(fixture.post("/topics/few-d", &[], b"1").status, 201);
    fixture.post("/topics/few-e", &[], b"1").problem(507, "too-many-topics");
}

#[test]
fn a_reader_of_a_topic_that_is_deleted_is_told() {
    let fixture = start();
    fixture.post("/topics/scratch-a", &[], b"1");
    let mut stream = fixture.events("/topics/scratch-a", &[]);
    stream.block().unwrap();
    let mut socket = fixture.websocket("/topics/scratch-a", &["anemone.events"], &[]);
    let mut plain = fixture.websocket("/topics/scratch-a", &[], &[]);
    socket.next();
    fixture.request("DELETE", "/topics/scratch-a", &[]);
    assert!(stream.block().unwrap().starts_with("event: end\n"));
    assert_eq!(socket.json()["end"]["reason"], "deleted");
    assert!(socket.next().starts_with("close 1000 "));
    assert!(plain.next().starts_with("close 4001 "));
}

#[test]
fn only_those_who_may_publish_may_delete_and_only_what_a_pattern_made() {
    let fixture = start();
    fixture.post("/topics/scratch-a", &[], b"1");
    let delete = |target, fields: &[(&str, &str)]| fixture.request("DELETE", target, fields);
    for (target, methods) in [
        ("/topics/wind", "GET, HEAD"),
        ("/topics/quiet", "GET, HEAD"),
        ("/topics/chat", "GET, HEAD, POST"),
    ] {
        let reply = delete(target, &[]);
        reply.problem(405, "method-not-allowed");
        assert_eq!(reply.field("allow"), Some(methods));
    }
    delete("/topics/scratch-a", &[("Via", "1.1 proxy")]).problem(403, "publish-refused");
    let form = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")];
    refused_origin(&delete("/topics/scratch-a", &form));
    delete("/topics/scratch-a", &[("Origin", "http://evil.example")])
        .problem(403, "origin-refused");
    delete("/topics/scratch-a?key=a", &[]).problem(400, "bad-parameter");
    assert_eq!(fixture.data("/topics/scratch-a"), [1]);
}
