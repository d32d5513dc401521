//! Bad input: the errors that a client can make, and the answers.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::num::NonZero;
use std::time::{Duration, Instant};

use anemone_hub::{Hub, Retention};
use anemone_server::{BindError, Options, PublishRight, Server, TopicRule, TopicRules};
use anemone_testing::{Fixture, HANDSHAKE, PATIENCE, Reply, send, wait_until};
use anemone_ws::proto::Message;

#[test]
fn an_unknown_topic_or_path_is_404() {
    let fixture = Fixture::start();
    fixture.get("/topics/nothing", &[]).problem(404, "unknown-topic");
    for target in ["/nothing", "/topics2", "/problems/nothing", "/%20", "/../clock"] {
        fixture.get(target, &[]).problem(404, "unknown-path");
    }
}

#[test]
fn a_name_that_none_can_have_is_400_on_every_way() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    let long = format!("/topics/{}", "x".repeat(129));
    for target in [
        "/topics/",
        "/topics/a%20b",
        "/topics/../wind",
        "/topics/a/b",
        "/topics/-a",
        "/topics/%C3%A9",
        "/topics/wind%2F",
        "/topics/wind%00",
        "/topics/%2e%2e/clock",
        "/%2E/clock",
        "/topics/wind%",
        "/topics/wind%7",
        "/topics/%2574",
        "/..%2f..%2fetc/passwd",
        "/clock%00",
        &long,
    ] {
        for fields in [&[][..], &[("Accept", "text/event-stream")], &HANDSHAKE] {
            fixture.get(target, fields).problem(400, "bad-name");
        }
    }
    fixture.get("/topics/a%20b/readers", &[]).problem(400, "bad-name");
}

#[test]
fn a_path_is_the_same_however_it_is_escaped() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    for target in ["/topics/%77ind", "/%74opics/wind", "/topics/w%69n%64?after=earliest"] {
        assert_eq!(fixture.get(target, &[]).numbers(), [1]);
        let stream = fixture.get(target, &[("Accept", "application/x-ndjson")]);
        assert_eq!(stream.field("content-type"), Some("application/x-ndjson"), "{target}");
        assert_eq!(fixture.get(target, &HANDSHAKE).status, 101);
    }
    assert_eq!(fixture.get("/topics/%77ind/readers", &[]).status, 200);
    assert_eq!(fixture.get("/cloc%6B", &[]).status, 200);
}

#[test]
fn only_a_get_asks_for_a_web_socket_and_other_methods_of_a_topic_go_on_without() {
    let fixture = Fixture::with(
        |options| {
            let name = "scratch-*".parse().unwrap();
            let rule = TopicRule { publish: PublishRight::Anyone, ..TopicRule::new(name) };
            options.topics = TopicRules::new([rule]).unwrap();
        },
        Retention::default(),
    );
    let fields: Vec<_> = HANDSHAKE.into_iter().chain([("Content-Length", "0")]).collect();
    let post = fixture.request("POST", "/topics/scratch-a", &fields);
    post.problem(400, "bad-event");
    let text: Vec<_> = fields.iter().copied().chain([("Content-Type", "text/plain")]).collect();
    assert_eq!(fixture.request("POST", "/topics/scratch-a", &text).status, 201);
    assert_eq!(fixture.request("HEAD", "/topics/scratch-a", &HANDSHAKE).status, 200);
    let put = fixture.request("PUT", "/topics/scratch-a", &HANDSHAKE);
    put.problem(405, "method-not-allowed");
    assert_eq!(put.field("allow"), Some("GET, HEAD, POST, DELETE"));
    assert_eq!(fixture.request("DELETE", "/topics/scratch-a", &HANDSHAKE).status, 204);
    fixture.request("POST", "/topics/wind", &fields).problem(405, "method-not-allowed");
    assert_eq!(fixture.get("/topics/wind", &HANDSHAKE).status, 101);
}

#[test]
fn a_wrong_position_is_told_what_a_position_is() {
    let fixture = Fixture::start();
    for after in ["nonsense", "ya", "ya-", "-0", "ya-01", "ya--1", "ya-99999999999999999999"] {
        let detail =
            fixture.get(&format!("/topics/wind?after={after}"), &[]).problem(400, "bad-parameter");
        assert!(detail.contains("EPOCH-OFFSET"), "{detail}");
    }
    let fields = [("Accept", "text/event-stream"), ("Last-Event-ID", "nonsense")];
    fixture.get("/topics/wind", &fields).problem(400, "bad-parameter");
}

#[test]
fn a_position_ahead_of_the_topic_is_refused_on_every_transport() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    let target = "/topics/wind?after=ya-2";
    let detail = fixture.get(target, &[]).problem(400, "position-ahead");
    assert!(detail.contains("ya-2") && detail.contains("ya-1"), "{detail}");
    fixture.get(target, &[("Prefer", "wait=1")]).problem(400, "position-ahead");
    fixture.get(target, &[("Accept", "text/event-stream")]).problem(400, "position-ahead");
    fixture.get(target, &HANDSHAKE).problem(400, "position-ahead");
}

#[test]
fn a_wrong_wait_is_told_what_it_may_be() {
    let fixture = Fixture::start();
    let detail = fixture.get("/topics/wind?wait=-1", &[]).problem(400, "bad-parameter");
    assert!(detail.contains("negative"), "{detail}");
    for fields in [[("Prefer", "wait=121")], [("Prefer", "wait=99999999999999999999999999")]] {
        let detail = fixture.get("/topics/wind", &fields).problem(400, "bad-parameter");
        assert!(detail.contains("at most 120 s"), "{detail}");
    }
}

#[test]
fn methods_that_change_nothing_here_are_405() {
    let fixture = Fixture::start();
    for target in ["/topics/wind", "/topics", "/clock", "/problems/internal"] {
        let reply = fixture.request("DELETE", target, &[]);
        reply.problem(405, "method-not-allowed");
        assert_eq!(reply.field("allow"), Some("GET, HEAD"));
    }
    assert_eq!(fixture.request("HEAD", "/topics/wind", &[]).status, 200);
}

#[test]
fn a_form_that_is_not_there_is_406() {
    let fixture = Fixture::start();
    fixture.get("/topics/wind", &[("Accept", "image/png")]).problem(406, "not-acceptable");
}

#[test]
fn malformed_handshakes_are_refused_in_the_terms_of_rfc_6455() {
    let fixture = Fixture::start();
    let with = |name: &str, value: &'static str| {
        HANDSHAKE.map(|(n, v)| (n, if n == name { value } else { v }))
    };
    let version = fixture.get("/topics/wind", &with("Sec-WebSocket-Version", "8"));
    version.problem(426, "bad-handshake");
    assert_eq!(version.field("sec-websocket-version"), Some("13"));
    for key in ["", "short", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZTEyMzQ="] {
        let detail = fixture
            .get("/topics/wind", &with("Sec-WebSocket-Key", key))
            .problem(400, "bad-handshake");
        assert!(detail.contains("Sec-WebSocket-Key"), "{detail}");
    }
    fixture.get("/topics/wind", &with("Connection", "close")).problem(400, "bad-handshake");
    let protocols = [&HANDSHAKE[..], &[("Sec-WebSocket-Protocol", "a b")]].concat();
    fixture.get("/topics/wind", &protocols).problem(400, "bad-handshake");
    fixture.get("/topics/nothing", &HANDSHAKE).problem(404, "unknown-topic");
}

/// The status of the answer to a request that is sent whole, or in two pieces of which the server has read
/// the first before the second is sent. A connection that ends without an answer has the status 0.
fn status(fixture: &Fixture, request: &str, cut: Option<usize>) -> (u16, String) {
    let mut stream = fixture.connect();
    let (first, second) = request.split_at(cut.unwrap_or(request.len()));
    stream.write_all(first.as_bytes()).unwrap();
    if !second.is_empty() {
        // It has one thread, which reads in the order of arrival.
        assert_eq!(fixture.get("/clock", &[]).status, 200);
        stream.write_all(second.as_bytes()).unwrap();
    }
    let mut reader = BufReader::new(stream);
    if reader.fill_buf().is_ok_and(<[u8]>::is_empty) {
        return (0, String::new());
    }
    let reply = Reply::read(&mut reader, "GET");
    (reply.status, reply.body)
}

#[test]
fn a_request_is_answered_the_same_whether_it_comes_whole_or_cut() {
    // RFC 9112 sections 3.2 and 6.3
    let fixture = Fixture::with(|options| options.threads = NonZero::new(1), Retention::default());
    let handshake: String =
        HANDSHAKE.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let stream = "Accept: text/event-stream\r\n";
    for (fields, upgraded, read) in [
        ("Host: localhost\r\n", 101, 200),
        ("Host:\r\n", 101, 200),
        ("Host: [::1]:80\r\n", 101, 200),
        ("", 400, 400),
        ("Host: localhost\r\nHost: localhost\r\n", 400, 400),
        ("Host: a b\r\n", 400, 400),
        ("Host: me@a\r\n", 400, 400),
        ("Host: localhost\r\nContent-Length: 0\r\n", 101, 200),
        ("Host: localhost\r\nContent-Length: 3\r\n", 400, 200),
        ("Host: localhost\r\nContent-Length: x\r\n", 400, 400),
        ("Host: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n", 400, 400),
        ("Host: localhost\r\nTransfer-Encoding: chunked\r\n", 400, 200),
        ("Host: localhost\r\nTransfer-Encoding: gzip\r\n", 400, 400),
        ("Host: localhost\r\nContent-Length: 3\r\nExpect: 100-continue\r\n", 400, 200),
    ] {
        for (more, expected) in [(handshake.as_str(), upgraded), (stream, read), ("", read)] {
            let head = format!("GET /topics/wind HTTP/1.1\r\n{fields}{more}");
            let request = format!("{head}\r\n0\r\n\r\n");
            let whole = status(&fixture, &request, None);
            assert_eq!(whole.0, expected, "{request:?}: {}", whole.1);
            for cut in [1, head.len()] {
                assert_eq!(status(&fixture, &request, Some(cut)).0, expected, "{request:?}");
            }
        }
    }
}

#[test]
fn a_handshake_may_have_100_fields_and_no_more() {
    // The first 64 have a shorter way.
    let fixture = Fixture::start();
    let status = |count: usize| {
        let names: Vec<String> = (5..count).map(|number| format!("X-{number}")).collect(); // and Host
        let more: Vec<_> = names.iter().map(|name| (&**name, "x")).collect();
        let mut stream = fixture.connect();
        send(&mut stream, "GET", "/topics/wind", &[&HANDSHAKE[..], &more].concat());
        Reply::read_head(&mut BufReader::new(stream)).status
    };
    assert_eq!([64, 65, 100, 101].map(status), [101, 101, 101, 431]);
}

#[test]
fn a_handshake_with_a_body_is_told_so() {
    let fixture = Fixture::start();
    let fields = [&HANDSHAKE[..], &[("Content-Length", "3")]].concat();
    let detail = fixture.get("/topics/wind", &fields).problem(400, "bad-handshake");
    assert!(detail.contains("Content-Length"), "{detail}");
}

#[test]
fn bytes_that_are_not_http_are_refused() {
    let fixture = Fixture::start();
    for bytes in
        [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"nonsense\r\n\r\n", b"GET\r\n\r\n"]
    {
        let mut stream = fixture.connect();
        stream.write_all(bytes).unwrap();
        let mut reply = String::new();
        // A reset is a refusal, too.
        if stream.read_to_string(&mut reply).is_ok() {
            assert!(reply.starts_with("HTTP/1.1 400 "), "{reply:?}");
        }
    }
}

#[test]
fn oversized_headers_are_431() {
    let fixture = Fixture::start();
    let long = "x".repeat(20_000);
    assert_eq!(fixture.get("/topics/wind", &[("X-Long", &long)]).status, 431);
    let many: Vec<(String, &str)> = (0..101).map(|i| (format!("X-{i}"), "x")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&**name, *value)).collect();
    assert_eq!(fixture.get("/topics/wind", &many).status, 431);
}

#[test]
fn a_client_that_never_finishes_its_request_is_cut_off_and_not_before_its_time() {
    let timeout = Duration::from_millis(50);
    let fixture = Fixture::with_limits(|limits| limits.header_timeout = timeout);
    for bytes in [&b""[..], b"GET /topics/wind HTTP/1.1\r\nHost: localhost\r\n"] {
        let begun = Instant::now();
        let mut stream = fixture.connect();
        stream.write_all(bytes).unwrap();
        // A reset is an end, too: what is sent late finds nobody.
        let _ = stream.read_to_end(&mut Vec::new());
        // The server counts whole milliseconds.
        let took = begun.elapsed();
        assert!(took + Duration::from_millis(1) >= timeout, "{bytes:?} {took:?}");
        assert!(took < PATIENCE, "{bytes:?}: it is still there");
    }
}

#[test]
fn a_reply_may_take_longer_than_the_head_of_a_request_and_so_may_not_the_next_request() {
    // Long enough that no machine is late to ask.
    let timeout = Duration::from_millis(1500);
    let fixture = Fixture::with_limits(|limits| limits.header_timeout = timeout);
    let begun = Instant::now();
    let mut stream = fixture.connect();
    let request = "GET /topics/wind?wait=2 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    // The server counts whole milliseconds.
    let least = Duration::from_secs(2) + timeout - Duration::from_millis(2);
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
}

#[test]
fn hostile_frames_fail_with_their_close_codes() {
    let fixture = Fixture::start();
    let cases: [(&[u8], u16); 5] = [
        (&[0x81, 0x01, b'x'], 1002),                               // not masked
        (&[0x83, 0x80, 0, 0, 0, 0], 1002),                         // reserved opcode
        (&[0xc1, 0x80, 0, 0, 0, 0], 1002),                         // reserved bit
        (&[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007),                   // not UTF-8
        (&[0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], 1009), // 65,537 bytes
    ];
    for (bytes, code) in cases {
        let mut socket = fixture.websocket("/topics/wind", &[], &[]);
        socket.stream.write_all(bytes).unwrap();
        let end = socket.next();
        assert!(end.starts_with(&format!("close {code} ")), "{bytes:x?}: {end}");
        assert_eq!(socket.next(), "end of stream");
    }
}

#[test]
fn a_message_to_a_topic_that_takes_none_is_refused_with_1008() {
    let fixture = Fixture::start();
    let mut socket = fixture.websocket("/topics/wind", &[], &[]);
    socket.send(Message::Text("hello"));
    assert_eq!(socket.next(), "close 1008 this topic accepts no messages");
}

#[test]
fn pages_of_other_origins_are_refused_on_every_transport() {
    let fixture = Fixture::with(
        |options| options.allowed_origins = vec!["https://app.example".parse().unwrap()],
        Retention::default(),
    );
    let own = format!("http://{}", fixture.address);
    for origin in ["http://evil.example", "http://localhost", "null"] {
        for extra in
            [&[][..], &[("Accept", "text/event-stream")], &[("Prefer", "wait=1")], &HANDSHAKE[..]]
        {
            let fields = [&[("Origin", origin)], extra].concat();
            let detail = fixture.get("/topics/wind", &fields).problem(403, "origin-refused");
            assert!(detail.contains(origin), "{detail}");
        }
    }
    assert_eq!(fixture.get("/topics/wind", &[("Origin", &own)]).status, 200);
    fixture.publish(1..=1);
    let mut socket = fixture.websocket("/topics/wind?after=earliest", &[], &[("Origin", &own)]);
    assert_eq!(socket.next(), r#"{"n":1}"#);
    let allowed = fixture.get("/topics/wind", &[("Origin", "https://app.example")]);
    assert_eq!(allowed.field("access-control-allow-origin"), Some("https://app.example"));
    let mut socket =
        fixture.websocket("/topics/wind?after=earliest", &[], &[("Origin", "https://app.example")]);
    assert_eq!(socket.next(), r#"{"n":1}"#);
    let preflight =
        fixture.request("OPTIONS", "/topics/wind", &[("Origin", "https://app.example")]);
    assert_eq!(preflight.status, 204);
}

#[test]
fn one_connection_too_many_is_told_so() {
    let fixture = Fixture::with_limits(|limits| limits.connections_max = 2);
    let mut held: Vec<_> = (0..2).map(|_| BufReader::new(fixture.connect())).collect();
    for reader in &mut held {
        send(reader.get_mut(), "GET", "/topics/wind", &[]);
        assert_eq!(Reply::read(reader, "GET").status, 200);
    }
    let mut refused = BufReader::new(fixture.connect());
    Reply::read(&mut refused, "GET").problem(503, "too-many-connections");
}

#[test]
fn one_connection_too_many_at_the_bare_echo_is_closed_without_a_word() {
    let fixture = Fixture::with(
        |options| {
            options.tcp_echo = Some("127.0.0.1:0".parse().unwrap());
            options.limits.connections_max = 1;
        },
        Retention::default(),
    );
    let connect = || {
        let stream = TcpStream::connect(fixture.tcp_echo()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let mut held = connect();
    held.write_all(b"x").unwrap();
    held.read_exact(&mut [0]).unwrap();
    let mut said = Vec::new();
    connect().read_to_end(&mut said).unwrap();
    assert_eq!(String::from_utf8_lossy(&said), "");
}

#[test]
fn an_address_that_is_taken_is_refused_though_ports_are_shared_among_threads() {
    let fixture = Fixture::start();
    let hub = Hub::new(anemone_hub::Epoch::from_bits(1));
    let error = Server::bind(Options::new(fixture.address), hub).unwrap_err();
    assert!(matches!(error, BindError::AddressInUse { .. }), "{error}");
}

#[test]
fn a_limit_that_no_server_can_keep_to_is_refused_before_it_listens() {
    let mut options = Options::new("127.0.0.1:0".parse().unwrap());
    options.limits.header_bytes_max = 8191;
    let error = Server::bind(options, Hub::new(anemone_hub::Epoch::from_bits(1))).unwrap_err();
    assert!(matches!(error, BindError::Limit(_)), "{error}");
    assert!(error.to_string().contains("header_bytes_max"), "{error}");
}

#[test]
fn a_reader_that_stops_reading_holds_nobody_up_and_is_let_go() {
    let fixture = Fixture::with_limits(|limits| {
        limits.write_timeout = Duration::from_millis(200);
        limits.connections_max = 2;
    });
    let mut stuck = fixture.connect();
    send(&mut stuck, "GET", "/topics/wind?after=earliest", &[("Accept", "text/event-stream")]);
    let mut reader = fixture.websocket("/topics/wind?after=earliest", &[], &[]);
    let large = "x".repeat(100_000);
    for _ in 0..120 {
        let data = anemone_hub::Data::json(&large).unwrap();
        fixture.wind.publish(std::time::SystemTime::now().into(), data).unwrap();
        assert_eq!(reader.next().len(), large.len() + 2);
    }
    // 12 MB are more than the sockets hold. Once the server gives up, its place is free again.
    wait_until("the stuck connection is still held", || fixture.get("/topics", &[]).status != 503);
    drop(stuck);
}
