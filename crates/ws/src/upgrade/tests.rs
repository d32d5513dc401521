use anemone_proto::handshake::ServerHandshake;
use anemone_proto::{DeflateConfig, Message};
use tokio::io::duplex;

use super::*;
use crate::Incoming;

/// The fields of a request that asks for everything.
const FIELDS: [(&str, &str); 7] = [
    ("Host", "example.org"),
    ("Upgrade", "h2c, WebSocket"),
    ("Connection", "keep-alive, Upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Protocol", "other, chat"),
    ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
];

fn accept() -> Accept {
    Accept::default().subprotocols(["chat", "more"]).deflate(DeflateConfig::default())
}

/// A request with these fields instead of those of the same name, or without them where they are empty.
fn fields(changes: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let is_changed = |name: &str| changes.iter().any(|(changed, _)| *changed == name);
    let kept = FIELDS.into_iter().filter(|(name, _)| !is_changed(name));
    kept.chain(changes.iter().copied().filter(|(_, value)| !value.is_empty())).collect()
}

fn request(method: &str, fields: &[(&str, &str)]) -> Request<()> {
    let request = Request::builder().method(method).uri("/chat");
    let add = |request: http::request::Builder, (name, value): &(&str, &str)| {
        request.header(*name, *value)
    };
    fields.iter().fold(request, add).body(()).unwrap()
}

/// The same request as the parser of bytes sees it.
fn bytes(method: &str, fields: &[(&str, &str)]) -> String {
    let fields: String =
        fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{method} /chat HTTP/1.1\r\n{fields}\r\n")
}

/// The status and the fields of a response in bytes, but those that frame its body.
fn head(response: &str) -> (u16, Vec<(String, String)>) {
    let (head, _) = response.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let of_body = ["content-length", "content-type"];
    let fields = lines.map(|line| line.split_once(": ").unwrap());
    let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    (
        status,
        fields.filter(|(name, value)| !of_body.contains(&&**name) && value != "close").collect(),
    )
}

fn head_of(response: &Response<()>) -> (u16, Vec<(String, String)>) {
    let value = |value: &HeaderValue| value.to_str().unwrap().to_owned();
    let fields = response.headers().iter().map(|(name, field)| (name.to_string(), value(field)));
    (response.status().as_u16(), fields.collect())
}

#[test]
fn a_request_of_an_http_server_is_answered_as_its_bytes_are() {
    for (method, changes) in [
        ("GET", &[][..]),
        ("GET", &[("Sec-WebSocket-Protocol", ""), ("Sec-WebSocket-Extensions", "")]),
        ("GET", &[("Sec-WebSocket-Protocol", "other"), ("Sec-WebSocket-Protocol", "more")]),
        ("POST", &[]),
        ("CONNECT", &[]),
        ("GET", &[("Host", "")]),
        ("GET", &[("Host", "a"), ("Host", "b")]),
        ("GET", &[("Upgrade", "")]),
        ("GET", &[("Connection", "close")]),
        ("GET", &[("Sec-WebSocket-Version", "8")]),
        ("GET", &[("Sec-WebSocket-Key", "short")]),
        ("GET", &[("Content-Length", "1")]),
        ("GET", &[("Sec-WebSocket-Protocol", "chat, chat")]),
        ("GET", &[("Sec-WebSocket-Extensions", "=")]),
    ] {
        let fields = fields(changes);
        let mut handshake = ServerHandshake::default().with_deflate(DeflateConfig::default());
        let of_bytes = handshake.receive(bytes(method, &fields).as_bytes(), &["chat", "more"]);
        match (accept().upgrade(&request(method, &fields)), of_bytes) {
            (Ok(upgrade), Ok(Some(answered))) => {
                assert_eq!(upgrade.response, answered.response, "{changes:?}");
                assert_eq!(head_of(&upgrade.response()), head(&answered.response.head()));
            }
            (Err(error), Err(of_bytes)) => {
                assert_eq!(error, of_bytes, "{changes:?}");
                assert_eq!(head_of(&refusal(&error)), head(&ServerHandshake::refusal(&error)));
            }
            (upgrade, of_bytes) => panic!("{method} {changes:?}: {upgrade:?}, {of_bytes:?}"),
        }
    }
}

#[test]
fn http_1_0_is_refused() {
    let mut request = request("GET", &FIELDS);
    *request.version_mut() = Version::HTTP_10;
    let refused = accept().upgrade(&request).unwrap_err();
    assert_eq!((refusal(&refused).status().as_u16(), refused), (505, HandshakeError::HttpTooOld));
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_has_what_was_agreed_on_and_the_limits() {
    let limits = Config { message_bytes_max: 1000, ..Config::default() };
    let upgrade = accept().config(limits.clone()).upgrade(&request("GET", &FIELDS)).unwrap();
    let negotiated = upgrade.clone().negotiated();
    assert_eq!((negotiated.config.message_bytes_max, negotiated.deflate.is_some()), (1000, true));
    assert_eq!(upgrade.subprotocol(), Some("chat"));
    let negotiated = negotiated.deflate.unwrap();
    let (ours, theirs) = duplex(1 << 16);
    let mut server = upgrade.socket(theirs);
    assert_eq!(server.subprotocol(), Some("chat"));
    let mut client = WebSocket::client(ours, Arc::default(), Vec::new()).with_deflate(&negotiated);
    let text = "x".repeat(1000);
    client.send(Message::Text(&text)).await.unwrap();
    assert_eq!(server.recv().await.unwrap(), Some(Incoming::from(text)));
    client.send(vec![0; 1001]).await.unwrap();
    assert!(server.recv().await.is_err(), "the limit holds");
}
