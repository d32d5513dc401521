//! The access log: a line for each request over any transport, with its bytes and its position.
#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod many;
mod refusals;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Retention;
use anemone_hub::run::{RunWork, StartRun};
use anemone_server::{AccessLog, Options, PublishRight, SlowReader, TopicRule, TopicRules};
use anemone_testing::logged;
use anemone_testing::multiplexed::{BOTH, Client};
use anemone_testing::{EventStream, Fixture, Reply, Socket, request, send, wait_until};
use anemone_ws::proto::{CloseCode, CloseFrame, Config, Message};
use socket2::SockRef;

/// A server that logs all requests, with a topic that everybody may publish to, and three events in `wind`.
fn start(which: AccessLog, change: impl FnOnce(&mut Options)) -> Fixture {
    logged::keep();
    let fixture = Fixture::with(
        |options| {
            options.access_log = which;
            let chat = TopicRule {
                publish: PublishRight::Anyone,
                event_bytes_max: 100,
                ..TopicRule::new("chat".parse().unwrap())
            };
            options.topics = TopicRules::new([chat]).unwrap();
            change(options);
        },
        Retention::default(),
    );
    assert_eq!(fixture.publish(1..=3), "ya-3");
    fixture
}

fn all() -> Fixture {
    start(AccessLog::All, |_| {})
}

/// Returns the reply to a request on a connection of its own, and the client's address.
fn ask(
    fixture: &Fixture,
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
) -> (Reply, SocketAddr) {
    let mut stream = fixture.connect();
    let client = stream.local_addr().unwrap();
    send(&mut stream, method, target, fields);
    (Reply::read(&mut BufReader::new(stream), method), client)
}

/// Returns the logged line of a request that is answered at once.
fn line_of(fixture: &Fixture, method: &str, target: &str, fields: &[(&str, &str)]) -> String {
    let mut stream = fixture.connect();
    let client = stream.local_addr().unwrap();
    send(&mut stream, method, target, fields);
    let reply = Reply::read(&mut BufReader::new(stream), method);
    let line = logged::requests(client, 1).remove(0);
    let bytes = if method == "HEAD" { 0 } else { reply.body.len() };
    let said = format!(" bytes={bytes}");
    assert!(line.contains(&said), "{line}: the body has {bytes} bytes");
    line.replace(&said, "")
}

#[test]
fn requests_that_are_answered_at_once_have_a_line_each() {
    let fixture = all();
    let tag = ask(&fixture, "GET", "/topics/wind?after=ya-1", &[]).0;
    let tag = tag.field("etag").unwrap();
    for (method, target, fields, expected) in [
        ("GET", "/topics/wind?after=ya-1", &[][..], "GET /topics/wind 200 poll position=ya-3"),
        ("GET", "/topics/wind?after=ya-1&limit=1", &[], "GET /topics/wind 200 poll position=ya-2"),
        (
            "GET",
            "/topics/wind?after=ya-1",
            &[("If-None-Match", tag)],
            "GET /topics/wind 304 poll position=ya-3",
        ),
        ("HEAD", "/topics/wind", &[], "HEAD /topics/wind 200 poll position=ya-3"),
        (
            "GET",
            "/topics/wind?after=ya-2&wait=30",
            &[],
            "GET /topics/wind 200 long-poll position=ya-3",
        ),
        (
            "GET",
            "/topics/wind?after=ya-3&wait=0",
            &[],
            "GET /topics/wind 200 long-poll position=ya-3",
        ),
        ("GET", "/clock", &[], "GET /clock 200 http"),
        ("GET", "/nowhere?key=secret", &[], "GET /nowhere 404 http"),
        ("GET", "/topics/none", &[], "GET /topics/none 404 http"),
        ("GET", "/topics/wind?after=nonsense", &[], "GET /topics/wind 400 http"),
        ("GET", "/topics/wind", &[("Host", "second")], "GET /topics/wind 400 http"),
        ("GET", "/topics/%77ind", &[], "GET /topics/%77ind 200 poll position=ya-3"),
        (
            "GET",
            "/topics/wind",
            &[("Accept", "text/event-stream"), ("Origin", "http://evil.example")],
            "GET /topics/wind 403 http",
        ),
    ] {
        assert_eq!(line_of(&fixture, method, target, fields), expected);
    }
}

#[test]
fn a_line_has_only_the_beginning_of_the_key_of_a_run() {
    let fixture = all();
    let work = RunWork::new(|_| Ok(None));
    let run = fixture.runs.start(StartRun::new("/work", work)).unwrap().run;
    wait_until("the end of the run", || run.has_ended());
    let (key, short) = (run.key(), run.key().short());
    for (method, target, expected) in [
        ("GET", format!("/runs/{key}?state"), format!("GET /runs/{short}… 200 http")),
        ("DELETE", format!("/runs/{key}"), format!("DELETE /runs/{short}… 409 http")),
        ("GET", format!("/run%73/{key}?state"), format!("GET /runs/{short}… 200 http")),
        ("GET", format!("/runs/{key}0"), format!("GET /runs/{short}… 404 http")),
    ] {
        assert_eq!(line_of(&fixture, method, &target, &[]), expected);
    }
    let line = line_of(&fixture, "GET", &format!("/runs/{key}"), &[]);
    assert!(line.starts_with(&format!("GET /runs/{short}… 200 poll position=")), "{line}");
}

#[test]
fn a_post_has_the_position_of_its_last_event() {
    let fixture = all();
    for (kind, body, expected) in [
        ("application/json", "1", "POST /topics/chat 201 http bytes=45 position=ya-1"),
        ("application/x-ndjson", "1\n2\n", "POST /topics/chat 201 http bytes=45 position=ya-3"),
        ("application/json", "{", "POST /topics/chat 400 http"),
    ] {
        let len = body.len().to_string();
        let mut stream = fixture.connect();
        let client = stream.local_addr().unwrap();
        send(
            &mut stream,
            "POST",
            "/topics/chat",
            &[("Content-Type", kind), ("Content-Length", &len)],
        );
        stream.write_all(body.as_bytes()).unwrap();
        let reply = Reply::read(&mut BufReader::new(stream), "POST");
        let line = logged::requests(client, 1).remove(0);
        assert!(line.starts_with(expected), "{line}: {reply:?}");
    }
}

/// The two ways that a stream goes: by the thread's loop, and by the HTTP server, which sees to requests with a body.
const WAYS: [&[(&str, &str)]; 2] = [&[], &[("Content-Length", "0")]];

#[test]
fn a_stream_has_a_line_at_its_end_with_all_that_it_had() {
    for (accept, transport) in [
        ("text/event-stream", "sse"),
        ("application/x-ndjson", "ndjson"),
        ("text/html", "forever-frame"),
    ] {
        for way in WAYS {
            let fixture = all();
            let mut stream = fixture.connect();
            let client = stream.local_addr().unwrap();
            let frame = [("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Site", "same-origin")];
            let fields = [&[("Accept", accept)], way, &frame].concat();
            let name = if transport == "forever-frame" { "&frame=f" } else { "" };
            let target = format!("/topics/wind?after=ya-1{name}");
            send(&mut stream, "GET", &target, &fields);
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            assert_eq!(Reply::read_head(&mut reader).status, 200);
            let mut bytes = 0;
            while let Some(chunk) = chunk(&mut reader) {
                bytes += chunk.len();
                if chunk.contains("\"n\":3") {
                    fixture.publish(4..=4);
                }
                if chunk.contains("\"n\":4") {
                    // It gets the present events, and then the stream ends.
                    stream.shutdown(Shutdown::Write).unwrap();
                }
            }
            assert_eq!(
                logged::requests(client, 1),
                [format!(
                    "GET /topics/wind 200 {transport} bytes={bytes} position=ya-4 end=client gone"
                )],
            );
        }
    }
}

/// The next chunk of a reply; `None` after the last.
fn chunk(reader: &mut impl BufRead) -> Option<String> {
    let mut size = String::new();
    reader.read_line(&mut size).unwrap();
    let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
    let mut chunk = vec![0; size + 2];
    reader.read_exact(&mut chunk).unwrap();
    chunk.truncate(size);
    (size > 0).then(|| String::from_utf8(chunk).unwrap())
}

#[test]
fn the_line_of_a_stream_says_why_it_ended() {
    for way in WAYS {
        let mut fixture = all();
        let open = |fixture: &Fixture, target: &str| {
            let stream = fixture.connect();
            let client = stream.local_addr().unwrap();
            let fields = [&[("Accept", "text/event-stream")], way].concat();
            let request = request(fixture.address, "GET", target, &fields);
            let mut stream = EventStream::over(stream, &request).unwrap();
            stream.block().unwrap();
            (stream, client)
        };
        let (stream, client) = open(&fixture, "/topics/wind");
        drop(stream);
        // The client received only the beginning.
        let begin = "retry: 1000\nid: ya-3\n\n".len();
        let line = |end| format!("GET /topics/wind 200 sse bytes={begin} position=ya-3 end={end}");
        assert_eq!(logged::requests(client, 1), [line("client gone")]);
        let (stream, client) = open(&fixture, "/topics/wind");
        SockRef::from(stream.get_ref()).set_linger(Some(Duration::ZERO)).unwrap();
        drop(stream);
        assert_eq!(logged::requests(client, 1), [line("client gone")]);
        let (_stream, client) = open(&fixture, "/topics/wind");
        fixture.stop();
        assert_eq!(logged::requests(client, 1), [line("server stopped")]);
    }
}

fn closed(socket: &mut Socket, code: CloseCode) -> String {
    socket.connection.sender().close(Some(&CloseFrame::new(code, "bye"))).unwrap();
    socket.flush();
    socket.next()
}

#[test]
fn a_websocket_has_a_line_at_its_end_that_says_how_it_ended() {
    let mut fixture = all();
    let client = |socket: &Socket| socket.stream.local_addr().unwrap();
    let mut socket = fixture.websocket("/topics/wind?after=ya-1", &[], &[]);
    assert_eq!((socket.next(), socket.next()), ("{\"n\":2}".into(), "{\"n\":3}".into()));
    closed(&mut socket, CloseCode::GOING_AWAY);
    // Two frames of 7 bytes, and their headers of 2.
    let line = "GET /topics/wind 101 websocket bytes=18 position=ya-3 end=closed 1001";
    assert_eq!(logged::requests(client(&socket), 1), [line]);

    let mut socket = fixture.websocket("/topics/wind", &["anemone.events"], &[]);
    let begin = socket.next();
    let address = client(&socket);
    drop(socket);
    let line = format!(
        "GET /topics/wind 101 websocket bytes={} position=ya-3 end=client gone",
        begin.len() + 2
    );
    assert_eq!(logged::requests(address, 1), [line]);

    let mut socket = fixture.websocket("/topics/chat", &[], &[]);
    socket.send(Message::Text(&"x".repeat(101)));
    assert!(socket.next().starts_with("close 1009"));
    let line = "GET /topics/chat 101 websocket bytes=0 position=ya-0 end=server closed 1009: the event has 103 bytes as \
                JSON, at most 100 are allowed";
    assert_eq!(logged::requests(client(&socket), 1), [line]);

    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.send(Message::Text("hello"));
    assert_eq!(socket.next(), "hello");
    closed(&mut socket, CloseCode::NORMAL);
    let line = "GET /echo 101 websocket bytes=7 end=closed 1000";
    assert_eq!(logged::requests(client(&socket), 1), [line]);

    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.connection.sender().close(None).unwrap();
    socket.flush();
    socket.stream.read_to_end(&mut Vec::new()).unwrap();
    let line = "GET /echo 101 websocket bytes=0 end=closed";
    assert_eq!(logged::requests(client(&socket), 1), [line]);

    let mut socket = fixture.websocket("/topics/wind", &[], &[]);
    let address = client(&socket);
    fixture.stop_while(move || {
        assert!(socket.next().starts_with("close 1001"));
        socket.flush();
    });
    let line = "GET /topics/wind 101 websocket bytes=0 position=ya-3 end=closed 1001";
    assert_eq!(logged::requests(address, 1), [line]);
}

/// The answer to a message, whole.
fn told(client: &mut Client, message: &str) -> String {
    client.send(message);
    client.message().unwrap()
}

#[test]
fn each_multiplexed_request_has_a_line() {
    let fixture = all();
    let [socket, stream] = BOTH.map(|carrier| Client::open(carrier, &fixture));
    for (mut client, transport) in [(socket, "multiplexed"), (stream, "tcp")] {
        let address = client.address();
        let clock = told(&mut client, "GET a /clock").len();
        let published = told(&mut client, "POST b /topics/chat\n1");
        let position = published.split(' ').nth(2).unwrap().split('\n').next().unwrap().to_owned();
        let unknown = told(&mut client, "GET c /nowhere").len();
        let refused = told(&mut client, "POST c /topics/wind\n1").len();
        let mut read = told(&mut client, "GET d /topics/wind?after=ya-2").len();
        read += client.message().unwrap().len() + told(&mut client, "CANCEL d").len();
        told(&mut client, "GET e /topics/wind");
        let mut expected = vec![
            format!("GET /clock 200 {transport} bytes={clock}"),
            format!(
                "POST /topics/chat 201 {transport} bytes={} position={position}",
                published.len()
            ),
            format!("GET /nowhere 404 {transport} bytes={unknown}"),
            format!("POST /topics/wind 405 {transport} bytes={refused}"),
            format!("GET /topics/wind 204 {transport} bytes={read} position=ya-3 end=cancelled"),
        ];
        if let Client::WebSocket(mut socket) = client {
            closed(&mut socket, CloseCode::NORMAL);
            let sent = [clock, published.len(), unknown, refused, read, 10];
            // Messages of more than 125 bytes have a header of 4 bytes, the others of 2.
            let headers = 2 * 8 + 2 * sent[2..4].iter().filter(|&&len| len > 125).count();
            let sent = sent.iter().sum::<usize>() + headers;
            expected.push(format!("GET /ws 101 websocket bytes={sent} end=closed 1000"));
            let left =
                "GET /topics/wind 206 multiplexed bytes=10 position=ya-3 end=connection closed";
            expected.push(left.to_owned());
        } else {
            drop(client);
            let left = "GET /topics/wind 204 tcp bytes=15 position=ya-3 end=client gone";
            expected.push(left.to_owned());
        }
        let mut lines = logged::requests(address, expected.len());
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_multiplexed_request_that_is_refused_before_it_begins_has_a_line_too() {
    let fixture = start(AccessLog::All, |options| options.limits.multiplexed_requests_max = 1);
    let [socket, stream] = BOTH.map(|carrier| Client::open(carrier, &fixture));
    for (mut client, transport) in [(socket, "multiplexed"), (stream, "tcp")] {
        let address = client.address();
        assert!(told(&mut client, "GET a /topics/wind").starts_with("100 a"));
        let many = told(&mut client, "GET b /clock?key=secret");
        let taken = told(&mut client, "POST a /topics/chat\n1");
        let malformed = told(&mut client, "get c /clock");
        let mut expected = [
            format!("GET /clock 429 {transport} bytes={}", many.len()),
            format!("POST /topics/chat 400 {transport} bytes={}", taken.len()),
            format!(
                "- - 400 {transport} bytes={} end=malformed request: a method must be 1 to 16 of A-Z",
                malformed.len()
            ),
        ];
        expected.sort();
        let mut lines = logged::requests(address, expected.len());
        lines.sort();
        assert_eq!(lines, expected);
        // A cause is logged once a minute, so the other is not.
        if transport == "multiplexed" {
            assert_eq!(
                logged::refusal("a message to /ws", "429"),
                "429 too-many-requests: the connection already has 1 open requests, the most that are allowed; \
                 limits.multiplexed_requests_max, limits.multiplexed_waiting_bytes_max and, for a resource, \
                 finds_waiting_per_client_max set the limits"
            );
        }
    }
}

/// Returns the logged lines of some requests below this path on one connection, after the server has stopped.
fn sampled<'a>(path: &str, targets: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut fixture = start(AccessLog::Sampled, |_| {});
    let mut writer = fixture.connect();
    let client = writer.local_addr().unwrap();
    let mut reader = BufReader::new(writer.try_clone().unwrap());
    for target in targets {
        send(&mut writer, "GET", target, &[]);
        Reply::read(&mut reader, "GET");
    }
    drop((writer, reader));
    fixture.stop();
    let mut lines = logged::requests(client, 1);
    // A client of another test's server may have had the same port.
    lines.retain(|line| line.starts_with(&format!("GET {path}")));
    lines
}

#[test]
fn what_is_below_a_topic_is_no_poll() {
    let lines = sampled("/topics/wind/readers", ["/topics/wind/readers"; 5].into_iter());
    assert!(lines.len() == 5 && lines.iter().all(|line| !line.contains("repeats")), "{lines:?}");
}

#[test]
fn refusals_are_counted_whatever_was_asked_for() {
    let targets: Vec<_> = (0..100).map(|number| format!("/nowhere/{number}")).collect();
    let lines = sampled("/nowhere/", targets.iter().map(|target| &**target));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("GET /nowhere/0 404 http bytes="), "{lines:?}");
    assert!(lines[1].starts_with("GET /nowhere/99 404 http bytes="), "{lines:?}");
    assert!(lines[1].ends_with(" repeats=98"), "{lines:?}");
}

#[test]
fn of_many_polls_one_has_a_line_and_the_rest_are_counted() {
    let mut fixture = start(AccessLog::Sampled, |_| {});
    let stream = fixture.connect();
    let client = stream.local_addr().unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    for _ in 0..50 {
        for target in ["/topics/wind?after=ya-1", "/topics/wind?after=ya-9", "/clock"] {
            send(&mut writer, "GET", target, &[]);
            Reply::read(&mut reader, "GET");
        }
    }
    drop((writer, reader));
    fixture.stop();
    // Two kinds of polls, each with a line at first and one at the end.
    let mut lines = logged::requests(client, 54);
    lines.retain(|line| !line.starts_with("GET /clock 200 http bytes="));
    let repeats = |line: &str| line.split(" repeats=").nth(1).map_or(0, |n| n.parse().unwrap());
    let counted: u64 = lines.iter().map(|line| 1 + repeats(line)).sum();
    assert!(counted == 100 && lines.len() < 10, "{lines:?}");
    assert!(lines[0].starts_with("GET /topics/wind 200 poll bytes="), "{lines:?}");
    assert!(lines[0].ends_with(" position=ya-3"), "{lines:?}");
    assert!(lines[1].starts_with("GET /topics/wind 400 poll bytes="), "{lines:?}");
}

#[test]
fn nothing_is_logged_where_nobody_asked_for_it() {
    let fixture = start(AccessLog::Off, |_| {});
    let (_, client) = ask(&fixture, "GET", "/clock", &[]);
    let other = all();
    let (_, after) = ask(&other, "GET", "/clock", &[]);
    logged::requests(after, 1);
    assert!(logged::requests(client, 0).is_empty());
}

#[test]
fn a_request_that_cannot_be_read_has_a_line_without_a_method() {
    let fixture = all();
    let long = format!("GET / HTTP/1.1\r\nlong: {}\r\n\r\n", "x".repeat(100_000));
    for (said, status) in [("NONSENSE\r\n\r\n", 400), (&long, 431)] {
        let mut stream = fixture.connect();
        let client = stream.local_addr().unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        let reply = Reply::read_head(&mut BufReader::new(stream));
        assert_eq!(reply.status, status);
        let line = logged::requests(client, 1).remove(0);
        let begin = format!("- - {status} http bytes=0 end=malformed request: ");
        assert!(line.starts_with(&begin), "{line}");
    }
}

#[test]
fn a_long_path_is_cut_in_the_line() {
    let fixture = all();
    let target = format!("/{}", "x".repeat(1000));
    let line = line_of(&fixture, "GET", &target, &[]);
    assert_eq!(line, format!("GET /{}… 404 http", "x".repeat(255)));
}
