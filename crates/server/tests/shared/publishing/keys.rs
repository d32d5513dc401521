//! Idempotency keys: a retry publishes nothing twice.

use anemone_hub::{KeyWindow, Retention};
use anemone_server::{PublishRight, TopicRule, TopicRules};
use anemone_testing::Reply;

use super::{LINES, Post, TEXT, rule, start, start_with};

const KEY: (&str, &str) = ("Idempotency-Key", "8e03978e-40d5-43e8-bc93-6894a57f9324");

#[test]
fn a_retry_is_told_the_positions_of_the_first_time() {
    let fixture = start();
    let first = fixture.post("/topics/chat", &[KEY, LINES], b"1\n2");
    assert_eq!((first.status, first.field("idempotent-replayed")), (201, None));
    fixture.post("/topics/chat", &[], b"3");
    let again = fixture.post("/topics/chat", &[KEY, LINES], b"1\n2");
    assert_eq!((again.status, again.field("idempotent-replayed")), (200, Some("true")));
    assert_eq!(again.body, first.body);
    assert_eq!(fixture.data("/topics/chat"), [1, 2, 3]);
}

#[test]
fn a_key_may_be_a_parameter_too() {
    let fixture = start();
    assert_eq!(fixture.post("/topics/chat?key=a", &[], b"1").status, 201);
    assert_eq!(fixture.post("/topics/chat?key=a", &[], b"1").status, 200);
    assert_eq!(fixture.post("/topics/chat", &[("Idempotency-Key", "a")], b"1").status, 200);
    for target in ["/topics/chat?key=", "/topics/chat?key=a%20b", "/topics/chat?key=a&key=a"] {
        fixture.post(target, &[], b"1").problem(400, "bad-parameter");
    }
    let long = "x".repeat(128);
    assert_eq!(fixture.post(&format!("/topics/chat?key={long}"), &[], b"2").status, 201);
    fixture.post(&format!("/topics/chat?key={long}x"), &[], b"2").problem(400, "bad-parameter");
    fixture.post("/topics/chat?after=latest", &[], b"2").problem(400, "bad-parameter");
    assert_eq!(fixture.data("/topics/chat"), [1, 2]);
}

#[test]
fn a_key_is_good_for_one_body_of_one_topic() {
    let fixture = start();
    fixture.post("/topics/chat", &[KEY], b"1");
    fixture.post("/topics/chat", &[KEY], b"2").problem(422, "key-reused");
    fixture.post("/topics/chat", &[KEY, TEXT], b"1").problem(422, "key-reused");
    assert_eq!(fixture.post("/topics/scratch-a", &[KEY], b"2").status, 201);
    assert_eq!(fixture.data("/topics/chat"), [1]);
}

#[test]
fn a_key_outlives_its_event() {
    let retention = Retention { events_max: 20, ..Retention::default() };
    let rules = [TopicRule { retention, ..rule("chat", PublishRight::Anyone) }];
    let fixture = start_with(|options| options.topics = TopicRules::new(rules).unwrap());
    let first = fixture.post("/topics/chat", &[KEY], b"0");
    for _ in 0..3 {
        fixture.post("/topics/chat", &[LINES], "1\n".repeat(50).as_bytes());
    }
    let again = fixture.post("/topics/chat", &[KEY], b"0");
    assert_eq!((again.status, &again.body), (200, &first.body));
    fixture.post("/topics/chat", &[KEY], b"2").problem(422, "key-reused");
    assert_eq!(fixture.data("/topics/chat"), vec![1; 20]);
}

#[test]
fn what_is_published_if_nothing_came_since_is_published_once() {
    let fixture = start();
    fixture
        .post("/topics/scratch-m", &[("If-Match", "*")], b"0")
        .problem(412, "precondition-failed");
    assert!(!fixture.has("scratch-m"));
    let tag = |reply: &Reply| reply.field("etag").unwrap().to_owned();
    let empty = tag(&fixture.get("/topics/chat", &[]));
    assert_eq!(fixture.post("/topics/chat", &[("If-Match", &empty)], b"1").status, 201);
    let detail = fixture
        .post("/topics/chat", &[("If-Match", &empty)], b"2")
        .problem(412, "precondition-failed");
    assert!(detail.starts_with("the topic is at ya-1"), "{detail}");
    assert_eq!(fixture.post("/topics/chat", &[("If-Match", "\"x\", \"ya-1\"")], b"2").status, 201);
    assert_eq!(fixture.post("/topics/chat", &[("If-Match", "*")], b"3").status, 201);
    let tag = tag(&fixture.get("/topics/chat?after=earliest", &[]));
    for unmet in [&format!("W/{tag}"), "\"ya-2\"", "\"3.yb-3\"", "\"\""] {
        let reply = fixture.post("/topics/chat", &[("If-Match", unmet)], b"9");
        reply.problem(412, "precondition-failed");
    }
    for malformed in ["", "ya-3", "\"ya-3"] {
        let reply = fixture.post("/topics/chat", &[("If-Match", malformed)], b"9");
        reply.problem(400, "bad-parameter");
    }
    for again in [201, 200] {
        let reply = fixture.post("/topics/chat", &[KEY, ("If-Match", &tag)], b"4");
        assert_eq!(reply.status, again, "a retry is told of the first time");
    }
    assert_eq!(fixture.data("/topics/chat"), [1, 2, 3, 4]);
    // Only one of several publishers with the same expectation succeeds.
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let post = || fixture.post("/topics/chat", &[("If-Match", "\"ya-4\"")], b"5").status;
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(post)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 412, 412, 412, 412, 412, 412, 412]);
    fixture.post("/topics/scratch-m", &[], b"1");
    let delete = fixture.request("DELETE", "/topics/scratch-m", &[("If-Match", "*")]);
    delete.problem(400, "bad-parameter");
}

#[test]
fn a_key_of_what_was_refused_is_not_used_up() {
    let fixture = start();
    fixture.post("/topics/chat", &[KEY], b"{").problem(400, "bad-event");
    assert_eq!(fixture.post("/topics/chat", &[KEY], b"{}").status, 201);
}

#[test]
fn of_many_at_once_with_one_key_one_is_published() {
    let fixture = start();
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let post = || fixture.post("/topics/scratch-b", &[KEY], b"1").status;
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(post)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    assert_eq!(fixture.data("/topics/scratch-b"), [1]);
}

#[test]
fn only_so_many_keys_are_remembered() {
    let keys = KeyWindow { keys_max: 2, ..KeyWindow::default() };
    let rules = [TopicRule { keys, ..rule("chat", PublishRight::Anyone) }];
    let fixture = start_with(|options| options.topics = TopicRules::new(rules).unwrap());
    let status = |key| fixture.post("/topics/chat", &[("Idempotency-Key", key)], b"1").status;
    assert_eq!(
        ["a", "b", "a", "b", "c", "b", "a"].map(status),
        [201, 201, 200, 200, 201, 200, 201]
    );
}
