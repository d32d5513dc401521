//! Compressed messages that inflate beyond the limits (RFC 7692).

use std::io::Write;

use anemone_testing::Fixture;
use anemone_ws::proto::{Config, Header, Message, MessageKind, Opcode};

use crate::{frame, rest, somebody_else_is_served, start_with};

const LIMIT: usize = 1 << 20;
/// A MiB of zeros, compressed: valid after any other data of a compressed message.
const ZEROS: usize = 1 << 20;

fn start() -> Fixture {
    let limit = LIMIT as u64;
    start_with(Config { message_bytes_max: limit, frame_bytes_max: limit, ..Config::default() })
}

/// So many zeros, compressed, as a client would send them in a fragment: without mask and header.
fn compressed(fixture: &Fixture, zeros: usize) -> Vec<u8> {
    let mut socket = fixture.compressed("/echo");
    let sender = socket.connection.sender();
    sender.send_fragment(MessageKind::Binary, &vec![0; zeros], false).unwrap();
    let mut bytes = sender.transmit().to_vec();
    sender.transmitted(bytes.len());
    let (header, len) = Header::decode(&bytes).unwrap().unwrap();
    assert!(header.rsv1);
    header.mask.unwrap().apply(&mut bytes[len..]);
    bytes.split_off(len)
}

#[test]
fn a_message_may_inflate_to_the_limit_and_no_further() {
    let fixture = start();
    let mut socket = fixture.compressed("/echo");
    let message = vec![7; LIMIT];
    socket.send(Message::Binary(&message));
    assert_eq!(socket.binary(), message);
    socket.send(Message::Binary(&vec![7; LIMIT + 1]));
    assert_eq!(socket.next(), "close 1009 message inflates to more than 1048576 bytes");
    assert_eq!(socket.next(), "end of stream");
}

#[test]
fn messages_that_come_in_one_read_and_inflate_to_much_are_all_answered() {
    let fixture = start();
    let mut socket = fixture.compressed("/echo");
    let messages: Vec<Vec<u8>> = (1..=8).map(|byte| vec![byte; LIMIT]).collect();
    for message in &messages {
        socket.connection.sender().send(Message::Binary(message)).unwrap();
    }
    socket.flush();
    for message in &messages {
        assert!(socket.binary() == *message);
    }
    socket.send(Message::Binary(b"and then"));
    assert_eq!(socket.binary(), b"and then");
}

#[test]
fn the_limit_holds_for_the_sum_of_all_fragments() {
    let fixture = start();
    let half = vec![7; LIMIT / 2];
    for (last, expected) in [(half.len(), "binary"), (half.len() + 1, "close 1009 ")] {
        let mut socket = fixture.compressed("/echo");
        let sender = socket.connection.sender();
        sender.send_fragment(MessageKind::Binary, &half, false).unwrap();
        sender.send_fragment(MessageKind::Binary, &vec![7; last], true).unwrap();
        socket.flush();
        let next = socket.next();
        assert!(next.starts_with(expected), "{next}");
    }
}

#[test]
fn a_gigabyte_in_one_frame_is_not_inflated() {
    let fixture = start();
    let bomb = compressed(&fixture, ZEROS).repeat(1024);
    let bomb = &bomb[..bomb.len().min(LIMIT)];
    for target in ["/echo", "/topics/wind"] {
        let mut socket = fixture.compressed(target);
        let header = Header { rsv1: true, ..Header::new(Opcode::Binary, 0) };
        // It may be cut off while it sends.
        let _ = socket.stream.write_all(&frame(header, bomb));
        assert_eq!(socket.next(), "close 1009 message inflates to more than 1048576 bytes");
        somebody_else_is_served(&fixture);
    }
}

#[test]
fn a_bomb_in_many_fragments_is_not_inflated_either() {
    let fixture = start();
    let piece = compressed(&fixture, 1000);
    let mut bomb = Vec::new();
    for number in 0..2 * LIMIT / 1000 {
        let is_first = number == 0;
        let opcode = if is_first { Opcode::Binary } else { Opcode::Continuation };
        let header = Header { fin: false, rsv1: is_first, ..Header::new(opcode, 0) };
        bomb.extend(frame(header, &piece));
    }
    for target in ["/echo", "/topics/wind"] {
        let mut socket = fixture.compressed(target);
        let _ = socket.stream.write_all(&bomb);
        assert_eq!(socket.next(), "close 1009 message inflates to more than 1048576 bytes");
        rest(&mut socket.stream);
        somebody_else_is_served(&fixture);
    }
}
