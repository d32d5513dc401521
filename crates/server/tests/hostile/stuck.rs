//! Peers that never read.

use std::io::{ErrorKind, Write};
use std::time::{Duration, SystemTime};

use anemone_hub::Data;
use anemone_testing::{Fixture, Reply, send, wait_until};
use anemone_ws::proto::{Header, Opcode};

use crate::{flood, frame, impatient, somebody_else_is_served, start, start_with};

#[test]
fn messages_whose_echo_nobody_reads_are_soon_not_read_either() {
    let fixture = start_with(impatient());
    for payload_bytes in [0, 1000, 60_000, 1 << 20] {
        let mut socket = fixture.websocket("/echo", &[], &[]);
        let message = frame(Header::new(Opcode::Binary, 0), &vec![7; payload_bytes]);
        flood(&mut socket.stream, &message.repeat((1 << 20) / message.len() + 1));
        somebody_else_is_served(&fixture);
    }
}

#[test]
fn a_peer_that_reads_again_in_time_has_lost_nothing() {
    let fixture = start(|_| {});
    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let message = frame(Header::new(Opcode::Text, 0), &[b'x'; 60_000]);
    let (mut whole, mut cut) = (0, 0);
    // Until neither end takes any more.
    loop {
        match socket.stream.write(&message[cut..]) {
            Ok(len) if cut + len == message.len() => (whole, cut) = (whole + 1, 0),
            Ok(len) => cut += len,
            Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    for _ in 0..whole {
        assert_eq!(socket.next().len(), 60_000);
    }
    socket.stream.write_all(&message[cut..]).unwrap();
    assert_eq!(socket.next().len(), 60_000);
}

#[test]
fn a_reader_of_a_topic_that_stops_reading_is_let_go() {
    let fixture = start(|limits| {
        limits.websocket = impatient().into();
        limits.connections_max = 2;
    });
    let stuck = fixture.websocket("/topics/wind", &[], &[]);
    let large = Data::json(&"x".repeat(100_000)).unwrap();
    wait_until("the stuck connection is still held", || {
        // More than the sockets can hold.
        fixture.wind.publish(SystemTime::now().into(), large.clone()).unwrap();
        fixture.get("/clock", &[]).status == 200 && has_a_place_left(&fixture)
    });
    drop(stuck);
}

/// Returns true if two connections are served at once.
fn has_a_place_left(fixture: &Fixture) -> bool {
    let mut held = std::io::BufReader::new(fixture.connect());
    send(held.get_mut(), "GET", "/clock", &[]);
    let held_status = Reply::read(&mut held, "GET").status;
    held_status == 200 && fixture.get("/clock", &[]).status == 200
}

#[test]
fn requests_whose_replies_nobody_reads_are_soon_not_read_either() {
    // So long that no machine is late to fill the sockets.
    let fixture = start(|limits| limits.write_timeout = Duration::from_millis(1500));
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    flood(&mut fixture.connect(), &request);
    somebody_else_is_served(&fixture);
}
