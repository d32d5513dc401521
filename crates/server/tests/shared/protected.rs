//! The protective fields of every reply, and the requests that are refused.
#![allow(clippy::unwrap_used)]

use std::io::{BufReader, Write};

use anemone_hub::Retention;
use anemone_testing::{Fixture, HANDSHAKE, Reply, send};

const FRAME: [(&str, &str); 3] =
    [("Accept", "text/html"), ("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Site", "same-origin")];

/// The reply's head to these bytes.
fn ask(fixture: &Fixture, request: &str) -> Reply {
    let mut stream = fixture.connect();
    stream.write_all(request.as_bytes()).unwrap();
    Reply::read_head(&mut BufReader::new(stream))
}

fn assert_protected(reply: &Reply, resources: &str, frames: (&str, &str), what: &str) {
    assert_eq!(reply.field("x-content-type-options"), Some("nosniff"), "{what}");
    assert_eq!(reply.field("cross-origin-resource-policy"), Some(resources), "{what}");
    assert_eq!(reply.field("x-frame-options"), Some(frames.0), "{what}");
    let policy = reply.field("content-security-policy").unwrap_or_default();
    assert!(policy.contains(&format!("frame-ancestors {}", frames.1)), "{what}: {policy}");
}

#[test]
fn every_reply_is_protected() {
    let fixture = Fixture::start();
    let never = ("DENY", "'none'");
    for (line, fields, status) in [
        ("GET / HTTP/1.1", "", 200),
        ("GET /nothing HTTP/1.1", "", 404),
        ("GET /clock HTTP/1.1", "", 200),
        ("HEAD /topics/wind HTTP/1.1", "", 200),
        ("GET /topics/wind?limit=x HTTP/1.1", "", 400),
        ("GET /topics/wind HTTP/1.1", "", 200),
        ("GET /topics/wind HTTP/1.1", "If-None-Match: *\r\n", 304),
        ("GET /topics/wind?wait=0.01&after=latest HTTP/1.1", "", 200),
        // By the loop, and by the HTTP server.
        ("GET /topics/wind HTTP/1.1", "Accept: text/event-stream\r\n", 200),
        ("GET /topics/wind HTTP/1.1", "Accept: application/x-ndjson\r\n", 200),
        ("GET /topics/wind HTTP/1.1", "Accept: text/event-stream\r\nContent-Length: 0\r\n", 200),
        ("GET /problems/bad-host HTTP/1.1", "", 200),
        ("POST /topics/wind HTTP/1.1", "Content-Length: 0\r\n", 405),
        ("GET /clock HTTP/1.1", "Origin: http://evil.example\r\n", 403),
        ("GET /clock HTTP/1.0", "", 200),
        ("GET /ws HTTP/1.1", "", 426),
        ("CONNECT a:1 HTTP/1.1", "", 421),
    ] {
        let reply = ask(&fixture, &format!("{line}\r\nHost: localhost\r\n{fields}\r\n"));
        assert_eq!(reply.status, status, "{line} {fields}: {reply:?}");
        assert_protected(&reply, "same-origin", never, line);
    }
    assert_protected(
        &ask(&fixture, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        "same-origin",
        never,
        "421",
    );
    assert_protected(&ask(&fixture, "GET / HTTP/1.1\r\n\r\n"), "same-origin", never, "400");
    let frame = fixture.connect();
    let frame = {
        let mut stream = frame;
        send(&mut stream, "GET", "/topics/wind?frame=f", &FRAME);
        Reply::read_head(&mut BufReader::new(stream))
    };
    assert_protected(&frame, "same-origin", ("SAMEORIGIN", "'self'"), "frame");
}

#[test]
fn what_there_is_no_room_for_is_refused_in_a_protected_reply() {
    let fixture = Fixture::with_limits(|limits| limits.connections_max = 1);
    let _first = fixture.connect();
    // The first may be accepted later than this one.
    let reply = loop {
        let mut stream = fixture.connect();
        // It may be closed already.
        let _ = stream.write_all(b"GET /clock HTTP/1.1\r\nHost: localhost\r\n\r\n");
        match Reply::try_read_head(&mut BufReader::new(stream)) {
            Ok(reply) if reply.status == 503 => break reply,
            _ => {}
        }
    };
    assert_protected(&reply, "same-origin", ("DENY", "'none'"), "503");
}

#[test]
fn a_page_that_is_allowed_may_have_what_it_asks_for() {
    let allow = |options: &mut anemone_server::Options| {
        options.allowed_origins = vec!["https://app.example".parse().unwrap()];
    };
    let fixture = Fixture::with(allow, Retention::default());
    for accept in ["application/json", "application/x-ndjson"] {
        let request = format!(
            "GET /topics/wind HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example\r\nAccept: {accept}\r\n\r\n"
        );
        assert_protected(&ask(&fixture, &request), "cross-origin", ("DENY", "'none'"), accept);
    }
}

#[test]
fn a_frame_is_for_an_iframe_of_the_same_site() {
    let fixture = Fixture::start();
    let target = "/topics/wind?frame=localStorage.clear";
    let refused = |fields: &[(&str, &str)]| {
        let fields = [&[("Accept", "text/html")], fields].concat();
        fixture.get(target, &fields).problem(403, "frame-refused")
    };
    let (iframe, same) = (("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Site", "same-origin"));
    refused(&[]);
    refused(&[iframe]);
    refused(&[same]);
    for dest in ["document", "empty", "script", "frame", "embed", "object"] {
        refused(&[("Sec-Fetch-Dest", dest), same]);
    }
    for site in ["none", "cross-site"] {
        // A link in another's page, as its browser lets it through, and an iframe there.
        refused(&[iframe, ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate")]);
    }
    // A reader like any other where nothing is called.
    let fields = [&[("Accept", "text/html")], &HANDSHAKE[..]].concat();
    fixture.get(target, &fields).problem(400, "bad-parameter");
}

#[test]
fn a_body_that_is_encoded_is_415() {
    let fixture = Fixture::with(
        |options| {
            let publish = anemone_server::PublishRight::Anyone;
            let rule = anemone_server::TopicRule {
                publish,
                ..anemone_server::TopicRule::new("chat".parse().unwrap())
            };
            options.topics = anemone_server::TopicRules::new([rule]).unwrap();
        },
        Retention::default(),
    );
    let post = |target: &str, coding: &str| {
        let mut stream = fixture.connect();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Encoding: {coding}\r\n\r\n1"
        );
        stream.write_all(head.as_bytes()).unwrap();
        Reply::read(&mut BufReader::new(stream), "POST")
    };
    for target in ["/topics/chat", "/echo"] {
        for coding in ["gzip", "br", "identity, gzip", "nonsense"] {
            let reply = post(target, coding);
            reply.problem(415, "unsupported-encoding");
            assert_eq!(reply.field("accept-encoding"), Some("identity"), "{coding}");
        }
        assert!(matches!(post(target, "Identity").status, 200 | 201));
    }
    assert_eq!(
        fixture.get("/topics/chat?after=earliest", &[]).json()["events"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn a_transfer_coding_that_is_not_understood_is_501() {
    // RFC 9112 section 6.1; if chunked is not the last coding, section 6.3 requires 400.
    let fixture = Fixture::start();
    for (coding, status) in [
        ("gzip, chunked", 501),
        ("nonsense, chunked", 501),
        ("gzip", 400),
        ("chunked, gzip", 400),
        ("chunked", 200),
    ] {
        let head = format!(
            "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: {coding}\r\n\r\n1\r\na\r\n0\r\n\r\n"
        );
        let reply = ask(&fixture, &head);
        assert_eq!(reply.status, status, "{coding}");
        if status == 501 {
            assert_eq!(reply.field("connection"), Some("close"));
        }
    }
}
