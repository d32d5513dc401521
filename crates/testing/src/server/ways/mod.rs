//! The ways to read a topic behind one interface: open a reader at a position, then take one thing after the other.

mod follower;
mod messages;
mod polls;
mod streams;
mod told;
mod wire;

use std::io;
use std::thread;

use crate::server::multiplexed::Client;
use crate::{EventStream, Fixture, HANDSHAKE, connect, request};

pub use follower::Follower;
use messages::{Data, Multiplexed, TopicSocket};
use polls::Polls;
pub use streams::Lines;
pub use told::{HALF_PAIR, Reading, Told};
pub use wire::{Wire, is_cut};

/// A way of reading, and the parts of its request.
pub struct Way {
    pub name: &'static str,
    /// The parameters besides those of every way.
    pub query: &'static str,
    pub fields: &'static [(&'static str, &'static str)],
    form: Form,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// One page for each request.
    Polling,
    /// A stream that begins with a position.
    Streaming,
    /// A stream of data alone, without positions and notices.
    Plain,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Pages,
    Blocks,
    Lines,
    Messages(Option<&'static str>),
    Multiplexed,
    Tcp,
}

const EVENTS_HANDSHAKE: [(&str, &str); 5] = [
    HANDSHAKE[0],
    HANDSHAKE[1],
    HANDSHAKE[2],
    HANDSHAKE[3],
    ("Sec-WebSocket-Protocol", "anemone.events"),
];

pub const POLL: Way =
    Way { name: "poll", query: "", fields: &[], form: Form::Pages, kind: Kind::Polling };
pub const LONG_POLL: Way = Way { name: "long poll", query: "&wait=100", ..POLL };
pub const SSE: Way = Way {
    name: "SSE",
    query: "",
    fields: &[("Accept", "text/event-stream")],
    form: Form::Blocks,
    kind: Kind::Streaming,
};
pub const NDJSON: Way =
    Way { name: "NDJSON", fields: &[("Accept", "application/x-ndjson")], form: Form::Lines, ..SSE };
pub const FOREVER_FRAME: Way = Way {
    name: "forever-frame",
    query: "&frame=app.receive",
    fields: &[
        ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
        ("Sec-Fetch-Dest", "iframe"),
        ("Sec-Fetch-Site", "same-origin"),
    ],
    ..NDJSON
};
pub const WEBSOCKET: Way = Way {
    name: "WebSocket",
    query: "",
    fields: &HANDSHAKE,
    form: Form::Messages(None),
    kind: Kind::Plain,
};
pub const EVENTS: Way = Way {
    name: "anemone.events",
    query: "",
    fields: &EVENTS_HANDSHAKE,
    form: Form::Messages(Some("anemone.events")),
    kind: Kind::Streaming,
};
pub const MULTIPLEXED: Way = Way {
    name: "multiplexed",
    query: "",
    fields: &[],
    form: Form::Multiplexed,
    kind: Kind::Streaming,
};
pub const TCP: Way = Way { name: "multiplexed, TCP", form: Form::Tcp, ..MULTIPLEXED };

/// The ways that are a request of HTTP.
pub const HTTP: [&Way; 7] = [&POLL, &LONG_POLL, &SSE, &NDJSON, &FOREVER_FRAME, &WEBSOCKET, &EVENTS];
pub const STREAMS: [&Way; 7] =
    [&SSE, &NDJSON, &FOREVER_FRAME, &WEBSOCKET, &EVENTS, &MULTIPLEXED, &TCP];
pub const ALL: [&Way; 9] =
    [&POLL, &LONG_POLL, &SSE, &NDJSON, &FOREVER_FRAME, &WEBSOCKET, &EVENTS, &MULTIPLEXED, &TCP];

impl Way {
    /// A reader of `wind`.
    pub fn open(&self, fixture: &Fixture, query: &str) -> Box<dyn Reading> {
        self.read(self.connect(fixture), "wind", query).unwrap()
    }

    /// A connection to the port of this way.
    pub fn connect(&self, fixture: &Fixture) -> Wire {
        Wire::new(if self.is_tcp() { connect(fixture.tcp()) } else { fixture.connect() })
    }

    pub fn is_tcp(&self) -> bool {
        self.form == Form::Tcp
    }

    /// A reader over a connection; an error if the connection fails before reading begins.
    pub fn read(&self, wire: Wire, topic: &str, query: &str) -> io::Result<Box<dyn Reading>> {
        self.read_path(wire, &format!("/topics/{topic}"), query)
    }

    /// A reader of what is at this path; an error if the connection fails before reading begins.
    pub fn read_path(&self, wire: Wire, path: &str, query: &str) -> io::Result<Box<dyn Reading>> {
        let target = format!("{path}?{query}{}", self.query);
        Ok(match self.form {
            Form::Pages => Box::new(Polls::open(wire, path, query, self.query)?),
            Form::Blocks => {
                let request = request(wire.peer(), "GET", &target, self.fields);
                Box::new(EventStream::over(wire, &request)?)
            }
            Form::Lines => Box::new(self.lines(wire, &target)?),
            Form::Messages(None) => Box::new(Data::open(wire, &target)?),
            Form::Messages(Some(subprotocol)) => {
                Box::new(TopicSocket::open(wire, &target, subprotocol)?)
            }
            Form::Multiplexed => Box::new(Multiplexed::web_socket(wire, &target)?),
            Form::Tcp => Box::new(Multiplexed::tcp(wire, &target)?),
        })
    }

    fn lines(&self, wire: Wire, target: &str) -> io::Result<Lines> {
        Lines::open(wire, self.name == FOREVER_FRAME.name, self.fields, target)
    }

    /// Asserts that a reader is refused with a problem of that kind and returns its detail.
    pub fn problem(&self, fixture: &Fixture, target: &str, status: u16, kind: &str) -> String {
        let carrier = match self.form {
            Form::Multiplexed => crate::server::multiplexed::Carrier::WebSocket,
            Form::Tcp => crate::server::multiplexed::Carrier::Tcp,
            _ => return fixture.get(target, self.fields).problem(status, kind),
        };
        let reply = Client::open(carrier, fixture).ask(&format!("GET r {target}"));
        reply.problem(status, "r", kind)
    }

    /// The end of a stream when its topic is deleted.
    pub fn deleted(&self) -> Told {
        Told::End(match self.form {
            Form::Messages(None) => Some(4001),    // RFC 6455 section 7.4.2
            Form::Messages(Some(_)) => Some(1000), // RFC 6455 section 7.4.1
            Form::Multiplexed | Form::Tcp => Some(410),
            _ => None,
        })
    }

    /// The end of a stream after the end of its run.
    pub fn ended(&self) -> Told {
        Told::End(match self.form {
            Form::Messages(_) => Some(1000), // RFC 6455 section 7.4.1
            Form::Multiplexed | Form::Tcp => Some(200),
            _ => None,
        })
    }

    /// The end of a stream when the server stops.
    pub fn stopped(&self) -> Told {
        Told::End(match self.form {
            Form::Messages(_) | Form::Multiplexed => Some(1001), // RFC 6455 section 7.4.1
            Form::Tcp => Some(503),
            _ => None,
        })
    }
}

/// Tests all ways at the same time, each in a thread of its name.
pub fn each(test: impl Fn(&'static Way) + Sync) {
    each_of(&ALL, test);
}

pub fn each_of(ways: &[&'static Way], test: impl Fn(&'static Way) + Sync) {
    thread::scope(|scope| {
        for way in ways {
            let run = || test(way);
            thread::Builder::new().name(way.name.to_owned()).spawn_scoped(scope, run).unwrap();
        }
    });
}

impl Lines {
    pub fn ndjson(fixture: &Fixture, query: &str) -> Self {
        NDJSON.lines(NDJSON.connect(fixture), &format!("/topics/wind?{query}")).unwrap()
    }

    pub fn forever_frame(fixture: &Fixture, query: &str) -> Self {
        let way = &FOREVER_FRAME;
        let target = format!("/topics/wind?{query}{}", way.query);
        way.lines(way.connect(fixture), &target).unwrap()
    }
}
