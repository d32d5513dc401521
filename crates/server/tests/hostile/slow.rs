//! A byte now and then, and then none.

use std::io::Write;
use std::time::Duration;

use anemone_ws::proto::{Config, Header, Opcode};

use crate::{
    dribble, fragment, frame, impatient, is_closed_with, rest, somebody_else_is_served, start_with,
};

#[test]
fn a_peer_that_stalls_within_a_message_is_given_up_wherever_it_stalls() {
    let fixture = start_with(impatient());
    let message = frame(Header::new(Opcode::Binary, 0), &[7; 300]);
    let ping = frame(Header::new(Opcode::Ping, 0), &[7; 100]);
    let first = fragment(Opcode::Binary, &[7; 300], false);
    let next = fragment(Opcode::Continuation, &[7; 300], false);
    let places = [
        message[..1].to_vec(),                          // in a header
        message[..7].to_vec(),                          // in the masking key
        message[..8].to_vec(),                          // before the payload
        message[..message.len() - 1].to_vec(),          // before its last byte
        ping[..ping.len() - 1].to_vec(),                // in a control frame
        first.clone(),                                  // between fragments
        [&first[..], &next[..next.len() - 1]].concat(), // in a later fragment
        [&first[..], &ping[..ping.len() - 1]].concat(), // in a control frame between fragments
    ];
    for target in ["/echo", "/topics/wind"] {
        let stalled = places.each_ref().map(|place| {
            let mut socket = fixture.websocket(target, &[], &[]);
            for &byte in place {
                socket.stream.write_all(&[byte]).unwrap();
            }
            (place, socket)
        });
        for (place, mut socket) in stalled {
            let received = rest(&mut socket.stream);
            assert!(received.windows(2).any(|bytes| bytes == [0x89, 8]), "it was pinged");
            assert!(is_closed_with(&received, 1011), "{} bytes to {target}", place.len());
        }
    }
    somebody_else_is_served(&fixture);
}

#[test]
fn a_peer_that_sends_a_byte_now_and_then_is_given_up_in_the_middle_of_its_message() {
    let config = Config {
        ping_interval: Duration::from_millis(50),
        message_timeout: Duration::from_millis(200),
        close_timeout: Duration::from_millis(50),
        ..Config::default()
    };
    let fixture = start_with(config);
    let long = frame(Header::new(Opcode::Binary, 0), &[7; 60_000]);
    let chain = [
        fragment(Opcode::Binary, b"", false),
        fragment(Opcode::Continuation, b"", false).repeat(10_000),
    ];
    for target in ["/echo", "/topics/wind"] {
        for message in [&long, &chain.concat()] {
            let mut socket = fixture.websocket(target, &[], &[]);
            dribble(&mut socket.stream, message.iter().copied());
            assert!(is_closed_with(&rest(&mut socket.stream), 1008), "{target}");
        }
    }
    somebody_else_is_served(&fixture);
}
