//! TLS, and HTTP/2 over it with the WebSockets of RFC 8441: what both kinds of test need.
#![allow(clippy::unwrap_used)]

mod access;
mod counts;
mod files;
mod head;
mod http2;
mod many;
mod secured;
mod services;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_server::{PublishRight, TopicRule, TopicRules};
use anemone_testing::secure::{Secure, make_certificate};
use anemone_testing::{PATIENCE, Reply, run};
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{
    CloseCode, CloseFrame, Config, Connection, Event, MaskKey, Message, MessageKind, Time,
};
use bytes::Bytes;
use h2::client::SendRequest;
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Clients that trust the certificate of the server.
trait Clients {
    /// A reply over HTTP/1.1.
    async fn get(&self, target: &str) -> Reply;
    async fn http2(&self) -> Http2;
    /// A WebSocket over HTTP/1.1.
    async fn websocket(&self, target: &str) -> Socket<TlsStream<TcpStream>>;
}

impl Clients for Secure {
    async fn get(&self, target: &str) -> Reply {
        let mut stream = self.connect(&["http/1.1"]).await.unwrap();
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        // Fails unless the server ends the TLS connection properly.
        stream.read_to_end(&mut reply).await.unwrap();
        Reply::read(&mut &*reply, "GET")
    }

    async fn http2(&self) -> Http2 {
        let stream = self.connect(&["h2", "http/1.1"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        Http2::over(stream, self.fixture.address.port()).await
    }

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

/// The stream that a WebSocket client reads from and writes to.
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
    async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, port: u16) -> Self {
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
        let authority = format!("localhost:{}", port);
        Self { client, connection, authority }
    }

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
                Some(Event::Ping(_) | Event::Pong { .. }) | None => None,
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
