//! Makes calls of a service, and checks the replies.

use std::fmt;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{Header, Opcode};
use anyhow::{Context, bail, ensure};

use super::frames::{Frames, Ring, masked};
use super::generator::Generator;
use super::http2::Http2Calls;
use super::opening::{connect_all, shake_all_hands};
use super::{connect, http};
use crate::statistics::Random;
use crate::tcp_info::Traffic;

const MULTIPLEXED_PATH: &str = "/ws";
const SUBPROTOCOL: &str = "anemone.v1";
/// The number of calls in a ring. Each has its own id, of two hexadecimal digits.
const CALLS: usize = 256;
const DATE: &str = "\r\ndate: ";
/// The length of an IMF-fixdate (RFC 9110 section 5.6.7).
const DATE_BYTES: usize = 29;

/// The bytes to send, the bytes to expect, and the range in each reply that may differ.
type ExpectedBytes = (Vec<u8>, Vec<u8>, Option<Range<usize>>);

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum CallWay {
    /// Requests on multiplexed WebSockets.
    Multiplexed,
    /// HTTP/1.1 requests on connections that are kept open. If several are in flight, they are pipelined.
    Http,
    /// HTTP/2 requests over TLS, on connections that are kept open.
    Http2,
}

impl fmt::Display for CallWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Multiplexed => "multiplexed WebSocket",
            Self::Http => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        })
    }
}

/// A service that is called with `GET`.
#[derive(Clone, Debug)]
pub(crate) struct CalledService {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// Open connections with calls or messages in flight.
pub(crate) enum Calls {
    /// Calls or messages whose bytes are made before the clock starts.
    Framed(Generator),
    Http2(Http2Calls),
}

impl Calls {
    /// Keeps calls in flight for `time`, then waits for the last replies. Returns the number of replies.
    pub(crate) fn run(&mut self, time: Duration) -> anyhow::Result<u64> {
        match self {
            Self::Framed(generator) => generator.run(time),
            Self::Http2(calls) => calls.run(time),
        }
    }
}

impl CalledService {
    /// Opens connections with `in_flight` calls on each.
    pub(crate) fn calls(
        &self,
        way: CallWay,
        connections: usize,
        in_flight: usize,
        random: &mut Random,
    ) -> anyhow::Result<Calls> {
        if way == CallWay::Http2 {
            return Ok(Calls::Http2(self.http2(connections, in_flight)?));
        }
        let frames = self.frames(way, in_flight, random)?;
        let streams = self.open(way, connections)?;
        Ok(Calls::Framed(Generator::new(streams, frames)?))
    }

    /// Opens connections, all at once. Makes calls on each, one after the other. Returns the time for all of this, and
    /// the traffic of the connections.
    pub(crate) fn converse(
        &self,
        way: CallWay,
        connections: usize,
        calls: usize,
        random: &mut Random,
    ) -> anyhow::Result<(Duration, Traffic)> {
        let frames = self.frames(way, 1, random)?;
        let begun = Instant::now();
        let mut generator = Generator::new(self.open(way, connections)?, frames)?;
        generator.run_each(calls)?;
        Ok((begun.elapsed(), generator.traffic()?))
    }

    fn open(&self, way: CallWay, connections: usize) -> anyhow::Result<Vec<TcpStream>> {
        let mut streams = connect_all(self.address, connections)?;
        if way == CallWay::Multiplexed {
            let handshake = || ClientHandshake::new(Nonce([5; 16]), &[SUBPROTOCOL]);
            let host = self.address.to_string();
            shake_all_hands(&mut streams, handshake, (&host, MULTIPLEXED_PATH))?;
        }
        Ok(streams)
    }

    /// Opens connections for calls over HTTP/2.
    pub(crate) fn http2(&self, connections: usize, in_flight: usize) -> anyhow::Result<Http2Calls> {
        Http2Calls::open(self.address, (&self.path, &self.body), connections, in_flight)
    }

    fn frames(
        &self,
        way: CallWay,
        in_flight: usize,
        random: &mut Random,
    ) -> anyhow::Result<Frames> {
        let (sent, expected, changing) = match way {
            CallWay::Multiplexed => self.multiplexed(random),
            CallWay::Http => self.http()?,
            CallWay::Http2 => bail!("the bytes of HTTP/2 depend on those before them"),
        };
        Ok(Frames {
            sent: Ring::new(sent, CALLS, in_flight),
            expected: Ring::new(expected, CALLS, in_flight),
            changing,
            fragments: None,
            in_flight,
            messages: CALLS,
        })
    }

    /// Returns the bytes of a ring of calls, those of the replies, and the range in each reply that may differ.
    fn multiplexed(&self, random: &mut Random) -> ExpectedBytes {
        let (mut sent, mut expected) = (Vec::new(), Vec::new());
        for id in 0..CALLS {
            let call = format!("GET {id:02x} {}", self.path);
            sent.extend_from_slice(&masked(Opcode::Text, call.as_bytes(), random));
            let reply = format!("200 {id:02x}\n{}", self.body);
            Header::new(Opcode::Text, reply.len() as u64).encode(&mut expected);
            expected.extend_from_slice(reply.as_bytes());
        }
        (sent, expected, None)
    }

    fn http(&self) -> anyhow::Result<ExpectedBytes> {
        let call = http::request("GET", self.address, &self.path, "", b"");
        let reply = self.http_reply(&call)?;
        Ok((call.repeat(CALLS), reply.repeat(CALLS), date(&reply)))
    }

    /// Makes a call over HTTP, and returns the reply. Checks its body.
    fn http_reply(&self, call: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut stream = connect(self.address)?;
        stream.write_all(call)?;
        let mut bytes = Vec::new();
        let (status, body) = http::answer(&mut stream, &mut bytes).context("the first call")?;
        ensure!(status == 200 && body == self.body, "the service answers {status}: {body}");
        Ok(bytes)
    }
}

/// Returns the range of the date in a reply, since the date changes each second.
fn date(reply: &[u8]) -> Option<Range<usize>> {
    let text = std::str::from_utf8(reply).ok()?.to_ascii_lowercase();
    let at = text.find(DATE)? + DATE.len();
    Some(at..at + DATE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_a_reply_is_found() {
        let reply = b"HTTP/1.1 200 OK\r\nDate: Sun, 22 Nov 2026 10:00:00 GMT\r\n\r\n{}";
        assert_eq!(&reply[date(reply).unwrap()], b"Sun, 22 Nov 2026 10:00:00 GMT");
        assert_eq!(date(b"HTTP/1.1 200 OK\r\n\r\n{}"), None);
    }
}
