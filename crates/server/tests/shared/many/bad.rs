//! The replies to bad input, and the limits of the token.

use serde_json::json;

use super::*;

#[test]
fn bad_requests_are_refused_with_what_is_wrong() {
    let fixture = Fixture::start();
    create(&fixture.hub, "a");
    let sse = [("Accept", "text/event-stream")];
    let many = (0..65).map(|n| format!("topic=t{n}")).collect::<Vec<_>>().join("&");
    for (query, status, kind) in [
        ("topic=", 400, "bad-name"),
        ("topic=a%20b", 400, "bad-name"),
        ("topic=a&topic=a", 400, "bad-parameter"),
        (&*many, 400, "bad-parameter"),
        ("topic=a&topic=nothing", 404, "unknown-topic"),
        ("topic=a&after=ya-1", 400, "bad-parameter"),
        ("topic=a&after=nonsense", 400, "bad-parameter"),
        ("topic=a&after=wind:ya-0", 400, "bad-parameter"),
        ("topic=a&after=a:ya-7", 400, "position-ahead"),
        ("topic=a&after=$topics:ya-700", 400, "position-ahead"),
        ("topic=a&after=a:ya-0&since=1h", 400, "bad-parameter"),
        ("topic=a&prefix=a", 400, "bad-parameter"),
        ("topic=a&mode=none", 400, "bad-parameter"),
        ("topic=a&frame=x", 406, "not-acceptable"),
    ] {
        let target = format!("/topics?{query}");
        fixture.get(&target, &sse).problem(status, kind);
        if kind != "not-acceptable" {
            fixture.get(&target, &[]).problem(status, kind);
            fixture.get(&target, &[("Accept", "application/x-ndjson")]).problem(status, kind);
        }
    }
    let id = [("Accept", "text/event-stream"), ("Last-Event-ID", "a:b")];
    fixture.get("/topics?topic=a", &id).problem(400, "bad-parameter");
    let frame = [("Accept", "text/html")];
    fixture.get("/topics?topic=a&frame=x", &frame).problem(403, "frame-refused");
    fixture
        .request("POST", "/topics?topic=a", &[("Content-Length", "0")])
        .problem(405, "method-not-allowed");
    let mut client = anemone_testing::multiplexed::Client::open(
        anemone_testing::multiplexed::Carrier::Tcp,
        &fixture,
    );
    client.ask("GET 1 /topics?topic=a").problem(400, "1", "bad-parameter");
}

/// The names of topics whose token has so many bytes, with the topic `wind` and the index.
fn names(token_bytes: usize) -> Vec<String> {
    const NAME: usize = 60;
    let begin = "$topics:ya-000,".len() + ",wind:0".len();
    // There is one comma less than names.
    let names = token_bytes + 1 - begin;
    let (count, rest) = (names / (NAME + 3), names % (NAME + 3));
    let name = |number: usize| {
        let more = if number == 0 { rest } else { 0 };
        format!("n{number:03}{}", "x".repeat(NAME - 4 + more)).replacen('n', "a", 1)
    };
    (0..count).map(name).collect()
}

#[test]
fn a_token_has_4_kib_and_not_one_byte_more() {
    for (bytes, status) in [(4_096, 200), (4_097, 400)] {
        let fixture = Fixture::start();
        let topics = names(bytes);
        // So that the position in the index has the digits that were counted.
        (topics.len()..110).for_each(|number| create(&fixture.hub, &format!("z{number}")));
        topics.iter().for_each(|name| create(&fixture.hub, name));
        let reply = fixture.get("/topics?topic=a*&topic=wind", &[]);
        assert_eq!(reply.status, status, "{bytes}: {reply:?}");
        if status == 200 {
            assert_eq!(reply.next().len(), bytes);
            let again = format!("/topics?topic=a*&topic=wind&after={}", reply.next());
            assert_eq!(fixture.get(&again, &[]).status, 200);
        } else {
            let detail = reply.problem(400, "token-too-long");
            assert!(detail.contains("4097 bytes") && detail.contains("4096"), "{detail}");
        }
    }
}

#[test]
fn a_stream_whose_token_grows_too_long_says_so_and_ends() {
    let fixture = Fixture::with_limits(|limits| limits.token_bytes_max = 64);
    let mut follower = Follower::new(&fixture, Way::Ndjson, "topic=wind&topic=c*");
    follower.open();
    assert_eq!(follower.next(), None);
    create(&fixture.hub, "c1");
    publish(&fixture.hub, "c1", &json!(1));
    assert_eq!(follower.item()["data"], 1);
    create(&fixture.hub, &format!("c2{}", "x".repeat(60)));
    let end = follower.item();
    assert_eq!(end["end"]["reason"], "failed", "{end}");
    assert_eq!(end["end"]["problem"]["type"], "/problems/token-too-long");
    assert_eq!(try_line(follower.stream.as_mut().unwrap()).unwrap(), None, "the stream ends");
    fixture.get("/topics?topic=wind&topic=c*", &[]).problem(400, "token-too-long");
}

#[test]
fn an_event_stream_tells_no_token_that_is_too_long() {
    const BYTES_MAX: usize = 64;
    let fixture = Fixture::with_limits(|limits| limits.token_bytes_max = BYTES_MAX);
    let mut follower = Follower::new(&fixture, Way::Sse, "topic=wind&topic=c*");
    follower.open();
    assert_eq!(follower.next(), None);
    create(&fixture.hub, &format!("c2{}", "x".repeat(60)));
    let end = anemone_testing::wait_for("the end", || {
        let token = follower.token.as_ref().unwrap();
        assert!(token.len() <= BYTES_MAX, "{token}");
        follower.next()
    });
    assert_eq!(end["end"]["problem"]["type"], "/problems/token-too-long");
    let token = follower.token.as_ref().unwrap();
    assert!(token.len() <= BYTES_MAX, "{token}");
}

#[test]
fn the_memory_of_a_stream_counts_until_it_ends() {
    let fixture = Fixture::start();
    (0..50).for_each(|number| create(&fixture.hub, &format!("t{number}")));
    let before = fixture.held_bytes();
    let mut follower = Follower::new(&fixture, Way::Sse, "topic=t*");
    follower.open();
    assert_eq!(follower.next(), None);
    assert!(fixture.held_bytes() >= before + 50 * 1024, "{}", fixture.held_bytes() - before);
    follower.cut();
    anemone_testing::wait_until("the end of the stream", || fixture.held_bytes() <= before);
}
