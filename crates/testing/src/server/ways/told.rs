//! The items that a reader receives, in every way of reading.

use std::io;

use serde_json::{Value, json};

/// One item that a reader receives.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// The position at which reading begins.
    Position(String),
    Gap(Value),
    Skipped(u64),
    /// Without a position over a plain WebSocket.
    Event {
        position: Option<String>,
        data: Value,
    },
    /// Nothing more will come, since the topic was deleted.
    Deleted,
    /// Nothing more will come, since the run has ended.
    Ended,
    /// The stream is over, with the close code of a WebSocket or the final status of a multiplexed request.
    End(Option<u16>),
}

/// A reader of a topic in one of the ways.
pub trait Reading: Send {
    /// Returns the next item, without heartbeats; an error if the connection fails.
    fn read(&mut self) -> io::Result<Told>;

    /// The same on a connection that does not fail.
    fn next(&mut self) -> Told {
        self.read().unwrap()
    }

    /// Makes sure that the server has a waiting reader, as a stream's reader always is.
    fn wait(&mut self) {}
}

/// The text that replaces `\ud800` in tests: JSON permits half of a pair in a string, and serde_json does not.
pub const HALF_PAIR: &str = "(half a pair)";

pub(super) fn parse(json: &str) -> Value {
    serde_json::from_str(&json.replace("\\ud800", HALF_PAIR))
        .unwrap_or_else(|error| panic!("{error}: {json:?}"))
}

pub(super) fn end(reason: &Value) -> Told {
    match reason["reason"].as_str() {
        Some("ended") => Told::Ended,
        _ => {
            assert_eq!(*reason, json!({ "reason": "deleted" }));
            Told::Deleted
        }
    }
}

pub(super) fn told(object: &Value) -> Told {
    let members: Vec<&str> = object.as_object().unwrap().keys().map(|key| &**key).collect();
    let position = || object["position"].as_str().unwrap().to_owned();
    match members[..] {
        ["position"] => Told::Position(position()),
        ["gap"] => Told::Gap(object["gap"].clone()),
        ["end"] => end(&object["end"]),
        ["skipped"] => Told::Skipped(object["skipped"].as_u64().unwrap()),
        ["data", "position", "time"] => {
            assert!(object["time"].as_f64().unwrap() > 1.7e12, "{object}");
            Told::Event { position: Some(position()), data: object["data"].clone() }
        }
        _ => panic!("unexpected {object}"),
    }
}
