use proptest::prelude::*;

use super::*;
use crate::multiplexed::testing::{fields, ids};

const LINE_BYTES_MAX: usize = 4096;

fn id(text: &str) -> Id {
    Id::parse(text.as_bytes()).unwrap()
}

fn read(text: &str) -> Result<Message<'_>, MalformedMessage> {
    Message::parse(text.as_bytes(), LINE_BYTES_MAX)
}

#[test]
fn a_request_has_a_method_an_id_a_target_and_maybe_a_payload() {
    let of = |method, target, payload| Message::Request {
        id: id("8"),
        request: Request { method, target, fields: Fields::default(), payload },
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
    assert_eq!(Message::parse(&payload, LINE_BYTES_MAX), Ok(of("POST", "/", &[0, 255, 10, 13])));
}

#[test]
fn a_request_has_fields_after_its_target() {
    let Ok(Message::Request { request, .. }) =
        read("PATCH b /messages/1 if-match=%223%22 x-a=1\n{}")
    else {
        panic!("it is a request");
    };
    assert_eq!(
        (request.method, request.target, request.payload),
        ("PATCH", "/messages/1", &b"{}"[..])
    );
    assert_eq!(request.fields.get("if-match").as_deref(), Some(&b"\"3\""[..]));
    assert_eq!(request.fields.get("x-a").as_deref(), Some(&b"1"[..]));
}

#[test]
fn what_is_wrong_is_said_and_the_id_is_found_where_there_is_one() {
    let known = Some(id("8"));
    for (text, id, error) in [
        ("", None, MessageError::NotThreeWords),
        ("\n", None, MessageError::NotThreeWords),
        ("GET", None, MessageError::NotThreeWords),
        ("GET 8", known, MessageError::NotThreeWords),
        ("GET 8 / x", known, MessageError::BadField(FieldError::NotAField)),
        ("GET 8 / ", known, MessageError::BadField(FieldError::NotAField)),
        ("GET 8 /  x-a=1", known, MessageError::BadField(FieldError::NotAField)),
        ("GET 8 x-a=1", known, MessageError::BadTarget),
        ("GET  8 /", None, MessageError::BadId(IdError)),
        ("GET  /", None, MessageError::BadId(IdError)),
        ("get 8 /", known, MessageError::BadMethod),
        (" 8 /", known, MessageError::BadMethod),
        ("ABCDEFGHIJKLMNOPQ 8 /", known, MessageError::BadMethod),
        ("GET - /", None, MessageError::BadId(IdError)),
        ("GET 12345678901234567 /", None, MessageError::BadId(IdError)),
        ("GET a.b /", None, MessageError::BadId(IdError)),
        ("GET 8 topics", known, MessageError::BadTarget),
        ("GET 8 ", known, MessageError::BadTarget),
        ("CANCEL", None, MessageError::NotThreeWords),
        ("CANCEL 8 /", None, MessageError::CancelOfMore),
        ("CANCEL 8 / x-a=1", None, MessageError::CancelOfMore),
        ("CANCEL 8\nx", None, MessageError::CancelOfMore),
        ("GET 8 /\r\n", known, MessageError::NotAscii { byte: b'\r' }),
        ("GET 8 /ä", known, MessageError::NotAscii { byte: 0xc3 }),
        ("GET 8 /\0", known, MessageError::NotAscii { byte: 0 }),
    ] {
        assert_eq!(read(text), Err(MalformedMessage { id, error }), "{text:?}");
    }
}

#[test]
fn a_line_is_as_long_as_the_limit_and_a_payload_does_not_count() {
    let at = |len: usize| format!("GET 8 /{}", "x".repeat(len - 7));
    let too_long = MessageError::LineTooLong { limit: 100 };
    for end in ["", "\n", "\npayload"] {
        let (longest, longer) = (at(100) + end, at(101) + end);
        assert!(Message::parse(longest.as_bytes(), 100).is_ok(), "{end:?}");
        let refused = MalformedMessage { id: Some(id("8")), error: too_long.clone() };
        assert_eq!(Message::parse(longer.as_bytes(), 100), Err(refused), "{end:?}");
    }
    let payload = "x".repeat(10_000);
    assert!(Message::parse(format!("POST 8 /\n{payload}").as_bytes(), 100).is_ok());
    assert_eq!(
        Message::parse(payload.as_bytes(), 100),
        Err(MalformedMessage { id: None, error: too_long })
    );
}

proptest! {
    #[test]
    fn parse_undoes_format(
        id in ids(),
        method in "[A-Z]{1,16}",
        target in "/[!-~]{0,40}",
        fields in fields(),
        payload in prop::collection::vec(any::<u8>(), 0..40),
        is_cancel in any::<bool>(),
    ) {
        prop_assume!(method != CANCEL);
        let fields = fields.as_fields();
        let request = Request { method: &method, target: &target, fields, payload: &payload };
        let message =
            if is_cancel { Message::Cancel(id) } else { Message::Request { id, request } };
        let bytes = message.to_bytes();
        prop_assert_eq!(Message::parse(&bytes, LINE_BYTES_MAX), Ok(message));
    }

    #[test]
    fn any_bytes_are_a_message_or_say_what_is_wrong(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        match Message::parse(&bytes, 40) {
            // But for the line feed of an empty payload, there is one spelling of each message.
            Ok(message) => {
                let bytes = bytes.strip_suffix(b"\n").filter(|line| !line.contains(&b'\n')).unwrap_or(&bytes);
                prop_assert_eq!(message.to_bytes(), bytes);
            }
            Err(malformed) => prop_assert!(!malformed.error.to_string().is_empty()),
        }
    }

    #[test]
    fn words_of_any_kind_are_a_message_or_say_what_is_wrong(
        text in "(GET|POST|CANCEL|get|)( |  |\n)(8|-|abc|)( |\n|)(/|/x|x|)( |)(x-a=%41|accept=b|a=|)(\n|)(payload|)",
    ) {
        if let Ok(message) = Message::parse(text.as_bytes(), 40) {
            let expected = text.strip_suffix('\n').filter(|line| !line.contains('\n')).unwrap_or(&text);
            prop_assert_eq!(message.to_bytes(), expected.as_bytes());
        }
    }
}
