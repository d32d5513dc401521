//! Services over HTTP.

use std::time::Duration;

use super::*;

#[test]
fn a_service_answers_with_its_own_status_and_body() {
    let fixture = start(&Open::default(), |_| {});
    for (method, target, body, status, expected) in [
        ("GET", "/svc/hello", "", 200, "hello"),
        ("POST", "/svc/hello", "you", 200, "hello you"),
        ("PUT", "/svc/seen?a=%20b", "x", 200, "PUT /svc/seen?a=%20b none none x"),
        ("GET", "/svc/empty", "", 204, ""),
        ("GET", "/svc/teapot", "", 418, "short and stout"),
        ("DELETE", "/svc/hello", "", 405, ""),
        ("GET", "/svc/nothing", "", 404, ""),
        ("POST", "/svc/small", "0123456789", 200, "0123456789"),
    ] {
        let reply = ask(&fixture, method, target, &[], body);
        assert_eq!((reply.status, &*reply.body), (status, expected), "{method} {target}");
        assert_eq!(reply.field("x-content-type-options"), Some("nosniff"), "{target}");
    }
    assert_eq!(ask(&fixture, "POST", "/svc/small", &[], "0123456789a").status, 413);
    let detail = ask(&fixture, "GET", "/svc/conflict", &[], "").problem(409, "conflict");
    assert_eq!(detail, "there is a record 7");
    ask(&fixture, "GET", "/svc/panic", &[], "").problem(500, "internal");
}

#[test]
fn a_handler_learns_who_calls() {
    let fixture = start(&Open::default(), |_| {});
    assert_eq!(ask(&fixture, "GET", "/svc/who", &[], "").body, "http true Local true");
    let forwarded = [("X-Forwarded-For", "192.0.2.1")];
    let foreign = ask(&fixture, "GET", "/svc/who", &forwarded, "").body;
    assert_eq!(foreign, "http false Anonymous true");
}

#[test]
fn a_service_that_does_not_begin_its_reply_in_time_is_dropped() {
    let open = Open::default();
    let short = Duration::from_millis(100);
    let fixture = start(&open, |limits| limits.service_timeout = short);
    let detail = ask(&fixture, "GET", "/svc/never", &[], "").problem(504, "service-timeout");
    assert_eq!(detail, "the service has not begun its reply within 100ms");
    open.wait(0);

    let open = Open::default();
    let fixture = with_mounts(vec![mount("/svc", routes(&open)).timeout(short)], |_| {});
    ask(&fixture, "GET", "/svc/never", &[], "").problem(504, "service-timeout");
    open.wait(0);
}

#[test]
fn a_reply_that_has_begun_may_take_its_time() {
    let open = Open::default();
    let fixture = start(&open, |limits| {
        limits.service_timeout = Duration::from_millis(1);
        limits.write_timeout = Duration::from_millis(100);
    });
    let stream = connected(&fixture, "/svc/silent");
    let mut reader = BufReader::new(stream);
    assert_eq!(Reply::read_head(&mut reader).status, 200);
    let mut begin = [0; 7];
    reader.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"2\r\n1\n\r\n");
    ask(&fixture, "GET", "/svc/never", &[], "").problem(504, "service-timeout");
    open.wait(1);
    drop(reader);
    open.wait(0);
}

const EVENT_STREAM: (&str, &str) = ("Accept", "text/event-stream");

#[test]
fn a_stream_is_lines_or_events_as_the_client_accepts() {
    let fixture = start(&Open::default(), |_| {});
    let lines = "1\n2\n3\n";
    let end = "event: end\ndata: {\"end\":{\"reason\":\"ended\"}}\n\n";
    let events = format!("data: 1\n\ndata: 2\n\ndata: 3\n\n{end}");
    for (accept, is_events) in [
        ("", false),
        ("*/*", false),
        ("application/x-ndjson", false),
        ("text/event-stream", true),
        ("text/event-stream, application/x-ndjson;q=0.5", true),
        ("text/event-stream;q=0.5, application/x-ndjson", false),
        ("text/event-stream, */*", false),
        ("text/event-stream, */*;q=0.1", true),
    ] {
        let reply = ask(&fixture, "GET", "/svc/count/3", &[("Accept", accept)], "");
        let content_type = reply.field("content-type").unwrap();
        let (media_type, body) =
            if is_events { ("text/event-stream", &*events) } else { (NDJSON, lines) };
        assert_eq!((reply.status, content_type, &*reply.body), (200, media_type, body), "{accept}");
        for (name, value) in [
            ("vary", "accept"),
            ("cache-control", "no-store, no-transform"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(reply.field(name), Some(value), "{accept}");
        }
    }
    let whole = ask(&fixture, "GET", "/svc/hello", &[EVENT_STREAM], "");
    assert_eq!((&*whole.body, whole.field("vary")), ("hello", None), "it is no stream");
}

const NDJSON: &str = "application/x-ndjson";

#[test]
fn a_stream_that_fails_breaks_off_and_as_events_it_says_why() {
    let fixture = start(&Open::default(), |_| {});
    let (head, rest) = ask_raw(&fixture, "GET", "/svc/broken", &[], "");
    assert_eq!((head.status, unchunked(&rest)), (200, None), "{rest}");
    assert!(rest.contains("1\n2\n"), "{rest}");
    let reply = ask(&fixture, "GET", "/svc/broken", &[EVENT_STREAM], "");
    let (events, end) = reply.body.split_once("event: end\ndata: ").unwrap();
    assert_eq!(events, "data: 1\n\ndata: 2\n\n");
    let end: serde_json::Value = serde_json::from_str(end).unwrap();
    assert_eq!(end["end"]["reason"], "failed");
    assert_eq!(end["end"]["problem"]["type"], "/problems/internal");
}

#[test]
fn a_client_that_goes_ends_the_work_for_it() {
    let open = Open::default();
    let fixture = start(&open, |limits| limits.write_timeout = Duration::from_millis(100));
    for target in ["/svc/never", "/svc/silent"] {
        let stream = connected(&fixture, target);
        open.wait(1);
        drop(stream);
        open.wait(0);
    }
}
