//! The part of HTTP and WebSocket that readers and publishers need. It is written by hand, and shares nothing with the
//! product.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::world::LONG;

pub(crate) type Stream = BufReader<TcpStream>;

/// The reason why a participant cannot continue.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection broke, which is what this is all about.
    Lost,
    /// Something came that must not come.
    Fault(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock => Self::Fault(format!("nothing arrived for {LONG:?}")),
            io::ErrorKind::InvalidData => Self::Fault(error.to_string()),
            _ => Self::Lost,
        }
    }
}

pub(crate) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

pub(crate) fn connect(address: SocketAddr) -> io::Result<Stream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LONG))?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) is_replayed: bool,
    length: Option<usize>,
}

pub(crate) fn request(stream: &mut Stream, head: &str, body: &[u8]) -> io::Result<Reply> {
    let length = body.len();
    let head = format!("{head}\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n");
    stream.get_mut().write_all(&[head.as_bytes(), body].concat())?;
    read_head(stream)
}

fn read_head(stream: &mut Stream) -> io::Result<Reply> {
    let status = line(stream)?;
    let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| invalid("no status"))?;
    let mut reply = Reply { status, is_replayed: false, length: None };
    loop {
        let field = line(stream)?.to_ascii_lowercase();
        match field.split_once(':') {
            None if field.is_empty() => return Ok(reply),
            Some(("content-length", length)) => reply.length = length.trim().parse().ok(),
            Some(("idempotent-replayed", _)) => reply.is_replayed = true,
            _ => {}
        }
    }
}

impl Reply {
    /// A body with a length, whole.
    pub(crate) fn body(&self, stream: &mut Stream) -> io::Result<String> {
        let mut body = vec![0; self.length.ok_or_else(|| invalid("no length"))?];
        stream.read_exact(&mut body)?;
        String::from_utf8(body).map_err(|_| invalid("no UTF-8"))
    }
}

/// The next line, without its end. What is cut short is none.
pub(crate) fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.strip_suffix('\r').unwrap_or(line).to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The body of an endless reply.
pub(crate) struct Chunks<'a> {
    stream: &'a mut Stream,
    left: usize,
}

/// Asks for an endless reply.
pub(crate) fn chunks<'a>(
    stream: &'a mut Stream,
    path: &str,
    accept: &str,
) -> Result<BufReader<Chunks<'a>>, Trouble> {
    let reply = request(stream, &format!("GET {path} HTTP/1.1\r\nAccept: {accept}"), b"")?;
    match reply.status {
        200 => Ok(BufReader::new(Chunks { stream, left: 0 })),
        status => Err(Trouble::Fault(format!("{path} has status {status}"))),
    }
}

impl Read for Chunks<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let size = line(self.stream)?;
            self.left = usize::from_str_radix(&size, 16).map_err(|_| invalid(size))?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = buffer.len().min(self.left);
        let read = self.stream.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read;
        if self.left == 0 {
            line(self.stream)?;
        }
        Ok(read)
    }
}

/// The close code for a reader of data alone that misses events; the reason names them.
const GAP: u16 = 4000;

/// A WebSocket that sends and receives text in single frames.
pub(crate) struct WebSocket(Stream);

impl WebSocket {
    pub(crate) fn open(
        address: SocketAddr,
        path: &str,
        subprotocol: Option<&str>,
    ) -> Result<Self, Trouble> {
        let mut stream = connect(address)?;
        let offer = subprotocol.map(|name| format!("\r\nSec-WebSocket-Protocol: {name}"));
        let head = format!(
            "GET {path} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=={}",
            offer.unwrap_or_default()
        );
        match request(&mut stream, &head, b"")?.status {
            101 => Ok(Self(stream)),
            status => Err(Trouble::Fault(format!("{path} has status {status}"))),
        }
    }

    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        self.frame(0x81, text.as_bytes())
    }

    fn frame(&mut self, first: u8, payload: &[u8]) -> io::Result<()> {
        let mut frame = vec![first];
        match u16::try_from(payload.len()).unwrap() {
            length @ ..126 => frame.push(0x80 | u8::try_from(length).unwrap()),
            length => {
                frame.push(0x80 | 126);
                frame.extend(length.to_be_bytes());
            }
        }
        // Masked with zeros, which change nothing.
        frame.extend([0; 4]);
        frame.extend(payload);
        self.0.get_mut().write_all(&frame)
    }

    pub(crate) fn receive(&mut self) -> io::Result<String> {
        loop {
            let [first, length] = self.array()?;
            let length = match length {
                126 => u16::from_be_bytes(self.array()?).into(),
                127 => u64::from_be_bytes(self.array()?),
                length => length.into(),
            };
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut payload)?;
            match first {
                0x81 | 0x82 => return String::from_utf8(payload).map_err(|_| invalid("no UTF-8")),
                0x89 => self.frame(0x8A, &payload)?,
                0x8A => {}
                0x88 if payload.starts_with(&GAP.to_be_bytes()) => {
                    let words = String::from_utf8_lossy(&payload[2..]).into_owned();
                    return Err(io::Error::new(io::ErrorKind::ConnectionAborted, words));
                }
                other => return Err(invalid(format!("frame {other:#x}: {payload:?}"))),
            }
        }
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// The channel that carries `anemone.v1`.
pub(crate) enum Channel {
    WebSocket(WebSocket),
    Tcp(Stream),
}

impl Channel {
    pub(crate) fn send(&mut self, message: &str) -> io::Result<()> {
        match self {
            Self::WebSocket(socket) => socket.send(message),
            Self::Tcp(stream) => {
                let length = u32::try_from(message.len()).unwrap().to_be_bytes();
                stream.get_mut().write_all(&[&length, message.as_bytes()].concat())
            }
        }
    }

    pub(crate) fn receive(&mut self) -> io::Result<String> {
        match self {
            Self::WebSocket(socket) => socket.receive(),
            Self::Tcp(stream) => {
                let mut length = [0; 4];
                stream.read_exact(&mut length)?;
                let mut message = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
                stream.read_exact(&mut message)?;
                String::from_utf8(message).map_err(|_| invalid("no UTF-8"))
            }
        }
    }
}
