//! Messages that are encoded once for many.

use std::cell::Cell;

use super::deflate::{all, all_with_takeover, ends, negotiate};
use super::*;
use crate::{DeflateConfig, WindowBits};

fn sent(connection: &mut Connection, message: Message<'_>) -> Vec<u8> {
    connection.sender().send(message).unwrap();
    transmit(connection)
}

fn sent_prepared(connection: &mut Connection, prepared: &Prepared) -> Vec<u8> {
    connection.sender().send_prepared(prepared).unwrap();
    transmit(connection)
}

/// A server whose client has the same `config`.
fn compressing(config: &DeflateConfig) -> Connection {
    ends(config, config).1
}

fn is_compressed(frame: &[u8]) -> bool {
    Header::decode(frame).unwrap().unwrap().0.rsv1
}

/// Noise, twice the same and further apart than the smallest window.
fn far_repetition() -> Vec<u8> {
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        // Xorshift (Marsaglia).
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    });
    noise.take(2000).collect::<Vec<_>>().repeat(2)
}

#[test]
fn without_compression_the_frame_is_the_one_that_would_have_been_sent() {
    for len in [0, 1, 125, 126, 4095, 4096, 65_535, 65_536] {
        let bytes = vec![b'a'; len];
        for message in [Message::Binary(&bytes), Message::Text(str::from_utf8(&bytes).unwrap())] {
            let prepared = Prepared::new(message);
            let expected = sent(&mut server(), message);
            for _ in 0..2 {
                assert_eq!(sent_prepared(&mut server(), &prepared), expected, "{len} bytes");
            }
            assert_eq!(prepared.frame_bytes(), expected.len());
            assert_eq!((prepared.kind(), prepared.payload()), (message.kind(), &bytes[..]));
        }
    }
}

#[test]
fn connections_that_compress_alike_get_what_would_have_been_sent() {
    let text = "all the same ".repeat(100);
    let (message, prepared) = (Message::Text(&text), Prepared::new(Message::Text(&text)));
    let expected = sent(&mut compressing(&all()), message);
    assert!(is_compressed(&expected));
    for _ in 0..3 {
        let (mut client, mut server) = ends(&all(), &all());
        let bytes = sent_prepared(&mut server, &prepared);
        assert_eq!(bytes, expected);
        assert_eq!(receive(&mut client, [&bytes[..]]), [Seen::Text(text.clone())]);
    }
    // And one without compression beside them.
    assert_eq!(sent_prepared(&mut server(), &prepared), sent(&mut server(), message));
}

#[test]
fn with_context_takeover_every_connection_compresses_on_its_own() {
    let text = "what came before counts ".repeat(10);
    let (message, prepared) = (Message::Text(&text), Prepared::new(Message::Text(&text)));
    let (mut client, mut server) = ends(&all_with_takeover(), &all_with_takeover());
    let mut other = compressing(&all_with_takeover());
    let first = sent_prepared(&mut server, &prepared);
    let second = sent_prepared(&mut server, &prepared);
    assert_eq!([&first, &second], [&sent(&mut other, message), &sent(&mut other, message)]);
    assert!(second.len() < first.len());
    let seen = receive(&mut client, [&first[..], &second]);
    assert_eq!(seen, [Seen::Text(text.clone()), Seen::Text(text.clone())]);
    // One that has taken over something else, and one that takes nothing over.
    sent(&mut other, Message::Text("something else"));
    assert_eq!(receive(&mut client, [&sent_prepared(&mut server, &prepared)[..]]).len(), 1);
    let alone = sent(&mut compressing(&all()), message);
    assert_eq!(sent_prepared(&mut compressing(&all()), &prepared), alone);
}

#[test]
fn a_client_masks_each_time_with_a_key_of_its_own() {
    // RFC 6455 section 5.3
    let next = Cell::new(0);
    let keys = move || {
        next.set(next.get() + 1);
        MaskKey([next.get(), 2, 3, 4])
    };
    let mut client = Connection::client(Arc::default(), T0, Box::new(keys));
    let text = "masked ".repeat(10);
    let (prepared, seen) = (Prepared::new(Message::Text(&text)), [Seen::Text(text.clone())]);
    for first in [1, 2] {
        let bytes = sent_prepared(&mut client, &prepared);
        let header = Header::decode(&bytes).unwrap().unwrap().0;
        assert_eq!(header.mask, Some(MaskKey([first, 2, 3, 4])));
        assert_eq!(receive(&mut server(), [&bytes[..]]), seen);
    }
    let (mut client, mut server) = ends(&all(), &all());
    let bytes = sent_prepared(&mut client, &prepared);
    assert!(is_compressed(&bytes));
    assert_eq!(receive(&mut server, [&bytes[..]]), seen);
}

#[test]
fn who_compresses_in_another_way_gets_a_frame_of_its_own() {
    let bytes = far_repetition();
    let (message, prepared) = (Message::Binary(&bytes), Prepared::new(Message::Binary(&bytes)));
    let small = DeflateConfig { own_window_bits: WindowBits::MIN, ..all() };
    let (_, negotiated) = negotiate(&all(), &small);
    assert_eq!(negotiated.own_window_bits, Some(WindowBits::MIN));
    let level = DeflateConfig { level: crate::CompressionLevel::FASTEST, ..all() };
    let minimum = DeflateConfig { compress_bytes_min: 1 << 20, ..all() };
    let mut frames = Vec::new();
    for config in [all(), small, level, minimum, all()] {
        let (mut client, mut server) = ends(&all(), &config);
        let frame = sent_prepared(&mut server, &prepared);
        let (_, mut other) = ends(&all(), &config);
        assert_eq!(frame, sent(&mut other, message), "{config:?}");
        assert_eq!(receive(&mut client, [&frame[..]]), [Seen::Binary(bytes.clone())]);
        frames.push(frame);
    }
    assert!(is_compressed(&frames[0]));
    assert_ne!(frames[0], frames[1], "the repetition is out of reach");
    assert!(!is_compressed(&frames[3]));
    assert_eq!(frames[0], frames[4]);
}

#[test]
fn what_is_too_short_or_gets_no_smaller_is_sent_as_it_is() {
    let config = DeflateConfig { compress_bytes_min: 100, ..all() };
    let text = "a".repeat(100);
    for (text, compresses) in [(&text[1..], false), (&text, true)] {
        let (message, prepared) = (Message::Text(text), Prepared::new(Message::Text(text)));
        let frame = sent_prepared(&mut compressing(&config), &prepared);
        assert_eq!(is_compressed(&frame), compresses);
        assert_eq!(frame, sent(&mut compressing(&config), message));
        assert_eq!(sent_prepared(&mut compressing(&config), &prepared), frame);
    }
    let noise = &far_repetition()[..2000];
    let frame = sent_prepared(&mut compressing(&all()), &Prepared::new(Message::Binary(noise)));
    assert!(frame == unmasked(Opcode::Binary, noise));
}

#[test]
fn between_the_fragments_of_another_message_it_is_refused() {
    // RFC 6455 section 5.4
    let prepared = Prepared::new(Message::Text("whole"));
    for mut server in [server(), compressing(&all())] {
        server.sender().send_fragment(MessageKind::Text, b"a", false).unwrap();
        let begun = transmit(&mut server);
        let refused = server.sender().send_prepared(&prepared);
        assert_eq!(refused, Err(MisuseError::MessageUnfinished));
        assert_eq!(transmit(&mut server), [0; 0], "after {begun:?}");
        server.sender().send_fragment(MessageKind::Text, b"b", true).unwrap();
        server.sender().send_prepared(&prepared).unwrap();
    }
}

#[test]
fn after_a_close_frame_it_is_refused() {
    // RFC 6455 section 5.5.1
    let mut server = server();
    server.sender().close(None).unwrap();
    transmit(&mut server);
    let refused = server.sender().send_prepared(&Prepared::new(Message::Text("late")));
    assert_eq!(refused, Err(MisuseError::Closing));
    assert_eq!(transmit(&mut server), [0; 0]);
}

/// Queues in `output`, as a server, prepared messages of these sizes, and between them other messages and an echo of
/// `input`.
fn queue(output: Output, input: &[u8], sizes: &[usize]) -> Output {
    let mut server = server();
    let mut output = Some(Box::new(output));
    if let Some(output) = &mut output {
        output.lend(input);
    }
    server.sender().exchange_output(&mut output);
    for &size in sizes {
        let message = vec![size as u8; size];
        server.sender().send_prepared(&Prepared::new(Message::Binary(&message))).unwrap();
        server.sender().send(Message::Binary(input)).unwrap();
        server.sender().ping(b"between").unwrap();
    }
    server.sender().exchange_output(&mut output);
    *output.unwrap()
}

#[test]
fn shared_stretches_give_the_same_bytes_as_copies() {
    let input = vec![9; 5000];
    // With the header of four bytes, one byte too short to be shared and just long enough.
    let sizes = [60_000, 10, 4091, 4092, 65_536];
    let bytes = |output: &Output| output.slices(&input).collect::<Vec<_>>().concat();
    let shared = queue(Output::scattered(), &input, &sizes);
    let copied = queue(Output::default(), &input, &sizes);
    assert_eq!(bytes(&shared), bytes(&copied));
    assert_eq!((shared.len(), copied.len()), (bytes(&copied).len(), bytes(&copied).len()));
    let shared_bytes = [60_000, 4092, 65_536]
        .map(|size| Prepared::new(Message::Binary(&vec![0; size])).frame_bytes());
    assert_eq!(copied.own().len() - shared.own().len(), shared_bytes.iter().sum());
}

#[test]
fn an_output_that_is_not_scattered_holds_copies() {
    let prepared = Prepared::new(Message::Binary(&[7; 60_000]));
    for (output, is_copied) in [(Output::default(), true), (Output::scattered(), false)] {
        let (mut server, mut output) = (server(), Some(Box::new(output)));
        server.sender().exchange_output(&mut output);
        server.sender().send_prepared(&prepared).unwrap();
        assert_eq!(server.sender().queued_bytes(), prepared.frame_bytes());
        server.sender().exchange_output(&mut output);
        let frame = unmasked(Opcode::Binary, &[7; 60_000]);
        assert_eq!(output.unwrap().as_slice(), is_copied.then_some(&frame[..]));
    }
}
