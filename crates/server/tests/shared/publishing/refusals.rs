//! Refusals: the events that are not published, and the answers.

use std::io::{BufReader, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::time::Duration;

use anemone_server::{ListenAt, PublishRight, TopicRule, TopicRules};
use anemone_testing::{Fixture, Reply, send as request};

use super::{BINARY, FORM, JSON, LINES, Post, TEXT, rule, send, start, start_with};

#[test]
fn a_topic_that_takes_nothing_says_so_with_405() {
    let fixture = start();
    for topic in ["/topics/wind", "/topics/quiet"] {
        let reply = fixture.post(topic, &[], b"1");
        reply.problem(405, "method-not-allowed");
        assert_eq!(reply.field("allow"), Some("GET, HEAD"));
    }
    assert!(fixture.data("/topics/quiet").is_empty());
}

#[test]
fn other_methods_of_a_topic_that_takes_events_are_405() {
    let fixture = start();
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
        let reply = fixture.request(method, "/topics/chat", &[]);
        reply.problem(405, "method-not-allowed");
        assert_eq!(reply.field("allow"), Some("GET, HEAD, POST"));
        fixture.request(method, "/topics/none", &[]).problem(404, "unknown-topic");
        let reply = fixture.request(method, "/topics/scratch-none", &[]);
        match method {
            "DELETE" => reply.problem(404, "unknown-topic"),
            _ => reply.problem(405, "method-not-allowed"),
        };
    }
}

#[test]
fn a_topic_that_no_pattern_allows_is_404_and_one_that_none_can_be_400() {
    let fixture = start();
    for target in ["/topics/nothing", "/topics/scratch-", "/topics/scratch"] {
        fixture.post(target, &[], b"1").problem(404, "unknown-topic");
    }
    for target in ["/topics/a%20b", "/topics/", "/topics/scratch-%2F", "/topics/scratch-%"] {
        fixture.post(target, &[], b"1").problem(400, "bad-name");
    }
    let long = format!("/topics/scratch-{}", "x".repeat(121));
    fixture.post(&long, &[], b"1").problem(400, "bad-name");
    assert_eq!(fixture.post(&long[..long.len() - 1], &[], b"1").status, 201, "128 characters");
}

#[test]
fn one_topic_too_many_is_507() {
    let fixture = start();
    for name in ["a", "b", "c"] {
        assert_eq!(fixture.post(&format!("/topics/few-{name}"), &[], b"1").status, 201);
    }
    let detail = fixture.post("/topics/few-d", &[], b"1").problem(507, "too-many-topics");
    assert_eq!(detail, "there already are 3 topics few-*, the most that are allowed");
    assert!(!fixture.has("few-d"));
    assert_eq!(fixture.post("/topics/few-c", &[], b"2").status, 201, "one that is there");
    assert_eq!(fixture.post("/topics/scratch-a", &[], b"2").status, 201, "another pattern");
}

#[test]
fn a_type_that_cannot_be_published_is_415_and_told_which_can() {
    let fixture = start();
    for value in ["multipart/form-data; boundary=x", "text/html", "text/plain; charset=latin1"] {
        let reply = fixture.post("/topics/chat", &[("Content-Type", value)], b"1");
        let detail = reply.problem(415, "unsupported-type");
        let accepted =
            "application/json, application/x-ndjson, text/plain, application/octet-stream";
        assert_eq!(detail, format!("Content-Type is {value:?}; the accepted types are {accepted}"));
        assert_eq!(reply.field("accept-post"), Some(accepted));
    }
}

#[test]
fn what_is_not_json_is_told_line_and_column() {
    let fixture = start();
    let as_text = "; to publish text, use Content-Type: text/plain, or type=text when multiplexed";
    let as_bytes = "; to publish bytes, use Content-Type: application/octet-stream, or type=binary when multiplexed";
    for (fields, body, detail) in [
        (&[JSON][..], &b"{\"a\":\n  x}"[..], format!("line 2, column 3: expected value{as_text}")),
        (
            &[],
            b"{\"a\":",
            format!(
                "line 1, column 5: EOF while parsing a value: this looks like JSON but is not valid{as_text}"
            ),
        ),
        (
            &[FORM],
            b"{a:1}",
            format!(
                "line 1, column 2: key must be a string: this looks like JSON but is not valid{as_text}"
            ),
        ),
        (&[LINES], b"1\n\n[1,,2]", "line 3, column 4: expected value".to_owned()),
        (&[TEXT], b"ab\xff", format!("line 1, column 3: not UTF-8{as_bytes}")),
    ] {
        assert_eq!(fixture.post("/topics/chat", fields, body).problem(400, "bad-event"), detail);
    }
    fixture.post("/topics/chat", &[], &[b'['; 60_000]).problem(400, "bad-event");
    let deep = "[".repeat(30_000) + &"]".repeat(30_000);
    fixture.post("/topics/chat", &[], deep.as_bytes()).problem(400, "bad-event");
}

#[test]
fn an_empty_body_is_no_json_but_it_is_text_and_bytes() {
    let fixture = start();
    for fields in [&[][..], &[LINES]] {
        let detail = fixture.post("/topics/chat", fields, b"").problem(400, "bad-event");
        assert_eq!(detail, "the body is empty");
    }
    fixture.post("/topics/chat", &[LINES], b"\n \n").problem(400, "bad-event");
    // Not even a length.
    fixture.request("POST", "/topics/chat", &[]).problem(400, "bad-event");
    for fields in [TEXT, BINARY] {
        assert_eq!(fixture.post("/topics/chat", &[fields], b"").status, 201);
    }
    assert_eq!(fixture.request("POST", "/topics/chat", &[TEXT]).status, 201);
    let empty = serde_json::json!({ "base64": "" });
    assert_eq!(fixture.data("/topics/chat"), ["".into(), empty, "".into()]);
}

#[test]
fn an_event_may_be_as_large_as_allowed_and_no_larger() {
    let fixture = start();
    let text = |len: usize| "x".repeat(len).into_bytes();
    let string = |len: usize| format!("\"{}\"", "x".repeat(len - 2)).into_bytes();
    assert_eq!(fixture.post("/topics/chat", &[], &string(65_536)).status, 201);
    fixture.post("/topics/chat", &[], &string(65_537)).problem(413, "event-too-big");
    assert_eq!(fixture.post("/topics/chat", &[TEXT], &text(65_534)).status, 201);
    fixture.post("/topics/chat", &[TEXT], &text(65_535)).problem(413, "event-too-big");
    // 4 characters for 3 bytes, and 13 around them.
    assert_eq!(fixture.post("/topics/chat", &[BINARY], &text(49_140)).status, 201);
    fixture.post("/topics/chat", &[BINARY], &text(49_143)).problem(413, "event-too-big");

    let rules = [TopicRule { event_bytes_max: 5, ..rule("chat", PublishRight::Anyone) }];
    let fixture = start_with(|options| options.topics = TopicRules::new(rules).unwrap());
    assert_eq!(fixture.post("/topics/chat", &[], b"12345").status, 201);
    let detail = fixture.post("/topics/chat", &[], b"123456").problem(413, "event-too-big");
    assert_eq!(detail, "the event has 6 bytes as JSON, at most 5 are allowed");
}

#[test]
fn a_body_may_have_as_many_events_and_bytes_as_allowed_and_no_more() {
    let fixture = start();
    let events = |count: usize| "1\n".repeat(count).into_bytes();
    let reply = fixture.post("/topics/chat", &[LINES], &events(1000));
    assert_eq!((reply.status, reply.json()["count"].as_u64()), (201, Some(1000)));
    let detail = fixture.post("/topics/chat", &[LINES], &events(1001)).problem(413, "body-too-big");
    assert_eq!(detail, "the body has more than 1000 events");

    let padded = |len: usize| [b"1\n", &*vec![b' '; len - 2]].concat();
    assert_eq!(fixture.post("/topics/chat", &[LINES], &padded(1 << 20)).status, 201);
    // All of it is sent before the reply is read, and more than the sockets hold.
    for len in [(1 << 20) + 1, 8 << 20] {
        let detail =
            fixture.post("/topics/chat", &[LINES], &padded(len)).problem(413, "body-too-big");
        assert_eq!(detail, "the body is larger than 1048576 bytes");
    }
}

#[test]
fn a_client_that_asks_first_is_not_told_to_send_too_much() {
    let fixture = start();
    for (target, status, kind) in
        [("/topics/chat", 413, "body-too-big"), ("/topics/wind", 405, "method-not-allowed")]
    {
        let mut stream = BufReader::new(fixture.connect());
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048577\r\nExpect: 100-continue\r\n\r\n"
        );
        stream.get_mut().write_all(head.as_bytes()).unwrap();
        Reply::read(&mut stream, "POST").problem(status, kind);
    }
}

#[test]
fn a_body_that_takes_too_long_or_breaks_off_publishes_nothing() {
    let fixture = start_with(|options| options.limits.body_timeout = Duration::from_millis(50));
    let head = "POST /topics/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n1";
    let mut slow = BufReader::new(fixture.connect());
    slow.get_mut().write_all(head.as_bytes()).unwrap();
    let detail = Reply::read(&mut slow, "POST").problem(408, "body-timeout");
    assert_eq!(detail, "the body took longer than 50ms");
    let mut broken = fixture.connect();
    broken.write_all(head.as_bytes()).unwrap();
    broken.shutdown(std::net::Shutdown::Write).unwrap();
    let mut reply = Vec::new();
    let _ = std::io::Read::read_to_end(&mut broken, &mut reply);
    assert!(fixture.data("/topics/chat").is_empty());
}

#[test]
fn what_comes_through_a_proxy_is_not_of_this_machine() {
    let fixture = start();
    let fields = [("X-Forwarded-For", "192.0.2.7")];
    let detail = fixture.post("/topics/scratch-a", &fields, b"1").problem(403, "publish-refused");
    assert!(detail.contains("own machine"), "{detail}");
    assert!(!fixture.has("scratch-a"));
    assert_eq!(fixture.post("/topics/chat", &fields, b"1").status, 201, "anyone may");
}

#[test]
fn a_client_elsewhere_may_not_publish_where_only_loopback_may() {
    let fixture =
        start_with(|options| options.listen = vec![ListenAt::Address(([0, 0, 0, 0], 0).into())]);
    // The address that this machine has in a network, if it has one.
    let Some(address) = own_address() else { return };
    let post = |address: IpAddr, target| {
        let mut stream = TcpStream::connect((address, fixture.address.port())).unwrap();
        send(&mut stream, target, &[], b"1");
        Reply::read(&mut BufReader::new(stream), "POST")
    };
    post(address, "/topics/scratch-a").problem(403, "publish-refused");
    assert_eq!(post(address, "/topics/chat").status, 201);
    assert_eq!(post([127, 0, 0, 1].into(), "/topics/scratch-a").status, 201);
}

fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?; // sends nothing
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Checks that a request was refused for its origin: with a problem, or in a browser that opens a URL with the page about it.
pub(super) fn refused_origin(reply: &Reply) {
    if reply.field("content-type") == Some("text/html; charset=utf-8") {
        let is_told = reply.body.contains("<h1>Origin refused</h1>");
        assert!(reply.status == 403 && is_told, "{reply:?}");
    } else {
        reply.problem(403, "origin-refused");
    }
}

#[test]
fn pages_of_other_origins_publish_only_when_they_are_allowed() {
    let app = ("Origin", "https://app.example");
    let fixture = start_with(|options| options.allowed_origins = vec![app.1.parse().unwrap()]);
    let form = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")];
    for fields in [
        &[("Origin", "http://evil.example")][..],
        &[("Origin", "null"), form[0], form[1]],
        &[("Origin", "http://evil.example"), TEXT],
        &form,
        &[("Sec-Fetch-Site", "same-site")],
    ] {
        refused_origin(&fixture.post("/topics/chat", fields, b"1"));
    }
    let own = format!("http://{}", fixture.address);
    for origin in [&own, app.1] {
        for topic in ["/topics/chat", "/topics/scratch-a"] {
            assert_eq!(fixture.post(topic, &[("Origin", origin)], b"1").status, 201, "{origin}");
        }
    }
    let reply = fixture.post("/topics/chat", &[app], b"1");
    assert_eq!(reply.field("access-control-allow-origin"), Some(app.1));
    let exposed = reply.field("access-control-expose-headers").unwrap();
    for name in ["Idempotent-Replayed", "Retry-After"] {
        assert!(exposed.contains(name), "{exposed}");
    }
}

#[test]
fn a_form_in_a_page_of_another_origin_publishes_nothing_whatever_its_type() {
    let fixture = start();
    let boundary = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n";
    let of_form = |name| [("Sec-Fetch-Site", name), ("Sec-Fetch-Mode", "navigate")];
    for (field, body) in [
        // The three that a form can have (HTML, section 4.10.21.6), with what makes JSON of each.
        (FORM, "hello"),
        (FORM, "text=hello+world"),
        (FORM, "17"),
        (TEXT, "{\"a\":\"=\"}"),
        (("Content-Type", "multipart/form-data; boundary=x"), boundary),
    ] {
        for topic in ["/topics/chat", "/topics/scratch-a"] {
            for origin in [
                // Every browser sends the origin of a posted form; `null` if the page forbids it.
                vec![("Origin", "http://evil.example")],
                vec![("Origin", "http://localhost:3000")],
                vec![("Origin", "null")],
                [vec![("Origin", "null")], of_form("cross-site").to_vec()].concat(),
                // And even without it, the browser sends that the page is another site's.
                of_form("cross-site").to_vec(),
                of_form("same-site").to_vec(),
            ] {
                let fields = [&[field][..], &origin].concat();
                let reply = fixture.post(topic, &fields, body.as_bytes());
                refused_origin(&reply);
            }
        }
    }
    assert!(fixture.data("/topics/chat").is_empty());
    assert!(!fixture.get("/topics", &[]).body.contains("scratch-a"), "nor is a topic made");
    // One of the server's own pages is let in, and its fields stay as the browser has put them.
    let own = format!("http://{}", fixture.address);
    let fields = [FORM, ("Origin", &own), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(fixture.post("/topics/chat", &fields, b"text=hello+world&x=%C3%A9").status, 201);
    assert_eq!(fixture.data("/topics/chat"), ["text=hello+world&x=%C3%A9"]);
}

#[test]
fn a_page_whose_host_was_pointed_here_afterwards_is_not_of_this_machine() {
    let post = |fixture: &Fixture, topic: &str| {
        let mut stream = BufReader::new(fixture.connect());
        let request = format!(
            "POST {topic} HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\
             Content-Length: 1\r\n\r\n1"
        );
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        Reply::read(&mut stream, "POST")
    };
    let fixture = start();
    let detail = post(&fixture, "/topics/chat").problem(421, "misdirected");
    assert!(detail.contains("--allow-host evil.example"), "{detail}");
    // A name that is allowed may still belong to anyone.
    let allows =
        start_with(|options| options.allowed_hosts = vec!["evil.example".parse().unwrap()]);
    post(&allows, "/topics/scratch-a").problem(403, "publish-refused");
    assert_eq!(post(&allows, "/topics/chat").status, 201, "anyone may");
}

#[test]
fn a_preflight_names_what_can_be_done() {
    let app = ("Origin", "https://app.example");
    let fixture = start_with(|options| options.allowed_origins = vec![app.1.parse().unwrap()]);
    let preflight = |target, fields: &[(&str, &str)]| {
        let mut stream = fixture.connect();
        request(&mut stream, "OPTIONS", target, fields);
        Reply::read(&mut BufReader::new(stream), "OPTIONS")
    };
    for (target, methods, publishes) in [
        ("/topics/chat", "GET, HEAD, POST", true),
        ("/topics/scratch-new", "GET, HEAD, POST, DELETE", true),
        ("/topics/wind", "GET, HEAD", false),
        ("/topics/quiet", "GET, HEAD", false),
        ("/topics/nothing", "GET, HEAD", false),
        ("/topics", "GET, HEAD", false),
    ] {
        let reply = preflight(target, &[app]);
        assert_eq!(
            (reply.status, reply.field("access-control-allow-methods")),
            (204, Some(methods))
        );
        let fields = reply.field("access-control-allow-headers").unwrap();
        for name in ["Content-Type", "Idempotency-Key", "If-Match"] {
            assert_eq!(fields.contains(name), publishes, "{target}: {fields}");
        }
    }
    preflight("/topics/chat", &[("Origin", "http://evil.example")]).problem(403, "origin-refused");
}
