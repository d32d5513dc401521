//! Measures the readers of one topic. A publisher sends events at planned times, in an open loop, and there is only one
//! clock.
//!
//! The latency of a delivery is measured from the planned time of its event. So a delay of the publisher makes
//! deliveries late, and is not hidden.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::delivery::{Delivery, long_poll};
use super::opening::BATCH;
use super::poller::Poller;
use super::{Endpoint, Opener, Protocol, Topic, connect, http, is_transient, open};
use crate::histogram::Histogram;
use crate::load::frames::json_string;
use crate::statistics::Random;

const READ_BYTES: usize = 64 << 10;
const EVENT_BYTES: usize = 100;
/// The longest time without a delivery. After it, the missing events count as lost.
const SILENCE_MAX: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    pub(crate) expected: u64,
    pub(crate) received: u64,
    /// The time from the planned time of an event to its delivery.
    pub(crate) latency: Histogram,
    /// The delay of events behind their planned times.
    pub(crate) lag: Histogram,
}

/// Open readers, all at the same position.
pub(crate) struct Readers {
    delivery: Delivery,
    topic: Topic,
    poller: Poller,
    readers: Vec<ReaderConnection>,
    publisher: TopicPublisher,
    /// All events that were published since the readers began.
    events: Vec<Event>,
    random: Random,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Event {
    data: Vec<u8>,
    planned: Instant,
}

impl Readers {
    /// Opens this number of readers of an existing topic.
    pub(crate) fn open(
        delivery: Delivery,
        topic: &Topic,
        count: usize,
        random: &mut Random,
    ) -> anyhow::Result<Self> {
        let (address, path) = (topic.address, topic.path.clone());
        let streams = if delivery == Delivery::WebSocket {
            let endpoint = Endpoint { address, protocol: Protocol::WebSocket, path };
            open(&mut Opener::new(endpoint, random)?, count)?
        } else {
            over_http(delivery, topic, count)?
        };
        let poller = Poller::new()?;
        let mut readers = Vec::with_capacity(count);
        for (number, stream) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true)?;
            poller.add(&stream, number)?;
            readers.push(ReaderConnection { stream, partial: Vec::new(), received: 0 });
        }
        let stream = connect(address)?;
        stream.set_nonblocking(true)?;
        poller.add(&stream, readers.len())?;
        let publisher = TopicPublisher { stream, partial: Vec::new(), unanswered: 0 };
        let (topic, random, buffer) = (topic.clone(), random.clone(), vec![0; READ_BYTES]);
        let events = Vec::new();
        Ok(Self { delivery, topic, poller, readers, publisher, events, random, buffer })
    }

    /// Publishes an event at each of these times. Waits until every reader has all events, or until nothing more comes.
    pub(crate) fn run(&mut self, times: &[Duration]) -> anyhow::Result<Deliveries> {
        let begun = Instant::now();
        let mut waiting: Vec<_> = times.iter().rev().map(|&time| begun + time).collect();
        let mut deliveries = Deliveries {
            expected: (times.len() * self.readers.len()) as u64,
            ..Deliveries::default()
        };
        while deliveries.received < deliveries.expected || self.publisher.unanswered > 0 {
            self.publish_due(&mut waiting, &mut deliveries)?;
            let patience = match waiting.last() {
                Some(next) => next.saturating_duration_since(Instant::now()),
                None => SILENCE_MAX,
            };
            let ready = self.poller.wait(patience)?;
            if ready == 0 && waiting.is_empty() {
                break;
            }
            for index in 0..ready {
                let (number, _) = self.poller.ready(index);
                if number == self.readers.len() {
                    self.publisher.on_readable(&mut self.buffer)?;
                } else {
                    self.read(number, &mut deliveries)?;
                }
                self.publish_due(&mut waiting, &mut deliveries)?;
            }
        }
        Ok(deliveries)
    }

    fn publish_due(
        &mut self,
        waiting: &mut Vec<Instant>,
        deliveries: &mut Deliveries,
    ) -> anyhow::Result<()> {
        let now = Instant::now();
        while let Some(planned) = waiting.pop_if(|planned| *planned <= now) {
            let data = json_string(&mut self.random, EVENT_BYTES);
            self.publisher.send(&self.topic.post("", &data))?;
            self.events.push(Event { data, planned });
            deliveries.lag.record(planned.elapsed());
        }
        Ok(())
    }

    fn read(&mut self, number: usize, deliveries: &mut Deliveries) -> anyhow::Result<()> {
        let (delivery, topic) = (self.delivery, &self.topic);
        let ReaderConnection { stream, partial, received } = &mut self.readers[number];
        let Some(len) = read(stream, &mut self.buffer)? else { return Ok(()) };
        let (now, events) = (Instant::now(), &self.events);
        let check = |data: &[u8]| {
            let event = events.get(*received).context("more events came than were sent")?;
            let right = event.data == data;
            ensure!(right, "event {received} came as {}", data.escape_ascii());
            deliveries.latency.record(now.saturating_duration_since(event.planned));
            deliveries.received += 1;
            *received += 1;
            Ok(())
        };
        if let Some(next) = take(delivery, partial, &self.buffer[..len], check)? {
            // The request is short, so there is always room for it.
            stream.write_all(&long_poll(topic.address, &topic.path, &next))?;
        }
        Ok(())
    }
}

/// Removes all complete messages from the received bytes, and keeps the rest. Returns the next request, if one is
/// necessary.
fn take(
    delivery: Delivery,
    partial: &mut Vec<u8>,
    bytes: &[u8],
    mut event: impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<Option<String>> {
    let joined;
    let mut rest = bytes;
    if !partial.is_empty() {
        joined = [&std::mem::take(partial)[..], bytes].concat();
        rest = &joined;
    }
    let mut next = None;
    while let Some(taken) = delivery.take(rest, &mut event)? {
        next = taken.next.map(str::to_owned);
        rest = &rest[taken.len..];
        if rest.is_empty() {
            return Ok(next);
        }
    }
    partial.extend_from_slice(rest);
    Ok(next)
}

/// Reads once. Returns `None` if there is no input now.
pub(super) fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> anyhow::Result<Option<usize>> {
    match stream.read(buffer) {
        Ok(0) => bail!("the server closed a connection in use"),
        Ok(len) => Ok(Some(len)),
        Err(error) if is_transient(error.kind()) => Ok(None),
        Err(error) => Err(error).context("reading from the server"),
    }
}

/// Opens readers over HTTP in batches. Makes sure that the server has accepted them.
fn over_http(delivery: Delivery, topic: &Topic, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    let request = delivery.first_request(topic.address, &topic.path);
    let mut streams = Vec::with_capacity(count);
    while streams.len() < count {
        let first = streams.len();
        for _ in first..count.min(first + BATCH) {
            let mut stream = connect(topic.address)?;
            stream.write_all(&request)?;
            streams.push(stream);
        }
        for stream in &mut streams[first..] {
            begin(delivery, topic, stream).context("waiting for a reader's beginning")?;
        }
    }
    Ok(streams)
}

/// Waits for the first chunk of a stream, or for the position for a long poll.
fn begin(delivery: Delivery, topic: &Topic, stream: &mut TcpStream) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    if delivery == Delivery::LongPoll {
        let (status, page) = http::answer(stream, &mut bytes)?;
        ensure!(status == 200, "status {status}: {page}");
        let next = super::delivery::position(&page, "next").context("no position")?;
        return Ok(stream.write_all(&long_poll(topic.address, &topic.path, next))?);
    }
    loop {
        http::read_more(stream, &mut bytes)?;
        let Some(head) = http::head(&bytes)? else { continue };
        ensure!(head.status == 200, "refused: {}", bytes.escape_ascii());
        let event = |_: &[u8]| bail!("events came before any was sent");
        let mut rest = Vec::new();
        // Heartbeats may come before a busy machine looks.
        take(delivery, &mut rest, &bytes[head.len..], event)?;
        if bytes.len() > head.len && rest.is_empty() {
            return Ok(());
        }
    }
}

#[derive(Debug)]
struct ReaderConnection {
    stream: TcpStream,
    /// The beginning of a message that has not come completely.
    partial: Vec<u8>,
    received: usize,
}

/// Publishes by `POST` on one connection. Does not wait for the responses.
#[derive(Debug)]
struct TopicPublisher {
    stream: TcpStream,
    partial: Vec<u8>,
    unanswered: usize,
}

impl TopicPublisher {
    fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(request).context("publishing")?;
        self.unanswered += 1;
        Ok(())
    }

    fn on_readable(&mut self, buffer: &mut [u8]) -> anyhow::Result<()> {
        let Some(len) = read(&mut self.stream, buffer)? else { return Ok(()) };
        self.partial.extend_from_slice(&buffer[..len]);
        let mut taken = 0;
        while let Some(response) = http::response(&self.partial[taken..])? {
            response.ensure_status(201)?;
            taken += response.len;
            self.unanswered -= 1;
        }
        self.partial.drain(..taken);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeats_may_follow_the_beginning_of_a_stream_and_events_may_not() {
        let begun = |more: &str| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let topic = Topic { address: listener.local_addr().unwrap(), path: "/a".to_owned() };
            let mut stream = TcpStream::connect(topic.address).unwrap();
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let said = format!("{head}9\r\nid: e-0\n\n\r\n{more}");
            listener.accept().unwrap().0.write_all(said.as_bytes()).unwrap();
            begin(Delivery::Sse, &topic, &mut stream)
        };
        begun("").unwrap();
        begun("3\r\n:\n\n\r\n3\r\n:\n\n\r\n").unwrap();
        let error = begun("9\r\ndata: 1\n\n\r\n").unwrap_err();
        assert_eq!(error.to_string(), "events came before any was sent");
    }

    #[test]
    fn what_is_cut_is_kept_until_the_rest_comes() {
        let page =
            r#"{"epoch":"e","first":1,"next":"e-1","events":[{"offset":1,"time":1,"data":"a"}]}"#;
        let page = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len());
        let chunks = "8\r\ndata: 1\n\r\n8\r\ndata: 2\n\r\n";
        for (delivery, bytes, events) in
            [(Delivery::Sse, chunks, 2), (Delivery::LongPoll, page.as_str(), 1)]
        {
            for cut in 0..bytes.len() {
                let (mut partial, mut came, mut next) = (Vec::new(), 0, None);
                for piece in [&bytes.as_bytes()[..cut], &bytes.as_bytes()[cut..]] {
                    let count = |_: &[u8]| {
                        came += 1;
                        Ok(())
                    };
                    next = take(delivery, &mut partial, piece, count).unwrap();
                }
                assert_eq!(came, events, "{delivery} cut after {cut} bytes");
                assert!(partial.is_empty());
                assert_eq!(next.is_some(), delivery == Delivery::LongPoll);
            }
        }
    }
}
