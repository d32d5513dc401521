//! The ways to read a topic, made alike: open from a position, then one thing after the other.

mod follower;
mod messages;
mod polls;
mod streams;
mod wire;

use std::io;
use std::thread;

use serde_json::{Value, json};

use crate::client::{Client, connect};
use crate::common::{EventStream, Fixture, HANDSHAKE, request};

pub(crate) use follower::Follower;
use messages::{Data, Events, Multiplexed};
use polls::Polls;
pub(crate) use streams::Lines;
pub(crate) use wire::{Wire, is_cut};

/// One thing that a reader is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// The position at which reading begins.
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
    /// The stream is over, with the close code of a WebSocket or the final status of a multiplexed request.
    End(Option<u16>),
}

/// A reader of a topic, by one of the ways.
pub(crate) trait Reading: Send {
    /// The next thing that it is told, heartbeats left out; an error where the connection fails.
    fn read(&mut self) -> io::Result<Told>;

    /// The same on a connection that does not fail.
    fn next(&mut self) -> Told {
        self.read().unwrap()
    }

    /// Sees to it that the server knows of somebody who waits, as a stream's reader always does.
    fn wait(&mut self) {}
}

/// A way to read, and what a request for it needs.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// Beside what is asked of every way.
    pub(crate) query: &'static str,
    pub(crate) fields: &'static [(&'static str, &'static str)],
    form: Form,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
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

pub(crate) const POLL: Way =
    Way { name: "poll", query: "", fields: &[], form: Form::Pages, kind: Kind::Polling };
pub(crate) const LONG_POLL: Way = Way { name: "long poll", query: "&wait=100", ..POLL };
pub(crate) const SSE: Way = Way {
    name: "SSE",
    query: "",
    fields: &[("Accept", "text/event-stream")],
    form: Form::Blocks,
    kind: Kind::Streaming,
};
pub(crate) const NDJSON: Way =
    Way { name: "NDJSON", fields: &[("Accept", "application/x-ndjson")], form: Form::Lines, ..SSE };
pub(crate) const FOREVER_FRAME: Way = Way {
    name: "forever-frame",
    query: "&frame=app.receive",
    fields: &[
        ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
        ("Sec-Fetch-Dest", "iframe"),
        ("Sec-Fetch-Site", "same-origin"),
    ],
    ..NDJSON
};
pub(crate) const WEBSOCKET: Way = Way {
    name: "WebSocket",
    query: "",
    fields: &HANDSHAKE,
    form: Form::Messages(None),
    kind: Kind::Plain,
};
pub(crate) const EVENTS: Way = Way {
    name: "anemone.events",
    query: "",
    fields: &EVENTS_HANDSHAKE,
    form: Form::Messages(Some("anemone.events")),
    kind: Kind::Streaming,
};
pub(crate) const MULTIPLEXED: Way = Way {
    name: "multiplexed",
    query: "",
    fields: &[],
    form: Form::Multiplexed,
    kind: Kind::Streaming,
};
pub(crate) const TCP: Way = Way { name: "multiplexed, TCP", form: Form::Tcp, ..MULTIPLEXED };

/// Those that are a request of HTTP.
pub(crate) const HTTP: [&Way; 7] =
    [&POLL, &LONG_POLL, &SSE, &NDJSON, &FOREVER_FRAME, &WEBSOCKET, &EVENTS];
pub(crate) const STREAMS: [&Way; 7] =
    [&SSE, &NDJSON, &FOREVER_FRAME, &WEBSOCKET, &EVENTS, &MULTIPLEXED, &TCP];
pub(crate) const ALL: [&Way; 9] =
    [&POLL, &LONG_POLL, &SSE, &NDJSON, &FOREVER_FRAME, &WEBSOCKET, &EVENTS, &MULTIPLEXED, &TCP];

impl Way {
    /// A reader of `wind`.
    pub(crate) fn open(&self, fixture: &Fixture, query: &str) -> Box<dyn Reading> {
        self.read(self.connect(fixture), "wind", query).unwrap()
    }

    /// A connection to where this way is spoken.
    pub(crate) fn connect(&self, fixture: &Fixture) -> Wire {
        Wire::new(if self.is_tcp() { connect(fixture) } else { fixture.connect() })
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.form == Form::Tcp
    }

    /// A reader over a connection; an error where that fails before reading begins.
    pub(crate) fn read(
        &self,
        wire: Wire,
        topic: &str,
        query: &str,
    ) -> io::Result<Box<dyn Reading>> {
        let path = format!("/topics/{topic}");
        let target = format!("{path}?{query}{}", self.query);
        Ok(match self.form {
            Form::Pages => Box::new(Polls::open(wire, &path, query, self.query)?),
            Form::Blocks => {
                let request = request(wire.peer(), "GET", &target, self.fields);
                Box::new(EventStream::over(wire, &request)?)
            }
            Form::Lines => Box::new(Lines::open(wire, self, &target)?),
            Form::Messages(None) => Box::new(Data::open(wire, &target)?),
            Form::Messages(Some(subprotocol)) => {
                Box::new(Events::open(wire, &target, subprotocol)?)
            }
            Form::Multiplexed => Box::new(Multiplexed::web_socket(wire, &target)?),
            Form::Tcp => Box::new(Multiplexed::tcp(wire, &target)?),
        })
    }

    /// Asserts that a reader is refused with a problem of that kind and returns its detail.
    pub(crate) fn problem(
        &self,
        fixture: &Fixture,
        target: &str,
        status: u16,
        kind: &str,
    ) -> String {
        let carrier = match self.form {
            Form::Multiplexed => crate::client::Carrier::WebSocket,
            Form::Tcp => crate::client::Carrier::Tcp,
            _ => return fixture.get(target, self.fields).problem(status, kind),
        };
        let reply = Client::open(carrier, fixture).ask(&format!("GET r {target}"));
        reply.problem(status, "r", kind)
    }

    /// The end of a stream when its topic is deleted.
    pub(crate) fn deleted(&self) -> Told {
        Told::End(match self.form {
            Form::Messages(None) => Some(4001),    // RFC 6455 section 7.4.2
            Form::Messages(Some(_)) => Some(1000), // RFC 6455 section 7.4.1
            Form::Multiplexed | Form::Tcp => Some(410),
            _ => None,
        })
    }

    /// The end of a stream when the server stops.
    pub(crate) fn stopped(&self) -> Told {
        Told::End(match self.form {
            Form::Messages(_) | Form::Multiplexed => Some(1001), // RFC 6455 section 7.4.1
            Form::Tcp => Some(503),
            _ => None,
        })
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

/// The text that stands for `\ud800` here. JSON permits half of a pair in a string, and serde_json does not.
pub(crate) const HALF_PAIR: &str = "(half a pair)";

fn parse(json: &str) -> Value {
    serde_json::from_str(&json.replace("\\ud800", HALF_PAIR))
        .unwrap_or_else(|error| panic!("{error}: {json:?}"))
}

/// The thing that one object of a stream tells.
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
