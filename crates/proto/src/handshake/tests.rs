use proptest::prelude::*;

use super::*;
use crate::{DeflateConfig, ParameterError};

const REQUEST: &str = "GET /chat HTTP/1.1\r\nHost: server.example.com\r\nUpgrade: websocket\r\n\
    Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: chat, superchat\r\nSec-WebSocket-Version: 13\r\n\r\n";

const RESPONSE: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: chat\r\n\r\n";

fn answer(request: &str, supported: &[&str]) -> Result<Option<Answered>, HandshakeError> {
    ServerHandshake::default().receive(request.as_bytes(), supported)
}

fn client() -> ClientHandshake {
    ClientHandshake::new(Nonce(*b"the sample nonce"), &["chat", "superchat"])
}

#[test]
fn the_handshake_of_section_1_2_is_accepted() {
    let answered = answer(REQUEST, &["superchat", "chat"]).unwrap().unwrap();
    assert_eq!(answered.target, "/chat");
    assert_eq!(answered.response.subprotocol.as_deref(), Some("chat"), "the client's first choice");
    assert_eq!(answered.response.head(), RESPONSE);
}

#[test]
fn a_client_and_a_server_agree() {
    let mut client = client();
    let request =
        client.request("server.example.com", "/chat", &[("Origin", "http://example.com")]);
    let answered = answer(&request, &["superchat"]).unwrap().unwrap();
    let response = answered.response.head() + "\u{1}frames";
    let established = client.receive(response.as_bytes()).unwrap().unwrap();
    assert_eq!(established.subprotocol.as_deref(), Some("superchat"));
    assert_eq!(established.rest, b"\x01frames");
}

#[test]
fn no_subprotocol_in_common_is_not_an_error() {
    // section 4.2.2
    for supported in [&[][..], &["mqtt"]] {
        let answered = answer(REQUEST, supported).unwrap().unwrap();
        assert_eq!(answered.response.subprotocol, None);
    }
}

#[test]
fn each_missing_requirement_has_its_status() {
    // section 4.2.1
    let cases = [
        ("GET /chat", "POST /chat", HandshakeError::MethodNotGet("POST".into()), 405),
        ("HTTP/1.1", "HTTP/1.0", HandshakeError::HttpTooOld, 505),
        ("Host: server.example.com\r\n", "", HandshakeError::HostInvalid, 400),
        ("Host: s", "Host: t\r\nHost: s", HandshakeError::HostInvalid, 400),
        ("Upgrade: websocket", "Upgrade: h2c", HandshakeError::UpgradeMissing, 426),
        ("keep-alive, Upgrade", "keep-alive", HandshakeError::ConnectionMissing, 400),
        ("ZQ==", "ZR==", HandshakeError::KeyInvalid, 400),
        ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "", HandshakeError::KeyInvalid, 400),
        ("Version: 13", "Version: 8", HandshakeError::VersionUnsupported, 426),
        ("Sec-WebSocket-Version: 13\r\n", "", HandshakeError::VersionUnsupported, 426),
        ("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\n", HandshakeError::BodyPresent, 400),
        ("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n", HandshakeError::BodyPresent, 400),
        ("chat, superchat", "chat, chat", HandshakeError::SubprotocolInvalid, 400),
        ("chat, superchat", "a b", HandshakeError::SubprotocolInvalid, 400),
    ];
    for (from, to, error, status) in cases {
        let request = REQUEST.replacen(from, to, 1);
        assert_ne!(request, REQUEST);
        assert_eq!(answer(&request, &[]), Err(error.clone()), "{from} -> {to}");
        assert_eq!(error.status(), status);
        assert!(ServerHandshake::refusal(&error).starts_with(&format!("HTTP/1.1 {status} ")));
    }
}

#[test]
fn a_handshake_may_say_that_its_body_is_empty() {
    let request = REQUEST.replacen("\r\n\r\n", "\r\nContent-Length: 0\r\n\r\n", 1);
    assert!(answer(&request, &[]).unwrap().is_some());
}

#[test]
fn another_version_is_told_which_one_is_spoken() {
    // section 4.4
    let refusal = ServerHandshake::refusal(&HandshakeError::VersionUnsupported);
    assert!(refusal.contains("sec-websocket-version: 13\r\n"), "{refusal}");
}

#[test]
fn an_endless_request_is_refused_at_the_limit() {
    let head = "GET / HTTP/1.1\r\nX: ";
    let mut server = ServerHandshake::default();
    let filling = format!("{head}{}", "x".repeat(HANDSHAKE_BYTES_MAX - head.len()));
    assert_eq!(server.receive(filling.as_bytes(), &[]), Ok(None));
    let error = server.receive(b"x", &[]).unwrap_err();
    assert_eq!(
        (error.clone(), error.status()),
        (HandshakeError::TooLong { limit: HANDSHAKE_BYTES_MAX }, 431)
    );
}

#[test]
fn a_request_and_a_response_may_have_100_fields_and_no_more() {
    let with = |text: &str, more: usize| {
        let fields = "a: b\r\n".repeat(more);
        text.replacen("Upgrade:", &format!("{fields}Upgrade:"), 1)
    };
    assert!(answer(&with(REQUEST, FIELDS_MAX - 6), &[]).is_ok(), "6 are its own");
    let many = answer(&with(REQUEST, FIELDS_MAX - 5), &[]);
    assert_eq!(many, Err(HandshakeError::TooManyFields { limit: FIELDS_MAX }));
    assert!(client().receive(with(RESPONSE, FIELDS_MAX - 4).as_bytes()).is_ok(), "4 are its own");
    let many = client().receive(with(RESPONSE, FIELDS_MAX - 3).as_bytes());
    assert_eq!(many, Err(ResponseError::TooManyFields { limit: FIELDS_MAX }));
}

#[test]
fn other_languages_than_http_are_refused() {
    for bytes in ["\x16\x03\x01\x02\x00", "hello\r\n\r\n", "GET\r\n\r\n"] {
        assert!(matches!(answer(bytes, &[]), Err(HandshakeError::NotHttp(_))), "{bytes:?}");
    }
}

#[test]
fn a_client_refuses_each_wrong_response() {
    // section 4.1
    let cases = [
        ("101 Switching Protocols", "200 OK", ResponseError::Status { status: 200 }),
        ("Upgrade: websocket\r\n", "", ResponseError::UpgradeMissing),
        ("Connection: Upgrade", "Connection: close", ResponseError::ConnectionMissing),
        ("s3pPLM", "S3pPLM", ResponseError::AcceptInvalid),
        ("Protocol: chat", "Protocol: mqtt", ResponseError::SubprotocolNotOffered("mqtt".into())),
        (
            "\r\n\r\n",
            "\r\nSec-WebSocket-Extensions: x\r\n\r\n",
            ResponseError::ExtensionNotOffered("x".into()),
        ),
    ];
    for (from, to, error) in cases {
        let response = RESPONSE.replacen(from, to, 1);
        assert_eq!(client().receive(response.as_bytes()), Err(error), "{from} -> {to}");
    }
}

fn with_extensions(text: &str, value: &str) -> String {
    text.replacen("\r\n\r\n", &format!("\r\nSec-WebSocket-Extensions: {value}\r\n\r\n"), 1)
}

#[test]
fn compression_is_accepted_when_it_is_offered_and_wanted() {
    // RFC 7692 section 5.1
    let deflating = || ServerHandshake::default().with_deflate(DeflateConfig::default());
    let accepted = |mut server: ServerHandshake, request: &str| {
        server.receive(request.as_bytes(), &[]).unwrap().unwrap().response
    };
    let offer = with_extensions(REQUEST, "x-other, permessage-deflate; client_max_window_bits");
    let response = accepted(deflating(), &offer).head();
    let field = "\r\nSec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; \
        client_no_context_takeover\r\n\r\n";
    assert!(response.ends_with(field), "{response}");
    for (server, request) in [
        (deflating(), REQUEST.to_owned()),
        (deflating(), with_extensions(REQUEST, "permessage-deflate; server_max_window_bits=8")),
        (ServerHandshake::default(), offer),
    ] {
        let accepted = accepted(server, &request);
        assert_eq!(accepted.deflate, None);
        assert!(!accepted.head().contains("Extensions"));
    }
}

#[test]
fn offers_may_stand_in_several_fields() {
    // RFC 6455 section 9.1
    let first = with_extensions(REQUEST, "permessage-deflate; foo");
    let request = with_extensions(&first, "permessage-deflate");
    let mut server = ServerHandshake::default().with_deflate(DeflateConfig::default());
    let answered = server.receive(request.as_bytes(), &[]).unwrap().unwrap();
    assert!(answered.response.deflate.is_some());
}

#[test]
fn a_malformed_extensions_field_is_refused() {
    // RFC 6455 section 9.1
    let request = with_extensions(REQUEST, "permessage-deflate;");
    assert_eq!(answer(&request, &[]), Err(HandshakeError::ExtensionsInvalid));
    assert_eq!(HandshakeError::ExtensionsInvalid.status(), 400);
    let response = with_extensions(RESPONSE, "permessage-deflate;");
    assert_eq!(client().receive(response.as_bytes()), Err(ResponseError::ExtensionsInvalid));
}

#[test]
fn a_client_takes_only_the_extension_that_it_offered_and_only_once() {
    // RFC 6455 section 4.1, RFC 7692 section 7.1
    let receive = |value: &str| {
        let mut client = client().with_deflate(DeflateConfig::default());
        client.receive(with_extensions(RESPONSE, value).as_bytes())
    };
    let not_offered = |name: &str| Err(ResponseError::ExtensionNotOffered(name.into()));
    let deflate = "permessage-deflate; server_no_context_takeover";
    assert!(receive(deflate).unwrap().unwrap().deflate.is_some());
    assert_eq!(client().receive(RESPONSE.as_bytes()).unwrap().unwrap().deflate, None);
    assert_eq!(receive("x"), not_offered("x"));
    assert_eq!(receive(&format!("{deflate}, x")), not_offered("x"));
    assert_eq!(receive(&format!("x, {deflate}")), not_offered("x"));
    assert_eq!(receive(&format!("{deflate}, {deflate}")), not_offered("permessage-deflate"));
    let kept = ResponseError::ExtensionParameter(ParameterError::ContextTakeoverKept);
    assert_eq!(receive("permessage-deflate"), Err(kept));
    let response = with_extensions(RESPONSE, "permessage-deflate");
    assert_eq!(client().receive(response.as_bytes()), not_offered("permessage-deflate"));
}

proptest! {
    #[test]
    fn any_split_of_a_request_gives_the_same_answer(cut in 0..REQUEST.len(), rest: Vec<u8>) {
        let bytes = [REQUEST.as_bytes(), &rest].concat();
        let mut server = ServerHandshake::default();
        prop_assert_eq!(server.receive(&bytes[..cut], &["chat"]), Ok(None));
        let answered = server.receive(&bytes[cut..], &["chat"]).unwrap().unwrap();
        prop_assert_eq!(answered.rest, rest);
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = ServerHandshake::default().receive(&bytes, &["chat"]);
        let _ = client().receive(&bytes);
    }
}
