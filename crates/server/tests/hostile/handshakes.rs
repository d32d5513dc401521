//! Handshakes that never end, of HTTP and of TLS.

use std::io::{BufReader, Write};
use std::num::NonZero;
use std::time::Duration;

use anemone_hub::Retention;
use anemone_server::Tls;
use anemone_testing::{Fixture, Reply, send, wait_for};
use anemone_ws::proto::Message;

use crate::{dribble, rest, somebody_else_is_served, start};

const TIMEOUT: Duration = Duration::from_millis(200);
const HANDSHAKE: &str = "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A header without an end.
fn endless() -> impl Iterator<Item = u8> {
    HANDSHAKE
        .trim_end()
        .bytes()
        .chain(b"\r\nX-Endless: ".iter().copied())
        .chain(std::iter::repeat(b'x'))
}

#[test]
fn a_request_that_never_ends_is_given_up_and_its_place_is_free_again() {
    let fixture = start(|limits| {
        limits.header_timeout = TIMEOUT;
        limits.connections_max = 1;
    });
    // The second request on a connection has no more time than the first.
    dribble(&mut free(&fixture), endless());

    for begin in ["", "G", "GET / HTTP/1.1\r\n"] {
        let mut stream = free(&fixture);
        // It may be given up before that comes.
        let _ = stream.write_all(begin.as_bytes());
        rest(&mut stream);
    }
    let mut stream = free(&fixture);
    dribble(&mut stream, endless());
    rest(&mut stream);
    free(&fixture);
}

/// A connection that has the one place there is.
fn free(fixture: &Fixture) -> std::net::TcpStream {
    wait_for("the place is still taken", || {
        let mut reader = BufReader::new(fixture.connect());
        send(reader.get_mut(), "GET", "/clock", &[]);
        // On a slow machine it may be given up before it is asked.
        let reply = Reply::try_read(&mut reader, "GET");
        reply.is_ok_and(|reply| reply.status == 200).then(|| reader.into_inner())
    })
}

#[test]
fn a_handshake_that_comes_a_byte_at_a_time_and_ends_is_answered() {
    let fixture = start(|_| {});
    let mut stream = fixture.connect();
    for byte in HANDSHAKE.bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    let mut reader = BufReader::new(stream);
    assert_eq!(Reply::read_head(&mut reader).status, 101);
}

#[test]
fn a_header_may_be_as_long_as_the_limit_and_no_longer() {
    let limit = 8192;
    let fixture = start(|limits| limits.header_bytes_max = limit);
    let begin = "GET /clock HTTP/1.1\r\nHost: localhost\r\nX-Long: ";
    let long = "x".repeat(limit - begin.len() - 4);
    let status = |request: String| {
        let mut stream = fixture.connect();
        stream.write_all(request.as_bytes()).unwrap();
        Reply::read_head(&mut BufReader::new(stream)).status
    };
    assert_eq!(status(format!("{begin}{long}\r\n\r\n")), 200);
    // The same number of bytes, without an end.
    assert_eq!(status(format!("{begin}{long}xxxx")), 431);
}

#[test]
fn a_header_may_have_as_many_fields_as_the_limit_and_no_more() {
    let fixture = start(|limits| limits.header_fields_max = 10);
    let status = |count| {
        let names: Vec<String> = (1..count).map(|number| format!("X-{number}")).collect(); // and Host
        let fields: Vec<_> = names.iter().map(|name| (&**name, "x")).collect();
        fixture.get("/clock", &fields).status
    };
    assert_eq!((status(10), status(11)), (200, 431));
}

#[test]
fn a_tls_handshake_that_never_ends_is_given_up() {
    let fixture = Fixture::with(
        |options| {
            options.threads = NonZero::new(1);
            options.tls = Some(Tls::for_localhost().unwrap());
            options.limits.tls_handshake_timeout = TIMEOUT;
        },
        Retention::default(),
    );
    // A record with 16,000 bytes of a ClientHello (RFC 8446 sections 4 and 5.1).
    let hello = [0x16, 3, 1, 0x3e, 0x80, 1, 0, 0x3e, 0x7c, 3, 3];
    for begin in [&[][..], &hello[..1], &hello] {
        let mut stream = fixture.connect();
        // It may be given up before that comes.
        let _ = stream.write_all(begin);
        rest(&mut stream);
    }
    let mut stream = fixture.connect();
    dribble(&mut stream, hello.into_iter().chain(std::iter::repeat(0)));
    rest(&mut stream);
}

#[test]
fn many_that_never_begin_hold_nobody_up() {
    let fixture = start(|_| {});
    let silent: Vec<_> = (0..200).map(|_| fixture.connect()).collect();
    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.send(Message::Text("served"));
    assert_eq!(socket.next(), "served");
    somebody_else_is_served(&fixture);
    drop(silent);
}
