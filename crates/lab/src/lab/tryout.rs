//! Tries every entry of a server's description once. A wrong path or pointer is thus reported before an hour of
//! measurements.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anemone_ws::proto::Opcode;

use super::description::{Description, Form, StreamPaths};
use super::probe::{
    EVENT_BYTES_MIN, Fault, Feed, Http, Piece, Place, Source, Stall, Transport, WebSocket, number,
};

/// The longest wait for an answer. An entry whose answer comes later is not reported as wrong.
const PATIENCE: Duration = Duration::from_secs(3);
/// The time between two events. They are published until a reader has got one.
const PERIOD: Duration = Duration::from_millis(100);
const OK: u16 = 200;

/// The topic to try. It is that of `wind`, and stands for those of all experiments.
const TOPIC: &str = "/topics/scratch-lab-wind";
const ECHO: &str = "/echo";
const NOT_FOUND: u16 = 404;

/// A service that an Anemone server has only with a flag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lack {
    Echo,
    /// The topics to which the lab may publish.
    Topics,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Echo => "has no /echo: start it with --demo or --echo",
            Self::Topics => "has no topics scratch-lab-* for the lab: start it with --demo",
        })
    }
}

/// Returns the services that the experiments need and that an Anemone server lacks. Ignores other failures, since the
/// measurements will report them.
pub(crate) fn lacks(place: &Place) -> Vec<Lack> {
    let place = Place { patience: PATIENCE, ..place.clone() };
    let publish = || Http::connect(&place)?.publish(TOPIC, 0, EVENT_BYTES_MIN);
    let tried = [(Lack::Echo, post(&place, ECHO)), (Lack::Topics, publish())];
    let is_missing =
        |tried: &Result<(), Fault>| matches!(tried, Err(Fault::Refused { status: NOT_FOUND, .. }));
    tried.into_iter().filter(|(_, tried)| is_missing(tried)).map(|(lack, _)| lack).collect()
}

/// An entry of a description that does not work, with its fault.
#[derive(Debug)]
pub(crate) struct EntryFault {
    entry: &'static str,
    fault: Fault,
}

impl EntryFault {
    /// Returns true if the server has nothing at the path of the entry.
    pub(crate) fn is_wrong_path(&self) -> bool {
        matches!(self.fault, Fault::Refused { status: NOT_FOUND, .. })
    }
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.entry, self.fault)
    }
}

/// Tries each entry of the description once. Returns the entries that do not work.
pub(crate) fn faults(place: &Place, offer: &Description) -> Vec<EntryFault> {
    let place = Place { patience: PATIENCE, ..place.clone() };
    let mut tried = Vec::new();
    tried.extend(offer.get.as_deref().map(|path| ("get", get(&place, path))));
    let echo = &offer.echo;
    tried.extend(echo.websocket.as_deref().map(|path| ("[echo] websocket", socket(&place, path))));
    tried.extend(echo.http.as_deref().map(|path| ("[echo] http", post(&place, path))));
    if let Some(stream) = &offer.stream {
        tried.push(("[stream] publish", publish(&place, stream)));
        let is_published = tried.last().is_some_and(|(_, tried)| tried.is_ok());
        let transports = [
            (Transport::WebSocket, "[stream] websocket"),
            (Transport::Sse, "[stream] sse"),
            (Transport::Ndjson, "[stream] ndjson"),
            (Transport::Poll, "[stream.poll]"),
            (Transport::LongPoll, "[stream.long_poll]"),
        ];
        let transports =
            transports.into_iter().filter(|(transport, _)| is_published && stream.has(*transport));
        tried.extend(transports.map(|(transport, name)| (name, read(&place, stream, transport))));
    }
    let told = |(entry, tried): (&'static str, Result<(), Fault>)| match tried {
        // It may only be slow.
        Ok(()) | Err(Fault::Stalled(Stall::Silent(_) | Stall::Slow(..))) => None,
        Err(fault) => Some(EntryFault { entry, fault }),
    };
    tried.into_iter().filter_map(told).collect()
}

fn get(place: &Place, path: &str) -> Result<(), Fault> {
    Http::connect(place)?.call("GET", path, "", b"")?.expect(OK).map(|_| ())
}

fn socket(place: &Place, path: &str) -> Result<(), Fault> {
    let mut socket = WebSocket::connect(place, path, &[], 1)?;
    let frame = socket.frame(Opcode::Binary, b"a");
    same(&socket.exchange(&frame)?)
}

fn post(place: &Place, path: &str) -> Result<(), Fault> {
    let fields = "Content-Type: text/plain\r\n";
    same(&Http::connect(place)?.exchange("POST", path, fields, b"a")?.expect(OK)?)
}

fn same(echoed: &[u8]) -> Result<(), Fault> {
    if echoed == b"a" { Ok(()) } else { Err(Fault::wrong("another echo came", echoed)) }
}

fn publish(place: &Place, stream: &StreamPaths) -> Result<(), Fault> {
    Http::connect(place)?.publish(&stream.publish, 0, EVENT_BYTES_MIN)
}

/// Publishes events, and reads until one of them has come.
fn read(place: &Place, stream: &StreamPaths, transport: Transport) -> Result<(), Fault> {
    let path = stream.target(transport, "").unwrap_or_default();
    let form = Form::Plain(stream.poll(transport));
    let source = Source { target: &path, body: None, page: None, after: None, form };
    let mut feed = Feed::open(transport, place, source, 1)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && publish(place, stream).is_ok() {
                thread::sleep(PERIOD);
            }
        });
        let event = first_event(&mut feed);
        is_over.store(true, Ordering::Relaxed);
        event
    })
}

fn first_event(feed: &mut Feed) -> Result<(), Fault> {
    let mut answers = 0;
    loop {
        match feed.next()? {
            Piece::Event(data) => return number(&data).map(|_| ()),
            Piece::End => return Err(Fault::Closed),
            Piece::Answer if answers == PATIENCE.as_millis() / PERIOD.as_millis() => {
                return Err(Fault::Wrong(format!("no event came in {answers} answers")));
            }
            Piece::Answer => {
                answers += 1;
                thread::sleep(PERIOD);
            }
        }
    }
}
