//! Messages whose fragments never end.

use std::io::Write;

use anemone_testing::Fixture;
use anemone_ws::proto::{Config, Opcode};

use crate::{fragment, frame, somebody_else_is_served, start_with};

/// The end of a message in fragments of so many bytes each, the first begun and the last ended.
fn end_of(fixture: &Fixture, target: &str, payload: &[u8], fragments: usize) -> String {
    let mut socket = fixture.websocket(target, &[], &[]);
    let mut message = fragment(Opcode::Binary, payload, false);
    for number in 2..=fragments {
        message.extend(fragment(Opcode::Continuation, payload, number == fragments));
    }
    let _ = socket.stream.write_all(&message);
    socket.next()
}

/// An echo hands messages on as they come, a topic would collect them, and takes none.
const WITHIN: [(&str, &str); 2] =
    [("/echo", "binary"), ("/topics/wind", "close 1008 this topic accepts no messages")];

#[test]
fn fragments_may_add_up_to_the_limit_and_no_further() {
    let fixture = start_with(Config { message_bytes_max: 10_000, ..Config::default() });
    for (target, within) in WITHIN {
        assert_eq!(end_of(&fixture, target, &[7; 100], 100), within);
        let beyond = "close 1009 message needs 10100 bytes, limit is 10000";
        assert_eq!(end_of(&fixture, target, &[7; 100], 101), beyond);
    }
    somebody_else_is_served(&fixture);
}

#[test]
fn fragments_without_a_byte_are_counted() {
    let fixture = start_with(Config { fragments_max: 1000, ..Config::default() });
    for (target, within) in WITHIN {
        assert_eq!(end_of(&fixture, target, &[], 1000), within);
        let beyond = "close 1008 message has more than 1000 fragments";
        assert_eq!(end_of(&fixture, target, &[], 1001), beyond);
    }
    somebody_else_is_served(&fixture);
}

#[test]
fn control_frames_between_them_begin_no_new_count() {
    let fixture = start_with(Config { fragments_max: 100, ..Config::default() });
    let ping = frame(anemone_ws::proto::Header::new(Opcode::Ping, 0), b"");
    let mut chain = fragment(Opcode::Binary, b"", false);
    for _ in 0..100 {
        chain.extend_from_slice(&ping);
        chain.extend(fragment(Opcode::Continuation, b"", false));
    }
    for target in ["/echo", "/topics/wind"] {
        let mut socket = fixture.websocket(target, &[], &[]);
        let _ = socket.stream.write_all(&chain);
        assert_eq!(socket.next(), "close 1008 message has more than 100 fragments");
        assert_eq!(socket.next(), "end of stream");
    }
}

#[test]
fn a_frame_is_refused_by_its_header_alone() {
    let limit = 1000;
    let fixture = start_with(Config { frame_bytes_max: limit, ..Config::default() });
    for target in ["/echo", "/topics/wind"] {
        for (len, end) in [(limit + 1, 1009), (u64::MAX >> 1, 1009), (u64::MAX, 1002)] {
            let mut socket = fixture.websocket(target, &[], &[]);
            let bytes = match u16::try_from(len) {
                Ok(len) => [&[0x82, 0xfe][..], &len.to_be_bytes(), &[0; 4]].concat(),
                Err(_) => [&[0x82, 0xff][..], &len.to_be_bytes(), &[0; 4]].concat(),
            };
            socket.stream.write_all(&bytes).unwrap();
            let next = socket.next();
            assert!(next.starts_with(&format!("close {end} ")), "{len} bytes: {next}");
        }
    }
}
