//! One topic, read by every transport: the same events at the same positions.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::BufReader;
use std::time::{Duration, Instant};

use anemone_hub::Retention;
use common::{EventStream, Fixture, Reply, send};

#[test]
fn a_bare_get_gives_the_newest_event_and_where_to_go_on() {
    let fixture = Fixture::start();
    let empty = fixture.get("/topics/wind", &[]);
    assert_eq!((empty.status, empty.numbers()), (200, vec![]));
    fixture.publish(1..=3);
    let reply = fixture.get("/topics/wind", &[]);
    assert_eq!(reply.numbers(), [3]);
    assert_eq!(reply.field("content-type"), Some("application/json"));
    assert_eq!(reply.field("cache-control"), Some("no-store"));
    let page = reply.json();
    assert_eq!((&page["first"], &page["epoch"]), (&1.into(), &"ya".into()));
    assert_eq!(page["next"], "ya-3");
    assert_eq!(page["events"][0]["offset"], 3);
    assert!(page["events"][0]["time"].as_f64().unwrap() > 1.7e12);
}

#[test]
fn polls_follow_their_positions_without_loss_or_repetition() {
    let fixture = Fixture::start();
    let mut next = fixture.get("/topics/wind", &[]).next();
    let mut seen = Vec::new();
    for round in 0..10 {
        fixture.publish(round * 3 + 1..=round * 3 + 3);
        let reply = fixture.get(&format!("/topics/wind?after={next}&limit=2"), &[]);
        seen.extend(reply.numbers());
        next = reply.next();
        let link = format!("</topics/wind?after={next}>; rel=\"next\"");
        assert_eq!(reply.field("link"), Some(&*link));
    }
    seen.extend(fixture.get(&format!("/topics/wind?after={next}"), &[]).numbers());
    assert_eq!(seen, (1..=30).collect::<Vec<_>>());
}

#[test]
fn earliest_and_latest_mean_all_and_nothing_yet() {
    let fixture = Fixture::start();
    fixture.publish(1..=3);
    assert_eq!(fixture.get("/topics/wind?after=earliest", &[]).numbers(), [1, 2, 3]);
    let latest = fixture.get("/topics/wind?after=latest", &[]);
    assert_eq!((latest.numbers(), latest.next()), (vec![], "ya-3".into()));
}

#[test]
fn a_long_poll_is_answered_at_once_when_there_is_something() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    let reply = fixture.get("/topics/wind?after=earliest", &[("Prefer", "wait=100")]);
    assert_eq!(reply.numbers(), [1]);
    assert_eq!(reply.field("preference-applied"), Some("wait=100"));
}

#[test]
fn a_long_poll_waits_for_the_next_event() {
    let fixture = Fixture::start();
    let mut stream = fixture.connect();
    let first = fixture.get("/topics/wind", &[]);
    send(&mut stream, "GET", &format!("/topics/wind?after={}&wait=100", first.next()), &[]);
    // The request is being waited on, or will find the event: either way it gets it.
    fixture.publish(1..=1);
    let mut reader = BufReader::new(stream);
    assert_eq!(Reply::read(&mut reader, "GET").numbers(), [1]);
}

#[test]
fn a_long_poll_is_answered_with_an_empty_page_when_the_time_is_up() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let begun = Instant::now();
    let reply = fixture.get("/topics/wind?after=latest&wait=0.3", &[]);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!((reply.status, reply.numbers(), reply.next()), (200, vec![], "ya-2".into()));
}

#[test]
fn requests_share_a_connection() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    let mut reader = BufReader::new(fixture.connect());
    for target in
        ["/topics/wind", "/topics/wind?after=latest&wait=0.01", "/topics/nothing", "/topics/wind"]
    {
        send(reader.get_mut(), "GET", target, &[]);
        let reply = Reply::read(&mut reader, "GET");
        assert!(matches!(reply.status, 200 | 404), "{reply:?}");
    }
}

#[test]
fn an_event_stream_gives_positions_and_resumes_from_them() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let mut stream = EventStream::open(&fixture, "/topics/wind", &[]);
    assert_eq!(stream.head.field("cache-control"), Some("no-store"));
    assert_eq!(stream.head.field("x-accel-buffering"), Some("no"));
    assert_eq!(stream.block().unwrap(), "retry: 1000\nid: ya-2\n", "a position before any event");
    fixture.publish(3..=4);
    assert_eq!(stream.block().unwrap(), "id: ya-3\ndata: {\"n\":3}\n");
    assert_eq!(stream.block().unwrap(), "id: ya-4\ndata: {\"n\":4}\n");
    let mut resumed =
        EventStream::open(&fixture, "/topics/wind?after=latest", &[("Last-Event-ID", "ya-3")]);
    assert_eq!(resumed.block().unwrap(), "retry: 1000\nid: ya-3\n");
    assert_eq!(resumed.block().unwrap(), "id: ya-4\ndata: {\"n\":4}\n");
}

#[test]
fn a_quiet_event_stream_has_heartbeats() {
    let fixture = Fixture::with_limits(|limits| limits.sse_heartbeat = Duration::from_millis(10));
    let mut stream = EventStream::open(&fixture, "/topics/wind", &[]);
    stream.block().unwrap();
    assert_eq!(stream.block().unwrap(), ":\n");
    assert_eq!(stream.block().unwrap(), ":\n");
}

#[test]
fn a_plain_websocket_carries_data_and_nothing_else() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let mut socket = fixture.websocket("/topics/wind?after=earliest", &[], &[]);
    assert_eq!(socket.subprotocol, None);
    assert_eq!(socket.next(), r#"{"n":1}"#);
    assert_eq!(socket.next(), r#"{"n":2}"#);
    fixture.publish(3..=3);
    assert_eq!(socket.next(), r#"{"n":3}"#);
}

#[test]
fn the_events_subprotocol_adds_positions() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    let mut socket = fixture.websocket("/topics/wind", &["unknown", "anemone.events"], &[]);
    assert_eq!(socket.subprotocol.as_deref(), Some("anemone.events"));
    assert_eq!(socket.next(), r#"{"position":"ya-1"}"#, "a position before any event");
    fixture.publish(2..=2);
    let event = socket.json();
    assert_eq!((&event["position"], &event["data"]["n"]), (&"ya-2".into(), &2.into()));
    let mut resumed = fixture.websocket("/topics/wind?after=ya-1", &["anemone.events"], &[]);
    assert_eq!(resumed.json()["position"], "ya-1");
    assert_eq!(resumed.json(), event, "the same event at the same position");
}

#[test]
fn what_is_no_longer_kept_is_told_before_anything_else() {
    let retention = Retention { events_max: 2, ..Retention::default() };
    let fixture = Fixture::with(|_| {}, retention);
    fixture.publish(1..=5);
    let gap = serde_json::json!({ "reason": "retention", "after": "ya-1", "missed": 2, "resume": "ya-3" });
    let page = fixture.get("/topics/wind?after=ya-1", &[]);
    assert_eq!((&page.json()["gap"], page.numbers()), (&gap, vec![4, 5]));

    let mut stream = EventStream::open(&fixture, "/topics/wind?after=ya-1", &[]);
    stream.block().unwrap();
    let block = stream.block().unwrap();
    assert_eq!(block, format!("event: gap\nid: ya-3\ndata: {}\n", notice(&page)));
    assert_eq!(stream.block().unwrap(), "id: ya-4\ndata: {\"n\":4}\n");

    let mut plain = fixture.websocket("/topics/wind?after=ya-1", &[], &[]);
    assert_eq!(plain.json()["gap"], gap);
    assert_eq!(plain.next(), r#"{"n":4}"#);

    let mut events = fixture.websocket("/topics/wind?after=ya-1", &["anemone.events"], &[]);
    events.next();
    assert_eq!(events.json()["gap"], gap);
    assert_eq!(events.json()["position"], "ya-4");
}

/// The notice of a page's gap, spelled as the other transports do.
fn notice(page: &Reply) -> String {
    let begin = page.body.find(r#""gap":{"#).unwrap();
    let end = page.body[begin..].find('}').unwrap();
    format!("{{{}}}", &page.body[begin..=begin + end])
}

#[test]
fn a_position_of_another_epoch_is_a_gap_of_unknown_length() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let page = fixture.get("/topics/wind?after=zz-7", &[]);
    assert_eq!(page.json()["gap"]["reason"], "epoch");
    assert!(page.json()["gap"]["missed"].is_null());
    assert_eq!(page.numbers(), [1, 2]);
    let reply = fixture.get("/topics/wind?after=zz-7&wait=100", &[]);
    assert_eq!(reply.numbers(), [1, 2], "a gap is told at once, without waiting");
    let mut socket = fixture.websocket("/topics/wind?after=zz-7", &[], &[]);
    assert_eq!(socket.json()["gap"]["reason"], "epoch");
}

#[test]
fn topics_are_listed() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let list = fixture.get("/topics", &[]).json();
    assert_eq!(list["topics"][0]["name"], "wind");
    assert_eq!(list["topics"][0]["next"], "ya-2");
    assert_eq!(list["topics"][0]["url"], "/topics/wind");
}

#[test]
fn a_server_that_stops_ends_every_connection_in_its_own_way() {
    let mut fixture = Fixture::start();
    fixture.publish(1..=1);
    let mut socket = fixture.websocket("/topics/wind?after=earliest", &[], &[]);
    socket.next();
    let mut stream = EventStream::open(&fixture, "/topics/wind", &[]);
    stream.block().unwrap();
    let mut long_poll = fixture.connect();
    send(&mut long_poll, "GET", "/topics/wind?after=latest&wait=100", &[]);
    let mut idle = BufReader::new(fixture.connect());
    send(idle.get_mut(), "GET", "/topics/wind", &[]);
    Reply::read(&mut idle, "GET");
    let reader = std::thread::spawn(move || {
        assert_eq!(socket.next(), "close 1001 the server stops");
        assert_eq!(socket.next(), "end of stream");
        assert_eq!(stream.block(), None);
        Reply::read(&mut BufReader::new(long_poll), "GET").numbers()
    });
    fixture.stop();
    assert_eq!(reader.join().unwrap(), [0; 0]);
    assert!(std::net::TcpStream::connect(fixture.address).is_err());
}
