//! permessage-deflate on a connection (RFC 7692 sections 6 and 7.2).

use std::cell::Cell;

use super::*;
use crate::handshake::{ClientHandshake, Nonce, ServerHandshake};
use crate::{Codecs, CompressionLevel, DeflateConfig, NegotiatedDeflate, WindowBits};

thread_local! {
    static CODECS: Cell<Codecs> = const { Cell::new(Codecs::new()) };
}

fn exchange(codecs: Codecs) -> Codecs {
    CODECS.replace(codecs)
}

/// Compresses everything.
pub(super) fn all() -> DeflateConfig {
    let level = CompressionLevel::BALANCED;
    DeflateConfig { level, compress_bytes_min: 0, ..DeflateConfig::default() }
}

pub(super) fn all_with_takeover() -> DeflateConfig {
    DeflateConfig { own_context_takeover: true, peer_context_takeover: true, ..all() }
}

/// The parameters that a client and a server agree on.
pub(super) fn negotiate(
    client: &DeflateConfig,
    server: &DeflateConfig,
) -> (NegotiatedDeflate, NegotiatedDeflate) {
    let mut opening = ClientHandshake::new(Nonce([7; 16]), &[]).with_deflate(client.clone());
    let request = opening.request("localhost", "/", &[]);
    let mut accepting = ServerHandshake::default().with_deflate(server.clone());
    let accepted = accepting.receive(request.as_bytes(), &[]).unwrap().unwrap().response;
    let established = opening.receive(accepted.head().as_bytes()).unwrap().unwrap();
    (established.deflate.unwrap(), accepted.deflate.unwrap())
}

pub(super) fn ends(
    client_config: &DeflateConfig,
    server_config: &DeflateConfig,
) -> (Connection, Connection) {
    let (for_client, for_server) = negotiate(client_config, server_config);
    let client = client().with_deflate(&for_client, exchange);
    (client, server().with_deflate(&for_server, exchange))
}

fn deflating_server(config: Config, deflate: &DeflateConfig) -> Connection {
    let (_, negotiated) = negotiate(deflate, deflate);
    server_with(config).with_deflate(&negotiated, exchange)
}

/// A frame from a client with RSV1 set.
fn compressed(fin: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let header = Header::new(opcode, payload.len() as u64);
    frame(Header { fin, rsv1: true, mask: Some(KEY), ..header }, payload)
}

fn deflate_failure(config: Config, bytes: &[u8]) -> (ProtocolError, u16) {
    let mut server = deflating_server(config, &all());
    let seen = receive(&mut server, [bytes]);
    let Some(Seen::Failed(error)) = seen.last().cloned() else { panic!("no failure in {seen:?}") };
    let code = error.close_code().get();
    assert_eq!(transmit(&mut server)[2..4], code.to_be_bytes());
    (error, code)
}

#[test]
fn the_frames_of_section_7_2_3_are_sent_and_received() {
    let (mut client, mut server) = ends(&all_with_takeover(), &all_with_takeover());
    let hello = [0xc1, 0x07, 0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let hello_again = [0xc1, 0x05, 0xf2, 0x00, 0x11, 0x00, 0x00];
    for expected in [&hello[..], &hello_again] {
        server.sender().send(Message::Text("Hello")).unwrap();
        assert_eq!(transmit(&mut server), expected);
        assert_eq!(receive(&mut client, [expected]), [Seen::Text("Hello".into())]);
    }
    // 7.2.3.1, in fragments
    let fragments = [0x41, 0x03, 0xf2, 0x48, 0xcd, 0x80, 0x04, 0xc9, 0xc9, 0x07, 0x00];
    let (mut client, _) = ends(&all(), &all());
    assert_eq!(receive(&mut client, [&fragments[..]]), [Seen::Text("Hello".into())]);
    assert_eq!(receive(&mut client, fragments.chunks(1)), [Seen::Text("Hello".into())]);
}

#[test]
fn rsv1_may_stand_on_the_first_frame_of_a_message_only() {
    // section 6.1
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let error = (ProtocolError::ReservedBits { bits: 0b100 }, 1002);
    for bytes in [
        [
            compressed(false, Opcode::Text, &hello[..3]),
            compressed(true, Opcode::Continuation, &hello[3..]),
        ]
        .concat(),
        [fragment(false, Opcode::Text, b"a"), compressed(true, Opcode::Continuation, &hello)]
            .concat(),
        compressed(true, Opcode::Ping, &[]),
        compressed(true, Opcode::Close, &[]),
    ] {
        assert_eq!(deflate_failure(Config::default(), &bytes), error);
    }
    // Nor without having been negotiated.
    assert_eq!(failure(Config::default(), &compressed(true, Opcode::Text, &hello)), error);
}

#[test]
fn messages_may_be_compressed_or_not_as_the_sender_likes() {
    // section 6
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let bytes = [
        masked(Opcode::Text, b"one"),
        compressed(true, Opcode::Binary, &hello),
        compressed(false, Opcode::Text, &hello[..3]),
        masked(Opcode::Ping, b"between"),
        fragment(false, Opcode::Continuation, &[]),
        fragment(true, Opcode::Continuation, &hello[3..]),
        fragment(false, Opcode::Text, b"tw"),
        fragment(true, Opcode::Continuation, b"o"),
        compressed(true, Opcode::Text, &[0x00]),
    ];
    let expected = [
        Seen::Text("one".into()),
        Seen::Binary(b"Hello".to_vec()),
        Seen::Ping(b"between".to_vec()),
        Seen::Text("Hello".into()),
        Seen::Text("two".into()),
        Seen::Text(String::new()),
    ];
    let mut server = deflating_server(Config::default(), &all());
    assert_eq!(receive(&mut server, [&bytes.concat()[..]]), expected);
}

#[test]
fn small_messages_and_such_that_do_not_shrink_are_sent_as_they_are() {
    let config = DeflateConfig { compress_bytes_min: 10, ..all() };
    let (_, mut server) = ends(&config, &config);
    for payload in [&b"aaaaaaaaa"[..], b"0123456789abcdefghij", b""] {
        server.sender().send(Message::Binary(payload)).unwrap();
        assert_eq!(transmit(&mut server), unmasked(Opcode::Binary, payload));
    }
    server.sender().send(Message::Binary(&[7; 10])).unwrap();
    assert_eq!(transmit(&mut server)[0], 0xc2);
}

#[test]
fn with_takeover_what_does_not_shrink_is_compressed_all_the_same() {
    // The compressor will refer to it: section 7.2.3.2.
    let (mut client, mut server) = ends(&all_with_takeover(), &all_with_takeover());
    let payload = b"0123456789abcdefghij";
    for longest in [payload.len() + 7, 10] {
        client.sender().send(Message::Binary(payload)).unwrap();
        let bytes = transmit(&mut client);
        assert_eq!(bytes[0], 0xc2);
        assert!(bytes.len() <= 6 + longest, "{}", bytes.len());
        assert_eq!(receive(&mut server, [&bytes[..]]), [Seen::Binary(payload.to_vec())]);
    }
}

#[test]
fn fragments_are_one_compressed_message() {
    // section 6.1
    for config in [all(), all_with_takeover()] {
        let (mut client, mut server) = ends(&config, &config);
        for _ in 0..2 {
            for (at, part) in
                ["", "some text, ", "", "some text, ", "and an end", ""].iter().enumerate()
            {
                server.sender().ping(b"").unwrap();
                let sender = server.sender();
                sender.send_fragment(MessageKind::Text, part.as_bytes(), at == 5).unwrap();
            }
            let bytes = transmit(&mut server);
            let seen: Vec<Seen> = receive(&mut client, bytes.chunks(3));
            assert_eq!(seen[seen.len() - 1], Seen::Text("some text, some text, and an end".into()));
            assert_eq!(seen.len(), 7);
            assert_eq!(&bytes[..3], [0x89, 0x00, 0x41]);
        }
    }
}

#[test]
fn a_thread_lends_one_inflater_to_connections_in_turn() {
    CODECS.take();
    let (mut client, mut server) = ends(&all(), &all());
    let (mut other_client, mut other) = ends(&all(), &all());
    let (a, b) = ("a".repeat(1000), "b".repeat(1000));
    client.sender().send(Message::Text(&a)).unwrap();
    other_client.sender().send(Message::Text(&b)).unwrap();
    let (a_bytes, b_bytes) = (transmit(&mut client), transmit(&mut other_client));
    // Both are in the middle of a message at once.
    assert_eq!(receive(&mut server, [&a_bytes[..12]]), []);
    assert_eq!(receive(&mut other, [&b_bytes[..12]]), []);
    assert_eq!(receive(&mut server, [&a_bytes[12..]]), [Seen::Text(a)]);
    assert_eq!(receive(&mut other, [&b_bytes[12..]]), [Seen::Text(b)]);
    let kept = format!("{:?}", CODECS.take());
    assert!(kept.contains("Some(Inflater"), "{kept}");
    assert_eq!(kept.matches("Compressor {").count(), 1, "{kept}");
}

#[test]
fn a_connection_works_without_a_set_that_is_kept() {
    let (for_client, for_server) = negotiate(&all(), &all());
    let mut client = client().with_deflate(&for_client, |_| Codecs::new());
    let mut server = server().with_deflate(&for_server, |_| Codecs::new());
    client.sender().send(Message::Text(&"x".repeat(100))).unwrap();
    let bytes = transmit(&mut client);
    assert!(bytes.len() < 20);
    assert_eq!(receive(&mut server, [&bytes[..]]), [Seen::Text("x".repeat(100))]);
}

#[test]
fn inflated_text_fails_before_its_message_is_whole() {
    // RFC 6455 section 8.1. A stored block of which only part has come.
    let payload = [0x00, 0x10, 0x00, 0xef, 0xff, b'a', 0xff];
    let bytes = compressed(false, Opcode::Text, &payload);
    assert_eq!(deflate_failure(Config::default(), &bytes), (ProtocolError::TextNotUtf8, 1007));
    // And a character cut by the end of the message.
    let payload = [0x00, 0x02, 0x00, 0xfd, 0xff, 0xe2, 0x82, 0x00];
    let bytes = compressed(true, Opcode::Text, &payload);
    assert_eq!(deflate_failure(Config::default(), &bytes), (ProtocolError::TextNotUtf8, 1007));
}

#[test]
fn data_that_is_not_deflate_fails_with_1007() {
    for payload in [&[0xff; 3][..], &[0xf2, 0x48], &[0xf2, 0x00, 0x11, 0x00, 0x00]] {
        let bytes = compressed(true, Opcode::Binary, payload);
        let failure = deflate_failure(Config::default(), &bytes);
        assert_eq!(failure, (ProtocolError::DeflateInvalid, 1007), "{payload:x?}");
    }
}

#[test]
fn a_bomb_fails_with_1009_and_a_message_at_the_limit_does_not() {
    // section 8 of RFC 7692, section 10.4 of RFC 6455
    let limit = 1 << 20;
    let config = || Config { message_bytes_max: limit, ..Config::default() };
    let (mut client, _) = ends(&all(), &all());
    let mut server = deflating_server(config(), &all());
    client.sender().send(Message::Binary(&vec![0; limit as usize])).unwrap();
    let seen = receive(&mut server, [&transmit(&mut client)[..]]);
    assert_eq!(seen, [Seen::Binary(vec![0; limit as usize])]);

    client.sender().send(Message::Binary(&vec![0; 8 << 20])).unwrap();
    let bytes = transmit(&mut client);
    assert!(bytes.len() < 10 << 10);
    let error = (ProtocolError::InflatedTooBig { limit }, 1009);
    assert_eq!(deflate_failure(config(), &bytes), error);
    // It need not be whole for that.
    assert_eq!(deflate_failure(config(), &bytes[..4096]), error);
}

#[test]
fn compression_costs_an_idle_connection_only_what_it_takes_over() {
    let (_, negotiated) = negotiate(&all(), &all());
    let mut server = server().with_deflate(&negotiated, exchange);
    let hello = compressed(true, Opcode::Text, &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]);
    assert_eq!(receive(&mut server, [&hello[..]]), [Seen::Text("Hello".into())]);
    server.sender().send(Message::Text(&"x".repeat(1000))).unwrap();
    transmit(&mut server);
    let idle = format!("{server:?}");
    assert!(!idle.contains("Compressor {") && !idle.contains("Some(Inflater"), "{idle}");
    assert!(!idle.contains("Assembly"), "{idle}");
}

/// The bytes that a receiver keeps of a message that has begun, but for its inflater.
fn kept_bytes(connection: &mut Connection) -> usize {
    connection.sender();
    connection.receiver.collected_capacity()
}

#[test]
fn a_compressed_message_comes_in_pieces_of_32_kib_at_most() {
    let (mut client, _) = ends(&all(), &all());
    let mut server = deflating_server(Config::default(), &all());
    server.take_pieces();
    client.sender().send(Message::Binary(&vec![7; 5 << 20])).unwrap();
    let bytes = transmit(&mut client);
    for chunk in [bytes.len(), 1000, 100] {
        let (mut lens, mut ends) = (Vec::new(), Vec::new());
        for seen in receive(&mut server, bytes.chunks(chunk)) {
            let Seen::Piece(MessageKind::Binary, payload, is_first, is_last) = seen else {
                panic!("no piece")
            };
            assert!(payload.iter().all(|&byte| byte == 7));
            assert_eq!(is_first, lens.is_empty());
            lens.push(payload.len());
            ends.push(is_last);
        }
        assert_eq!(ends.iter().position(|&is_last| is_last), Some(ends.len() - 1));
        assert_eq!(lens.iter().sum::<usize>(), 5 << 20);
        assert!(lens.iter().all(|&len| len <= 32 << 10), "{lens:?}");
    }
}

#[test]
fn a_short_compressed_message_that_came_at_once_is_no_piece() {
    let mut server = deflating_server(Config::default(), &all());
    server.take_pieces();
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let bytes = compressed(true, Opcode::Text, &hello);
    assert_eq!(receive(&mut server, [&bytes[..]]), [Seen::Text("Hello".into())]);
}

#[test]
fn an_unfinished_bomb_holds_nothing_where_pieces_are_taken() {
    let (mut client, _) = ends(&all(), &all());
    client.sender().send_fragment(MessageKind::Binary, &vec![0; 1 << 20], false).unwrap();
    let bytes = transmit(&mut client);
    assert!(bytes.len() < 2000);
    for takes_pieces in [false, true] {
        let mut server = deflating_server(Config::default(), &all());
        if takes_pieces {
            server.take_pieces();
        }
        receive(&mut server, [&bytes[..]]);
        assert!(server.is_amid_message());
        let kept = kept_bytes(&mut server);
        assert_eq!(kept == 0, takes_pieces, "{kept} bytes");
        assert!(takes_pieces || kept >= 1 << 20);
    }
}

#[test]
fn a_reply_in_fragments_keeps_no_compressor_between_them() {
    let (mut client, mut server) = ends(&all(), &all());
    let text = "some text, ".repeat(1000);
    for fin in [false, false, true] {
        let sender = server.sender();
        sender.send_fragment(MessageKind::Text, text.as_bytes(), fin).unwrap();
        let kept = format!("{:?}", server.sender);
        assert!(!kept.contains("Compressor {"), "{kept}");
    }
    let seen = receive(&mut client, [&transmit(&mut server)[..]]);
    assert_eq!(seen, [Seen::Text(text.repeat(3))]);
}

/// The same as [`receive`] with a connection that pauses; checks that no call inflates more than it may.
fn receive_with_pauses(connection: &mut Connection, bytes: &[u8]) -> (Vec<Seen>, usize) {
    connection.pause_often();
    let (mut seen, mut pauses) = (Vec::new(), 0);
    let mut input = bytes.to_vec();
    let mut rest = &mut input[..];
    while !rest.is_empty() {
        let before = connection.receiver.collected_len();
        let received = connection.receive(T0, rest);
        let consumed = received.consumed;
        match received.event {
            Some(event) => seen.push(Seen::from(event)),
            None => {
                pauses += 1;
                let inflated = connection.receiver.collected_len().saturating_sub(before);
                assert!(inflated <= 32 << 10, "{inflated}");
            }
        }
        rest = &mut rest[consumed..];
    }
    (seen, pauses)
}

#[test]
fn a_connection_that_pauses_inflates_no_more_than_32_kib_at_once() {
    let (mut client, _) = ends(&all(), &all());
    let mut server = deflating_server(Config::default(), &all());
    let payload = vec![0; 1 << 20];
    for _ in 0..2 {
        client.sender().send(Message::Binary(&payload)).unwrap();
    }
    let (seen, pauses) = receive_with_pauses(&mut server, &transmit(&mut client));
    assert_eq!(seen, [Seen::Binary(payload.clone()), Seen::Binary(payload)]);
    assert!(pauses >= 2 * 31, "{pauses}");
}

fn any_config() -> impl Strategy<Value = DeflateConfig> {
    let flags = any::<(bool, bool)>();
    (flags, 9..=15_u8, 9..=15_u8, 1..=9_u8, prop_oneof![Just(0_usize), Just(100)]).prop_map(
        |((own_context_takeover, peer_context_takeover), own, peer, level, compress_bytes_min)| {
            DeflateConfig {
                level: CompressionLevel::new(level).unwrap(),
                compress_bytes_min,
                own_window_bits: WindowBits::new(own).unwrap(),
                peer_window_bits: WindowBits::new(peer).unwrap(),
                own_context_takeover,
                peer_context_takeover,
            }
        },
    )
}

fn any_message() -> impl Strategy<Value = (Vec<u8>, bool, Vec<prop::sample::Index>)> {
    let text = "\\PC{0,40}".prop_map(String::into_bytes);
    let ascii = "[ a-f\":,{}]{0,300}".prop_map(String::into_bytes);
    let payload = prop_oneof![
        text.prop_map(|bytes| (bytes, true)),
        ascii.prop_map(|bytes| (bytes, true)),
        prop::collection::vec(any::<u8>(), 0..1000).prop_map(|bytes| (bytes, false)),
        (any::<u8>(), 0..20_000_usize).prop_map(|(byte, len)| (vec![byte; len], false)),
    ];
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    (payload, cuts).prop_map(|((bytes, is_text), cuts)| (bytes, is_text, cuts))
}

/// Sends a message, in one frame where there are no cuts, and returns what should arrive.
fn send(sender: &mut Sender, bytes: &[u8], is_text: bool, cuts: &[prop::sample::Index]) -> Seen {
    let message = match str::from_utf8(bytes) {
        Ok(text) if is_text => Message::Text(text),
        _ => Message::Binary(bytes),
    };
    if cuts.is_empty() {
        sender.send(message).unwrap();
    } else {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        for (i, pair) in at.windows(2).enumerate() {
            let fin = i + 2 == at.len();
            sender.send_fragment(message.kind(), &bytes[pair[0]..pair[1]], fin).unwrap();
        }
    }
    Seen::from(Event::Message(message))
}

proptest! {
    #[test]
    fn what_one_end_sends_the_other_receives_whatever_was_negotiated(
        client_config in any_config(),
        server_config in any_config(),
        messages in prop::collection::vec((any::<bool>(), any_message()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut client, mut server) = ends(&client_config, &server_config);
        for (from_client, (bytes, is_text, cuts)) in &messages {
            let (from, to) = if *from_client { (&mut client, &mut server) } else { (&mut server, &mut client) };
            let expected = send(from.sender(), bytes, *is_text, cuts);
            let bytes = transmit(from);
            let (a, b) = bytes.split_at(cut.index(bytes.len()));
            prop_assert_eq!(receive(to, [a, b]), [expected]);
        }
    }

    #[test]
    fn any_split_of_compressed_traffic_gives_the_same_events(
        config in any_config(),
        messages in prop::collection::vec(any_message(), 0..5),
        wrong in prop::option::of((0..3_u8, prop::collection::vec(any::<u8>(), 0..100))),
        limit in prop_oneof![Just(1_u64 << 20), 0..400_u64],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let (mut client, _) = ends(&config, &config);
        for (bytes, is_text, cuts) in &messages {
            send(client.sender(), bytes, *is_text, cuts);
        }
        let mut bytes = transmit(&mut client);
        if let Some((kind, payload)) = wrong {
            bytes.extend(compressed(kind != 0, if kind == 1 { Opcode::Text } else { Opcode::Binary }, &payload));
        }
        bytes.extend(masked(Opcode::Ping, b"after"));

        let new_server = || deflating_server(Config { message_bytes_max: limit, ..Config::default() }, &config);
        let expected = receive(&mut new_server(), [&bytes[..]]);
        prop_assert_eq!(&receive(&mut new_server(), bytes.chunks(1)), &expected);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces = || at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(&receive(&mut new_server(), pieces()), &expected);
        prop_assert_eq!(&receive_with_pauses(&mut new_server(), &bytes).0, &expected);
        let mut taking = new_server();
        taking.take_pieces();
        let seen = receive(&mut taking, pieces());
        prop_assert_eq!(&put_together(seen), &expected);
    }

    #[test]
    fn no_compressed_payload_panics(payload: Vec<u8>, fin: bool, is_text: bool, takes_over: bool) {
        let config = if takes_over { all_with_takeover() } else { all() };
        let mut server = deflating_server(Config::default(), &config);
        let opcode = if is_text { Opcode::Text } else { Opcode::Binary };
        for _ in 0..2 {
            receive(&mut server, [&compressed(fin, opcode, &payload)[..]]);
        }
    }
}
