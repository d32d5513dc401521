//! Makes requests of the subprotocol `anemone.v1`, over a WebSocket or over TCP.

use anemone_ws::proto::Opcode;

use super::{Fault, Place, Stream, WebSocket};
use crate::tcp_info::Traffic;

const SUBPROTOCOL: &str = "anemone.v1";
const PATH: &str = "/ws";
const LENGTH_BYTES: usize = 4;

/// A connection for many requests.
#[derive(Debug)]
pub(crate) enum Multiplexed {
    WebSocket(Box<WebSocket>),
    Tcp(Box<Stream>),
}

/// A message of a reply, such as `206 ID POSITION` and a payload.
#[derive(Debug)]
pub(crate) struct MultiplexedReply {
    pub(crate) status: u16,
    /// The id of the request.
    pub(crate) id: String,
    /// The position of an event; empty if there is none.
    pub(crate) position: String,
    pub(crate) payload: Vec<u8>,
}

impl Multiplexed {
    pub(crate) fn web_socket(place: &Place, seed: u64) -> Result<Self, Fault> {
        let socket = WebSocket::connect(place, PATH, &[SUBPROTOCOL], seed)?;
        Ok(Self::WebSocket(Box::new(socket)))
    }

    pub(crate) fn tcp(place: &Place) -> Result<Self, Fault> {
        Ok(Self::Tcp(Box::new(Stream::connect(place)?)))
    }

    /// Sends a request line, such as `GET 7 /messages/testing`, and its payload.
    pub(crate) fn ask(&mut self, line: &str, payload: &[u8]) -> Result<(), Fault> {
        let mut message = line.as_bytes().to_vec();
        if !payload.is_empty() {
            message.push(b'\n');
            message.extend_from_slice(payload);
        }
        match self {
            Self::WebSocket(socket) => socket.send(Opcode::Text, &message),
            Self::Tcp(stream) => {
                let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
                stream.send(&[&length[..], &message].concat())
            }
        }
    }

    /// Waits for the next reply to any of the requests.
    pub(crate) fn answer(&mut self) -> Result<MultiplexedReply, Fault> {
        let message = match self {
            Self::WebSocket(socket) => socket.receive()?.ok_or(Fault::Closed)?,
            Self::Tcp(stream) => {
                stream.begin_wait();
                stream.fill_to(LENGTH_BYTES)?;
                let length: [u8; LENGTH_BYTES] =
                    stream.bytes()[..LENGTH_BYTES].try_into().unwrap_or_default();
                let len = u32::from_be_bytes(length) as usize;
                stream.fill_to(LENGTH_BYTES + len)?;
                stream.take(LENGTH_BYTES);
                stream.take(len)
            }
        };
        let (line, payload) = match message.iter().position(|&byte| byte == b'\n') {
            Some(end) => (&message[..end], &message[end + 1..]),
            None => (&message[..], &[][..]),
        };
        let words = std::str::from_utf8(line).unwrap_or_default();
        let mut words = words.split(' ');
        let status = words.next().and_then(|status| status.parse().ok());
        let (Some(status), Some(id)) = (status, words.next()) else {
            return Err(Fault::wrong("no status came", line));
        };
        let (id, position) = (id.to_owned(), words.next().unwrap_or_default().to_owned());
        Ok(MultiplexedReply { status, id, position, payload: payload.to_vec() })
    }

    pub(crate) fn traffic(&self) -> Result<Traffic, Fault> {
        match self {
            Self::WebSocket(socket) => socket.traffic(),
            Self::Tcp(stream) => stream.traffic(),
        }
    }

    pub(crate) fn finish(self) -> Result<Traffic, Fault> {
        match self {
            Self::WebSocket(socket) => socket.finish(),
            Self::Tcp(stream) => stream.finish(),
        }
    }
}
