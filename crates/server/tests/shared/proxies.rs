//! Requests through a proxy: a trusted one, another one, and one that does not announce itself.
#![allow(clippy::unwrap_used)]

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anemone_hub::Retention;
use anemone_server::{Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::{Fixture, HANDSHAKE, PATIENCE, Reply, Socket, wait_until};
use anemone_ws::proto::Message;
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use socket2::{Domain, Type};

/// The address that the trusted proxy has its connections from.
const PROXY: &str = "127.0.0.9:0";
const NOBODY_SAYS: &str = "127.0.0.1:0";

fn start() -> Fixture {
    start_with(|_| {})
}

fn start_with(more: impl FnOnce(&mut Options)) -> Fixture {
    let change = |options: &mut Options| {
        more(options);
        let publish = PublishRight::Loopback;
        let rule = TopicRule { publish, ..TopicRule::new("scratch-*".parse().unwrap()) };
        options.topics = TopicRules::new([rule]).unwrap();
        options.trusted_proxies = vec!["127.0.0.9".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        options.allowed_hosts = vec!["wind.example".parse().unwrap()];
    };
    Fixture::with(change, Retention::default())
}

fn connect(fixture: &Fixture, from: &str) -> TcpStream {
    let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&from.parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.connect(&fixture.address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The reply to a request of a version of HTTP, as `POST /topics/a HTTP/1.0`, with a body of 1.
fn ask(fixture: &Fixture, from: &str, line: &str, fields: &[(&str, &str)]) -> Reply {
    let mut stream = connect(fixture, from);
    let body = if line.starts_with("POST") { "1" } else { "" };
    let host = format!("Host: {}\r\n", fixture.address);
    let host = if fields.iter().any(|(name, _)| *name == "Host") { "" } else { &host };
    let fields: String =
        fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("{line}\r\n{host}{fields}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    Reply::read(&mut BufReader::new(stream), "GET")
}

const POST: &str = "POST /topics/scratch-a HTTP/1.1";
const READERS: &str = "GET /topics/wind/readers HTTP/1.1";
const DELETE: &str = "DELETE /topics/scratch-a HTTP/1.1";

#[test]
fn what_nginx_passes_on_without_a_word_is_not_of_this_machine() {
    let fixture = start();
    assert_eq!(ask(&fixture, NOBODY_SAYS, POST, &[]).status, 201);
    assert_eq!(ask(&fixture, NOBODY_SAYS, READERS, &[]).status, 200);
    let plain = [("Connection", "close")];
    let upgrading = [("Connection", "upgrade")];
    let paged = [("Referer", "http://wind.example/")];
    for line in [POST, READERS, DELETE] {
        for (line, fields, words) in [
            (line.replace("/1.1", "/1.0"), &plain[..], "HTTP/1.0"),
            (line.to_owned(), &upgrading, "upgrades to nothing"),
            (line.to_owned(), &paged, "page of another host"),
        ] {
            let reply = ask(&fixture, NOBODY_SAYS, &line, fields);
            let kind = if line.starts_with("GET") { "local-only" } else { "publish-refused" };
            let detail = reply.problem(403, kind);
            assert!(detail.contains(words), "{line}: {detail}");
        }
    }
}

#[test]
fn what_others_say_of_forwarding_only_takes_a_right_away() {
    let fixture = start();
    for field in [
        ("Forwarded", "for=127.0.0.1;host=localhost"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Host", "localhost"),
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-Server", "a"),
        ("X-Real-IP", "127.0.0.1"),
        ("Via", "1.1 a"),
        ("CF-Connecting-IP", "127.0.0.1"),
        ("True-Client-IP", "127.0.0.1"),
    ] {
        ask(&fixture, NOBODY_SAYS, POST, &[field]).problem(403, "publish-refused");
        ask(&fixture, NOBODY_SAYS, READERS, &[field]).problem(403, "local-only");
    }
    let said = [("Host", "evil.example"), ("X-Forwarded-Host", "localhost")];
    ask(&fixture, NOBODY_SAYS, READERS, &said).problem(421, "misdirected");
    let said = [("Origin", "https://wind.example"), ("X-Forwarded-Host", "wind.example")];
    ask(&fixture, NOBODY_SAYS, "GET /clock HTTP/1.1", &said).problem(403, "origin-refused");
}

#[test]
fn what_comes_by_a_trusted_proxy_is_never_of_this_machine() {
    let fixture = start();
    for fields in [
        &[][..],
        &[("X-Forwarded-For", "127.0.0.1")],
        &[("Forwarded", "for=127.0.0.1;host=localhost;proto=http")],
    ] {
        let detail = ask(&fixture, PROXY, POST, fields).problem(403, "publish-refused");
        assert!(detail.contains("trusted proxy"), "{detail}");
        ask(&fixture, PROXY, READERS, fields).problem(403, "local-only");
    }
}

#[test]
fn a_trusted_proxy_tells_host_and_scheme() {
    let fixture = start();
    let get = |fields: &[(&str, &str)]| ask(&fixture, PROXY, "GET /clock HTTP/1.1", fields);
    let (host, proto) = (("X-Forwarded-Host", "wind.example"), ("X-Forwarded-Proto", "https"));
    let page = ("Origin", "https://wind.example");
    assert_eq!(get(&[host, proto, page]).status, 200);
    assert_eq!(get(&[("Forwarded", "host=wind.example;proto=https"), page]).status, 200);
    get(&[host, ("X-Forwarded-Proto", "http"), page]).problem(403, "origin-refused");
    get(&[("X-Forwarded-Host", "evil.example")]).problem(421, "misdirected");
    // It forwards the client's forwarding fields, and the client's Host as well.
    get(&[("Host", "evil.example"), host]).problem(421, "misdirected");
    for said in [
        &[("X-Forwarded-For", "nonsense")][..],
        &[("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=127.0.0.1")],
        &[("Forwarded", "for=\"")],
    ] {
        get(said).problem(400, "bad-forwarding");
    }
}

#[test]
fn readers_are_listed_with_the_address_that_a_trusted_proxy_says() {
    let fixture = start();
    let listed = |said: (&str, &str), subprotocols: &[&str], target: &str| {
        let handshake = ClientHandshake::new(Nonce([7; 16]), subprotocols);
        let host = fixture.address.to_string();
        let stream = connect(&fixture, PROXY);
        let mut socket = Socket::open(stream, &host, target, handshake, &[said]).unwrap();
        if target == "/ws" {
            socket.send(Message::Text("GET r /topics/wind"));
            assert!(socket.next().starts_with("100 r "));
        }
        let list = ask(&fixture, NOBODY_SAYS, READERS, &[]).json();
        assert_eq!(list["count"], 1, "{list}");
        let client = list["readers"][0]["client"].clone();
        drop(socket);
        while ask(&fixture, NOBODY_SAYS, READERS, &[]).json()["count"] != 0 {}
        client
    };
    let said = ("X-Forwarded-For", "127.0.0.1, 192.0.2.7, 10.0.0.1");
    assert_eq!(listed(said, &[], "/topics/wind"), "192.0.2.7");
    assert_eq!(listed(said, &["anemone.v1"], "/ws"), "192.0.2.7");
    assert_eq!(
        listed(("Forwarded", "for=\"[2001:db8::7]:99\""), &[], "/topics/wind"),
        "[2001:db8::7]:99"
    );
    assert!(listed(("Forwarded", "for=_hidden"), &[], "/topics/wind").is_null());
}

#[test]
fn each_client_behind_a_trusted_proxy_has_so_many_requests_streams_and_websockets() {
    let fixture = start_with(|options| options.limits.connections_per_address_max = Some(1));
    let clock = |fields: &[(&str, &str)]| ask(&fixture, PROXY, "GET /clock HTTP/1.1", fields);
    let (one, same, other) = (
        [("X-Forwarded-For", "192.0.2.7")],
        [("X-Forwarded-For", "::ffff:192.0.2.7")],
        [("X-Forwarded-For", "192.0.2.8")],
    );
    let stream = |fields: &str| {
        let mut stream = connect(&fixture, PROXY);
        let head = format!(
            "GET /topics/wind HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
             X-Forwarded-For: 192.0.2.7\r\n{fields}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        stream
    };
    let web_socket = |target: &str, subprotocols: &[&str], fields: &[(&str, &str)]| {
        let handshake = ClientHandshake::new(Nonce([7; 16]), subprotocols);
        let fields = [&one[..], fields].concat();
        Socket::open(connect(&fixture, PROXY), "localhost", target, handshake, &fields).unwrap()
    };
    // By the loop, and by way of the HTTP server.
    let ways: [&dyn Fn() -> Box<dyn std::any::Any>; 5] = [
        &|| Box::new(stream("")),
        &|| Box::new(stream("Content-Length: 0\r\n")),
        &|| Box::new(web_socket("/topics/wind", &[], &[])),
        &|| Box::new(web_socket("/ws", &["anemone.v1"], &[])),
        &|| Box::new(web_socket("/topics/wind", &[], &[("Content-Length", "0")])),
    ];
    for (index, way) in ways.iter().enumerate() {
        let open = way();
        clock(&one).problem(503, "too-many-connections");
        clock(&same).problem(503, "too-many-connections");
        for others in [&other[..], &[("Forwarded", "for=_hidden")], &[]] {
            assert_eq!(clock(others).status, 200, "way {index}");
        }
        drop(open);
        wait_until(&format!("way {index} never ends"), || clock(&one).status == 200);
    }
}

#[test]
fn a_long_poll_that_may_come_by_a_proxy_is_answered_before_that_gives_up() {
    let fixture = start_with(|options| {
        options.limits.wait_proxied = Duration::from_millis(20);
        options.limits.wait_max = Duration::from_secs(120);
    });
    let host = ("Host", "wind.example");
    let upgrade = ("Connection", "upgrade");
    for (from, version, fields) in [
        (PROXY, "1.1", &[][..]),
        (PROXY, "1.1", &[("X-Forwarded-For", "192.0.2.1")]),
        (NOBODY_SAYS, "1.0", &[]),
        (NOBODY_SAYS, "1.1", &[("Forwarded", "for=192.0.2.1")]),
        (NOBODY_SAYS, "1.1", &[("Via", "1.1 a")]),
        (NOBODY_SAYS, "1.1", &[upgrade]),
        // A proxy that forwards everything unchanged is recognized by the host alone.
        (NOBODY_SAYS, "1.1", &[host]),
    ] {
        let get = |target: &str, more: &[(&str, &str)]| {
            let line = format!("GET {target} HTTP/{version}");
            ask(&fixture, from, &line, &[fields, more].concat())
        };
        let (plain, preferred) = ("/topics/wind?after=latest", [("Prefer", "wait=100")]);
        let reply = get("/topics/wind?after=latest&wait=100", &[]);
        assert_eq!(reply.field("preference-applied"), Some("wait=0.02"), "{fields:?}");
        assert!(reply.numbers().is_empty());
        let reply = get(plain, &preferred);
        assert_eq!(reply.field("preference-applied"), Some("wait=0.02"), "{fields:?}");
        assert!(
            get(plain, &[("Prefer", "wait=0.01")]).field("preference-applied") == Some("wait=0.01")
        );
        assert_eq!(
            get("/topics/wind?after=latest&wait=0.01", &[]).field("preference-applied"),
            None
        );
        get("/topics/wind?wait=121", &[]).problem(400, "bad-parameter");
    }
    let own = ask(
        &fixture,
        NOBODY_SAYS,
        "GET /topics/wind?after=latest HTTP/1.1",
        &[("Prefer", "wait=0.05")],
    );
    assert_eq!(own.field("preference-applied"), Some("wait=0.05"), "a client of this machine");
}

#[test]
fn a_proxy_that_sends_two_forwarded_fields_is_told_so() {
    let fixture = start();
    let twice = [("Forwarded", "for=127.0.0.1"), ("Forwarded", "for=192.0.2.1")];
    let detail = ask(&fixture, PROXY, "GET /clock HTTP/1.1", &twice).problem(400, "bad-forwarding");
    assert_eq!(
        detail,
        "what the proxy says about this request is not valid: the field Forwarded appears twice, and the server \
         cannot know which one is the proxy's own; have the first proxy remove its clients' field, and the \
         proxies after it append to the one field"
    );
    // Fields of a client that is no trusted proxy are ignored.
    assert_eq!(ask(&fixture, NOBODY_SAYS, "GET /clock HTTP/1.1", &twice).status, 200);
}

#[test]
fn a_handshake_whose_upgrade_a_proxy_has_taken_out_is_told_so() {
    let fixture = start();
    let key = [("Connection", "close"), ("Sec-WebSocket-Version", "13"), HANDSHAKE[3]];
    for target in ["/topics/wind", "/ws", "/echo", "/broadcast"] {
        for version in ["1.0", "1.1"] {
            let reply = ask(&fixture, NOBODY_SAYS, &format!("GET {target} HTTP/{version}"), &key);
            let detail = reply.problem(426, "bad-handshake");
            assert_eq!(
                detail,
                "this is a WebSocket handshake without Upgrade: a proxy on the way has removed it; configure \
                 the proxy to forward WebSockets, or use plain HTTP"
            );
            assert_eq!(reply.field("upgrade"), Some("websocket"));
        }
    }
}

#[test]
fn the_port_that_a_proxy_was_asked_at_belongs_to_the_origin_of_its_pages() {
    let fixture = start();
    // As nginx with `proxy_set_header Host $host`, which drops the port.
    let fields = [
        ("Host", "wind.example"),
        ("X-Forwarded-For", "192.0.2.7"),
        ("X-Forwarded-Host", "wind.example"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Port", "8443"),
    ];
    for (origin, status) in [
        ("https://wind.example:8443", 200),
        ("https://wind.example:8444", 403),
        ("http://wind.example:8443", 403),
        ("https://evil.example:8443", 403),
    ] {
        let with = |fields: &[(&str, &str)]| {
            let fields = [fields, &[("Origin", origin)]].concat();
            ask(&fixture, PROXY, "GET /clock HTTP/1.1", &fields)
        };
        assert_eq!(with(&fields).status, status, "{origin}");
        let refused = with(&fields[..4]);
        let detail = refused.problem(403, "origin-refused");
        assert!(detail.contains("proxy_set_header Host $http_host"), "{detail}");
        // What another client says does not count.
        let reply = ask(
            &fixture,
            NOBODY_SAYS,
            "GET /clock HTTP/1.1",
            &[&fields[..], &[("Origin", origin)]].concat(),
        );
        assert_eq!(reply.status, 403, "{origin}");
    }
}
