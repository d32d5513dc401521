//! The pieces of a stream: events, the ends of answers, and the end of a run.

use serde_json::Value;

use super::Fault;

/// The status of a successful poll.
pub(super) const OK: u16 = 200;

/// A piece of a stream, as a reader gets it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Piece {
    Event(Vec<u8>),
    /// The end of an answer to a poll. The events of the answer came before it.
    Answer,
    /// The end of a run.
    End,
}

pub(super) fn event(data: &Value) -> Piece {
    Piece::Event(data.to_string().into_bytes())
}

/// Returns the number in an event that was published by [`Http::publish`](super::Http::publish).
pub(crate) fn number(data: &[u8]) -> Result<usize, Fault> {
    let number = parse(data)?["n"].as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| Fault::wrong("another event came", data))
}

pub(super) fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(bytes).map_err(|_| Fault::wrong("no JSON came", bytes))
}
