//! A server that holds more for its clients than its limit: the refusal of each kind of new work.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use anemone_hub::{Epoch, Retention};
use anemone_testing::multiplexed::{framed, read_framed};
use anemone_testing::{Endpoint, HANDSHAKE, Reply, connect, send, wait_until};
use anemone_ws::Reservation;
use serde_json::Value;

use super::*;
use crate::{PublishRight, TopicRule, TopicRules};

const MULTIPLEXED: [(&str, &str); 1] = [("Sec-WebSocket-Protocol", "anemone.v1")];
const MEMORY_MAX: usize = 1 << 20;
const REASON: &str = "the server holds too much data for its clients: try again in a moment";

/// A server of which a test may hold the memory, for as long as it likes.
struct Overloaded {
    held: Reservation,
    running: Running,
}

impl Overloaded {
    fn start() -> Self {
        let mut options = Options::new(([127, 0, 0, 1], 0).into());
        options.tcp = options.listen[0].address();
        options.threads = NonZero::new(1);
        options.echo = true;
        options.limits.memory_max = Some(MEMORY_MAX);
        let chat =
            TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("chat".parse().unwrap()) };
        options.topics = TopicRules::new([chat]).unwrap();
        let hub = Hub::new(Epoch::from_bits(7));
        hub.ensure("chat".parse().unwrap(), Retention::default()).unwrap();
        let server = Server::bind(options, hub).unwrap();
        // Long holders are not dropped, so that the observations have one cause.
        server.site.has_relief.store(true, Ordering::Relaxed);
        let held = server.site.memory.reservation();
        Self { held, running: server.start().unwrap() }
    }

    /// Holds a byte more than may be held.
    fn exceed(&mut self) {
        self.held.set(MEMORY_MAX + 1);
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint { address: self.running.local_addr().unwrap() }
    }

    /// A WebSocket that is open.
    fn websocket(&self, path: &str, fields: &[(&str, &str)]) -> TcpStream {
        let mut stream = self.endpoint().connect();
        send(&mut stream, "GET", path, &[&HANDSHAKE, fields].concat());
        // Frames behind the head stay in the stream.
        let head = Reply::read_head(&mut BufReader::with_capacity(1, &stream));
        assert_eq!(head.status, 101, "{head:?}");
        stream
    }

    fn multiplexed(&self) -> TcpStream {
        self.websocket("/ws", &MULTIPLEXED)
    }

    fn tcp(&self) -> TcpStream {
        connect(self.running.tcp_addr().unwrap())
    }

    fn get(&self, path: &str) -> Reply {
        self.endpoint().get(path, &[])
    }
}

/// A frame of a client, whose mask is nothing.
fn send_frame(stream: &mut TcpStream, first: u8, payload: &[u8]) {
    let mut header = vec![first];
    match u8::try_from(payload.len()) {
        Ok(len @ ..=125) => header.push(0x80 | len),
        _ => {
            header.push(0x80 | 126);
            header.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    header.extend([0; 4]);
    stream.write_all(&[&header[..], payload].concat()).unwrap();
}

/// The first byte of the next frame, and its payload.
fn frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut header = [0; 2];
    stream.read_exact(&mut header).unwrap();
    let len = match header[1] {
        126 => {
            let mut len = [0; 2];
            stream.read_exact(&mut len).unwrap();
            u16::from_be_bytes(len).into()
        }
        len => usize::from(len),
    };
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload).unwrap();
    (header[0], payload)
}

fn message(stream: &mut TcpStream) -> Vec<u8> {
    read_framed(stream).unwrap()
}

fn send_message(stream: &mut TcpStream, text: &str) {
    stream.write_all(&framed(text.as_bytes())).unwrap();
}

fn is_refusal(message: &[u8], id: &str) {
    let text = str::from_utf8(message).unwrap();
    let (line, payload) = text.split_once('\n').unwrap();
    assert_eq!(line, format!("503 {id} retry-after=1"));
    let problem: Value = serde_json::from_str(payload).unwrap();
    assert_eq!(
        (&problem["type"], &problem["status"]),
        (&"/problems/overloaded".into(), &503.into())
    );
}

#[test]
fn a_message_that_goes_on_to_come_closes_its_websocket_with_1013() {
    let mut server = Overloaded::start();
    // `/echo` returns parts of a message as they come, and holds none.
    for (path, subprotocol) in [("/topics/chat", &[][..]), ("/ws", &MULTIPLEXED)] {
        server.held.set(0);
        // The first fragment of a text is taken, as the empty ping behind it shows.
        let mut stream = server.websocket(path, subprotocol);
        send_frame(&mut stream, 0x01, &[b'x'; 1000]);
        send_frame(&mut stream, 0x89, b"");
        assert_eq!(frame(&mut stream), (0x8a, vec![]), "{path}");
        server.exceed();
        send_frame(&mut stream, 0x00, &[b'x'; 40_000]);
        let (first, payload) = frame(&mut stream);
        assert_eq!((first, &payload[..2]), (0x88, &1013_u16.to_be_bytes()[..]), "{path}");
        assert_eq!(str::from_utf8(&payload[2..]).unwrap(), REASON, "{path}");
    }
}

#[test]
fn a_multiplexed_request_is_refused_and_its_connection_goes_on() {
    let mut server = Overloaded::start();
    let (mut websocket, mut tcp) = (server.multiplexed(), server.tcp());
    server.exceed();
    for request in ["GET a /clock", "POST a /topics/chat\n1", "GET a /topics/chat"] {
        send_frame(&mut websocket, 0x81, request.as_bytes());
        let (first, payload) = frame(&mut websocket);
        assert_eq!(first, 0x81, "{request}");
        is_refusal(&payload, "a");
        send_message(&mut tcp, request);
        is_refusal(&message(&mut tcp), "a");
    }
    server.held.set(0);
    send_frame(&mut websocket, 0x81, b"GET b /clock");
    assert!(frame(&mut websocket).1.starts_with(b"200 b\n"));
    send_message(&mut tcp, "GET b /clock");
    assert!(message(&mut tcp).starts_with(b"200 b\n"));
}

#[test]
fn health_alone_is_answered_and_lists_it_until_a_while_after() {
    let mut server = Overloaded::start();
    assert_eq!(server.get("/health").json()["status"], "ok");
    server.exceed();
    let refused = server.get("/clock");
    refused.problem(503, "overloaded");
    assert_eq!(refused.field("retry-after"), Some("1"));
    let reply = server.get("/health");
    let health = reply.json();
    assert_eq!(
        (reply.status, &health["status"], &health["count"]),
        (503, &"failing".into(), &1.into())
    );
    // The request itself holds memory, too.
    let detail = health["problems"][0]["detail"].as_str().unwrap();
    let (held_bytes, rest) = detail.split_once(' ').unwrap();
    assert!(held_bytes.parse::<usize>().unwrap() > MEMORY_MAX, "{detail}");
    let words = "bytes are held for clients, the limit is 1048576: new requests were refused in the last 10 s";
    let expected =
        serde_json::json!({ "problem": "memory", "detail": format!("{held_bytes} {words}") });
    assert_eq!((rest, &health["problems"]), (words, &Value::Array(vec![expected])));
    server.held.set(0);
    assert_eq!(server.get("/clock").status, 200, "at once");
    wait_until("it is told for ever", || server.get("/health").status == 200);
    assert_eq!(server.get("/health").json()["status"], "ok");
}
