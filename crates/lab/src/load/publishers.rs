//! Publishes events with several requests outstanding. Measures the time until each request is acknowledged.

use std::fmt;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{Header, Opcode};
use anyhow::{Context, bail, ensure};

use super::frames::{json_string, masked};
use super::poller::Poller;
use super::readers::read;
use super::{PATIENCE, Topic, connect, http, shake_hands};
use crate::histogram::Histogram;
use crate::statistics::Random;

const READ_BYTES: usize = 64 << 10;
const EVENT_BYTES: usize = 100;
const MULTIPLEXED_PATH: &str = "/ws";
const SUBPROTOCOL: &str = "anemone.v1";

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum PublishWay {
    /// A request has one event. There are this many connections, which are kept open.
    Post { publishers: usize },
    /// A request has this many events, as NDJSON. There is one connection.
    Batches { events: usize },
    /// The requests are on one multiplexed WebSocket. This many of them are outstanding.
    Multiplexed { outstanding: usize },
}

impl fmt::Display for PublishWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Post { publishers: 1 } => f.write_str("POST, 1 publisher"),
            Self::Post { publishers } => write!(f, "POST, {publishers} publishers"),
            Self::Batches { events } => write!(f, "NDJSON of {events}, 1 publisher"),
            Self::Multiplexed { outstanding } => write!(f, "/ws, {outstanding} outstanding"),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledged {
    pub(crate) events: u64,
    /// The time from each request to its reply.
    pub(crate) latency: Histogram,
    /// The time from the first request to the last reply.
    pub(crate) time: Duration,
}

/// Connections for publishing to one topic.
pub(crate) struct Publishers {
    way: PublishWay,
    poller: Poller,
    publishers: Vec<PublisherConnection>,
    buffer: Vec<u8>,
}

impl Publishers {
    pub(crate) fn open(
        way: PublishWay,
        topic: &Topic,
        random: &mut Random,
    ) -> anyhow::Result<Self> {
        let connections = if let PublishWay::Post { publishers } = way { publishers } else { 1 };
        let poller = Poller::new()?;
        let mut publishers = Vec::with_capacity(connections);
        for number in 0..connections {
            let publisher = PublisherConnection::open(way, topic, random)?;
            poller.add(&publisher.stream, number)?;
            publishers.push(publisher);
        }
        Ok(Self { way, poller, publishers, buffer: vec![0; READ_BYTES] })
    }

    /// Keeps requests outstanding for `time`, then waits for the last replies.
    pub(crate) fn run(&mut self, time: Duration) -> anyhow::Result<Acknowledged> {
        let begun = Instant::now();
        let events_each =
            if let PublishWay::Batches { events } = self.way { events as u64 } else { 1 };
        let (mut outstanding, mut acknowledged) = (0, Acknowledged::default());
        for publisher in &mut self.publishers {
            let slots: Vec<_> = (0..publisher.requests.len()).collect();
            publisher.send(&slots)?;
            outstanding += slots.len();
        }
        while outstanding > 0 {
            let ready = self.poller.wait(PATIENCE)?;
            ensure!(ready > 0, "no reply for {} seconds", PATIENCE.as_secs());
            for index in 0..ready {
                let (number, _) = self.poller.ready(index);
                let publisher = &mut self.publishers[number];
                let latency = &mut acknowledged.latency;
                let answered = publisher.on_readable(self.way, &mut self.buffer, latency)?;
                acknowledged.events += answered.len() as u64 * events_each;
                if begun.elapsed() < time {
                    publisher.send(&answered)?;
                } else {
                    outstanding -= answered.len();
                }
            }
        }
        acknowledged.time = begun.elapsed();
        Ok(acknowledged)
    }
}

#[derive(Debug)]
struct PublisherConnection {
    stream: TcpStream,
    /// The requests that may be outstanding. On a WebSocket, the index of a request is its id.
    requests: Vec<Request>,
    /// The beginning of a reply that has not come completely.
    partial: Vec<u8>,
    batch: Vec<u8>,
}

#[derive(Debug)]
struct Request {
    bytes: Vec<u8>,
    sent: Instant,
}

impl PublisherConnection {
    fn open(way: PublishWay, topic: &Topic, random: &mut Random) -> anyhow::Result<Self> {
        let mut stream = connect(topic.address)?;
        let bytes = match way {
            PublishWay::Post { .. } => vec![topic.post("", &json_string(random, EVENT_BYTES))],
            PublishWay::Batches { events } => {
                let mut line = || [json_string(random, EVENT_BYTES), b"\n".to_vec()].concat();
                let lines: Vec<u8> = (0..events).flat_map(|_| line()).collect();
                vec![topic.post("Content-Type: application/x-ndjson\r\n", &lines)]
            }
            PublishWay::Multiplexed { outstanding } => {
                let handshake = ClientHandshake::new(Nonce([7; 16]), &[SUBPROTOCOL]);
                shake_hands(&mut stream, handshake, MULTIPLEXED_PATH)?;
                let mut message = |id| {
                    let line = format!("POST {id} {}\n", topic.path).into_bytes();
                    let event = json_string(random, EVENT_BYTES);
                    masked(Opcode::Text, &[line, event].concat(), random)
                };
                (0..outstanding).map(&mut message).collect()
            }
        };
        let sent = Instant::now();
        let requests = bytes.into_iter().map(|bytes| Request { bytes, sent }).collect();
        stream.set_nonblocking(true)?;
        Ok(Self { stream, requests, partial: Vec::new(), batch: Vec::new() })
    }

    /// Sends these requests in one write.
    fn send(&mut self, slots: &[usize]) -> anyhow::Result<()> {
        if slots.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        self.batch.clear();
        for &slot in slots {
            self.requests[slot].sent = now;
            self.batch.extend_from_slice(&self.requests[slot].bytes);
        }
        // Earlier requests have been answered, so there is always room.
        self.stream.write_all(&self.batch).context("publishing")
    }

    /// Reads once. Returns the requests whose replies have come.
    fn on_readable(
        &mut self,
        way: PublishWay,
        buffer: &mut [u8],
        latency: &mut Histogram,
    ) -> anyhow::Result<Vec<usize>> {
        let Some(len) = read(&mut self.stream, buffer)? else { return Ok(Vec::new()) };
        let now = Instant::now();
        self.partial.extend_from_slice(&buffer[..len]);
        let (mut taken, mut answered) = (0, Vec::new());
        while let Some((slot, len)) = reply(way, &self.partial[taken..])? {
            let request = self.requests.get(slot).context("a reply to nothing")?;
            latency.record(now.saturating_duration_since(request.sent));
            answered.push(slot);
            taken += len;
        }
        self.partial.drain(..taken);
        Ok(answered)
    }
}

/// Returns the index of the request to which the first reply in `bytes` belongs, and the length of the reply. Returns
/// `None` until the reply is complete.
fn reply(way: PublishWay, bytes: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let PublishWay::Multiplexed { .. } = way else {
        let Some(response) = http::response(bytes)? else { return Ok(None) };
        response.ensure_status(201)?;
        return Ok(Some((0, response.len)));
    };
    let Some((header, header_bytes)) = Header::decode(bytes)? else { return Ok(None) };
    let len = header_bytes + header.payload_len as usize;
    let Some(payload) = bytes.get(header_bytes..len) else { return Ok(None) };
    let text = std::str::from_utf8(payload)?;
    let mut words = text.split_ascii_whitespace();
    let (Some("201"), Some(id)) = (words.next(), words.next()) else {
        bail!("not published: {text}");
    };
    Ok(Some((id.parse().context("another id")?, len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_names_the_request_it_is_for() {
        let multiplexed = PublishWay::Multiplexed { outstanding: 64 };
        let message = |text: &str| [&[0x81, text.len() as u8][..], text.as_bytes()].concat();
        let bytes = message("201 17 e-4\n{}");
        assert_eq!(reply(multiplexed, &bytes[..5]).unwrap(), None);
        assert_eq!(reply(multiplexed, &bytes).unwrap(), Some((17, bytes.len())));
        assert!(reply(multiplexed, &message("503 17\n{}")).is_err());

        let post = PublishWay::Post { publishers: 2 };
        let bytes = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(reply(post, &bytes[..9]).unwrap(), None);
        assert_eq!(reply(post, bytes).unwrap(), Some((0, bytes.len())));
        assert!(reply(post, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n").is_err());
    }
}
