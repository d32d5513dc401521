//! Requests without a host that could be one.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufReader, Write};

use common::{Fixture, Reply};

const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

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
        ("Host: a\r\nHost: a\r\n", "the field Host is there twice"),
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
