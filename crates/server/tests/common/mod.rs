//! A server on a free port, and clients made of plain sockets.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

mod page;

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
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

/// The fields that every WebSocket's handshake over HTTP/1.1 has (RFC 6455 section 4.1).
pub const HANDSHAKE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

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
        options.tcp = Some("127.0.0.1:0".parse().unwrap());
        (options.echo, options.broadcast) = (true, true);
        options.fallback = Some(page::fallback());
        change(&mut options);
        let running = Server::bind(options, hub.clone()).unwrap().start().unwrap();
        Self { hub, wind, address: running.local_addr().unwrap(), running: Some(running) }
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

    /// The bytes that the server counts as held for its clients.
    pub fn held_bytes(&self) -> usize {
        self.running.as_ref().unwrap().held_bytes()
    }

    /// Whether there is a topic of this name, and not only a pattern that lets it come.
    pub fn has(&self, topic: &str) -> bool {
        self.hub.topic(&topic.parse().unwrap()).is_some()
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
        self.running.take().unwrap().stop_blocking();
    }

    /// A handshake with these fields beside the required ones.
    pub fn websocket(
        &self,
        target: &str,
        subprotocols: &[&str],
        fields: &[(&str, &str)],
    ) -> Socket {
        let handshake = ClientHandshake::new(Nonce([7; 16]), subprotocols);
        self.open(target, handshake, fields)
    }

    /// The same with permessage-deflate (RFC 7692), which compresses every message.
    pub fn compressed(&self, target: &str) -> Socket {
        let config = DeflateConfig { compress_bytes_min: 0, ..DeflateConfig::default() };
        let handshake = ClientHandshake::new(Nonce([7; 16]), &[]).with_deflate(config);
        self.open(target, handshake, &[])
    }

    fn open(&self, target: &str, handshake: ClientHandshake, fields: &[(&str, &str)]) -> Socket {
        Socket::open(self.connect(), &self.address.to_string(), target, handshake, fields).unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop_blocking();
        }
    }
}

pub fn send(stream: &mut TcpStream, method: &str, target: &str, fields: &[(&str, &str)]) {
    let host = stream.peer_addr().unwrap();
    stream.write_all(request(host, method, target, fields).as_bytes()).unwrap();
}

/// The head of a request.
pub fn request(host: SocketAddr, method: &str, target: &str, fields: &[(&str, &str)]) -> String {
    let mut request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in fields {
        request += &format!("{name}: {value}\r\n");
    }
    request + "\r\n"
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    fields: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn read(reader: &mut impl BufRead, method: &str) -> Self {
        Self::try_read(reader, method).unwrap()
    }

    /// The same; an error where the connection ends or fails.
    pub fn try_read(reader: &mut impl BufRead, method: &str) -> io::Result<Self> {
        let mut reply = Self::try_read_head(reader)?;
        let len: usize = reply.field("content-length").map_or(0, |len| len.parse().unwrap());
        if method != "HEAD" {
            let mut body = vec![0; len];
            reader.read_exact(&mut body)?;
            reply.body = String::from_utf8(body).unwrap();
        }
        Ok(reply)
    }

    pub fn read_head(reader: &mut impl BufRead) -> Self {
        Self::try_read_head(reader).unwrap()
    }

    /// The same; an error where the connection ends or fails.
    pub fn try_read_head(reader: &mut impl BufRead) -> io::Result<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                let said = format!("end of stream in a header: {lines:?}");
                return Err(io::Error::new(ErrorKind::UnexpectedEof, said));
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let fields = lines[1..].iter().map(|line| line.split_once(": ").unwrap());
        let fields = fields.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Ok(Self { status, fields, body: String::new() })
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
pub struct Socket<S = TcpStream> {
    pub stream: S,
    pub connection: Connection,
    pub subprotocol: Option<String>,
    input: Vec<u8>,
    at: usize,
    binary: Vec<u8>,
}

impl<S: Read + Write> Socket<S> {
    pub fn open(
        mut stream: S,
        host: &str,
        target: &str,
        mut handshake: ClientHandshake,
        fields: &[(&str, &str)],
    ) -> io::Result<Self> {
        stream.write_all(handshake.request(host, target, fields).as_bytes())?;
        let mut byte = [0];
        loop {
            stream.read_exact(&mut byte)?;
            if let Some(established) = handshake.receive(&byte).map_err(io::Error::other)? {
                let keys = Box::new(|| MaskKey([1, 2, 3, 4]));
                let config = Arc::new(Config::default());
                let mut connection = Connection::client(config, Time::ZERO, keys);
                if let Some(deflate) = &established.deflate {
                    connection = connection.with_deflate(deflate, |_| Codecs::new());
                }
                return Ok(Self {
                    stream,
                    connection,
                    subprotocol: established.subprotocol,
                    input: Vec::new(),
                    at: 0,
                    binary: Vec::new(),
                });
            }
        }
    }

    /// The next message as text, or how the connection ended, as `close CODE REASON`.
    pub fn next(&mut self) -> String {
        self.try_next().unwrap()
    }

    /// The same; an error where the connection fails.
    pub fn try_next(&mut self) -> io::Result<String> {
        let begun = Instant::now();
        loop {
            let event = self.try_event()?;
            if !matches!(&*event, "ping" | "pong") {
                return Ok(event);
            }
            assert!(begun.elapsed() < PATIENCE, "nothing but pings came");
        }
    }

    /// The next binary message.
    pub fn binary(&mut self) -> Vec<u8> {
        assert_eq!(self.next(), "binary");
        self.take_binary()
    }

    /// The bytes that the last `binary` stood for.
    pub fn take_binary(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.binary)
    }

    /// The next event: a text message as it is, anything else by its name.
    pub fn event(&mut self) -> String {
        self.try_event().unwrap()
    }

    /// The same; an error where the connection fails.
    pub fn try_event(&mut self) -> io::Result<String> {
        loop {
            if self.at == self.input.len() {
                self.input.resize(1 << 16, 0);
                let read = self.stream.read(&mut self.input);
                self.input.truncate(*read.as_ref().unwrap_or(&0));
                self.at = 0;
                if read? == 0 {
                    return Ok("end of stream".to_owned());
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
                Some(Event::Pong { .. }) => Some("pong".to_owned()),
                None => None,
                other => panic!("unexpected {other:?}"),
            };
            self.flush();
            if let Some(text) = text {
                return Ok(text);
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

/// The bytes that this process, the server and its clients, has in memory.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// The next line of a stream over HTTP/1.1, chunk framing taken out; `None` at the end.
pub fn try_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line == "0\r\n" {
            return Ok(None); // the last chunk; the connection may go on
        }
        if !line.ends_with('\n') {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        // Chunk sizes and their ends; the stream's own lines end with LF alone.
        if !line.ends_with("\r\n") {
            return Ok(Some(line));
        }
    }
}

/// The blocks of an event stream, as they come.
pub struct EventStream<S = TcpStream> {
    reader: BufReader<S>,
    pub head: Reply,
}

impl EventStream {
    pub fn open(fixture: &Fixture, target: &str, fields: &[(&str, &str)]) -> Self {
        let fields = [&[("Accept", "text/event-stream")], fields].concat();
        let request = request(fixture.address, "GET", target, &fields);
        Self::over(fixture.connect(), &request).unwrap()
    }
}

impl<S: Read + Write> EventStream<S> {
    /// The stream that this request is answered with.
    pub fn over(mut stream: S, request: &str) -> io::Result<Self> {
        stream.write_all(request.as_bytes())?;
        let mut reader = BufReader::new(stream);
        let head = Reply::try_read_head(&mut reader)?;
        assert_eq!(head.field("content-type"), Some("text/event-stream"), "{head:?}");
        Ok(Self { reader, head })
    }

    /// What it comes by.
    pub fn get_ref(&self) -> &S {
        self.reader.get_ref()
    }

    /// The next block, chunk framing taken out; `None` at the end.
    pub fn block(&mut self) -> Option<String> {
        self.try_block().unwrap()
    }

    /// The next block, which is an event's, without its time.
    pub fn event(&mut self) -> String {
        let block = self.block().unwrap();
        let (id, rest) = block.split_once("\ntime: ").unwrap_or_else(|| panic!("{block:?}"));
        let (time, data) = rest.split_once('\n').unwrap();
        assert!(time.parse::<f64>().unwrap() > 1.7e12, "{block:?}");
        format!("{id}\n{data}")
    }

    /// The same; an error where the connection fails.
    pub fn try_block(&mut self) -> io::Result<Option<String>> {
        let mut block = String::new();
        while let Some(line) = try_line(&mut self.reader)? {
            if line == "\n" {
                return Ok(Some(block));
            }
            block += &line;
        }
        Ok(None)
    }
}
