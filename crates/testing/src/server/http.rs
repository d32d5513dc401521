//! HTTP/1.1 over plain sockets.

use std::collections::BTreeSet;
use std::io::{self, BufRead, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use socket2::{Domain, Socket, Type};

use crate::PATIENCE;
use crate::server::logged;

/// The fields of every WebSocket handshake over HTTP/1.1 (RFC 6455 section 4.1).
pub const HANDSHAKE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// A connection that answers in time or fails. While the log is kept, no other one of this process has had its port, to any
/// server, so the port identifies its lines in the log.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = if logged::is_kept() {
        connect_from_new_port(address)
    } else {
        TcpStream::connect(address).unwrap()
    };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn connect_from_new_port(address: SocketAddr) -> TcpStream {
    static PORTS: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    loop {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::new(any, 0).into()).unwrap();
        let port = socket.local_addr().unwrap().as_socket().unwrap().port();
        if PORTS.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            socket.connect(&address.into()).unwrap();
            return socket.into();
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

    /// The same; an error if the connection ends or fails.
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

    /// The same; an error if the connection ends or fails.
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

/// The next line of a stream over HTTP/1.1, without the framing of chunks; `None` at the end.
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

/// The body in these chunks (RFC 9112 section 7.1); `None` if the last one is missing.
pub fn unchunked(mut chunks: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (len, rest) = chunks.split_once("\r\n")?;
        let len = usize::from_str_radix(len, 16).unwrap();
        if len == 0 {
            return Some(body);
        }
        body += &rest[..len];
        chunks = rest[len..].strip_prefix("\r\n")?;
    }
}
