//! Opens connections, and makes sure that the server has accepted them. For a WebSocket, its handshake shows that; for
//! TCP, one echoed byte.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anemone_ws::proto::Opcode;
use anemone_ws::proto::handshake::{ClientHandshake, Established, Nonce, accept_key};
use anyhow::{Context, bail, ensure};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use super::frames::masked;
use super::{Endpoint, PATIENCE, Protocol, connect};
use crate::statistics::Random;

/// The number of connections that are opened at once. It is below the backlog of any listener.
pub(super) const BATCH: usize = 100;
/// The number of handshakes that are made before the clock starts. Each connection takes the next one.
const HANDSHAKES: usize = 64;
const RESPONSE_BYTES_MAX: usize = 2048;

/// Raises the limit on descriptors for this process and its children as far as the system allows. Returns the new
/// limit.
pub(crate) fn raise_descriptor_limit() -> anyhow::Result<usize> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("raising the limit of descriptors")?;
    Ok(limit.current.map_or(usize::MAX, |limit| limit as usize))
}

/// Opens connections to one endpoint. It is created before the clock starts.
#[derive(Debug)]
pub(crate) struct Opener {
    endpoint: Endpoint,
    exchanges: Vec<Handshake>,
    next: usize,
}

/// A handshake. It has the request, and the answer that must follow.
#[derive(Clone, Debug)]
struct Handshake {
    request: Vec<u8>,
    nonce: Nonce,
    accept: Vec<u8>,
}

impl Opener {
    /// Makes handshakes for `endpoint`. Checks the server's complete answer to one of them.
    pub(crate) fn new(endpoint: Endpoint, random: &mut Random) -> anyhow::Result<Self> {
        let exchanges = (0..HANDSHAKES).map(|_| Handshake::new(&endpoint, random)).collect();
        let opener = Self { endpoint, exchanges, next: 0 };
        let mut stream = opener.connect()?;
        opener.exchanges[0].send(&mut stream)?;
        let response = opener.answer(&opener.exchanges[0], &mut stream)?;
        if opener.endpoint.protocol == Protocol::WebSocket {
            let mut handshake = ClientHandshake::new(opener.exchanges[0].nonce, &[]);
            let established = handshake.receive(&response).context("the handshake's answer")?;
            ensure!(established.is_some_and(|established| established.rest.is_empty()));
        }
        Ok(opener)
    }

    /// Connects, and sends nothing.
    pub(super) fn connect(&self) -> anyhow::Result<TcpStream> {
        connect(self.endpoint.address)
    }

    /// Makes the handshakes of several connected streams at the same time.
    pub(super) fn exchange(&mut self, streams: &mut [TcpStream]) -> anyhow::Result<()> {
        let first = self.next;
        for stream in streams.iter_mut() {
            self.exchanges[self.next % HANDSHAKES].send(stream)?;
            self.next += 1;
        }
        for (number, stream) in (first..).zip(streams) {
            self.answer(&self.exchanges[number % HANDSHAKES], stream)?;
        }
        Ok(())
    }

    fn answer(&self, exchange: &Handshake, stream: &mut TcpStream) -> anyhow::Result<Vec<u8>> {
        match self.endpoint.protocol {
            Protocol::Tcp => {
                let mut byte = [0];
                stream.read_exact(&mut byte).context("waiting for the byte to come back")?;
                ensure!(byte == exchange.request[..], "another byte came back");
                Ok(byte.to_vec())
            }
            Protocol::WebSocket => exchange.response(stream),
        }
    }
}

impl Handshake {
    fn new(endpoint: &Endpoint, random: &mut Random) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&random.bytes(16));
        let nonce = Nonce(bytes);
        let host = endpoint.address.to_string();
        let request = match endpoint.protocol {
            Protocol::Tcp => vec![bytes[0]],
            Protocol::WebSocket => {
                ClientHandshake::new(nonce, &[]).request(&host, &endpoint.path, &[]).into_bytes()
            }
        };
        Self { request, nonce, accept: accept_key(&nonce.key()).into_bytes() }
    }

    fn send(&self, stream: &mut TcpStream) -> anyhow::Result<()> {
        stream.write_all(&self.request).context("sending the first bytes")
    }

    /// Reads the response. Checks the part of it that differs between connections.
    fn response(&self, stream: &mut TcpStream) -> anyhow::Result<Vec<u8>> {
        let mut bytes = [0; RESPONSE_BYTES_MAX];
        let mut len = 0;
        let end = loop {
            let more = stream.read(&mut bytes[len..]).context("waiting for the handshake")?;
            if more == 0 {
                bail!("handshake not answered: {}", bytes[..len].escape_ascii());
            }
            len += more;
            if let Some(end) = bytes[..len].windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let (response, rest) = bytes[..len].split_at(end);
        ensure!(
            response.starts_with(b"HTTP/1.1 101 ")
                && response.windows(self.accept.len()).any(|window| window == self.accept),
            "handshake refused: {}",
            response.escape_ascii()
        );
        check_rest(rest)?;
        Ok(response.to_vec())
    }
}

/// Opens a WebSocket on a connection. Checks that no messages but pings have come on it.
pub(crate) fn shake_hands(
    stream: &mut TcpStream,
    handshake: ClientHandshake,
    path: &str,
) -> anyhow::Result<Established> {
    let established = shake_hands_with_talker(stream, handshake, path)?;
    check_rest(&established.rest)?;
    Ok(established)
}

/// Opens a WebSocket on a connection. The server may send messages on it at once.
pub(crate) fn shake_hands_with_talker(
    stream: &mut TcpStream,
    handshake: ClientHandshake,
    path: &str,
) -> anyhow::Result<Established> {
    let host = stream.peer_addr()?.to_string();
    stream.write_all(handshake.request(&host, path, &[]).as_bytes())?;
    established(stream, handshake)
}

/// Opens a WebSocket on each connection, all at once.
pub(super) fn shake_all_hands(
    streams: &mut [TcpStream],
    handshake: impl Fn() -> ClientHandshake,
    (host, path): (&str, &str),
) -> anyhow::Result<()> {
    for stream in &mut *streams {
        stream.write_all(handshake().request(host, path, &[]).as_bytes())?;
    }
    for stream in streams {
        let established = established(stream, handshake())?;
        check_rest(&established.rest)?;
    }
    Ok(())
}

/// Checks that nothing but complete pings follows a handshake. On a busy machine, some pings may have come already.
fn check_rest(mut frames: &[u8]) -> anyhow::Result<()> {
    while let [0x89, len @ ..=125, rest @ ..] = frames
        && let Some(rest) = rest.get(usize::from(*len)..)
    {
        frames = rest;
    }
    ensure!(frames.is_empty(), "more came than the handshake");
    Ok(())
}

fn established(
    stream: &mut TcpStream,
    mut handshake: ClientHandshake,
) -> anyhow::Result<Established> {
    let mut bytes = [0; RESPONSE_BYTES_MAX];
    loop {
        let len = stream.read(&mut bytes).context("waiting for the handshake")?;
        ensure!(len > 0, "the server closed a connection in its handshake");
        if let Some(established) = handshake.receive(&bytes[..len])? {
            return Ok(established);
        }
    }
}

/// Begins `count` connections at once. The first write on each waits until the connection is open.
pub(super) fn connect_all(address: SocketAddr, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    let begin = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => {
                return Err(error);
            }
            _ => socket.set_nonblocking(false)?,
        }
        socket.set_tcp_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(socket.into())
    };
    let streams = (0..count).map(|_| begin()).collect::<io::Result<_>>();
    streams.with_context(|| format!("connecting to {address}"))
}

pub(crate) fn open(opener: &mut Opener, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    let mut streams = Vec::with_capacity(count);
    while streams.len() < count {
        let first = streams.len();
        for _ in first..count.min(first + BATCH) {
            streams.push(opener.connect()?);
        }
        opener.exchange(&mut streams[first..])?;
    }
    Ok(streams)
}

/// Opens `count` connections to a broadcast. It sends each message to all connections. Over TCP, only the last
/// connection sends a byte. The server accepts it after all others, so all of them get that byte.
pub(crate) fn join(opener: &mut Opener, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    if opener.endpoint.protocol == Protocol::WebSocket {
        return open(opener, count);
    }
    let mut streams = (0..count).map(|_| opener.connect()).collect::<Result<Vec<_>, _>>()?;
    let exchange = &opener.exchanges[0];
    if let Some(last) = streams.last_mut() {
        exchange.send(last)?;
    }
    for stream in &mut streams {
        opener.answer(exchange, stream)?;
    }
    Ok(streams)
}

/// Sends one message on each connection, and waits for its echo.
pub(crate) fn echo_once(
    streams: &mut [TcpStream],
    protocol: Protocol,
    payload_bytes: usize,
    random: &mut Random,
) -> anyhow::Result<()> {
    let payload = random.bytes(payload_bytes);
    let (message, header_bytes) = match protocol {
        Protocol::Tcp => (payload.clone(), 0),
        Protocol::WebSocket => {
            let message = masked(Opcode::Binary, &payload, random);
            let header_bytes = message.len() - payload.len() - 4; // a reply is not masked
            (message, header_bytes)
        }
    };
    let mut reply = vec![0; header_bytes + payload_bytes];
    for batch in streams.chunks_mut(BATCH) {
        for stream in &mut *batch {
            stream.write_all(&message)?;
        }
        for stream in batch {
            stream.read_exact(&mut reply).context("waiting for an echo")?;
            ensure!(reply[header_bytes..] == payload, "another payload came back");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of a handshake if these bytes follow its answer.
    fn answered(rest: &'static [u8]) -> anyhow::Result<()> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint { address, path: "/".to_owned(), protocol: Protocol::WebSocket };
        let exchange = Handshake::new(&endpoint, &mut Random::new(1));
        let mut stream = connect(address).unwrap();
        let accept = exchange.accept.escape_ascii();
        let head =
            format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n");
        let bytes = [head.as_bytes(), rest].concat();
        listener.accept().unwrap().0.write_all(&bytes).unwrap();
        exchange.response(&mut stream).map(|response| assert_eq!(response, head.as_bytes()))
    }

    #[test]
    fn pings_may_follow_a_handshake_and_messages_may_not() {
        for pings in [&b""[..], b"\x89\x00\x89\x02hi"] {
            answered(pings).unwrap();
        }
        for other in [&b"\x81\x01a"[..], b"\x89\x02h", b"\x89", b"\x89\x00\x81\x01a"] {
            assert!(answered(other).is_err(), "{other:?}");
        }
    }
}
