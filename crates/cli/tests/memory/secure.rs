//! Peers that speak TLS, and HTTP/2 whose windows stay shut.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use anemone_testing::secure::{make_certificate, trusting};
use tokio_rustls::rustls::ClientConnection;
use tokio_rustls::rustls::pki_types::ServerName;

use super::{Door, HANDSHAKE, MIB, Wire, header};

/// Connections of an attacker, each with streams that make the server hold something.
const CONNECTIONS: usize = 6;
/// The number of each: pages that are asked for, and bodies that come as far as the windows let them.
const PAGES: usize = 40;
const BODIES: usize = 2;
/// And connections that only wait, for an event on each stream.
const QUIET: usize = 4;
const POLLS: u32 = 100;
const BODY_BYTES: usize = 256 << 10;

/// Makes a certificate in this folder, with its key, and trusts nothing else.
#[derive(Clone)]
pub(crate) struct Trust(PathBuf);

impl Trust {
    pub(crate) fn new(folder: &Path) -> Self {
        make_certificate(folder);
        Self(folder.to_owned())
    }

    pub(crate) fn connect(&self, tcp: TcpStream, alpn: &str) -> Tls {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(trusting(&self.0, &[alpn]), name).unwrap();
        Tls { connection, tcp }
    }
}

/// A client's end of TLS. A write that is stuck fails, and nothing is read in its place.
pub(crate) struct Tls {
    connection: ClientConnection,
    tcp: TcpStream,
}

impl Tls {
    /// Reads the next bytes. Returns false at the end.
    fn receive(&mut self) -> io::Result<bool> {
        let len = self.connection.read_tls(&mut self.tcp)?;
        self.connection.process_new_packets().map_err(io::Error::other)?;
        self.flush()?;
        Ok(len > 0)
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while self.connection.is_handshaking() {
            self.flush()?;
            if !self.receive()? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        self.flush()?;
        self.connection.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.tcp)?;
        }
        Ok(())
    }
}

impl Read for Tls {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.flush()?;
        loop {
            match self.connection.reader().read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if !self.receive()? {
                return Ok(0);
            }
        }
    }
}

/// A frame (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A field whose name is in the static table of HPACK (RFC 7541 section 6.2.2), or comes with it.
fn field(index: u8, name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let name = if index == 0 { text(name) } else { Vec::new() };
    [vec![index], name, text(value)].concat()
}

/// Opens a stream; with `END_STREAM` or not.
fn open(door: &Door, stream: u32, method: &str, path: &str, is_whole: bool) -> Vec<u8> {
    const HTTPS: [u8; 1] = [0x87];
    let authority = field(1, "", &door.address.to_string());
    let fields = [field(2, "", method), HTTPS.to_vec(), field(4, "", path), authority].concat();
    let protocol =
        if method == "CONNECT" { field(0, ":protocol", "websocket") } else { Vec::new() };
    let version =
        if method == "CONNECT" { field(0, "sec-websocket-version", "13") } else { Vec::new() };
    let fields = [fields, protocol, version].concat();
    frame(1, 4 | u8::from(is_whole), stream, &fields)
}

fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(16 << 10).flat_map(|piece| frame(0, 0, stream, piece)).collect()
}

/// Sends it as far as that goes: it may be cut off meanwhile.
fn send(wire: &mut Tls, bytes: &[u8]) {
    let _ = wire.write_all(bytes).and_then(|()| wire.flush());
}

/// A connection over HTTP/2 whose streams have windows of so many bytes.
fn http2(door: &Door, window_bytes: u32) -> Tls {
    let mut wire = door.trust.as_ref().unwrap().connect(door.tcp(), "h2");
    // INITIAL_WINDOW_SIZE
    let settings = frame(4, 0, 0, &[&[0, 4][..], &window_bytes.to_be_bytes()].concat());
    send(&mut wire, &[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat());
    // Until the server has opened its own (WINDOW_UPDATE), or has no place for this one.
    let mut head = [0; 9];
    while wire.read_exact(&mut head).is_ok() {
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let _ = wire.read_exact(&mut vec![0; len as usize]);
        if head[3] == 8 {
            break;
        }
    }
    send(&mut wire, &frame(4, 1, 0, &[]));
    wire
}

/// Clients that open no window and ask for pages, send bodies behind them, and have messages echoed; some that only
/// wait, as often as one may on a connection; and some over HTTP/1.1 that do not read what they are sent in TLS.
pub(crate) fn over_http2(door: &Door) -> Vec<Box<dyn Wire>> {
    let mut wires: Vec<Box<dyn Wire>> = Vec::new();
    for number in 0..CONNECTIONS {
        let mut wire = http2(door, 0);
        let (mut bytes, mut streams) = (Vec::new(), (1..).step_by(2));
        if number % 2 == 0 {
            let page = "/topics/big?after=earliest";
            for stream in streams.by_ref().take(PAGES) {
                bytes.extend(open(door, stream, "GET", page, true));
            }
            for stream in streams.take(BODIES) {
                bytes.extend(open(door, stream, "POST", "/topics/big", false));
                bytes.extend(data(stream, &vec![b'1'; BODY_BYTES]));
            }
        } else {
            for stream in streams.take(BODIES) {
                bytes.extend(open(door, stream, "CONNECT", "/echo", false));
                // Its echo is not taken, and then it is not read either.
                let message = [header(0x82, 60_000), vec![0; 60_000]].concat().repeat(4);
                bytes.extend(data(stream, &message));
            }
        }
        send(&mut wire, &bytes);
        wires.push(Box::new(wire));
    }
    for _ in 0..QUIET {
        let mut wire = http2(door, 1 << 16);
        let polls = (0..POLLS).map(|number| 1 + 2 * number);
        let polls = polls.map(|stream| open(door, stream, "GET", "/topics/big?wait=100", true));
        send(&mut wire, &polls.collect::<Vec<_>>().concat());
        wires.push(Box::new(wire));
    }
    let unread = [&header(0x82, MIB - 1)[..], &vec![0; MIB - 1]].concat().repeat(4);
    for _ in 0..CONNECTIONS / 3 {
        wires.push(door.send(&format!("GET /echo HTTP/1.1\r\n{HANDSHAKE}X: x"), &unread));
    }
    wires
}
