//! A client of `anemone.v1` over a WebSocket or TCP.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anemone_ws::proto::Message;
use serde_json::Value;

use crate::{Fixture, Socket, connect};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carrier {
    WebSocket,
    Tcp,
}

pub const BOTH: [Carrier; 2] = [Carrier::WebSocket, Carrier::Tcp];

pub enum Client {
    WebSocket(Box<Socket>),
    Tcp(TcpStream),
}

/// `STATUS ID POSITION TIME FIELD=VALUE…`, and the payload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reply {
    pub status: u16,
    pub id: String,
    pub position: Option<String>,
    /// The time of an event.
    pub time: Option<String>,
    /// As they were written: `FIELD=VALUE`.
    pub fields: Vec<String>,
    pub payload: String,
}

impl Client {
    pub fn open(carrier: Carrier, fixture: &Fixture) -> Self {
        match carrier {
            Carrier::WebSocket => {
                let socket = fixture.websocket("/ws", &["anemone.v1"], &[]);
                assert_eq!(socket.subprotocol.as_deref(), Some("anemone.v1"));
                Self::WebSocket(Box::new(socket))
            }
            Carrier::Tcp => Self::Tcp(connect(fixture.tcp())),
        }
    }

    /// The client's own address.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::WebSocket(socket) => socket.stream.local_addr().unwrap(),
            Self::Tcp(stream) => stream.local_addr().unwrap(),
        }
    }

    /// Sends a message with any bytes.
    pub fn send_bytes(&mut self, message: &[u8]) {
        match self {
            Self::WebSocket(socket) => socket.send(Message::Binary(message)),
            Self::Tcp(stream) => stream.write_all(&framed(message)).unwrap(),
        }
    }

    pub fn send(&mut self, message: &str) {
        match self {
            Self::WebSocket(socket) => socket.send(Message::Text(message)),
            Self::Tcp(stream) => stream.write_all(&framed(message.as_bytes())).unwrap(),
        }
    }

    /// Sends all messages in one write.
    pub fn send_all(&mut self, messages: &[String]) {
        match self {
            Self::WebSocket(socket) => {
                let sender = socket.connection.sender();
                messages.iter().for_each(|message| sender.send(Message::Text(message)).unwrap());
                socket.flush();
            }
            Self::Tcp(stream) => {
                let bytes: Vec<u8> =
                    messages.iter().flat_map(|message| framed(message.as_bytes())).collect();
                stream.write_all(&bytes).unwrap();
            }
        }
    }

    /// The next message; `None` at the end of the connection.
    pub fn message(&mut self) -> Option<String> {
        self.bytes().map(|message| String::from_utf8(message).unwrap())
    }

    /// The bytes of the next message. A WebSocket has messages of text as text, and others as binary.
    pub fn bytes(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::WebSocket(socket) => match socket.next() {
                text if text.starts_with("close ") || text == "end of stream" => None,
                text if text == "binary" => {
                    let bytes = socket.take_binary();
                    assert!(str::from_utf8(&bytes).is_err(), "this is text: {bytes:?}");
                    Some(bytes)
                }
                text => Some(text.into_bytes()),
            },
            Self::Tcp(stream) => read_framed(stream),
        }
    }

    pub fn next(&mut self) -> Reply {
        let message = self.message().unwrap();
        Reply::parse(&message)
    }

    pub fn ask(&mut self, message: &str) -> Reply {
        self.send(message);
        self.next()
    }

    /// All replies to a request, if there is no other.
    pub fn call(&mut self, message: &str) -> Vec<Reply> {
        self.send(message);
        let mut replies = vec![self.next()];
        while !replies.last().is_some_and(Reply::is_final) {
            replies.push(self.next());
        }
        replies
    }
}

impl Reply {
    pub fn parse(message: &str) -> Self {
        let (line, payload) = message.split_once('\n').unwrap_or((message, ""));
        let (fields, words): (Vec<&str>, Vec<&str>) =
            line.split(' ').partition(|word| word.contains('='));
        let is_item = words[0] == "206" && words.len() == 2;
        assert!(is_item || (words.len() == 4) == (words[0] == "206"), "{message:?}");
        assert!((2..=4).contains(&words.len()), "{message:?}");
        Self {
            status: words[0].parse().unwrap(),
            id: words[1].to_owned(),
            position: words.get(2).map(|&position| position.to_owned()),
            time: words.get(3).map(|&time| time.to_owned()),
            fields: fields.into_iter().map(str::to_owned).collect(),
            payload: payload.to_owned(),
        }
    }

    pub fn is_final(&self) -> bool {
        self.status >= 200 && self.status != 206
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.payload).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The number that `Fixture::publish` put into an event.
    pub fn number(&self) -> u64 {
        assert_eq!(self.status, 206, "{self:?}");
        self.json()["n"].as_u64().unwrap()
    }

    /// Asserts its status, id and position, without a payload.
    pub fn is_line(&self, status: u16, id: &str, position: &str) {
        let position = (!position.is_empty()).then(|| position.to_owned());
        let expected = Self {
            status,
            id: id.to_owned(),
            position,
            time: None,
            fields: vec![],
            payload: String::new(),
        };
        assert_eq!(*self, expected);
    }

    /// Asserts that this is a problem of that kind and returns its detail.
    pub fn problem(&self, status: u16, id: &str, kind: &str) -> String {
        assert_eq!((self.status, &*self.id, &self.position), (status, id, &None), "{self:?}");
        let body = self.json();
        assert_eq!(body["type"], format!("/problems/{kind}"), "{body}");
        assert_eq!(body["status"], status);
        body["detail"].as_str().unwrap().to_owned()
    }
}

/// A message after its length.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&length.to_be_bytes()[..], message].concat()
}

/// The next message after its length; `None` at the end of the connection.
pub fn read_framed(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return None,
        read => read.unwrap(),
    }
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut message).unwrap();
    Some(message)
}
