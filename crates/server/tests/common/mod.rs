//! A server on a free port, and clients made of plain sockets.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anemone_hub::{Data, Epoch, Hub, Retention, Topic};
use anemone_server::{Limits, Options, Running, Server};
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{Codecs, Config, Connection, DeflateConfig, Event, MaskKey, Message, Time};
use serde_json::Value;

/// Longest wait for anything that must come; only a failing test takes this long.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Fixture {
    pub hub: Hub,
    pub wind: Arc<Topic>,
    pub address: SocketAddr,
    running: Option<Running>,
}

impl Fixture {
    pub fn start() -> Self {
        Self::with(|_| {}, Retention::default())
    }

    pub fn with(change: impl FnOnce(&mut Options), retention: Retention) -> Self {
        Self::of(Hub::new(Epoch::from_bits(1234)), change, retention)
    }

    /// With the topics of this hub.
    pub fn of(hub: Hub, change: impl FnOnce(&mut Options), retention: Retention) -> Self {
        let wind = hub.ensure("wind".parse().unwrap(), retention).unwrap();
        let mut options = Options::new("127.0.0.1:0".parse().unwrap());
        options.threads = NonZero::new(2);
        change(&mut options);
        let running = Server::bind(options, hub.clone()).unwrap().start().unwrap();
        Self { hub, wind, address: running.local_addr(), running: Some(running) }
    }

    pub fn with_limits(change: impl FnOnce(&mut Limits)) -> Self {
        Self::with(|options| change(&mut options.limits), Retention::default())
    }

    /// Publishes the numbers `from..=to` and returns the position of the last.
    pub fn publish(&self, numbers: std::ops::RangeInclusive<u64>) -> String {
        let mut last = String::new();
        for number in numbers {
            let data = Data::json(&serde_json::json!({ "n": number })).unwrap();
            last = self.wind.publish(SystemTime::now().into(), data).unwrap().to_string();
        }
        last
    }

    pub fn tcp(&self) -> SocketAddr {
        self.running.as_ref().unwrap().tcp_addr().unwrap()
    }

    pub fn tcp_echo(&self) -> SocketAddr {
        self.running.as_ref().unwrap().tcp_echo_addr().unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    pub fn get(&self, target: &str, fields: &[(&str, &str)]) -> Reply {
        self.request("GET", target, fields)
    }

    pub fn request(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> Reply {
        let mut stream = self.connect();
        send(&mut stream, method, target, fields);
        Reply::read(&mut BufReader::new(stream), method)
    }

    pub fn stop(&mut self) {
        self.running.take().unwrap().stop();
    }

    /// A handshake with these fields beside the required ones.
    pub fn websocket(
        &self,
        target: &str,
        subprotocols: &[&str],
        fields: &[(&str, &str)],
    ) -> Socket {
        self.open(target, ClientHandshake::new(Nonce([7; 16]), subprotocols), fields)
    }

    /// The same with permessage-deflate (RFC 7692), which compresses every message.
    pub fn compressed(&self, target: &str) -> Socket {
        let config = DeflateConfig { compress_bytes_min: 0, ..DeflateConfig::default() };
        let handshake = ClientHandshake::new(Nonce([7; 16]), &[]).with_deflate(config);
        self.open(target, handshake, &[])
    }

    fn open(
        &self,
        target: &str,
        mut handshake: ClientHandshake,
        fields: &[(&str, &str)],
    ) -> Socket {
        let mut stream = self.connect();
        let request = handshake.request(&self.address.to_string(), target, fields);
        stream.write_all(request.as_bytes()).unwrap();
        let mut byte = [0];
        loop {
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "end of stream in the handshake");
            if let Some(established) = handshake.receive(&byte).unwrap() {
                let keys = Box::new(|| MaskKey([1, 2, 3, 4]));
                let config = Arc::new(Config::default());
                let mut connection = Connection::client(config, Time::ZERO, keys);
                if let Some(deflate) = &established.deflate {
                    connection = connection.with_deflate(deflate, |_| Codecs::new());
                }
                return Socket {
                    stream,
                    connection,
                    subprotocol: established.subprotocol,
                    input: Vec::new(),
                    at: 0,
                    binary: Vec::new(),
                };
            }
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }
}

pub fn send(stream: &mut TcpStream, method: &str, target: &str, fields: &[(&str, &str)]) {
    let mut request =
        format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", stream.peer_addr().unwrap());
    for (name, value) in fields {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all((request + "\r\n").as_bytes()).unwrap();
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    fields: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn read(reader: &mut impl BufRead, method: &str) -> Self {
        let mut reply = Self::read_head(reader);
        let len: usize = reply.field("content-length").map_or(0, |len| len.parse().unwrap());
        if method != "HEAD" {
            let mut body = vec![0; len];
            reader.read_exact(&mut body).unwrap();
            reply.body = String::from_utf8(body).unwrap();
        }
        reply
    }

    pub fn read_head(reader: &mut impl BufRead) -> Self {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(
                reader.read_line(&mut line).unwrap() > 0,
                "end of stream in a header: {lines:?}"
            );
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let fields = lines[1..].iter().map(|line| line.split_once(": ").unwrap());
        let fields = fields.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Self { status, fields, body: String::new() }
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| &**value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// The numbers that `Fixture::publish` put into the events of a page.
    pub fn numbers(&self) -> Vec<u64> {
        let page = self.json();
        page["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["data"]["n"].as_u64().unwrap())
            .collect()
    }

    pub fn next(&self) -> String {
        self.json()["next"].as_str().unwrap().to_owned()
    }

    /// Asserts that this is a problem of that kind and returns its detail.
    pub fn problem(&self, status: u16, kind: &str) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.field("content-type"), Some("application/problem+json"));
        let body = self.json();
        assert_eq!(body["type"], format!("/problems/{kind}"), "{body}");
        assert_eq!(body["status"], status);
        body["detail"].as_str().unwrap().to_owned()
    }
}

/// A WebSocket client made of the state machine and a plain socket.
pub struct Socket {
    pub stream: TcpStream,
    pub connection: Connection,
    pub subprotocol: Option<String>,
    input: Vec<u8>,
    at: usize,
    binary: Vec<u8>,
}

impl Socket {
    /// The next message as text, or how the connection ended, as `close CODE REASON`.
    pub fn next(&mut self) -> String {
        let begun = Instant::now();
        loop {
            let event = self.event();
            if !matches!(&*event, "ping" | "pong") {
                return event;
            }
            assert!(begun.elapsed() < PATIENCE, "nothing but pings came");
        }
    }

    /// The next binary message.
    pub fn binary(&mut self) -> Vec<u8> {
        assert_eq!(self.next(), "binary");
        self.take_binary()
    }

    /// What the last `binary` stood for.
    pub fn take_binary(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.binary)
    }

    /// The next event: a text message as it is, anything else by its name.
    pub fn event(&mut self) -> String {
        loop {
            if self.at == self.input.len() {
                self.input.resize(1 << 16, 0);
                let len = self.stream.read(&mut self.input).unwrap();
                self.input.truncate(len);
                self.at = 0;
                if len == 0 {
                    return "end of stream".to_owned();
                }
            }
            let received = self.connection.receive(Time::ZERO, &mut self.input[self.at..]);
            self.at += received.consumed;
            let text = match received.event {
                Some(Event::Message(Message::Text(text))) => Some(text.to_owned()),
                Some(Event::Message(Message::Binary(bytes))) => {
                    self.binary = bytes.to_vec();
                    Some("binary".to_owned())
                }
                Some(Event::Close(Some(frame))) => {
                    Some(format!("close {} {}", frame.code, frame.reason.as_str()))
                }
                Some(Event::Ping(_)) => Some("ping".to_owned()),
                Some(Event::Pong(_)) => Some("pong".to_owned()),
                None => None,
                other => panic!("unexpected {other:?}"),
            };
            self.flush();
            if let Some(text) = text {
                return text;
            }
        }
    }

    pub fn json(&mut self) -> Value {
        let text = self.next();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    pub fn send(&mut self, message: Message<'_>) {
        self.connection.sender().send(message).unwrap();
        self.flush();
    }

    pub fn flush(&mut self) {
        let bytes = self.connection.sender().transmit().to_vec();
        self.connection.sender().transmitted(bytes.len());
        self.stream.write_all(&bytes).unwrap();
    }
}

/// The blocks of an event stream, as they come.
pub struct EventStream {
    reader: BufReader<TcpStream>,
    pub head: Reply,
}

impl EventStream {
    pub fn open(fixture: &Fixture, target: &str, fields: &[(&str, &str)]) -> Self {
        let mut stream = fixture.connect();
        let fields = [&[("Accept", "text/event-stream")], fields].concat();
        send(&mut stream, "GET", target, &fields);
        let mut reader = BufReader::new(stream);
        let head = Reply::read_head(&mut reader);
        assert_eq!(head.field("content-type"), Some("text/event-stream"));
        Self { reader, head }
    }

    /// The next block, chunk framing taken out; `None` at the end.
    pub fn block(&mut self) -> Option<String> {
        let mut block = String::new();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if line == "0\r\n" {
                return None; // the last chunk; the connection may go on
            }
            if line.ends_with("\r\n") {
                continue; // chunk sizes and ends; the stream's own lines end with LF alone
            }
            if line == "\n" {
                return Some(block);
            }
            block += &line;
        }
    }
}
