//! The messages of a WebSocket, and of `anemone.v1` on a WebSocket and on TCP.

use std::io::{self, BufReader, ErrorKind, Read, Write};

use anemone_ws::proto::Message;
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use serde_json::json;

use super::{Reading, Told, Wire, parse, told};
use crate::client::{Reply, framed};
use crate::common::Socket;

fn open(wire: Wire, target: &str, subprotocol: Option<&str>) -> io::Result<Socket<Wire>> {
    let host = wire.peer().to_string();
    let handshake = ClientHandshake::new(Nonce([7; 16]), subprotocol.as_slice());
    let socket = Socket::open(wire, &host, target, handshake, &[])?;
    assert_eq!(socket.subprotocol.as_deref(), subprotocol);
    Ok(socket)
}

/// The code of what a `Socket` says of its end.
fn close_code(text: &str) -> Option<u16> {
    text.strip_prefix("close ").map(|end| end.split(' ').next().unwrap().parse().unwrap())
}

/// A topic's own WebSocket.
pub(super) struct Messages(Socket<Wire>);

impl Messages {
    pub(super) fn open(wire: Wire, target: &str, subprotocol: Option<&str>) -> io::Result<Self> {
        open(wire, target, subprotocol).map(Self)
    }
}

impl Reading for Messages {
    fn read(&mut self) -> io::Result<Told> {
        let text = self.0.try_next()?;
        if let Some(code) = close_code(&text) {
            return Ok(Told::End(Some(code)));
        }
        if text == "end of stream" {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let message = parse(&text);
        let is_notice = ["gap", "skipped", "end"].iter().any(|name| !message[*name].is_null());
        if self.0.subprotocol.is_some() || is_notice {
            return Ok(told(&message));
        }
        Ok(Told::Event { position: None, data: message })
    }
}

/// One request among those of a connection.
pub(super) struct Multiplexed {
    carrier: Carrier,
    has_begun: bool,
}

enum Carrier {
    WebSocket(Box<Socket<Wire>>),
    Tcp(BufReader<Wire>),
}

impl Multiplexed {
    pub(super) fn web_socket(wire: Wire, target: &str) -> io::Result<Self> {
        let mut socket = open(wire, "/ws", Some("anemone.v1"))?;
        socket.send(Message::Text(&format!("GET r {target}")));
        Ok(Self { carrier: Carrier::WebSocket(Box::new(socket)), has_begun: false })
    }

    pub(super) fn tcp(mut wire: Wire, target: &str) -> io::Result<Self> {
        wire.write_all(&framed(format!("GET r {target}").as_bytes()))?;
        Ok(Self { carrier: Carrier::Tcp(BufReader::new(wire)), has_begun: false })
    }

    fn message(&mut self) -> io::Result<String> {
        match &mut self.carrier {
            Carrier::WebSocket(socket) => match socket.try_next()? {
                end if end == "end of stream" => Err(ErrorKind::UnexpectedEof.into()),
                message => Ok(message),
            },
            Carrier::Tcp(reader) => {
                let mut length = [0; 4];
                reader.read_exact(&mut length)?;
                let mut message = vec![0; u32::from_be_bytes(length) as usize];
                reader.read_exact(&mut message)?;
                Ok(String::from_utf8(message).unwrap())
            }
        }
    }
}

impl Reading for Multiplexed {
    fn read(&mut self) -> io::Result<Told> {
        loop {
            let message = self.message()?;
            if let Some(code) = close_code(&message) {
                return Ok(Told::End(Some(code)));
            }
            let reply = Reply::parse(&message);
            match (reply.status, &*reply.id) {
                // Only the first tells a position; the others are heartbeats.
                (100, "r") => {
                    if !std::mem::replace(&mut self.has_begun, true) {
                        return Ok(Told::Position(reply.position.unwrap()));
                    }
                }
                (110, "r") => {
                    let told = told(&reply.json());
                    if let Told::Gap(gap) = &told {
                        assert_eq!(gap["resume"], json!(reply.position), "{message}");
                    }
                    return Ok(told);
                }
                (206, "r") => {
                    assert!(self.has_begun, "{message}");
                    return Ok(Told::Event {
                        data: parse(&reply.payload),
                        position: reply.position,
                    });
                }
                (status @ 410, "r") | (status @ 503, "-") => return Ok(Told::End(Some(status))),
                _ => panic!("unexpected {message}"),
            }
        }
    }
}
