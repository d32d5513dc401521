//! Floods: peers that send as fast as they can. A normal client on the same thread of the server measures the time
//! until it gets an echo, and the time until it gets the response to a `GET`.

use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant};

use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{DeflateConfig, Header, Opcode};
use anyhow::{Context, ensure};
use clap::ValueEnum;

use super::kinds;
use super::peer::{Peer, Progress, Script};
use super::witness::{WAIT, Witness, wait_columns, waits};
use crate::experiment::layout::{Column, Layout, OWN};
use crate::experiment::session::{BenchSession, Measured};
use crate::goals::{FLOOD_WAIT_P99, Goal};
use crate::lab::report::{Quantity, Series, ms};
use crate::lab::rounds::{Cell, Sample, series};
use crate::load::{Endpoint, Protocol, Topic, connect, shake_hands};
use crate::server::Server;

const MESSAGES: Quantity = Quantity::more("messages of a flood, a second", "");
const BYTES: Quantity = Quantity::more("data of a flood", "MB/s");
const FLOOD: &str = "flood";
const ECHO: &str = "echo";
const GET: &str = "GET";

/// The numbers of connections of a flood; each is a case.
const CONNECTIONS: [usize; 2] = [1, 10];
/// The approximate size of the write that a flood repeats.
const BURST_BYTES: usize = 256 << 10;
/// The time before the measurement begins.
const WARM_UP: Duration = Duration::from_millis(500);
/// The pause after a turn in which nothing could be sent or read.
const PAUSE: Duration = Duration::from_micros(50);
const MIB: usize = 1 << 20;
/// The number of topics for floods that ask for a list or a description of all topics.
const TOPICS: usize = 990;
/// The size of the events that fill a page; below, their number.
const EVENT_BYTES: usize = 10_000;
const PAGE_EVENTS: usize = 105;

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Flood {
    /// Only the normal client
    None,
    /// Compressed messages that are echoed
    Compressed,
    /// Events into a topic, multiplexed
    Publishes,
    Pongs,
    Pings,
    /// Messages of a byte that are echoed
    Echoes,
    /// Small requests, multiplexed
    Requests,
    /// Small requests over HTTP/1.1, pipelined
    Http,
    /// The head of a document about many topics, multiplexed
    HeadDocument,
    /// A document about many topics, multiplexed
    Document,
    /// The head of a long list of topics, multiplexed
    HeadTopics,
    /// A long list of topics, multiplexed
    Topics,
    /// The head of a page of 1 MiB, multiplexed
    HeadPage,
    /// A page of 1 MiB over HTTP/1.1, pipelined
    Page,
}

/// Measures each of these floods for this time, with one connection and with ten, at a new server. There are no rounds.
pub(crate) fn run(
    session: &mut BenchSession,
    time: Duration,
    kinds: &[Flood],
) -> anyhow::Result<Measured> {
    let cases = kinds.iter().flat_map(|&flood| match flood {
        Flood::None => vec![(flood, 0)],
        _ => CONNECTIONS.map(|connections| (flood, connections)).into(),
    });
    let cases: Vec<_> = cases.collect();
    session.pace.begin(cases.len());
    let (mut series, mut goals) = (Vec::new(), Vec::new());
    for (flood, connections) in cases {
        if session.pace.cut_if_stopped() {
            break;
        }
        let case = format!("{flood}, {connections} connections");
        series.extend(measure(session, &case, flood, connections, time).context(case.clone())?);
        goals.extend([ECHO, GET].map(|of| Goal::new(WAIT, &case, of, None, ms(FLOOD_WAIT_P99))));
        session.pace.step();
    }
    let question = "How long does a normal client wait beside floods?";
    let order = format!(
        "Once, for {} s each, each at a server of its own; an echo of 125 B and a GET /clock every 15 ms, timed from when they were planned.",
        time.as_secs()
    );
    let report = session.report_of_once(&session.server, question, WAIT, series, order);
    let mut columns = vec![Column::Cost(MESSAGES, FLOOD).named("its messages a second")];
    columns.push(Column::Cost(BYTES, FLOOD).named("its MB/s"));
    columns.extend(wait_columns(OWN));
    let title = "wait of a normal client beside floods, ms";
    let layouts = vec![Layout::of_contenders(title, WAIT, columns)];
    Ok(Measured { report, goals, layouts })
}

/// Measures one flood. Returns the waits of the normal client, and the messages and bytes a second of all connections.
fn measure(
    session: &BenchSession,
    case: &str,
    flood: Flood,
    connections: usize,
    time: Duration,
) -> anyhow::Result<Vec<Series>> {
    let server: Server = session.server.start(session.cores)?;
    let topic = &session.topic_path;
    let endpoint = server.endpoint(Protocol::WebSocket, &session.echo_path).context("no echo")?;
    if let Some(topic) = server.topic(topic) {
        topic.create()?;
        flood.prepare(&topic)?;
    }
    let mut witness = Witness::new(&endpoint)?;
    let peers = (0..connections).map(|_| flood.peer(&endpoint, topic));
    let mut peers = peers.collect::<anyhow::Result<Vec<_>>>()?;
    drive(&mut peers, &mut witness, Instant::now() + WARM_UP)?;
    witness.begin();
    let (begun, before) = (Instant::now(), sent(&peers));
    drive(&mut peers, &mut witness, begun + time)?;
    let (passed, bytes) = (begun.elapsed().as_secs_f64(), sent(&peers) - before);
    let (echo, get) = witness.end();
    let bytes = bytes as f64 / passed;
    let messages = bytes / flood.message(&endpoint, topic)?.len().max(1) as f64;
    let figures = vec![(MESSAGES, messages), (BYTES, bytes / 1e6)];
    let sample = Sample { figures, ..Sample::default() };
    let mut all = [waits(case, ECHO, &echo), waits(case, GET, &get)].concat();
    if connections > 0 {
        all.extend(series(MESSAGES, &Cell::new(case, FLOOD, ()), &[sample]));
    }
    Ok(all)
}

/// Drives all peers until this time. The normal client has a turn after each turn of a peer.
fn drive(peers: &mut [Peer], witness: &mut Witness, until: Instant) -> anyhow::Result<()> {
    while Instant::now() < until {
        let mut went_on = witness.turn()?;
        for peer in &mut *peers {
            went_on |= peer.turn(false)? == Progress::Some;
            went_on |= witness.turn()?;
            if let Some(end) = &peer.end {
                anyhow::bail!("the server ended a flood: {}", end.how);
            }
        }
        if !went_on {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

fn sent(peers: &[Peer]) -> u64 {
    peers.iter().map(|peer| peer.sent_bytes).sum()
}

impl Flood {
    /// Publishes the events, or creates the topics, that the flood asks for.
    fn prepare(self, topic: &Topic) -> anyhow::Result<()> {
        match self {
            Self::HeadDocument | Self::Document | Self::HeadTopics | Self::Topics => {
                for number in 1..TOPICS {
                    Topic { path: format!("{}-{number:03}", topic.path), ..topic.clone() }
                        .create()?;
                }
            }
            Self::HeadPage | Self::Page => {
                let event = format!("\"{}\"", "x".repeat(EVENT_BYTES));
                for _ in 0..PAGE_EVENTS {
                    topic.publish(&event)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn peer(self, endpoint: &Endpoint, topic: &str) -> anyhow::Result<Peer> {
        let mut stream = connect(endpoint.address)?;
        if let Some((path, subprotocols, deflate)) = self.opening(&endpoint.path) {
            let mut handshake = ClientHandshake::new(Nonce([7; 16]), subprotocols);
            if let Some(deflate) = deflate {
                handshake = handshake.with_deflate(deflate);
            }
            shake_hands(&mut stream, handshake, path)?;
        }
        if matches!(self, Self::Http | Self::Page) {
            // The first request decides the protocol of the connection.
            stream.write_all(&self.message(endpoint, topic)?)?;
        }
        let message = self.message(endpoint, topic)?;
        ensure!(!message.is_empty(), "a flood has something to send");
        let burst = message.repeat((BURST_BYTES / message.len()).max(1)).into();
        Peer::new(stream, Script { burst, bursts: usize::MAX, ..Script::default() })
    }

    /// Returns the path, the subprotocols and the compression of the flood's WebSocket; `None` if it has no WebSocket.
    fn opening(self, echo: &str) -> Option<(&str, &'static [&'static str], Option<DeflateConfig>)> {
        match self {
            Self::None | Self::Http | Self::Page => None,
            Self::Compressed => Some((echo, &[], Some(DeflateConfig::default()))),
            Self::Pongs | Self::Pings | Self::Echoes => Some((echo, &[], None)),
            Self::Publishes
            | Self::Requests
            | Self::HeadDocument
            | Self::Document
            | Self::HeadTopics
            | Self::Topics
            | Self::HeadPage => Some(("/ws", &["anemone.v1"], None)),
        }
    }

    /// Returns the message or request that the flood repeats.
    fn message(self, endpoint: &Endpoint, topic: &str) -> anyhow::Result<Vec<u8>> {
        let text = |text: String| kinds::frame(Header::new(Opcode::Text, 0), text.as_bytes());
        let get = |target: &str| {
            format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", endpoint.address).into_bytes()
        };
        let page = format!("{topic}?after=earliest&limit={PAGE_EVENTS}");
        Ok(match self {
            Self::None => Vec::new(),
            Self::Compressed => {
                let mut stream = connect(endpoint.address)?;
                let deflate = Some(DeflateConfig::default());
                let established = kinds::open(&mut stream, endpoint, deflate)?;
                kinds::compressed_message(&established, &vec![0; MIB])?
            }
            Self::Publishes => {
                text(format!("POST 1 {topic}\n{{\"speed\":2.74,\"direction\":213}}"))
            }
            Self::Pongs => kinds::frame(Header::new(Opcode::Pong, 0), b""),
            Self::Pings => kinds::frame(Header::new(Opcode::Ping, 0), b""),
            Self::Echoes => kinds::frame(Header::new(Opcode::Binary, 0), b"x"),
            Self::Requests => text("GET 1 /clock".to_owned()),
            Self::Http => get("/clock"),
            Self::HeadDocument => text("HEAD 1 /asyncapi.json".to_owned()),
            Self::Document => text("GET 1 /asyncapi.json".to_owned()),
            Self::HeadTopics => text("HEAD 1 /topics".to_owned()),
            Self::Topics => text("GET 1 /topics".to_owned()),
            Self::HeadPage => text(format!("HEAD 1 {page}")),
            Self::Page => get(&page),
        })
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "nothing",
            Self::Compressed => "echoes of 1 MiB of zeros, compressed",
            Self::Publishes => "publishes on /ws",
            Self::Pongs => "pongs",
            Self::Pings => "pings",
            Self::Echoes => "echoes of 1 B",
            Self::Requests => "GET /clock on /ws",
            Self::Http => "GET /clock, pipelined",
            Self::HeadDocument => "HEAD /asyncapi.json on /ws, 990 topics",
            Self::Document => "GET /asyncapi.json on /ws, 990 topics",
            Self::HeadTopics => "HEAD /topics on /ws, 990 topics",
            Self::Topics => "GET /topics on /ws, 990 topics",
            Self::HeadPage => "HEAD of a page of 1 MiB on /ws",
            Self::Page => "GET of a page of 1 MiB, pipelined",
        })
    }
}
