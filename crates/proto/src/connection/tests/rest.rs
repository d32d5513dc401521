//! Large frames that are read to where they are collected.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn the_rest_of_a_large_frame_can_be_read_to_where_it_is_collected(
        len in prop::collection::vec(100_000..150_000_usize, 1..4),
        cut in 1..70_000_usize,
        step in 1_000..90_000_usize,
    ) {
        let text: Vec<String> = len.iter().map(|len| "aä€🦀".repeat(len / 10)).collect();
        let count = text.len();
        let frames: Vec<u8> = text.iter().enumerate().flat_map(|(i, part)| {
            let opcode = if i == 0 { Opcode::Text } else { Opcode::Continuation };
            fragment(i + 1 == count, opcode, part.as_bytes())
        }).chain(masked(Opcode::Binary, b"after")).collect();
        let mut server = server();
        let (mut seen, mut at, mut appended) = (Vec::new(), 0, 0);
        while at < frames.len() {
            if let Some(rest) = server.rest() {
                let (begin, len) = (rest.bytes.len(), rest.len.min(step));
                rest.bytes.extend_from_slice(&frames[at..at + len]);
                (at, appended) = (at + len, appended + len);
                seen.extend(server.rest_received(T0, begin).event.map(Seen::from));
                continue;
            }
            let mut input = frames[at..frames.len().min(at + cut)].to_vec();
            let received = server.receive(T0, &mut input);
            at += received.consumed;
            seen.extend(received.event.map(Seen::from));
        }
        let expected = [Seen::Text(text.concat()), Seen::Binary(b"after".to_vec())];
        prop_assert!(seen == expected, "what was seen differs"); // too long to be shown
        prop_assert!(cut > 20_000 || appended > 0, "nothing went without a copy");
    }
}

#[test]
fn what_is_wrong_in_the_rest_of_a_large_frame_fails_the_connection() {
    let mut text = vec![b'a'; 200_000];
    text[150_000] = 0xff;
    let frame = masked(Opcode::Text, &text);
    let mut server = server();
    assert!(server.receive(T0, &mut frame[..1000].to_vec()).event.is_none());
    let rest = server.rest().unwrap();
    let begin = rest.bytes.len();
    rest.bytes.extend_from_slice(&frame[1000..]);
    let event = server.rest_received(T0, begin).event;
    assert_eq!(event, Some(Event::Failed(ProtocolError::TextNotUtf8)));
    assert!(server.rest().is_none());
}

#[test]
fn there_is_no_rest_where_nothing_is_collected() {
    let frame = masked(Opcode::Binary, &[7; 200_000]);
    let mut server = server();
    assert!(server.rest().is_none(), "between messages");
    server.take_pieces();
    let _ = server.receive(T0, &mut frame[..1000].to_vec());
    assert!(server.rest().is_none(), "in pieces");
    let mut server = self::server();
    let _ = server.receive(T0, &mut frame[..150_000].to_vec());
    assert!(server.rest().is_none(), "less than 64 KiB");
}
