//! Requests without a host that could be one, and those that name another server's.
#![allow(clippy::unwrap_used)]

use std::io::{BufReader, Write};

use anemone_hub::Retention;
use anemone_server::Options;
use anemone_testing::{Fixture, Reply};

const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// The ways to ask, and what else a page sends with each.
const WAYS: [(&str, &str, &str); 14] = [
    ("GET", "/", ""),
    ("GET", "/topics", ""),
    ("GET", "/topics/wind", ""),
    ("GET", "/topics/wind?after=latest&wait=1", ""),
    ("GET", "/topics/wind", "Accept: text/event-stream\r\n"),
    ("GET", "/topics/wind", "Accept: application/x-ndjson\r\n"),
    (
        "GET",
        "/topics/wind?frame=f",
        "Accept: text/html\r\nSec-Fetch-Dest: iframe\r\nSec-Fetch-Site: same-origin\r\n",
    ),
    ("GET", "/topics/wind/readers", ""),
    ("GET", "/health", ""),
    ("GET", "/topics/wind", HANDSHAKE),
    ("GET", "/broadcast", HANDSHAKE),
    (
        "GET",
        "/ws",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: anemone.v1\r\n",
    ),
    ("POST", "/topics/wind", "Content-Length: 0\r\n"),
    ("OPTIONS", "/topics/wind", ""),
];

/// The statuses of all ways with this host, the page's own origin added where a browser would.
fn statuses(fixture: &Fixture, host: &str) -> Vec<u16> {
    let ask = |(method, target, fields): &(&str, &str, &str)| {
        let mut stream = fixture.connect();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n{fields}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        Reply::read_head(&mut BufReader::new(stream)).status
    };
    WAYS.iter().map(ask).collect()
}

fn ask(fixture: &Fixture, head: &str) -> Reply {
    let mut stream = fixture.connect();
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    Reply::read(&mut BufReader::new(stream), "GET")
}

#[test]
fn a_request_without_one_host_is_400() {
    // RFC 9112 section 3.2
    let fixture = Fixture::start();
    for (hosts, detail) in [
        ("", "the field Host is missing"),
        ("Host: localhost\r\nHost: localhost\r\n", "the field Host appears twice"),
        ("Host: a b\r\n", "the field Host is not HOST or HOST:PORT"),
        ("Host: user@a\r\n", "the field Host is not HOST or HOST:PORT"),
    ] {
        for target in ["/clock", "/topics/wind", "/nothing"] {
            let reply = ask(&fixture, &format!("GET {target} HTTP/1.1\r\n{hosts}"));
            assert_eq!(reply.problem(400, "bad-host"), detail);
        }
        let handshake = format!("GET /topics/wind HTTP/1.1\r\n{hosts}{HANDSHAKE}");
        assert_eq!(ask(&fixture, &handshake).problem(400, "bad-host"), detail);
    }
}

#[test]
fn older_http_needs_none_and_an_empty_one_is_one() {
    let fixture = Fixture::start();
    for head in ["GET /clock HTTP/1.0\r\n", "GET /clock HTTP/1.1\r\nHost:\r\n"] {
        assert_eq!(ask(&fixture, head).status, 200, "{head:?}");
    }
}

#[test]
fn a_page_whose_name_was_pointed_here_gets_nothing_by_any_way() {
    let fixture = Fixture::start();
    let port = fixture.address.port();
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"] {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            assert_eq!(statuses(&fixture, &host), [421; WAYS.len()], "{host}");
        }
    }
}

#[test]
fn a_name_that_is_allowed_is_the_servers_own() {
    let allow = |options: &mut Options| {
        options.allowed_hosts =
            ["wind.example", "*.sea.example:81"].map(|host| host.parse().unwrap()).into();
    };
    let fixture = Fixture::with(allow, Retention::default());
    for (host, status) in [
        ("wind.example", 200),
        ("Wind.Example:8080", 200),
        ("north.sea.example:81", 200),
        ("north.sea.example", 421),
        ("sea.example:81", 421),
    ] {
        let reply = ask(&fixture, &format!("GET /clock HTTP/1.1\r\nHost: {host}\r\n"));
        assert_eq!(reply.status, status, "{host}");
    }
    let detail = ask(&fixture, "GET /clock HTTP/1.1\r\nHost: Other.example:81\r\n")
        .problem(421, "misdirected");
    assert!(
        detail.contains(r#"allow_hosts = ["Other.example"], or --allow-host Other.example"#),
        "{detail}"
    );
}

#[test]
fn the_host_of_a_target_counts_more_than_the_field() {
    // RFC 9112 section 3.2.2
    let fixture = Fixture::start();
    let ask = |target: &str, host: &str| {
        let host = if host.is_empty() { String::new() } else { format!("Host: {host}\r\n") };
        ask(&fixture, &format!("GET {target} HTTP/1.1\r\n{host}"))
    };
    let own = format!("http://{}/clock", fixture.address);
    assert_eq!(ask(&own, "evil.example").status, 200);
    assert_eq!(ask("http://evil.example/clock", "localhost").status, 421);
    ask("http://me@localhost/clock", "localhost").problem(400, "bad-host");
    ask(&own, "").problem(400, "bad-host");
    let origin = |target: &str| {
        let head =
            format!("GET {target} HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://localhost\r\n");
        self::ask(&fixture, &head).status
    };
    assert_eq!((origin("http://localhost/clock"), origin(&own)), (200, 403));
}

/// The field of a browser at `http://wind.example/`, by way of a proxy that says its own `Host`.
const REWRITTEN: &str = "Origin: http://wind.example\r\n";
const OWN_PAGE: &str = "Sec-Fetch-Site: same-origin\r\n";

#[test]
fn the_files_of_the_page_are_for_every_origin_but_not_for_every_host() {
    let fixture = Fixture::start();
    for target in ["/", "/index.html", "/wind/main.js", "/wind/style.css", "/favicon.svg"] {
        for (host, status) in [("localhost", 200), ("evil.example", 421)] {
            for version in ["1.0", "1.1"] {
                let head = format!("GET {target} HTTP/{version}\r\nHost: {host}\r\n{REWRITTEN}");
                let reply = ask(&fixture, &head);
                assert_eq!(reply.status, status, "{target} {host}");
                assert_eq!(reply.field("access-control-allow-origin"), None);
                assert_eq!(reply.field("cross-origin-resource-policy"), Some("same-origin"));
            }
        }
    }
    let post = format!("POST / HTTP/1.1\r\nHost: localhost\r\n{REWRITTEN}Content-Length: 0\r\n");
    ask(&fixture, &post).problem(403, "origin-refused");
    let missing = format!("GET /wind/none.js HTTP/1.1\r\nHost: localhost\r\n{REWRITTEN}");
    ask(&fixture, &missing).problem(403, "origin-refused");
}

#[test]
fn what_a_browser_says_is_of_the_same_origin_is_read_and_never_changed_or_upgraded() {
    let fixture = Fixture::start();
    let status = |(method, target, fields): &(&str, &str, &str), more: &str, host: &str| {
        let mut stream = fixture.connect();
        // The last of a page's own fields counts.
        let own = if more.contains("Sec-Fetch-Site") {
            fields.replace("Sec-Fetch-Site: same-origin\r\n", "")
        } else {
            (*fields).to_owned()
        };
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{REWRITTEN}{own}{more}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        Reply::read_head(&mut BufReader::new(stream)).status
    };
    for way in WAYS.iter().filter(|way| !way.2.contains("same-origin")) {
        let is_file = way.1 == "/";
        let is_read = way.0 == "GET" && !way.2.contains("Upgrade");
        assert_eq!(status(way, "", "localhost"), if is_file { 200 } else { 403 }, "{way:?}");
        let expected = if is_read { 200 } else { 403 };
        let way =
            if way.1.contains("wait=1") { &("GET", "/topics/wind?wait=0.01", "") } else { way };
        assert_eq!(status(way, OWN_PAGE, "localhost"), expected, "{way:?}");
        assert_eq!(status(way, OWN_PAGE, "evil.example"), 421, "{way:?}");
        for site in ["same-site", "cross-site", "none", "Same-Origin"] {
            let site = format!("Sec-Fetch-Site: {site}\r\n");
            assert_eq!(status(way, &site, "localhost"), if is_file { 200 } else { 403 }, "{way:?}");
        }
    }
}

#[test]
fn a_refused_origin_is_told_what_to_change() {
    let fixture = Fixture::start();
    let detail =
        ask(&fixture, &format!("GET /clock HTTP/1.1\r\nHost: localhost:8080\r\n{REWRITTEN}"))
            .problem(403, "origin-refused");
    assert_eq!(
        detail,
        "pages of origin http://wind.example may not use this server, asked for as localhost:8080: allow them with \
         --allow-origin, or allow_origins; if they are its own pages, a proxy in front has replaced the Host: \
         have it forward the original, with its port (nginx: proxy_set_header Host $http_host)"
    );
    let long = format!("Origin: http://{}.example\r\n", "a".repeat(5000));
    let detail = ask(&fixture, &format!("GET /clock HTTP/1.1\r\nHost: localhost\r\n{long}"))
        .problem(403, "origin-refused");
    assert!(detail.len() < 600, "{detail}");
}

#[test]
fn a_person_who_is_refused_gets_a_page_with_the_setting() {
    let fixture = Fixture::start();
    const BROWSER: &str =
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    const NAVIGATION: &str = "Sec-Fetch-Mode: navigate\r\n";
    for who in [BROWSER, NAVIGATION] {
        for target in ["/", "/topics/wind", "/nothing"] {
            let line = format!("GET {target} HTTP/1.1\r\n");
            let page = ask(&fixture, &format!("{line}Host: wind.example\r\n{who}"));
            assert_eq!(
                (page.status, page.field("content-type")),
                (421, Some("text/html; charset=utf-8"))
            );
            let text = &page.body;
            assert!(text.contains("allow_hosts = [\"wind.example\"]"), "{text}");
            assert!(
                page.field("content-security-policy").unwrap().starts_with("default-src 'none'")
            );
            let origin = "Origin: http://<b>.example&x\r\n";
            let page =
                ask(&fixture, &format!("GET /clock HTTP/1.1\r\nHost: localhost\r\n{origin}{who}"));
            assert_eq!(
                (page.status, page.field("content-type")),
                (403, Some("text/html; charset=utf-8"))
            );
            let text = &page.body;
            assert!(
                text.contains("allow_origins") && text.contains("http://&lt;b&gt;.example&amp;x"),
                "{text}"
            );
        }
    }
    let local = "GET /topics/wind/readers HTTP/1.1\r\nHost: localhost\r\nVia: proxy\r\n";
    let page = ask(&fixture, &format!("{local}{BROWSER}"));
    assert_eq!((page.status, page.field("content-type")), (403, Some("text/html; charset=utf-8")));
    ask(&fixture, local).problem(403, "local-only");
    // A script and a program get the problem.
    for who in [
        "",
        "Accept: */*\r\n",
        "Accept: text/html, application/json\r\n",
        "Sec-Fetch-Mode: cors\r\n",
    ] {
        let host = format!("GET / HTTP/1.1\r\nHost: wind.example\r\n{who}");
        ask(&fixture, &host).problem(421, "misdirected");
        let origin = format!("GET /clock HTTP/1.1\r\nHost: localhost\r\n{REWRITTEN}{who}");
        ask(&fixture, &origin).problem(403, "origin-refused");
    }
}
