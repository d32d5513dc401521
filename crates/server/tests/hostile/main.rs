//! Peers that mean no good. Each is ended, and what it can make the server hold and do has a limit.
//!
//! Limits and time-outs are small and set here. What a test waits for is an end, never that it comes soon;
//! only a failing test needs all of [`PATIENCE`].
#![allow(clippy::unwrap_used)]

mod bombs;
mod fragments;
mod handshakes;
mod http2;
mod pings;
mod quiet;
mod slow;
mod stuck;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_hub::Retention;
use anemone_server::Limits;
use anemone_testing::{Fixture, PATIENCE};
use anemone_ws::proto::{Config, Header, MaskKey, Message, Opcode};

/// Between two bytes of a peer that is slow on purpose.
const PAUSE: Duration = Duration::from_millis(5);
/// The bytes that the sockets of both ends hold at most, by the kernel's own rules, and some more.
const KERNEL_BYTES_MAX: usize = 100 << 20;
/// And at least.
const KERNEL_BYTES_MIN: usize = 1 << 20;
const MASK: MaskKey = MaskKey([1, 2, 3, 4]);

/// A server with one thread, so that a peer which holds up the loop holds up everybody in the test.
fn start(change: impl FnOnce(&mut Limits)) -> Fixture {
    Fixture::with(
        |options| {
            options.threads = NonZero::new(1);
            change(&mut options.limits);
        },
        Retention::default(),
    )
}

/// The same for `/echo` and for topics, with limits of their WebSockets.
fn start_with(config: Config) -> Fixture {
    let config = Arc::new(config);
    start(|limits| {
        limits.websocket = Arc::clone(&config);
        limits.echo = config;
    })
}

/// A peer is given up soon.
fn impatient() -> Config {
    Config {
        ping_interval: Duration::from_millis(100),
        // So long that no machine is late to say the next word, or to fill the sockets.
        idle_timeout: Duration::from_millis(1500),
        // During this time it reads and discards all bytes after the end, as fast as they come.
        close_timeout: Duration::from_millis(1),
        ..Config::default()
    }
}

fn frame(header: Header, payload: &[u8]) -> Vec<u8> {
    let header = Header { mask: Some(MASK), payload_len: payload.len() as u64, ..header };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    let begin = bytes.len();
    bytes.extend_from_slice(payload);
    MASK.apply(&mut bytes[begin..]);
    bytes
}

/// The fragment of a message that is binary, the first or another one.
fn fragment(opcode: Opcode, payload: &[u8], fin: bool) -> Vec<u8> {
    frame(Header { fin, ..Header::new(opcode, 0) }, payload)
}

/// Sends bytes one at a time until they are all sent, or the server has ended the connection.
fn dribble(stream: &mut TcpStream, bytes: impl IntoIterator<Item = u8>) {
    let begun = Instant::now();
    for byte in bytes {
        if stream.write_all(&[byte]).is_err() {
            return;
        }
        std::thread::sleep(PAUSE);
        assert!(begun.elapsed() < PATIENCE, "the connection is still held");
    }
}

/// Sends `bytes` over and over until the server has ended the connection, and not before it was stuck.
fn flood(stream: &mut TcpStream, bytes: &[u8]) {
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut sent = 0;
    loop {
        match stream.write(&bytes[sent % bytes.len()..]) {
            Ok(len) => sent += len,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("the connection is still held")
            }
            Err(_) => break,
        }
        assert!(sent < KERNEL_BYTES_MAX, "the server goes on reading");
    }
    assert!(sent > KERNEL_BYTES_MIN, "ended after {sent} bytes, for another reason");
}

/// The bytes that the server sends until it has ended the connection, by a reset maybe.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return received,
            Ok(len) => received.extend_from_slice(&bytes[..len]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("the connection is still held")
            }
            Err(_) => return received,
        }
    }
}

/// Returns true if these bytes of the server contain a close frame with this code.
fn is_closed_with(received: &[u8], code: u16) -> bool {
    let is_close = |frame: &[u8]| frame[0] == 0x88 && frame[2..] == code.to_be_bytes();
    received.windows(4).any(is_close)
}

/// Another connection of the same thread is served.
fn somebody_else_is_served(fixture: &Fixture) {
    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.send(Message::Text("still served"));
    assert_eq!(socket.next(), "still served");
}
