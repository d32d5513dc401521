//! The messages of a WebSocket, and of `anemone.v1` on a WebSocket and on TCP.

use std::collections::VecDeque;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anemone_ws::proto::Message;
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use serde_json::json;

use super::told::{parse, told};
use super::{Reading, Told, Wire};
use crate::server::multiplexed::{Reply, framed};
use crate::{PATIENCE, Socket};

fn open(wire: Wire, target: &str, subprotocol: Option<&str>) -> io::Result<Socket<Wire>> {
    let host = wire.peer().to_string();
    let handshake = ClientHandshake::new(Nonce([7; 16]), subprotocol.as_slice());
    let socket = Socket::open(wire, &host, target, handshake, &[])?;
    assert_eq!(socket.subprotocol.as_deref(), subprotocol);
    Ok(socket)
}

fn close_code(text: &str) -> Option<u16> {
    text.strip_prefix("close ").map(|end| end.split(' ').next().unwrap().parse().unwrap())
}

/// The text of the next message; an error at the end of the stream.
fn message(socket: &mut Socket<Wire>) -> io::Result<String> {
    match socket.try_next()? {
        end if end == "end of stream" => Err(ErrorKind::UnexpectedEof.into()),
        message => Ok(message),
    }
}

/// A topic's own WebSocket, with positions and notices.
pub(super) struct TopicSocket(Socket<Wire>);

impl TopicSocket {
    pub(super) fn open(wire: Wire, target: &str, subprotocol: &str) -> io::Result<Self> {
        open(wire, target, Some(subprotocol)).map(Self)
    }
}

impl Reading for TopicSocket {
    fn read(&mut self) -> io::Result<Told> {
        let text = message(&mut self.0)?;
        Ok(close_code(&text).map_or_else(|| told(&parse(&text)), |code| Told::End(Some(code))))
    }
}

/// A topic's own WebSocket, whose messages are data only. Notices come with its end; after a gap it is opened again
/// at the position in the notice.
pub(super) struct Data {
    socket: Socket<Wire>,
    peer: SocketAddr,
    target: String,
    told: VecDeque<Told>,
    /// The number of the last event, if the server may skip events without a notice.
    last: Option<u64>,
}

impl Data {
    pub(super) fn open(wire: Wire, target: &str) -> io::Result<Self> {
        let peer = wire.peer();
        let socket = open(wire, target, None)?;
        let after = parameter(target, "after").and_then(|after| after.split_once('-'));
        let last = after.and_then(|(_, offset)| offset.parse().ok());
        let last = last.filter(|_| parameter(target, "mode") == Some("latest"));
        Ok(Self { socket, peer, target: target.to_owned(), told: VecDeque::new(), last })
    }

    /// Opens it again at the position in `reason`, such as `gap: retention, missed 12, resume ya-16`.
    fn go_on(&mut self, reason: &str) -> io::Result<Told> {
        let words: Vec<&str> = reason.split(", ").collect();
        let [why, missed, resume] = words[..] else { panic!("{reason}") };
        let (why, missed) = (&why["gap: ".len()..], &missed["missed ".len()..]);
        let (resume, missed) = (&resume["resume ".len()..], missed.parse::<u64>().ok());
        let (epoch, offset) = resume.split_once('-').unwrap();
        let asked = parameter(&self.target, "after").unwrap_or_default().to_owned();
        let after = missed.map_or(asked.clone(), |missed| {
            format!("{epoch}-{}", offset.parse::<u64>().unwrap() - missed)
        });
        self.target = match asked.is_empty() {
            true => format!("{}&after={resume}", self.target),
            false => self.target.replace(&format!("after={asked}"), &format!("after={resume}")),
        };
        let stream = TcpStream::connect(self.peer)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        self.socket = open(Wire::new(stream), &self.target, None)?;
        let gap = json!({ "reason": why, "after": after, "missed": missed, "resume": resume });
        Ok(Told::Gap(gap))
    }
}

fn parameter<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = target.split_once('?')?;
    query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

impl Reading for Data {
    fn read(&mut self) -> io::Result<Told> {
        if let Some(told) = self.told.pop_front() {
            return Ok(told);
        }
        let text = message(&mut self.socket)?;
        match close_code(&text) {
            Some(4000) => return self.go_on(&text["close 4000 ".len()..]),
            Some(4001) => {
                self.told.push_back(Told::End(Some(4001)));
                return Ok(Told::Deleted);
            }
            Some(1000) if text.ends_with("the run has ended") => {
                self.told.push_back(Told::End(Some(1000)));
                return Ok(Told::Ended);
            }
            Some(code) => return Ok(Told::End(Some(code))),
            None => {}
        }
        let event = Told::Event { position: None, data: parse(&text) };
        let number = parse(&text)["n"].as_u64();
        let (Some(last), Some(number)) = (&mut self.last, number) else { return Ok(event) };
        match number - 1 - std::mem::replace(last, number) {
            0 => Ok(event),
            skipped => {
                self.told.push_back(event);
                Ok(Told::Skipped(skipped))
            }
        }
    }
}

/// One request of a multiplexed connection.
pub(super) struct Multiplexed {
    carrier: MultiplexedStream,
    has_begun: bool,
}

enum MultiplexedStream {
    WebSocket(Box<Socket<Wire>>),
    Tcp(BufReader<Wire>),
}

impl Multiplexed {
    pub(super) fn web_socket(wire: Wire, target: &str) -> io::Result<Self> {
        let mut socket = open(wire, "/ws", Some("anemone.v1"))?;
        socket.send(Message::Text(&format!("GET r {target}")));
        Ok(Self { carrier: MultiplexedStream::WebSocket(Box::new(socket)), has_begun: false })
    }

    pub(super) fn tcp(mut wire: Wire, target: &str) -> io::Result<Self> {
        wire.write_all(&framed(format!("GET r {target}").as_bytes()))?;
        Ok(Self { carrier: MultiplexedStream::Tcp(BufReader::new(wire)), has_begun: false })
    }

    fn message(&mut self) -> io::Result<String> {
        match &mut self.carrier {
            MultiplexedStream::WebSocket(socket) => message(socket),
            MultiplexedStream::Tcp(reader) => {
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
                // Only the first contains a position; the others are heartbeats.
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
                    assert!(reply.time.unwrap().parse::<f64>().unwrap() > 1.7e12, "{message}");
                    return Ok(Told::Event {
                        data: parse(&reply.payload),
                        position: reply.position,
                    });
                }
                (status @ (200 | 410), "r") | (status @ 503, "-") => {
                    return Ok(Told::End(Some(status)));
                }
                _ => panic!("unexpected {message}"),
            }
        }
    }
}
