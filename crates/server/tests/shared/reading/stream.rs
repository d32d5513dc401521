//! Streams over HTTP: SSE, NDJSON and forever-frame.

use std::io::{BufReader, Write};
use std::time::Duration;

use anemone_testing::ways::{FOREVER_FRAME, Lines, NDJSON, Reading, SSE, Told, each_of};
use anemone_testing::{Fixture, Reply, send};

#[test]
fn a_stream_is_neither_kept_nor_held_back_on_its_way() {
    let fixture = Fixture::start();
    let heads = [
        fixture.events("/topics/wind", &[]).head,
        Lines::ndjson(&fixture, "").head,
        Lines::forever_frame(&fixture, "").head,
    ];
    for head in heads {
        assert_eq!(head.field("cache-control"), Some("no-store, no-transform"));
        assert_eq!(head.field("x-accel-buffering"), Some("no"));
        assert_eq!(head.field("vary"), Some("accept, sec-fetch-mode"));
        assert_eq!(head.field("content-length"), None);
    }
}

#[test]
fn without_a_position_a_stream_begins_now() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    each_of(&[&SSE, &NDJSON, &FOREVER_FRAME], |way| {
        let mut reader = way.open(&fixture, "");
        assert_eq!(reader.next(), Told::Position("ya-2".to_owned()));
    });
}

#[test]
fn an_event_stream_gives_positions_and_resumes_from_them() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let mut stream = fixture.events("/topics/wind", &[]);
    assert_eq!(stream.head.field("cache-control"), Some("no-store, no-transform"));
    assert_eq!(stream.head.field("x-accel-buffering"), Some("no"));
    assert_eq!(stream.block().unwrap(), "retry: 1000\nid: ya-2\n", "a position before any event");
    fixture.publish(3..=4);
    assert_eq!(stream.event(), "id: ya-3\ndata: {\"n\":3}\n");
    assert_eq!(stream.event(), "id: ya-4\ndata: {\"n\":4}\n");
    let mut resumed = fixture.events("/topics/wind?after=latest", &[("Last-Event-ID", "ya-3")]);
    assert_eq!(resumed.block().unwrap(), "retry: 1000\nid: ya-3\n");
    assert_eq!(resumed.event(), "id: ya-4\ndata: {\"n\":4}\n");
}

#[test]
fn an_event_stream_has_a_name_and_a_position_for_each_notice() {
    let retention = anemone_hub::Retention { events_max: 4, ..Default::default() };
    let fixture = Fixture::with(|_| {}, retention);
    fixture.publish(1..=10);
    let mut stream = fixture.events("/topics/wind?after=ya-1&mode=latest", &[]);
    assert_eq!(stream.block().unwrap(), "retry: 1000\nid: ya-1\n");
    let gap = r#"{"gap":{"reason":"retention","after":"ya-1","missed":5,"resume":"ya-6"}}"#;
    assert_eq!(stream.block().unwrap(), format!("event: gap\nid: ya-6\ndata: {gap}\n"));
    // A reader that resumes from here does not get them again.
    assert_eq!(stream.block().unwrap(), "event: skipped\nid: ya-9\ndata: {\"skipped\":3}\n");
    assert_eq!(stream.event(), "id: ya-10\ndata: {\"n\":10}\n");
}

#[test]
fn an_ndjson_stream_is_one_object_a_line() {
    let fixture = Fixture::start();
    fixture.publish(1..=3);
    let mut lines = Lines::ndjson(&fixture, "after=zz-1&mode=latest");
    assert_eq!(lines.line().unwrap(), "{\"position\":\"zz-1\"}\n");
    let gap = r#"{"gap":{"reason":"epoch","after":"zz-1","missed":null,"resume":"ya-0"}}"#;
    assert_eq!(lines.line().unwrap(), format!("{gap}\n"));
    assert_eq!(lines.line().unwrap(), "{\"skipped\":2}\n");
    let event = lines.line().unwrap();
    assert!(event.starts_with("{\"position\":\"ya-3\",\"time\":1"), "{event}");
    assert!(event.ends_with(",\"data\":{\"n\":3}}\n"), "{event}");
}

#[test]
fn a_forever_frame_is_a_document_of_scripts_for_its_own_origin() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let mut lines = Lines::forever_frame(&fixture, "after=ya-1");
    assert_eq!(lines.head.field("x-frame-options"), Some("SAMEORIGIN"));
    let policy = "frame-ancestors 'self'; default-src 'none'; script-src 'unsafe-inline'";
    assert_eq!(lines.head.field("content-security-policy"), Some(policy));
    assert_eq!(lines.head.field("cross-origin-opener-policy"), Some("same-origin"));
    assert_eq!(lines.head.field("cross-origin-embedder-policy"), Some("require-corp"));
    let position = "<script>parent.app.receive({\"position\":\"ya-1\"})</script>\n";
    assert_eq!(lines.line().unwrap(), position);
    let event = lines.line().unwrap();
    assert!(
        event.starts_with("<script>parent.app.receive({\"position\":\"ya-2\",\"time\":1"),
        "{event}"
    );
    assert!(event.ends_with(",\"data\":{\"n\":2}})</script>\n"), "{event}");
}

#[test]
fn a_quiet_stream_has_heartbeats() {
    let fixture = Fixture::with_limits(|limits| limits.heartbeat = Duration::from_millis(10));
    fixture.publish(1..=1);
    let mut stream = fixture.events("/topics/wind", &[]);
    stream.block().unwrap();
    let mut lines = Lines::ndjson(&fixture, "");
    let mut frame = Lines::forever_frame(&fixture, "");
    assert_eq!(lines.next(), Told::Position("ya-1".to_owned()));
    assert_eq!(frame.next(), Told::Position("ya-1".to_owned()));
    for _ in 0..3 {
        assert_eq!(stream.block().unwrap(), ":\n");
        assert_eq!(lines.line().unwrap(), "{\"position\":\"ya-1\"}\n");
        let call = "<script>parent.app.receive({\"position\":\"ya-1\"})</script>\n";
        assert_eq!(frame.line().unwrap(), call);
    }
    // Later events arrive in between, and heartbeats continue after them.
    fixture.publish(2..=2);
    let events: [&mut dyn Reading; 3] = [&mut stream, &mut lines, &mut frame];
    for reader in events {
        assert!(matches!(reader.next(), Told::Event { data, .. } if data["n"] == 2));
    }
    assert_eq!(lines.line().unwrap(), "{\"position\":\"ya-2\"}\n");
}

#[test]
fn a_head_of_a_stream_says_what_a_poll_would() {
    let fixture = Fixture::start();
    for way in [&SSE, &NDJSON, &FOREVER_FRAME] {
        let target = format!("/topics/wind?{}", way.query);
        assert_eq!(fixture.request("HEAD", &target, way.fields).status, 200, "{}", way.name);
    }
}

#[test]
fn a_connection_that_begins_with_a_stream_ends_with_it() {
    let mut fixture = Fixture::start();
    for accept in ["text/event-stream", "application/x-ndjson"] {
        let mut stream = fixture.connect();
        send(&mut stream, "GET", "/topics/wind", &[("Accept", accept)]);
        let mut reader = BufReader::new(stream);
        let head = Reply::read_head(&mut reader);
        assert_eq!(head.field("connection"), Some("close"), "{accept}");
        assert_eq!(head.field("transfer-encoding"), Some("chunked"), "{accept}");
        assert!(head.field("date").is_some_and(|date| date.ends_with(" GMT")), "{accept}");
        let rest = fixture.stop_while(move || std::io::read_to_string(reader).unwrap());
        assert!(rest.ends_with("\r\n0\r\n\r\n"), "{accept}: {rest:?}");
        fixture = Fixture::start();
    }
}

#[test]
fn a_stream_may_follow_another_request_on_its_connection() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let mut stream = fixture.connect();
    let fields = [("Accept", "application/x-ndjson")];
    send(&mut stream, "GET", "/clock", &[]);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    assert_eq!(Reply::read(&mut reader, "GET").status, 200);
    send(&mut stream, "GET", "/topics/wind?after=ya-1", &fields);
    let mut lines = Lines::following(stream);
    assert_eq!(lines.head.field("connection"), None);
    assert_eq!(lines.line().unwrap(), "{\"position\":\"ya-1\"}\n");
    assert!(matches!(lines.next(), Told::Event { data, .. } if data["n"] == 2));
}

#[test]
fn a_request_behind_one_for_a_stream_does_not_disturb_it() {
    let fixture = Fixture::start();
    let mut stream = fixture.connect();
    let request = |target| {
        format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n")
    };
    stream.write_all((request("/topics/wind") + &request("/topics/wind")).as_bytes()).unwrap();
    let mut lines = Lines::following(stream);
    assert_eq!(lines.line().unwrap(), "{\"position\":\"ya-0\"}\n");
    fixture.publish(1..=1);
    assert!(matches!(lines.next(), Told::Event { data, .. } if data["n"] == 1));
}

#[test]
fn a_quiet_stream_is_not_one_whose_client_does_not_read() {
    let fixture = Fixture::with_limits(|limits| {
        limits.write_timeout = Duration::from_secs(1);
        limits.heartbeat = Duration::from_secs(2);
    });
    let mut stream = fixture.events("/topics/wind", &[]);
    stream.block().unwrap();
    assert_eq!(stream.block().unwrap(), ":\n", "alive after twice that");
}
