//! Pings by the million, their pongs read and not read (RFC 6455 section 5.5.2).

use std::io::{Read, Write};

use anemone_ws::proto::{Config, Header, Message, Opcode};

use crate::{flood, fragment, frame, impatient, somebody_else_is_served, start, start_with};

const PINGS: u32 = 1_000_000;

fn ping(payload: &[u8]) -> Vec<u8> {
    frame(Header::new(Opcode::Ping, 0), payload)
}

#[test]
fn a_million_pings_get_a_million_pongs_and_hold_nobody_up() {
    let fixture = start(|_| {});
    let mut socket = fixture.websocket("/echo", &[], &[]);
    let mut writer = socket.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        for number in (0..PINGS).step_by(1000) {
            let batch = (number..number + 1000).flat_map(|number| ping(&number.to_be_bytes()));
            writer.write_all(&batch.collect::<Vec<_>>()).unwrap();
        }
    });
    let mut pong = [0; 6];
    for number in 0..PINGS {
        socket.stream.read_exact(&mut pong).unwrap();
        assert_eq!((&pong[..2], &pong[2..]), (&[0x8a, 4][..], &number.to_be_bytes()[..]));
        if number % (PINGS / 10) == 0 {
            somebody_else_is_served(&fixture);
        }
    }
    writing.join().unwrap();
    socket.send(Message::Text("still here"));
    assert_eq!(socket.next(), "still here");
}

#[test]
fn pings_whose_pongs_nobody_reads_are_soon_not_read_either() {
    let fixture = start_with(impatient());
    for target in ["/echo", "/topics/wind"] {
        let mut socket = fixture.websocket(target, &[], &[]);
        flood(&mut socket.stream, &ping(&[7; 125]).repeat(100));
        somebody_else_is_served(&fixture);
    }
}

#[test]
fn nor_are_those_within_a_message() {
    // An echo reads a message to its end before its answer is read: up to as much as a message may have.
    let fixture = start_with(Config { message_bytes_max: 1 << 20, ..impatient() });
    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.stream.write_all(&fragment(Opcode::Binary, b"", false)).unwrap();
    flood(&mut socket.stream, &ping(&[7; 125]).repeat(100));
    somebody_else_is_served(&fixture);
}
