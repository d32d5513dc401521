//! TLS, and HTTP/2 over it with the WebSockets of RFC 8441.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/secure.rs"]
mod secure;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_server::{PublishRight, TopicRule, TopicRules};
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{
    CloseCode, CloseFrame, Config, Connection, Event, MaskKey, Message, MessageKind, Time,
};
use bytes::Bytes;
use common::{PATIENCE, Reply};
use h2::client::SendRequest;
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response, StatusCode};
use secure::{Secure, make_certificate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

impl Secure {
    /// A reply over HTTP/1.1.
    async fn get(&self, target: &str) -> Reply {
        let mut stream = self.connect(&["http/1.1"]).await.unwrap();
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        // Fails unless the server says in TLS, too, that this is the end.
        stream.read_to_end(&mut reply).await.unwrap();
        Reply::read(&mut &*reply, "GET")
    }

    /// A connection over HTTP/2.
    async fn http2(&self) -> Http2 {
        let stream = self.connect(&["h2", "http/1.1"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        // One stream that is not read must not take the window of the others.
        let (client, connection) = h2::client::Builder::new()
            .initial_connection_window_size(8 << 20)
            .handshake(stream)
            .await
            .unwrap();
        let connection = tokio::spawn(connection);
        let mut client = client.ready().await.unwrap();
        while !client.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
            client = client.ready().await.unwrap();
        }
        let authority = format!("localhost:{}", self.fixture.address.port());
        Http2 { client, connection, authority }
    }

    /// A WebSocket over HTTP/1.1.
    async fn websocket(&self, target: &str) -> Socket<TlsStream<TcpStream>> {
        let mut stream = self.connect(&[]).await.unwrap();
        let mut handshake = ClientHandshake::new(Nonce([7; 16]), &[]);
        let request = handshake.request("localhost", target, &[]);
        stream.write_all(request.as_bytes()).await.unwrap();
        loop {
            let byte = [stream.read_u8().await.unwrap()];
            if handshake.receive(&byte).unwrap().is_some() {
                return Socket::new(stream);
            }
        }
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.unwrap() })
}

/// What a WebSocket client reads from and writes to.
trait Wire {
    /// The next bytes; none at the end.
    async fn read(&mut self) -> Vec<u8>;
    async fn write(&mut self, bytes: Vec<u8>);
}

impl Wire for TlsStream<TcpStream> {
    async fn read(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 16];
        let len = AsyncReadExt::read(self, &mut bytes).await.unwrap();
        bytes.truncate(len);
        bytes
    }

    async fn write(&mut self, bytes: Vec<u8>) {
        self.write_all(&bytes).await.unwrap();
        self.flush().await.unwrap();
    }
}

/// A stream of an HTTP/2 connection.
struct Stream {
    send: SendStream<Bytes>,
    receive: RecvStream,
}

impl Wire for Stream {
    async fn read(&mut self) -> Vec<u8> {
        let Some(bytes) = self.receive.data().await else { return Vec::new() };
        let bytes = bytes.unwrap();
        self.receive.flow_control().release_capacity(bytes.len()).unwrap();
        bytes.to_vec()
    }

    async fn write(&mut self, bytes: Vec<u8>) {
        // The client under test is the server's peer, not a careful one: it may queue all.
        self.send.send_data(bytes.into(), false).unwrap();
    }
}

struct Http2 {
    client: SendRequest<Bytes>,
    connection: tokio::task::JoinHandle<Result<(), h2::Error>>,
    authority: String,
}

impl Http2 {
    fn request(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> Request<()> {
        let uri = format!("https://{}{target}", self.authority);
        let request = Request::builder().method(method).uri(uri);
        fields
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .body(())
            .unwrap()
    }

    async fn get(&mut self, target: &str, fields: &[(&str, &str)]) -> (Response<RecvStream>, u16) {
        let request = self.request("GET", target, fields);
        let (response, _) = self.client.send_request(request, true).unwrap();
        let response = response.await.unwrap();
        let status = response.status().as_u16();
        (response, status)
    }

    /// The answer to a handshake of RFC 8441, and the stream.
    async fn handshake(
        &mut self,
        target: &str,
        protocol: Option<&'static str>,
        fields: &[(&str, &str)],
    ) -> (StatusCode, HeaderMap, Stream) {
        let mut request = self.request("CONNECT", target, fields);
        match protocol {
            Some(protocol) => {
                request.extensions_mut().insert(Protocol::from_static(protocol));
            }
            None => *request.uri_mut() = self.authority.parse().unwrap(),
        }
        let (response, send) = self.client.send_request(request, false).unwrap();
        let (parts, receive) = response.await.unwrap().into_parts();
        (parts.status, parts.headers, Stream { send, receive })
    }

    async fn websocket(
        &mut self,
        target: &str,
        fields: &[(&str, &str)],
    ) -> (Socket<Stream>, HeaderMap) {
        let fields = [&[("sec-websocket-version", "13")], fields].concat();
        let (status, fields, stream) = self.handshake(target, Some("websocket"), &fields).await;
        assert_eq!(status, StatusCode::OK);
        (Socket::new(stream), fields)
    }

    async fn refused(&mut self, target: &str, fields: &[(&str, &str)]) -> (u16, HeaderMap) {
        let (status, headers, _) = self.handshake(target, Some("websocket"), fields).await;
        (status.as_u16(), headers)
    }
}

async fn text(body: &mut RecvStream) -> String {
    let mut text = String::new();
    while let Some(bytes) = body.data().await {
        let bytes = bytes.unwrap();
        body.flow_control().release_capacity(bytes.len()).unwrap();
        text += std::str::from_utf8(&bytes).unwrap();
    }
    text
}

/// A WebSocket client: the state machine and a wire.
struct Socket<W> {
    wire: W,
    connection: Connection,
    input: Vec<u8>,
    at: usize,
}

impl<W: Wire> Socket<W> {
    fn new(wire: W) -> Self {
        let keys = Box::new(|| MaskKey([1, 2, 3, 4]));
        let connection = Connection::client(Arc::new(Config::default()), Time::ZERO, keys);
        Self { wire, connection, input: Vec::new(), at: 0 }
    }

    async fn flush(&mut self) {
        let bytes = self.connection.sender().transmit().to_vec();
        self.connection.sender().transmitted(bytes.len());
        if !bytes.is_empty() {
            self.wire.write(bytes).await;
        }
    }

    async fn send(&mut self, message: Message<'_>) {
        self.connection.sender().send(message).unwrap();
        self.flush().await;
    }

    async fn close(&mut self) {
        self.connection.sender().close(Some(&CloseFrame::new(CloseCode::NORMAL, ""))).unwrap();
        self.flush().await;
    }

    /// The next message's bytes, or how the connection ended, in words.
    async fn next(&mut self) -> Vec<u8> {
        loop {
            if self.at == self.input.len() {
                (self.input, self.at) = (self.wire.read().await, 0);
                if self.input.is_empty() {
                    return b"end of stream".to_vec();
                }
            }
            let received = self.connection.receive(Time::ZERO, &mut self.input[self.at..]);
            self.at += received.consumed;
            let message = match received.event {
                Some(Event::Message(message)) => Some(message.as_bytes().to_vec()),
                Some(Event::Close(Some(frame))) => {
                    Some(format!("close {}", frame.code).into_bytes())
                }
                Some(Event::Ping(_) | Event::Pong(_)) | None => None,
                Some(other) => panic!("unexpected {other:?}"),
            };
            self.flush().await;
            if let Some(message) = message {
                return message;
            }
        }
    }

    async fn text(&mut self) -> String {
        String::from_utf8(self.next().await).unwrap()
    }
}

async fn echoes_everything(mut socket: Socket<impl Wire>) {
    for len in [0, 1, 125, 126, 65_535, 65_536, 1 << 20, 3 << 20] {
        let message: Vec<u8> = (0..len).map(|i| (i * 31 + i / 251) as u8).collect();
        socket.send(Message::Binary(&message)).await;
        assert_eq!(socket.next().await, message, "{len} bytes");
    }
    let sender = socket.connection.sender();
    sender.send_fragment(MessageKind::Text, "€".as_bytes().split_at(1).0, false).unwrap();
    sender.ping(b"between").unwrap();
    sender.send_fragment(MessageKind::Text, "€".as_bytes().split_at(1).1, true).unwrap();
    for number in 0..1000 {
        sender.send(Message::Text(&format!("message {number}"))).unwrap();
    }
    socket.flush().await;
    assert_eq!(socket.text().await, "€");
    for number in 0..1000 {
        assert_eq!(socket.text().await, format!("message {number}"));
    }
    socket.close().await;
    assert_eq!(socket.text().await, "close 1000");
    assert_eq!(socket.text().await, "end of stream");
}

#[test]
fn everything_http_is_there_over_tls() {
    let secure = Secure::start();
    secure.fixture.publish(1..=3);
    run(async {
        for alpn in [&["http/1.1"][..], &[], &["spdy/3", "http/1.1"]] {
            let stream = secure.connect(alpn).await.unwrap();
            assert_ne!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        }
        assert_eq!(secure.get("/topics/wind?after=earliest").await.numbers(), [1, 2, 3]);
        assert_eq!(secure.get("/").await.status, 200);
        let mut http2 = secure.http2().await;
        let (mut response, status) = http2.get("/topics/wind?after=earliest", &[]).await;
        assert_eq!(status, 200);
        for field in ["connection", "upgrade", "keep-alive", "transfer-encoding"] {
            assert_eq!(response.headers().get(field), None, "{field}");
        }
        let page: serde_json::Value =
            serde_json::from_str(&text(response.body_mut()).await).unwrap();
        assert_eq!(page["events"].as_array().unwrap().len(), 3);
        let (response, status) = http2.get("/echo", &[]).await;
        assert_eq!((status, response.headers().get("upgrade")), (426, None));
    });
}

#[test]
fn a_long_poll_and_an_event_stream_share_an_http2_connection() {
    let secure = Secure::start();
    let position = secure.fixture.publish(1..=1);
    run(async {
        let mut http2 = secure.http2().await;
        let accept = [("accept", "text/event-stream")];
        let (mut stream, status) = http2.get("/topics/wind", &accept).await;
        assert_eq!(status, 200);
        let opening = stream.body_mut().data().await.unwrap().unwrap();
        assert!(opening.starts_with(b"retry: "), "{opening:?}");
        let poll = http2.request("GET", &format!("/topics/wind?after={position}&wait=30"), &[]);
        let (poll, _) = http2.client.send_request(poll, true).unwrap();
        secure.fixture.publish(2..=2);
        let page = text(poll.await.unwrap().body_mut()).await;
        assert!(page.contains(r#""n":2"#), "{page}");
        let event = stream.body_mut().data().await.unwrap().unwrap();
        assert!(event.ends_with(b"data: {\"n\":2}\n\n"), "{event:?}");
    });
}

#[test]
fn a_websocket_over_tls_echoes_everything_and_ends_cleanly() {
    let secure = Secure::start();
    run(async { echoes_everything(secure.websocket("/echo").await).await });
}

#[test]
fn a_websocket_over_http2_echoes_everything_and_ends_cleanly() {
    // RFC 8441 section 5.
    let secure = Secure::start();
    run(async {
        let mut http2 = secure.http2().await;
        let (socket, fields) = http2.websocket("/echo", &[]).await;
        for field in ["sec-websocket-accept", "connection", "upgrade", "content-length"] {
            assert_eq!(fields.get(field), None, "{field}");
        }
        echoes_everything(socket).await;
        // The connection goes on without it.
        assert_eq!(http2.get("/clock", &[]).await.1, 200);
    });
}

#[test]
fn a_broadcast_comes_to_everyone_over_tls_and_over_http2() {
    let secure = Secure::start();
    run(async {
        let mut http2 = secure.http2().await;
        let (mut one, _) = http2.websocket("/broadcast", &[]).await;
        let (mut other, _) = http2.websocket("/broadcast", &[]).await;
        let mut over_http1 = secure.websocket("/broadcast").await;
        for text in ["short", &"long ".repeat(12_000)] {
            one.send(Message::Text(text)).await;
            over_http1.send(Message::Text(text)).await;
            for _ in 0..2 {
                assert_eq!(one.text().await, text);
                assert_eq!(other.text().await, text);
                assert_eq!(over_http1.text().await, text);
            }
        }
    });
}

#[test]
fn topics_are_read_by_many_websockets_of_one_http2_connection() {
    let secure = Secure::start();
    secure.fixture.publish(1..=1);
    run(async {
        let mut http2 = secure.http2().await;
        let offer = [("sec-websocket-protocol", "nonsense, anemone.events")];
        let (mut positioned, fields) = http2.websocket("/topics/wind", &offer).await;
        assert_eq!(fields["sec-websocket-protocol"], "anemone.events");
        assert_eq!(positioned.text().await, r#"{"position":"ya-1"}"#);
        let mut plain = Vec::new();
        for _ in 0..20 {
            plain.push(http2.websocket("/topics/wind?after=earliest", &[]).await.0);
        }
        let mut over_http1 = secure.websocket("/topics/wind?after=earliest").await;
        secure.fixture.publish(2..=500);
        let event = positioned.text().await;
        assert!(event.starts_with(r#"{"position":"ya-2","time":"#), "{event}");
        for socket in &mut plain {
            for number in 1..=500 {
                assert_eq!(socket.text().await, format!(r#"{{"n":{number}}}"#));
            }
        }
        for number in 1..=500 {
            assert_eq!(over_http1.text().await, format!(r#"{{"n":{number}}}"#));
        }
        // As over a plain socket, a topic takes no messages.
        plain[0].send(Message::Text("hello")).await;
        assert_eq!(plain[0].text().await, "close 1008");
    });
}

#[test]
fn many_requests_share_a_websocket_of_an_http2_connection() {
    let secure = Secure::with(|options| options.limits.heartbeat = Duration::from_millis(100));
    secure.fixture.publish(1..=1);
    run(async {
        let mut http2 = secure.http2().await;
        assert_eq!(http2.refused("/ws", &[("sec-websocket-version", "13")]).await.0, 400);
        let offer = [("sec-websocket-protocol", "anemone.v1")];
        let (mut socket, fields) = http2.websocket("/ws", &offer).await;
        assert_eq!(fields["sec-websocket-protocol"], "anemone.v1");
        for id in ["a", "b"] {
            socket.send(Message::Text(&format!("GET {id} /topics/wind"))).await;
            assert_eq!(socket.text().await, format!("100 {id} ya-1"));
        }
        secure.fixture.publish(2..=200);
        let mut told = [2, 2];
        while told != [201, 201] {
            let event = socket.text().await;
            let index = usize::from(event.starts_with("206 b"));
            let (number, id) = (told[index], ["a", "b"][index]);
            if !event.starts_with("100 ") {
                assert_eq!(event, format!("206 {id} ya-{number}\n{{\"n\":{number}}}"));
                told[index] += 1;
            }
        }
        assert!(socket.text().await.starts_with("100 "), "a sign of life");
    });
}

#[test]
fn events_are_published_over_http2_by_post_and_by_websocket() {
    let secure = Secure::with(|options| {
        let rules = [PublishRight::Loopback, PublishRight::Nobody].map(|publish| {
            let topics = if publish == PublishRight::Nobody { "quiet" } else { "chat" };
            TopicRule { publish, ..TopicRule::new(topics.parse().unwrap()) }
        });
        options.topics = TopicRules::new(rules).unwrap();
    });
    run(async {
        let mut http2 = secure.http2().await;
        let own = format!("https://{}", http2.authority);
        let evil = "https://evil.example";
        let (mut socket, _) = http2.websocket("/topics/chat", &[("origin", &own)]).await;
        for (target, origin, status) in [
            ("/topics/chat", None, 201),
            ("/topics/chat", Some(&*own), 201),
            ("/topics/chat", Some(evil), 403),
            ("/topics/quiet", None, 405),
        ] {
            let fields: Vec<_> = origin.map(|origin| ("origin", origin)).into_iter().collect();
            let request = http2.request("POST", target, &fields);
            let (response, mut body) = http2.client.send_request(request, false).unwrap();
            // Without waiting for the answer, which may be a refusal that has no need of it.
            let _ = body.send_data(Bytes::from_static(b"{\"n\":1}"), true);
            assert_eq!(response.await.unwrap().status(), status, "{target} {origin:?}");
        }
        assert_eq!(
            (socket.text().await, socket.text().await),
            ("{\"n\":1}".into(), "{\"n\":1}".into())
        );
        socket.send(Message::Text("hello")).await;
        assert_eq!(socket.text().await, "\"hello\"");
        let (mut other, _) = http2.websocket("/topics/quiet", &[]).await;
        other.send(Message::Text("hello")).await;
        assert_eq!(other.text().await, "close 1008");

        let mut socket = secure.websocket("/topics/chat").await; // over HTTP/1.1
        socket.send(Message::Binary(&[1])).await;
        assert_eq!(socket.text().await, "{\"base64\":\"AQ==\"}");
    });
}

#[test]
fn what_is_no_websocket_handshake_over_http2_is_refused() {
    let secure = Secure::with(|options| {
        options.allowed_origins = vec!["https://friend.example".parse().unwrap()];
    });
    run(async {
        let mut http2 = secure.http2().await;
        let version = ("sec-websocket-version", "13");
        let (status, fields) = http2.refused("/echo", &[("sec-websocket-version", "12")]).await;
        assert_eq!((status, &fields["sec-websocket-version"]), (426, &"13".parse().unwrap()));
        assert_eq!(fields.get("upgrade"), None);
        assert_eq!(http2.refused("/echo", &[]).await.0, 426);
        assert_eq!(http2.refused("/nothing", &[version]).await.0, 404);
        assert_eq!(http2.refused("/topics/nothing", &[version]).await.0, 404);
        // A success would mean that the WebSocket is there.
        assert_eq!(http2.refused("/clock", &[version]).await.0, 400);
        let twice = ("sec-websocket-protocol", "a, a");
        assert_eq!(http2.refused("/echo", &[version, twice]).await.0, 400);
        assert_eq!(http2.handshake("/echo", Some("smtp"), &[version]).await.0, 501);
        assert_eq!(http2.handshake("", None, &[]).await.0, 405, "not a proxy");

        // Whether an origin is the same is told by :authority (RFC 9113 section 8.3.1).
        let own = format!("https://{}", http2.authority);
        http2.websocket("/echo", &[("origin", &own)]).await;
        http2.websocket("/echo", &[("origin", "https://friend.example")]).await;
        let evil = ("origin", "https://evil.example");
        assert_eq!(http2.refused("/echo", &[version, evil]).await.0, 403);
        let host = ("host", "evil.example");
        assert_eq!(http2.refused("/echo", &[version, evil, host]).await.0, 403);
        assert_eq!(http2.get("/topics", &[evil]).await.1, 403);
        assert_eq!(http2.get("/topics", &[("origin", &own)]).await.1, 200);
    });
}

#[test]
fn a_new_certificate_is_taken_over_while_connections_stay() {
    let secure = Secure::start();
    run(async {
        let mut before = secure.websocket("/echo").await;
        make_certificate(&secure.folder);
        while secure.connect(&[]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        before.send(Message::Text("still here")).await;
        assert_eq!(before.text().await, "still here");
    });
}

#[test]
fn plain_http_on_the_tls_port_is_told_so() {
    let secure = Secure::start();
    let mut stream = secure.fixture.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    Reply::read(&mut &*reply, "GET").problem(400, "tls-required");
    assert!(reply.windows(17).any(|part| part == b"connection: close"));
}

#[test]
fn bytes_that_are_no_tls_get_an_alert_and_an_end() {
    let secure = Secure::start();
    for bytes in
        [&b"\x00\x01\x02\x03\x04\x05\x06\x07"[..], &[0x16, 3, 1, 0, 4, 9, 0, 0, 0], &[0xff; 40_000]]
    {
        let mut stream = secure.fixture.connect();
        stream.write_all(bytes).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        assert_eq!(reply.first(), Some(&21), "an alert (RFC 8446 section 6)");
    }
}

#[test]
fn a_handshake_that_takes_too_long_is_given_up() {
    let timeout = Duration::from_millis(100);
    let secure = Secure::with(|options| options.limits.tls_handshake_timeout = timeout);
    for begin in [&[][..], &[0x16, 3, 1, 2, 0, 1, 0], b"G"] {
        let mut stream = secure.fixture.connect();
        stream.write_all(begin).unwrap();
        let begun = Instant::now();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(begun.elapsed() < PATIENCE / 2, "{ended:?}");
    }
}

#[test]
fn a_server_that_stops_tells_every_websocket() {
    let mut secure = Secure::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut http2, mut one, mut other) = runtime.block_on(async {
        let mut http2 = secure.http2().await;
        let (mut one, _) = http2.websocket("/echo", &[]).await;
        let mut other = secure.websocket("/topics/wind").await;
        one.send(Message::Text("x")).await;
        assert_eq!(one.text().await, "x");
        other.wire.flush().await.unwrap();
        (http2, one, other)
    });
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| secure.fixture.stop());
        runtime.block_on(async {
            assert_eq!(one.text().await, "close 1001");
            assert_eq!(one.text().await, "end of stream");
            assert_eq!(other.text().await, "close 1001");
            assert_eq!(other.text().await, "end of stream");
            (&mut http2.connection).await.unwrap().unwrap();
        });
    });
    assert!(begun.elapsed() < Duration::from_secs(4), "nothing had to be cut off");
}

#[test]
fn an_http2_connection_is_ended_when_it_is_idle_and_only_then() {
    let secure = Secure::with(|options| options.limits.header_timeout = Duration::from_millis(100));
    run(async {
        let idle = secure.http2().await;
        let mut used = secure.http2().await;
        let (mut socket, _) = used.websocket("/echo", &[]).await;
        let mut silent = secure.connect(&["h2"]).await.unwrap();
        idle.connection.await.unwrap().unwrap();
        // No preface came.
        let _ = silent.read_to_end(&mut Vec::new()).await;
        socket.send(Message::Text("still here")).await;
        assert_eq!(socket.text().await, "still here");
    });
}

#[test]
fn each_websocket_counts_as_a_connection() {
    let secure = Secure::with(|options| options.limits.connections_max = 2);
    run(async {
        let mut http2 = secure.http2().await;
        let (mut socket, _) = http2.websocket("/echo", &[]).await;
        let version = [("sec-websocket-version", "13")];
        assert_eq!(http2.refused("/echo", &version).await.0, 503);
        assert!(secure.connect(&[]).await.is_err());
        socket.close().await;
        assert_eq!(socket.text().await, "close 1000");
        while http2.refused("/echo", &version).await.0 == 503 {}
    });
}

#[test]
fn a_reader_that_stops_holds_up_nobody_else_on_its_connection() {
    let config = Config {
        ping_interval: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(1500),
        close_timeout: Duration::from_millis(100),
        ..Config::default()
    };
    let secure = Secure::with(|options| {
        options.limits.echo = Arc::new(config);
        options.limits.write_timeout = Duration::from_millis(100);
    });
    run(async {
        let mut http2 = secure.http2().await;
        let (mut stuck, _) = http2.websocket("/echo", &[]).await;
        let (mut other, _) = http2.websocket("/echo", &[]).await;
        // It never reads, so its window is not opened again.
        stuck.send(Message::Binary(&vec![7; 4 << 20])).await;
        while futures_util::FutureExt::now_or_never(std::future::poll_fn(|cx| {
            stuck.wire.send.poll_reset(cx)
        }))
        .is_none()
        {
            other.send(Message::Text("still served")).await;
            assert_eq!(other.text().await, "still served");
        }
    });
}
