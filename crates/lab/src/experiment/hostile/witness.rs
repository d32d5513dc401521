//! A normal client that measures the time of its requests beside other load. It makes echoes and `GET` requests at a
//! fixed interval, in an open loop.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{Header, MaskKey, Opcode};
use anyhow::{Context, ensure};

use crate::experiment::layout::Column;
use crate::histogram::Histogram;
use crate::lab::report::{Quantity, Series, ms};
use crate::lab::rounds::{Cell, Sample, series};
use crate::load::{Endpoint, connect, is_transient, masked_frame, response, shake_hands};

/// The interval between echoes, and between `GET` requests.
const INTERVAL: Duration = Duration::from_millis(15);
const PAYLOAD: [u8; 125] = [b'w'; 125];
const MASK: MaskKey = MaskKey([0x37, 0xfa, 0x21, 0x3d]);

/// The time until a reply comes, from the planned time of its request.
pub(crate) const WAIT: Quantity = Quantity::less("wait of a normal client, p99", "ms");

/// Returns the columns of the waits for one kind of reply.
pub(in crate::experiment) fn wait_columns(of: &'static str) -> Vec<Column> {
    let mut columns = [0.5, 0.99, 0.999].map(|share| Column::Percentile(WAIT, of, share)).to_vec();
    columns.extend([Column::Longest(WAIT, of), Column::Goal(WAIT, of)]);
    columns
}

/// Makes the series of the waits for one kind of reply. They were measured once, without rounds.
pub(crate) fn waits(case: &str, contender: &str, waits: &Histogram) -> Vec<Series> {
    let sample = Sample {
        figures: waits.percentile(0.99).map(|wait| (WAIT, ms(wait))).into_iter().collect(),
        durations: waits.clone(),
        expected: waits.len(),
        received: waits.len(),
        ..Sample::default()
    };
    series(WAIT, &Cell::new(case, contender, ()), &[sample])
}

pub(in crate::experiment) struct Witness {
    echo: WitnessStream,
    get: WitnessStream,
}

/// A connection of the normal client, with its requests.
struct WitnessStream {
    stream: TcpStream,
    request: Vec<u8>,
    /// A function that returns the length of a complete reply at the beginning of the bytes.
    reply: fn(&[u8]) -> anyhow::Result<Option<usize>>,
    received: Vec<u8>,
    next_at: Instant,
    planned: VecDeque<Instant>,
    waits: Histogram,
}

impl Witness {
    pub(in crate::experiment) fn new(endpoint: &Endpoint) -> anyhow::Result<Self> {
        let mut echo = connect(endpoint.address)?;
        shake_hands(&mut echo, ClientHandshake::new(Nonce([9; 16]), &[]), &endpoint.path)?;
        let message = masked_frame(Header::new(Opcode::Binary, 0), &PAYLOAD, MASK);
        let get = connect(endpoint.address)?;
        let request = format!("GET /clock HTTP/1.1\r\nHost: {}\r\n\r\n", endpoint.address);
        let begin = Instant::now();
        Ok(Self {
            echo: WitnessStream::new(echo, message, echo_bytes, begin)?,
            // Between two echoes.
            get: WitnessStream::new(
                get,
                request.into_bytes(),
                response_bytes,
                begin + INTERVAL / 2,
            )?,
        })
    }

    /// Begins to count. Requests that were planned before are not measured.
    pub(in crate::experiment) fn begin(&mut self) {
        let begin = Instant::now();
        for (stream, offset) in [(&mut self.echo, Duration::ZERO), (&mut self.get, INTERVAL / 2)] {
            stream.waits = Histogram::default();
            stream.next_at = begin + offset;
        }
    }

    /// Sends the due requests, and takes replies. Returns true if there was anything to do.
    pub(in crate::experiment) fn turn(&mut self) -> anyhow::Result<bool> {
        Ok(self.echo.turn().context("a normal client's echo")?
            | self.get.turn().context("a normal client's GET")?)
    }

    /// Returns the waits for echoes and for `GET` requests. A request without a reply counts with the time since it was
    /// planned.
    pub(in crate::experiment) fn end(self) -> (Histogram, Histogram) {
        (self.echo.end(), self.get.end())
    }
}

impl WitnessStream {
    fn new(
        stream: TcpStream,
        request: Vec<u8>,
        reply: fn(&[u8]) -> anyhow::Result<Option<usize>>,
        next_at: Instant,
    ) -> anyhow::Result<Self> {
        stream.set_nonblocking(true)?;
        let (received, planned, waits) = (Vec::new(), VecDeque::new(), Histogram::default());
        Ok(Self { stream, request, reply, received, next_at, planned, waits })
    }

    fn turn(&mut self) -> anyhow::Result<bool> {
        let mut went_on = false;
        while Instant::now() >= self.next_at {
            // A socket has room for some thousands of requests.
            let sent = self.stream.write(&self.request).context("sending a request")?;
            ensure!(sent == self.request.len(), "a request was cut");
            self.planned.push_back(self.next_at);
            self.next_at += INTERVAL;
            went_on = true;
        }
        if self.planned.is_empty() {
            return Ok(went_on);
        }
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => anyhow::bail!("the server closed the connection"),
            Ok(len) => self.received.extend_from_slice(&bytes[..len]),
            Err(error) if is_transient(error.kind()) => return Ok(went_on),
            Err(error) => return Err(error.into()),
        }
        while let Some(len) = (self.reply)(&self.received)? {
            let planned = self.planned.pop_front().context("a reply that nobody asked for")?;
            self.waits.record(planned.elapsed());
            self.received.drain(..len);
        }
        Ok(true)
    }

    fn end(mut self) -> Histogram {
        for planned in self.planned {
            self.waits.record(planned.elapsed());
        }
        self.waits
    }
}

/// Returns the length of an echo at the beginning of the bytes, once it is complete. Checks its payload.
fn echo_bytes(bytes: &[u8]) -> anyhow::Result<Option<usize>> {
    let Some((header, header_bytes)) = Header::decode(bytes)? else { return Ok(None) };
    if header.opcode == Opcode::Ping {
        return Ok(None); // no other reply of ours is under way then, so the ping waits
    }
    let len = header_bytes + PAYLOAD.len();
    let Some(payload) = bytes.get(header_bytes..len) else { return Ok(None) };
    ensure!(header.opcode == Opcode::Binary && payload == PAYLOAD, "another message came back");
    Ok(Some(len))
}

/// Returns the length of a successful response at the beginning of the bytes, once it is complete.
fn response_bytes(bytes: &[u8]) -> anyhow::Result<Option<usize>> {
    let Some(response) = response(bytes)? else { return Ok(None) };
    response.ensure_status(200)?;
    Ok(Some(response.len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_told_apart_and_checked() {
        let mut bytes = Vec::new();
        Header::new(Opcode::Binary, 125).encode(&mut bytes);
        bytes.extend_from_slice(&PAYLOAD);
        assert_eq!(echo_bytes(&bytes[..126]).unwrap(), None);
        assert_eq!(echo_bytes(&[&bytes[..], b"more"].concat()).unwrap(), Some(127));
        bytes[100] = b'x';
        assert!(echo_bytes(&bytes).is_err());
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n12";
        assert_eq!(response_bytes(response).unwrap(), Some(response.len()));
        assert_eq!(response_bytes(&response[..20]).unwrap(), None);
        assert!(response_bytes(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n").is_err());
    }
}
