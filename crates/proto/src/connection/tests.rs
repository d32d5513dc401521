mod deflate;
mod prepared;
mod rest;
mod time;

use proptest::prelude::*;

use super::*;
use crate::{CloseCode, Header, MaskKey, MisuseError, Opcode, Piece};

const T0: Time = Time::ZERO;
const KEY: MaskKey = MaskKey([0x37, 0xfa, 0x21, 0x3d]);

fn server() -> Connection {
    server_with(Config::default())
}

fn server_with(config: Config) -> Connection {
    Connection::server(Arc::new(config), T0)
}

fn client() -> Connection {
    Connection::client(Arc::default(), T0, Box::new(|| KEY))
}

fn frame(header: Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    let begin = bytes.len();
    bytes.extend_from_slice(payload);
    if let Some(key) = header.mask {
        key.apply(&mut bytes[begin..]);
    }
    bytes
}

fn unmasked(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    frame(Header::new(opcode, payload.len() as u64), payload)
}

fn fragment(fin: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    frame(Header { fin, mask: Some(KEY), ..Header::new(opcode, payload.len() as u64) }, payload)
}

fn masked(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    fragment(true, opcode, payload)
}

/// An event that owns its data.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Seen {
    Text(String),
    Binary(Vec<u8>),
    Piece(MessageKind, Vec<u8>, bool, bool),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<CloseFrame>),
    Failed(ProtocolError),
}

impl From<Event<'_>> for Seen {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Message(Message::Text(text)) => Self::Text(text.to_owned()),
            Event::Message(Message::Binary(bytes)) => Self::Binary(bytes.to_vec()),
            Event::Piece(Piece { kind, bytes, is_first, is_last }) => {
                Self::Piece(kind, bytes.to_vec(), is_first, is_last)
            }
            Event::Ping(payload) => Self::Ping(payload.to_vec()),
            Event::Pong { payload, .. } => Self::Pong(payload.to_vec()),
            Event::Close(frame) => Self::Close(frame),
            Event::Failed(error) => Self::Failed(error),
        }
    }
}

fn receive<'a>(
    connection: &mut Connection,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Seen> {
    let mut seen = Vec::new();
    for piece in pieces {
        let mut input = piece.to_vec();
        let mut rest = &mut input[..];
        while !rest.is_empty() {
            let received = connection.receive(T0, rest);
            let consumed = received.consumed;
            let is_last = received.event.is_none();
            seen.extend(received.event.map(Seen::from));
            assert!(!is_last || consumed == rest.len(), "input left over without an event");
            rest = &mut rest[consumed..];
        }
    }
    seen
}

/// The messages that pieces make up, among everything else.
fn put_together(events: Vec<Seen>) -> Vec<Seen> {
    let (mut seen, mut message) = (Vec::new(), Vec::new());
    for event in events {
        let Seen::Piece(kind, bytes, is_first, is_last) = event else {
            seen.push(event);
            continue;
        };
        assert!(!is_first || message.is_empty());
        message.extend_from_slice(&bytes);
        if is_last {
            let bytes = std::mem::take(&mut message);
            seen.push(match kind {
                MessageKind::Text => Seen::Text(String::from_utf8(bytes).unwrap()),
                MessageKind::Binary => Seen::Binary(bytes),
            });
        }
    }
    seen
}

fn transmit(connection: &mut Connection) -> Vec<u8> {
    let bytes = connection.sender().transmit().to_vec();
    connection.sender().transmitted(bytes.len());
    bytes
}

fn failure(config: Config, bytes: &[u8]) -> (ProtocolError, u16) {
    let mut server = server_with(config);
    let seen = receive(&mut server, [bytes]);
    let Some(Seen::Failed(error)) = seen.last().cloned() else { panic!("no failure in {seen:?}") };
    assert!(server.is_closed());
    let close = transmit(&mut server);
    let (header, len) = Header::decode(&close).unwrap().unwrap();
    assert_eq!(header.opcode, Opcode::Close);
    let frame = CloseFrame::decode(&close[len..]).unwrap().unwrap();
    assert_eq!(frame.code, error.close_code());
    (error, frame.code.get())
}

#[test]
fn the_masked_hello_of_section_5_7_is_a_text_message() {
    let bytes = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(receive(&mut server(), [&bytes[..]]), [Seen::Text("Hello".into())]);
}

#[test]
fn fragments_make_one_message_of_the_first_ones_kind() {
    // section 5.4
    let bytes = [
        fragment(false, Opcode::Text, b"Hel"),
        fragment(false, Opcode::Continuation, b""),
        fragment(true, Opcode::Continuation, b"lo"),
        masked(Opcode::Binary, b"next"),
    ]
    .concat();
    let expected = [Seen::Text("Hello".into()), Seen::Binary(b"next".to_vec())];
    assert_eq!(receive(&mut server(), [&bytes[..]]), expected);
}

#[test]
fn control_frames_may_stand_between_fragments() {
    // section 5.4
    let bytes = [
        fragment(false, Opcode::Binary, b"a"),
        masked(Opcode::Ping, b"p"),
        masked(Opcode::Pong, b"q"),
        fragment(true, Opcode::Continuation, b"b"),
    ]
    .concat();
    let expected =
        [Seen::Ping(b"p".to_vec()), Seen::Pong(b"q".to_vec()), Seen::Binary(b"ab".to_vec())];
    assert_eq!(receive(&mut server(), [&bytes[..]]), expected);
}

#[test]
fn ping_is_answered_with_the_same_payload() {
    // section 5.5.3
    let mut server = server();
    receive(&mut server, [&masked(Opcode::Ping, b"hi")[..]]);
    assert_eq!(transmit(&mut server), unmasked(Opcode::Pong, b"hi"));
}

#[test]
fn a_character_may_be_cut_by_fragments_but_not_by_the_message() {
    // sections 5.6 and 8.1
    let euro = "€".as_bytes();
    let whole = [
        fragment(false, Opcode::Text, &euro[..1]),
        fragment(true, Opcode::Continuation, &euro[1..]),
    ];
    assert_eq!(receive(&mut server(), [&whole.concat()[..]]), [Seen::Text("€".into())]);
    let (error, code) = failure(Config::default(), &masked(Opcode::Text, &euro[..2]));
    assert_eq!((error, code), (ProtocolError::TextNotUtf8, 1007));
}

#[test]
fn invalid_text_fails_before_its_frame_is_whole() {
    // section 8.1
    let bytes = masked(Opcode::Text, b"\xce\xba\xff and more");
    let mut server = server();
    assert_eq!(receive(&mut server, [&bytes[..8]]), []);
    assert_eq!(receive(&mut server, [&bytes[8..9]]), [Seen::Failed(ProtocolError::TextNotUtf8)]);
}

#[test]
fn a_close_frame_is_answered_with_its_code_and_nothing_is_read_after_it() {
    // section 5.5.1
    let mut server = server();
    let close = CloseFrame::new(CloseCode::NORMAL, "bye");
    let bytes = [masked(Opcode::Close, &close.encode()), masked(Opcode::Text, b"late")].concat();
    assert_eq!(receive(&mut server, [&bytes[..]]), [Seen::Close(Some(close))]);
    assert!(server.is_closed());
    assert_eq!(transmit(&mut server), unmasked(Opcode::Close, &1000_u16.to_be_bytes()));
    assert_eq!(server.sender().send(Message::Text("x")), Err(MisuseError::Closing));
}

#[test]
fn a_close_frame_without_a_code_is_answered_without_one() {
    // section 5.5.1
    let mut server = server();
    assert_eq!(receive(&mut server, [&masked(Opcode::Close, b"")[..]]), [Seen::Close(None)]);
    assert_eq!(transmit(&mut server), unmasked(Opcode::Close, b""));
}

#[test]
fn after_our_close_frame_messages_still_arrive_and_pings_go_unanswered() {
    // section 5.5.1
    let mut server = server();
    server.sender().close(Some(&CloseFrame::new(CloseCode::GOING_AWAY, ""))).unwrap();
    transmit(&mut server);
    let bytes =
        [masked(Opcode::Text, b"late"), masked(Opcode::Ping, b""), masked(Opcode::Close, b"")];
    let expected = [Seen::Text("late".into()), Seen::Ping(vec![]), Seen::Close(None)];
    assert_eq!(receive(&mut server, [&bytes.concat()[..]]), expected);
    assert!(server.is_closed());
    assert_eq!(transmit(&mut server), [0_u8; 0]);
}

#[test]
fn each_violation_fails_with_its_code() {
    let length_16 = [0x82, 0x80 | 126, 0, 1, 0, 0, 0, 0, 0];
    let cases: [(&[u8], ProtocolError, u16); 12] = [
        (&[0xc1], ProtocolError::ReservedBits { bits: 0b100 }, 1002),
        (&[0x91], ProtocolError::ReservedBits { bits: 0b001 }, 1002),
        (&[0x83], ProtocolError::UnknownOpcode { opcode: 3 }, 1002),
        (&unmasked(Opcode::Text, b"x"), ProtocolError::MaskMissing, 1002),
        (&length_16, ProtocolError::LengthNotMinimal { len: 1 }, 1002),
        (&[0x89, 0xfe, 0, 126], ProtocolError::ControlFrameTooLong, 1002),
        (&[0x09, 0x80], ProtocolError::ControlFrameFragmented { opcode: Opcode::Ping }, 1002),
        (&masked(Opcode::Continuation, b""), ProtocolError::ContinuationUnexpected, 1002),
        (&masked(Opcode::Close, &[3]), ProtocolError::CloseFrameTooShort, 1002),
        (&masked(Opcode::Close, &[3, 0xed]), ProtocolError::CloseCodeInvalid { code: 1005 }, 1002),
        (&masked(Opcode::Close, &[3, 0xe8, 0xff]), ProtocolError::CloseReasonNotUtf8, 1007),
        (&masked(Opcode::Text, &[0xff]), ProtocolError::TextNotUtf8, 1007),
    ];
    for (bytes, error, code) in cases {
        // With a reserved bit, the whole header is needed to recognize a negotiated one.
        let bytes = if bytes == [0xc1] { &[0xc1, 0x80, 0, 0, 0, 0][..] } else { bytes };
        assert_eq!(failure(Config::default(), bytes), (error, code), "{bytes:x?}");
    }
}

#[test]
fn a_new_message_before_the_last_was_finished_fails() {
    // section 5.4
    let bytes = [fragment(false, Opcode::Text, b"a"), masked(Opcode::Text, b"b")].concat();
    let (error, _) = failure(Config::default(), &bytes);
    assert_eq!(error, ProtocolError::MessageInterrupted { opcode: Opcode::Text });
}

#[test]
fn a_masked_frame_from_a_server_fails() {
    // section 5.1
    let seen = receive(&mut client(), [&masked(Opcode::Text, b"x")[..]]);
    assert_eq!(seen, [Seen::Failed(ProtocolError::MaskUnexpected)]);
}

#[test]
fn limits_hold_at_their_edge() {
    // section 10.4
    let config = || Config {
        frame_bytes_max: 10,
        message_bytes_max: 15,
        fragments_max: 3,
        ..Config::default()
    };
    let accepted = [
        masked(Opcode::Binary, &[0; 10]),
        fragment(false, Opcode::Binary, &[0; 10]),
        fragment(false, Opcode::Continuation, &[0; 5]),
        fragment(true, Opcode::Continuation, &[]),
    ];
    let seen = receive(&mut server_with(config()), [&accepted.concat()[..]]);
    assert_eq!(seen, [Seen::Binary(vec![0; 10]), Seen::Binary(vec![0; 15])]);

    // Found from the header alone, before any of the payload.
    let frame = failure(config(), &masked(Opcode::Binary, &[0; 11])[..6]);
    assert_eq!(frame, (ProtocolError::FrameTooBig { len: 11, limit: 10 }, 1009));
    let message =
        [fragment(false, Opcode::Binary, &[0; 10]), fragment(true, Opcode::Continuation, &[0; 6])];
    let message = failure(config(), &message.concat());
    assert_eq!(message, (ProtocolError::MessageTooBig { len: 16, limit: 15 }, 1009));
    let chain = [
        fragment(false, Opcode::Binary, &[]),
        fragment(false, Opcode::Continuation, &[]).repeat(3),
    ];
    let chain = failure(config(), &chain.concat());
    assert_eq!(chain, (ProtocolError::TooManyFragments { limit: 3 }, 1008));
}

#[test]
fn what_must_not_be_sent_is_refused() {
    let mut server = server();
    let sender = server.sender();
    assert_eq!(sender.ping(&[0; 126]), Err(MisuseError::ControlPayloadTooLong { len: 126 }));
    sender.send_fragment(MessageKind::Text, b"a", false).unwrap();
    assert_eq!(sender.send(Message::Text("b")), Err(MisuseError::MessageUnfinished));
    let changed = sender.send_fragment(MessageKind::Binary, b"b", true);
    assert_eq!(changed, Err(MisuseError::KindChanged));
    sender.ping(b"").unwrap();
    sender.send_fragment(MessageKind::Text, b"b", true).unwrap();
    sender.close(None).unwrap();
    assert_eq!(sender.close(None), Err(MisuseError::Closing));
    assert_eq!(sender.ping(b""), Err(MisuseError::Closing));
}

#[test]
fn output_is_written_in_any_pieces_and_its_memory_given_back() {
    let mut server = server();
    server.sender().send(Message::Binary(&[7; 100_000])).unwrap();
    let mut written = Vec::new();
    while server.sender().queued_bytes() > 0 {
        let len = server.sender().transmit().len().min(30_000);
        written.extend_from_slice(&server.sender().transmit()[..len]);
        server.sender().transmitted(len);
    }
    assert_eq!(written, unmasked(Opcode::Binary, &[7; 100_000]));
    assert_eq!(server.sender().transmit().as_ptr_range().start.addr(), [0_u8; 0].as_ptr().addr());
}

#[test]
fn nothing_is_lost_when_more_is_reported_than_was_queued() {
    let mut server = server();
    server.sender().transmitted(5);
    server.sender().ping(b"").unwrap();
    server.sender().transmitted(usize::MAX);
    server.sender().transmitted(usize::MAX);
    server.sender().ping(b"hi").unwrap();
    assert_eq!(transmit(&mut server), unmasked(Opcode::Ping, b"hi"));
}

#[test]
fn a_message_in_pieces_comes_as_it_arrives_and_keeps_its_limits() {
    let mut server = server_with(Config { message_bytes_max: 10, ..Config::default() });
    server.take_pieces();
    let bytes =
        [masked(Opcode::Text, "aé".as_bytes()), fragment(false, Opcode::Binary, &[7; 6])].concat();
    let whole = receive(&mut server, [&bytes[..]]);
    let first = Seen::Piece(MessageKind::Binary, vec![7; 6], true, false);
    assert_eq!(whole, [Seen::Text("aé".into()), first]);
    let rest = fragment(true, Opcode::Continuation, &[8; 4]);
    let seen = receive(&mut server, [&rest[..7], &rest[7..]]);
    let pieces = [(&[8][..], false), (&[8, 8, 8], true)]
        .map(|(bytes, is_last)| Seen::Piece(MessageKind::Binary, bytes.to_vec(), false, is_last));
    assert_eq!(seen, pieces);
    let long =
        [fragment(false, Opcode::Binary, &[1; 6]), fragment(true, Opcode::Continuation, &[1; 5])];
    let seen = receive(&mut server, [&long.concat()[..]]);
    assert_eq!(
        seen.last(),
        Some(&Seen::Failed(ProtocolError::MessageTooBig { len: 11, limit: 10 }))
    );
}

#[test]
fn text_in_pieces_is_checked_across_them() {
    // RFC 6455 section 8.1
    let mut server = server();
    server.take_pieces();
    let bytes = masked(Opcode::Text, "€".as_bytes());
    let seen = receive(&mut server, [&bytes[..7], &bytes[7..]]);
    assert!(matches!(&seen[..], [Seen::Piece(..), Seen::Piece(_, _, false, true)]), "{seen:?}");
    let cut = masked(Opcode::Text, &"€".as_bytes()[..2]);
    let seen = receive(&mut server, [&cut[..7], &cut[7..]]);
    assert_eq!(seen.last(), Some(&Seen::Failed(ProtocolError::TextNotUtf8)));
}

/// Any traffic of a peer, as the frames that carry it.
fn any_traffic() -> impl Strategy<Value = Vec<u8>> {
    let payload = || prop::collection::vec(any::<u8>(), 0..300);
    let text = || "\\PC{0,60}".prop_map(String::into_bytes);
    let whole = prop_oneof![
        payload().prop_map(|bytes| masked(Opcode::Binary, &bytes)),
        text().prop_map(|bytes| masked(Opcode::Text, &bytes)),
        prop::collection::vec(any::<u8>(), 0..126).prop_map(|bytes| masked(Opcode::Ping, &bytes)),
        prop::collection::vec(any::<u8>(), 0..126).prop_map(|bytes| masked(Opcode::Pong, &bytes)),
    ];
    let fragmented = (text(), any::<prop::sample::Index>()).prop_map(|(bytes, cut)| {
        let (a, b) = bytes.split_at(cut.index(bytes.len() + 1));
        let ping = masked(Opcode::Ping, b"between");
        [fragment(false, Opcode::Text, a), ping, fragment(true, Opcode::Continuation, b)].concat()
    });
    let wrong = prop_oneof![
        payload(),
        Just(masked(Opcode::Close, &1000_u16.to_be_bytes())),
        Just(unmasked(Opcode::Text, b"not masked")),
    ];
    prop::collection::vec(prop_oneof![8 => whole, 4 => fragmented, 1 => wrong], 0..8)
        .prop_map(|frames| frames.concat())
}

proptest! {
    #[test]
    fn any_split_of_the_same_bytes_gives_the_same_events_and_answers(
        bytes in any_traffic(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut whole = server();
        let expected = receive(&mut whole, [&bytes[..]]);
        let expected_output = transmit(&mut whole);

        let mut single = server();
        prop_assert_eq!(&receive(&mut single, bytes.chunks(1)), &expected);
        prop_assert_eq!(&transmit(&mut single), &expected_output);

        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let mut pieces = server();
        let seen = receive(&mut pieces, at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]));
        prop_assert_eq!(&seen, &expected);
        prop_assert_eq!(&transmit(&mut pieces), &expected_output);
    }

    #[test]
    fn pieces_put_together_are_the_messages(
        bytes in any_traffic(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let expected = receive(&mut server(), [&bytes[..]]);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let mut pieces = server();
        pieces.take_pieces();
        let seen = receive(&mut pieces, at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]));
        prop_assert_eq!(put_together(seen), expected);
    }

    #[test]
    fn what_one_end_sends_the_other_receives(
        messages in prop::collection::vec((any::<bool>(), "\\PC{0,400}"), 0..10),
        from_client: bool,
    ) {
        let (mut from, mut to) = if from_client { (client(), server()) } else { (server(), client()) };
        let mut expected = Vec::new();
        for (is_text, text) in &messages {
            let message = if *is_text { Message::Text(text) } else { Message::Binary(text.as_bytes()) };
            from.sender().send(message).unwrap();
            expected.push(Seen::from(Event::Message(message)));
        }
        let bytes = transmit(&mut from);
        prop_assert_eq!(receive(&mut to, [&bytes[..]]), expected);
    }

    #[test]
    fn no_input_panics_and_nothing_comes_after_the_end(bytes: Vec<u8>, from_client: bool) {
        let mut connection = if from_client { server() } else { client() };
        let seen = receive(&mut connection, [&bytes[..]]);
        let ends = seen.iter().filter(|seen| matches!(seen, Seen::Close(_) | Seen::Failed(_))).count();
        prop_assert!(ends <= 1);
        if ends == 1 {
            prop_assert!(matches!(seen.last(), Some(Seen::Close(_) | Seen::Failed(_))));
        }
    }
}
