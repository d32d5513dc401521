//! A WebSocket client over any stream of a test.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use anemone_ws::proto::handshake::ClientHandshake;
use anemone_ws::proto::{Codecs, Config, Connection, Event, MaskKey, Message, Time};
use serde_json::Value;

use crate::PATIENCE;

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

    /// The next message as text, or the end of the connection as `close CODE REASON`.
    pub fn next(&mut self) -> String {
        self.try_next().unwrap()
    }

    /// The same; an error if the connection fails.
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

    /// The bytes of the last message that was returned as `binary`.
    pub fn take_binary(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.binary)
    }

    /// Returns the next event: the text of a message, or the name of another event.
    pub fn event(&mut self) -> String {
        self.try_event().unwrap()
    }

    /// The same; an error if the connection fails.
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
