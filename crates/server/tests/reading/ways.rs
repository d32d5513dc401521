//! The ways to read a topic, made alike: open from a position, then one thing after the other.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};

use crate::common::{EventStream, Fixture, PATIENCE, Reply, Socket, send};

/// What a reader is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// Where reading begins.
    Position(String),
    Gap(Value),
    Skipped(u64),
    /// A plain WebSocket tells data alone.
    Event {
        position: Option<String>,
        data: Value,
    },
    /// Nothing more will come, since the topic was deleted.
    Deleted,
    /// The stream is over, with this close code if it is a WebSocket.
    End(Option<u16>),
}

/// A reader of a topic, by one of the ways.
pub(crate) trait Reading: Send {
    /// What it is told next, heartbeats left out.
    fn next(&mut self) -> Told;
}

/// A way to read, and what a request for it needs.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// Beside what is asked of every way.
    pub(crate) query: &'static str,
    pub(crate) fields: &'static [(&'static str, &'static str)],
    pub(crate) open: fn(&Fixture, &str) -> Box<dyn Reading>,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// One page for each request.
    Polling,
    /// A stream that begins with a position.
    Streaming,
    /// A stream of data alone.
    Plain,
}

const HANDSHAKE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];
const EVENTS_HANDSHAKE: [(&str, &str); 5] = [
    HANDSHAKE[0],
    HANDSHAKE[1],
    HANDSHAKE[2],
    HANDSHAKE[3],
    ("Sec-WebSocket-Protocol", "anemone.events"),
];

pub(crate) const POLL: Way = Way {
    name: "poll",
    query: "",
    fields: &[],
    open: |fixture, query| Box::new(Polls::open(fixture, query, "")),
    kind: Kind::Polling,
};
pub(crate) const LONG_POLL: Way = Way {
    name: "long poll",
    query: "&wait=100",
    fields: &[],
    open: |fixture, query| Box::new(Polls::open(fixture, query, "&wait=100")),
    kind: Kind::Polling,
};
pub(crate) const SSE: Way = Way {
    name: "SSE",
    query: "",
    fields: &[("Accept", "text/event-stream")],
    open: |fixture, query| Box::new(EventStream::open(fixture, &target(query), &[])),
    kind: Kind::Streaming,
};
pub(crate) const NDJSON: Way = Way {
    name: "NDJSON",
    query: "",
    fields: &[("Accept", "application/x-ndjson")],
    open: |fixture, query| Box::new(Lines::ndjson(fixture, query)),
    kind: Kind::Streaming,
};
pub(crate) const FOREVER_FRAME: Way = Way {
    name: "forever-frame",
    query: "&frame=app.receive",
    fields: &[("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")],
    open: |fixture, query| Box::new(Lines::forever_frame(fixture, query)),
    kind: Kind::Streaming,
};
pub(crate) const WEBSOCKET: Way = Way {
    name: "WebSocket",
    query: "",
    fields: &HANDSHAKE,
    open: |fixture, query| Box::new(Messages(fixture.websocket(&target(query), &[], &[]))),
    kind: Kind::Plain,
};
pub(crate) const EVENTS: Way = Way {
    name: "anemone.events",
    query: "",
    fields: &EVENTS_HANDSHAKE,
    open: |fixture, query| {
        Box::new(Messages(fixture.websocket(&target(query), &["anemone.events"], &[])))
    },
    kind: Kind::Streaming,
};
pub(crate) const ALL: [&Way; 7] =
    [&POLL, &LONG_POLL, &SSE, &NDJSON, &FOREVER_FRAME, &WEBSOCKET, &EVENTS];

impl Way {
    pub(crate) fn open(&self, fixture: &Fixture, query: &str) -> Box<dyn Reading> {
        (self.open)(fixture, query)
    }

    /// Sends the request and does not wait for anything.
    pub(crate) fn knock(&self, fixture: &Fixture, query: &str) {
        send(&mut fixture.connect(), "GET", &(target(query) + self.query), self.fields);
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.kind != Kind::Polling
    }
}

/// Tests every way, at the same time, each in a thread of its name.
pub(crate) fn each(test: impl Fn(&'static Way) + Sync) {
    each_of(&ALL, test);
}

pub(crate) fn each_of(ways: &[&'static Way], test: impl Fn(&'static Way) + Sync) {
    thread::scope(|scope| {
        for way in ways {
            let run = || test(way);
            thread::Builder::new().name(way.name.to_owned()).spawn_scoped(scope, run).unwrap();
        }
    });
}

fn target(query: &str) -> String {
    format!("/topics/wind?{query}")
}

/// What one object of a stream says.
fn told(object: &Value) -> Told {
    let members: Vec<&str> = object.as_object().unwrap().keys().map(|key| &**key).collect();
    let position = || object["position"].as_str().unwrap().to_owned();
    match members[..] {
        ["position"] => Told::Position(position()),
        ["gap"] => Told::Gap(object["gap"].clone()),
        ["end"] => {
            assert_eq!(*object, json!({ "end": { "reason": "deleted" } }));
            Told::Deleted
        }
        ["skipped"] => Told::Skipped(object["skipped"].as_u64().unwrap()),
        ["data", "position", "time"] => {
            assert!(object["time"].as_f64().unwrap() > 1.7e12, "{object}");
            Told::Event { position: Some(position()), data: object["data"].clone() }
        }
        _ => panic!("unexpected {object}"),
    }
}

/// Poll after poll, or long poll after long poll, on one connection.
struct Polls {
    reader: BufReader<TcpStream>,
    next: String,
    query: String,
    told: VecDeque<Told>,
}

impl Polls {
    fn open(fixture: &Fixture, query: &str, wait: &str) -> Self {
        let position = query.split('&').find_map(|part| part.strip_prefix("after="));
        let rest = query.split('&').filter(|part| !part.starts_with("after="));
        let rest: Vec<&str> = rest.collect();
        let mut polls = Self {
            reader: BufReader::new(fixture.connect()),
            next: String::new(),
            query: format!("&{}{wait}", rest.join("&")).replace("&&", "&"),
            told: VecDeque::new(),
        };
        // The first answer is one at once, so that there is a position even when nothing comes.
        let first = match position {
            Some(position) => format!("after={position}&{}", rest.join("&")),
            None => query.to_owned(),
        };
        polls.ask(&first);
        let begin = position.filter(|position| position.contains('-'));
        let begin = begin.map_or_else(|| polls.begin(), str::to_owned);
        polls.told.push_front(Told::Position(begin));
        polls
    }

    /// Where the first page begins.
    fn begin(&self) -> String {
        let first = self.told.iter().find_map(|told| match told {
            Told::Event { position, .. } => position.clone(),
            _ => None,
        });
        let Some(first) = first else { return self.next.clone() };
        let (epoch, offset) = first.split_once('-').unwrap();
        format!("{epoch}-{}", offset.parse::<u64>().unwrap() - 1)
    }

    fn ask(&mut self, query: &str) {
        let query = query.trim_end_matches('&');
        send(self.reader.get_mut(), "GET", &target(query), &[]);
        let reply = Reply::read(&mut self.reader, "GET");
        assert_eq!(reply.status, 200, "{reply:?}");
        let page = reply.json();
        self.next = reply.next();
        if !page["gap"].is_null() {
            self.told.push_back(Told::Gap(page["gap"].clone()));
        }
        if !page["skipped"].is_null() {
            self.told.push_back(Told::Skipped(page["skipped"].as_u64().unwrap()));
        }
        for event in page["events"].as_array().unwrap() {
            let position = format!("{}-{}", page["epoch"].as_str().unwrap(), event["offset"]);
            self.told
                .push_back(Told::Event { position: Some(position), data: event["data"].clone() });
        }
        if let Some(Told::Event { position: Some(last), .. }) = self.told.back() {
            assert_eq!(*last, self.next);
        }
    }
}

impl Reading for Polls {
    fn next(&mut self) -> Told {
        let begun = std::time::Instant::now();
        loop {
            if let Some(told) = self.told.pop_front() {
                return told;
            }
            assert!(begun.elapsed() < PATIENCE, "nothing comes");
            let query = format!("after={}{}", self.next, self.query);
            self.ask(&query);
        }
    }
}

impl Reading for EventStream {
    fn next(&mut self) -> Told {
        loop {
            let Some(block) = self.block() else { return Told::End(None) };
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(&*format!("{name}: ")))
            };
            let id = field("id").map(str::to_owned);
            match (field("event"), field("data").map(|data| serde_json::from_str(data).unwrap())) {
                (None, Some(data)) => return Told::Event { position: id, data },
                (Some(name), Some(notice)) => {
                    let notice: Value = notice;
                    assert!(!notice[name].is_null(), "{block}");
                    let told = told(&notice);
                    if let Told::Gap(gap) = &told {
                        assert_eq!(gap["resume"], json!(id), "{block}");
                    }
                    return told;
                }
                (None, None) if block == ":\n" => {}
                (None, None) => return Told::Position(id.unwrap()),
                (Some(_), None) => panic!("unexpected {block:?}"),
            }
        }
    }
}

/// A stream of lines over HTTP/1.1.
pub(crate) struct Lines {
    reader: BufReader<TcpStream>,
    pub(crate) head: Reply,
    is_frame: bool,
    has_begun: bool,
}

impl Lines {
    pub(crate) fn ndjson(fixture: &Fixture, query: &str) -> Self {
        let lines = Self::open(fixture, query, &NDJSON);
        assert_eq!(lines.head.field("content-type"), Some("application/x-ndjson"));
        lines
    }

    pub(crate) fn forever_frame(fixture: &Fixture, query: &str) -> Self {
        let mut lines = Self::open(fixture, query, &FOREVER_FRAME);
        assert_eq!(lines.head.field("content-type"), Some("text/html; charset=utf-8"));
        lines.is_frame = true;
        let comment = lines.line().unwrap();
        assert!(comment.starts_with("<!--") && comment.ends_with("-->\n"), "{comment:?}");
        assert_eq!(comment.len(), 1024);
        lines
    }

    fn open(fixture: &Fixture, query: &str, way: &Way) -> Self {
        let mut stream = fixture.connect();
        send(&mut stream, "GET", &(target(query) + way.query), way.fields);
        Self::following(BufReader::new(stream))
    }

    /// What answers a request that was sent.
    pub(crate) fn following(mut reader: BufReader<TcpStream>) -> Self {
        let head = Reply::read_head(&mut reader);
        assert_eq!(head.status, 200, "{head:?}");
        Self { reader, head, is_frame: false, has_begun: false }
    }

    /// The next line, chunk framing taken out; `None` at the end.
    pub(crate) fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if line == "0\r\n" {
                return None; // the last chunk; the connection may go on
            }
            // Chunk sizes, their ends and heartbeats; the stream's own lines end with LF alone.
            if !line.ends_with("\r\n") {
                return Some(line);
            }
        }
    }

    /// What is between the lines of a forever-frame: the chunk of one heartbeat.
    pub(crate) fn heartbeat(&mut self) {
        let mut chunk = String::new();
        while !chunk.ends_with("1\r\n \r\n") {
            assert!(self.reader.read_line(&mut chunk).unwrap() > 0, "{chunk:?}");
            assert!(chunk.len() < 64, "{chunk:?}");
        }
    }
}

impl Reading for Lines {
    fn next(&mut self) -> Told {
        loop {
            let Some(line) = self.line() else { return Told::End(None) };
            let json = if self.is_frame {
                let call = line
                    .strip_prefix("<script>parent.app.receive(")
                    .unwrap_or_else(|| panic!("{line:?}"));
                let json = call.strip_suffix(")</script>\n").unwrap_or_else(|| panic!("{line:?}"));
                assert!(!json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{line:?}");
                json
            } else {
                &*line
            };
            let told = told(&serde_json::from_str(json).unwrap());
            // Only the first tells a position; the others are heartbeats.
            if !matches!(told, Told::Position(_)) || !std::mem::replace(&mut self.has_begun, true) {
                return told;
            }
        }
    }
}

/// The messages of a WebSocket.
struct Messages(Socket);

impl Reading for Messages {
    fn next(&mut self) -> Told {
        let text = self.0.next();
        if let Some(end) = text.strip_prefix("close ") {
            return Told::End(Some(end.split(' ').next().unwrap().parse().unwrap()));
        }
        let message: Value = serde_json::from_str(&text).unwrap();
        let is_notice = ["gap", "skipped", "end"].iter().any(|name| !message[*name].is_null());
        if self.0.subprotocol.is_some() || is_notice {
            return told(&message);
        }
        Told::Event { position: None, data: message }
    }
}

/// Follows a reader of the events that `Fixture::publish` makes, whose numbers are their offsets: nothing comes
/// twice, and nothing is missing without a word.
#[derive(Debug)]
pub(crate) struct Follower {
    /// The last event that was seen.
    pub(crate) offset: u64,
    /// How many were skipped after that.
    pub(crate) skipped: u64,
    pub(crate) skipped_in_all: u64,
    pub(crate) events: u64,
}

impl Follower {
    pub(crate) fn new(offset: u64) -> Self {
        Self { offset, skipped: 0, skipped_in_all: 0, events: 0 }
    }

    pub(crate) fn position(&self) -> String {
        format!("ya-{}", self.offset)
    }

    /// Takes note of what came; the connection before may have been cut between a notice and its event.
    pub(crate) fn reconnected(&mut self) {
        self.skipped = 0;
    }

    pub(crate) fn follow(&mut self, told: Told) {
        match told {
            Told::Position(position) => assert_eq!(position, self.position()),
            Told::Gap(gap) => {
                assert_eq!(
                    (&gap["reason"], &gap["after"]),
                    (&json!("retention"), &json!(self.position()))
                );
                self.offset += gap["missed"].as_u64().unwrap();
                assert_eq!(gap["resume"], self.position());
            }
            Told::Skipped(count) => {
                assert!(count > 0 && self.skipped == 0, "{count} after {self:?}");
                self.skipped = count;
            }
            Told::Event { position, data } => {
                assert_eq!(data["n"], self.offset + self.skipped + 1, "after {self:?}");
                self.offset += self.skipped + 1;
                self.skipped_in_all += std::mem::take(&mut self.skipped);
                self.events += 1;
                if let Some(position) = position {
                    assert_eq!(position, self.position());
                }
            }
            other => panic!("{other:?} after {self:?}"),
        }
    }
}
