use anemone_hub::{Data, Epoch};
use proptest::prelude::*;

use super::*;

const LINE_BYTES_MAX: usize = 4096;

fn id(text: &str) -> Id {
    Id::parse(text.as_bytes()).unwrap()
}

fn read(text: &str) -> Result<Message<'_>, Malformed> {
    parse(text.as_bytes(), LINE_BYTES_MAX)
}

fn written(reply: Reply<'_>, id: Option<Id>) -> String {
    let mut out = String::new();
    reply.format(id, &mut out);
    out
}

/// What a client sends.
fn format(message: &Message<'_>) -> Vec<u8> {
    match message {
        Message::Cancel(id) => format!("CANCEL {}", id.as_str()).into_bytes(),
        Message::Request { id, request: Request { method, target, payload } } => {
            let line = format!("{method} {} {target}", id.as_str()).into_bytes();
            if payload.is_empty() { line } else { [&line, &b"\n"[..], payload].concat() }
        }
    }
}

#[test]
fn a_request_has_a_method_an_id_a_target_and_maybe_a_payload() {
    let of = |method, target, payload| Message::Request {
        id: id("8"),
        request: Request { method, target, payload },
    };
    assert_eq!(
        read("GET 8 /topics/wind?after=e-41"),
        Ok(of("GET", "/topics/wind?after=e-41", b""))
    );
    assert_eq!(read("POST 8 /topics/chat\n{\n}"), Ok(of("POST", "/topics/chat", b"{\n}")));
    assert_eq!(read("DELETE 8 /\n"), Ok(of("DELETE", "/", b"")));
    assert_eq!(read("CANCEL 8"), Ok(Message::Cancel(id("8"))));
    assert_eq!(read("CANCEL 8\n"), Ok(Message::Cancel(id("8"))));
    let payload = [b"POST 8 /\n", &[0, 255, 10, 13][..]].concat();
    assert_eq!(parse(&payload, LINE_BYTES_MAX), Ok(of("POST", "/", &[0, 255, 10, 13])));
}

#[test]
fn what_is_wrong_is_said_and_the_id_is_found_where_there_is_one() {
    let known = Some(id("8"));
    for (text, id, error) in [
        ("", None, MessageError::NotThreeWords),
        ("\n", None, MessageError::NotThreeWords),
        ("GET", None, MessageError::NotThreeWords),
        ("GET 8", known, MessageError::NotThreeWords),
        ("GET 8 / x", known, MessageError::NotThreeWords),
        ("GET  8 /", None, MessageError::NotThreeWords),
        ("GET  /", None, MessageError::BadId),
        ("get 8 /", known, MessageError::BadMethod),
        (" 8 /", known, MessageError::BadMethod),
        ("ABCDEFGHIJKLMNOPQ 8 /", known, MessageError::BadMethod),
        ("GET - /", None, MessageError::BadId),
        ("GET 12345678901234567 /", None, MessageError::BadId),
        ("GET a.b /", None, MessageError::BadId),
        ("GET 8 topics", known, MessageError::BadTarget),
        ("GET 8 ", known, MessageError::BadTarget),
        ("CANCEL", None, MessageError::NotThreeWords),
        ("CANCEL 8 /", None, MessageError::CancelOfMore),
        ("CANCEL 8\nx", None, MessageError::CancelOfMore),
        ("GET 8 /\r\n", known, MessageError::NotAscii { byte: b'\r' }),
        ("GET 8 /ä", known, MessageError::NotAscii { byte: 0xc3 }),
        ("GET 8 /\0", known, MessageError::NotAscii { byte: 0 }),
    ] {
        assert_eq!(read(text), Err(Malformed { id, error }), "{text:?}");
    }
}

#[test]
fn a_line_is_as_long_as_the_limit_and_a_payload_does_not_count() {
    let at = |len: usize| format!("GET 8 /{}", "x".repeat(len - 7));
    let too_long = MessageError::LineTooLong { limit: 100 };
    for end in ["", "\n", "\npayload"] {
        let (longest, longer) = (at(100) + end, at(101) + end);
        assert!(parse(longest.as_bytes(), 100).is_ok(), "{end:?}");
        let refused = Malformed { id: Some(id("8")), error: too_long.clone() };
        assert_eq!(parse(longer.as_bytes(), 100), Err(refused), "{end:?}");
    }
    let payload = "x".repeat(10_000);
    assert!(parse(format!("POST 8 /\n{payload}").as_bytes(), 100).is_ok());
    assert_eq!(parse(payload.as_bytes(), 100), Err(Malformed { id: None, error: too_long }));
}

#[test]
fn replies_have_a_status_an_id_and_what_belongs_to_them() {
    let position = Position { epoch: Epoch::from_bits(9), offset: 42 };
    let id = Some(id("8"));
    assert_eq!(written(Reply::standing(position), id), "100 8 9-42");
    assert_eq!(written(Reply::notice(position, "{}"), id), "110 8 9-42\n{}");
    let (time, data) = (UnixTime::from_micros(1_789_000_000_123_456), Data::json(&2.74).unwrap());
    let event = Event { offset: 42, time, data };
    let told = "206 8 9-42 1789000000123.456\n2.74";
    assert_eq!(written(Reply::event(position, &event), id), told);
    assert_eq!(written(Reply::answer("{}"), id), "200 8\n{}");
    assert_eq!(written(Reply::done(), id), "204 8");
    assert_eq!(written(Reply::problem(400, "{}"), None), "400 -\n{}");
}

#[test]
fn a_call_and_its_reply_take_no_more_bytes_than_over_socket_io() {
    /// The same call over Socket.IO 4 by WebSocket, frame headers included.
    const SOCKET_IO_BYTES: usize = 54;
    /// RFC 6455 section 5.2, payloads of up to 125 bytes: a client's header has a masking key.
    const FRAME_HEADERS_BYTES: usize = (2 + 4) + 2;
    const LENGTHS_BYTES: usize = 4 + 4;
    let request = Request { method: "GET", target: "/messages/testing", payload: b"" };
    let call = format(&Message::Request { id: id("7"), request });
    let reply = written(Reply::answer(r#"{"id":"testing"}"#), Some(id("7")));
    assert_eq!(call, b"GET 7 /messages/testing");
    assert_eq!(reply, "200 7\n{\"id\":\"testing\"}");
    assert!(call.len() + reply.len() + FRAME_HEADERS_BYTES <= SOCKET_IO_BYTES);
    assert!(call.len() + reply.len() + LENGTHS_BYTES <= SOCKET_IO_BYTES);
}

/// Reads what `Reply::format` wrote, as a client would.
type Words<'a> = (u16, Option<Id>, Option<Position>, Option<String>, &'a str);

fn read_reply(text: &str) -> Option<Words<'_>> {
    let (line, payload) = text.split_once('\n').unwrap_or((text, ""));
    let mut words = line.split(' ');
    let status = words.next()?.parse().ok()?;
    let id = words.next().filter(|id| !id.is_empty())?;
    let position = words.next().map(str::parse).transpose().ok()?;
    let id = if id == "-" { None } else { Some(Id::parse(id.as_bytes())?) };
    let time = words.next().map(str::to_owned);
    words.next().is_none().then_some((status, id, position, time, payload))
}

fn ids() -> impl Strategy<Value = Id> {
    "[A-Za-z0-9_][A-Za-z0-9_-]{0,15}".prop_map(|text| id(&text))
}

proptest! {
    #[test]
    fn parse_undoes_format(
        id in ids(),
        method in "[A-Z]{1,16}",
        target in "/[!-~]{0,40}",
        payload in prop::collection::vec(any::<u8>(), 0..40),
        is_cancel in any::<bool>(),
    ) {
        prop_assume!(method != CANCEL);
        let request = Request { method: &method, target: &target, payload: &payload };
        let message =
            if is_cancel { Message::Cancel(id) } else { Message::Request { id, request } };
        let bytes = format(&message);
        prop_assert_eq!(parse(&bytes, LINE_BYTES_MAX), Ok(message));
    }

    #[test]
    fn any_bytes_are_a_message_or_say_what_is_wrong(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        match parse(&bytes, 40) {
            // But for the line feed of an empty payload, there is one spelling of each message.
            Ok(message) => {
                let bytes = bytes.strip_suffix(b"\n").filter(|line| !line.contains(&b'\n')).unwrap_or(&bytes);
                prop_assert_eq!(format(&message), bytes);
            }
            Err(malformed) => prop_assert!(!malformed.error.to_string().is_empty()),
        }
    }

    #[test]
    fn words_of_any_kind_are_a_message_or_say_what_is_wrong(
        text in "(GET|POST|CANCEL|get|)( |  |\n)(8|-|abc|)( |\n|)(/|/x|x|)(\n|)(payload|)",
    ) {
        if let Ok(message) = parse(text.as_bytes(), 40) {
            let expected = text.strip_suffix('\n').filter(|line| !line.contains('\n')).unwrap_or(&text);
            prop_assert_eq!(format(&message), expected.as_bytes());
        }
    }

    #[test]
    fn a_reply_can_be_read_as_it_was_meant(
        status in 100_u16..600,
        id in prop::option::of(ids()),
        offset in prop::option::of(any::<u32>()),
        micros in prop::option::of(any::<u64>()),
        payload in "\\PC{0,40}",
    ) {
        let position = offset
            .map(|offset| Position { epoch: Epoch::from_bits(77), offset: u64::from(offset) });
        let time = micros.filter(|_| position.is_some()).map(UnixTime::from_micros);
        let text = written(Reply { status, position, time, payload: &payload }, id);
        let time = time.map(|time| time.to_string());
        prop_assert_eq!(read_reply(&text), Some((status, id, position, time, &*payload)));
    }
}
