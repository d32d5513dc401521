//! The messages of `anemone.v1`: a line of ASCII, and after a line feed the payload.
//!
//! Owns their spelling and nothing else: what a request means, and whether its id is free, is decided elsewhere.

use std::fmt::Write as _;
use std::str;

use anemone_hub::{Event, Position, UnixTime};

/// The client's name of a request: 1 to 16 of `A-Z a-z 0-9 _ -`, but not `-` alone, which stands for
/// the connection.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Id {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl Id {
    const BYTES_MAX: usize = 16;

    fn parse(word: &[u8]) -> Option<Self> {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        let fits = (1..=Self::BYTES_MAX).contains(&word.len());
        if !fits || !word.iter().all(allowed) || word == NO_ID.as_bytes() {
            return None;
        }
        let mut bytes = [0; Self::BYTES_MAX];
        bytes[..word.len()].copy_from_slice(word);
        Some(Self { bytes, len: word.len() as u8 })
    }

    pub(crate) fn as_str(&self) -> &str {
        // Made of ASCII.
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// Stands where an id would, in what is about no request.
const NO_ID: &str = "-";

/// A message of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Message<'a> {
    /// `METHOD ID TARGET`, and the payload.
    Request { id: Id, request: Request<'a> },
    /// `CANCEL ID`.
    Cancel(Id),
}

/// A request of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Request<'a> {
    /// Letters in capitals; maybe not a method that anything here takes.
    pub(crate) method: &'a str,
    /// A path, and maybe a query.
    pub(crate) target: &'a str,
    pub(crate) payload: &'a [u8],
}

impl<'a> Request<'a> {
    /// The target's path, and its query.
    pub(crate) fn path_and_query(&self) -> (&'a str, Option<&'a str>) {
        match self.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.target, None),
        }
    }
}

/// A fault of a message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("the line is longer than {limit} bytes")]
    LineTooLong { limit: usize },
    #[error(
        "the line has byte {byte:#04x}: a line is printable ASCII, and the payload follows after a line feed"
    )]
    NotAscii { byte: u8 },
    #[error(
        "a message must begin with METHOD ID TARGET, or CANCEL ID, with one space between the words"
    )]
    NotThreeWords,
    #[error("a method must be 1 to {METHOD_BYTES_MAX} of A-Z")]
    BadMethod,
    #[error("an id must be 1 to {} of A-Z a-z 0-9 _ -, but not a single -", Id::BYTES_MAX)]
    BadId,
    #[error("a target must begin with /")]
    BadTarget,
    #[error("CANCEL takes an id and nothing else")]
    CancelOfMore,
}

const METHOD_BYTES_MAX: usize = 16;

/// A message that cannot be understood, and the id of the request that it would have been, if that at
/// least is readable. A `CANCEL` would have been none: told of its id, this would look like that request's end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Malformed {
    pub(crate) id: Option<Id>,
    pub(crate) error: MessageError,
}

/// Reads a message.
pub(crate) fn parse(bytes: &[u8], line_bytes_max: usize) -> Result<Message<'_>, Malformed> {
    // Not looked for any further: a payload is long.
    let head = &bytes[..bytes.len().min(line_bytes_max + 1)];
    let end = head.iter().position(|&byte| byte == b'\n');
    let (line, payload) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (head, &bytes[..0]),
    };
    let id = || {
        let mut words = line.split(|&byte| byte == b' ');
        let method = words.next()?;
        words.next().filter(|_| method != CANCEL.as_bytes()).and_then(Id::parse)
    };
    let malformed = |error| Malformed { id: id(), error };
    if line.len() > line_bytes_max {
        return Err(malformed(MessageError::LineTooLong { limit: line_bytes_max }));
    }
    parse_line(line, payload).map_err(malformed)
}

fn parse_line<'a>(line: &'a [u8], payload: &'a [u8]) -> Result<Message<'a>, MessageError> {
    if let Some(&byte) = line.iter().find(|byte| !(b' '..=b'~').contains(byte)) {
        return Err(MessageError::NotAscii { byte });
    }
    // It is ASCII, as was just seen.
    let line = str::from_utf8(line).unwrap_or_default();
    let mut words = line.split(' ');
    let (method, id, target) = (words.next(), words.next(), words.next());
    let (Some(method), Some(id), None) = (method, id, words.next()) else {
        return Err(MessageError::NotThreeWords);
    };
    let fits = (1..=METHOD_BYTES_MAX).contains(&method.len());
    if !fits || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(MessageError::BadMethod);
    }
    let id = Id::parse(id.as_bytes()).ok_or(MessageError::BadId)?;
    match target {
        None if method != CANCEL => Err(MessageError::NotThreeWords),
        None if payload.is_empty() => Ok(Message::Cancel(id)),
        _ if method == CANCEL => Err(MessageError::CancelOfMore),
        Some(target) if target.starts_with('/') => {
            Ok(Message::Request { id, request: Request { method, target, payload } })
        }
        _ => Err(MessageError::BadTarget),
    }
}

const CANCEL: &str = "CANCEL";

/// A message to a client: `STATUS ID POSITION TIME`, and the payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    pub(crate) position: Option<Position>,
    /// The time of an event. Nothing without a position has one.
    pub(crate) time: Option<UnixTime>,
    pub(crate) payload: &'a str,
}

impl<'a> Reply<'a> {
    const fn new(status: u16, position: Option<Position>, payload: &'a str) -> Self {
        Self { status, position, time: None, payload }
    }

    /// Reading begins, or stands, here.
    pub(crate) fn standing(position: Position) -> Self {
        Self::new(100, Some(position), "")
    }

    /// Something about the events, which go on after this position.
    pub(crate) fn notice(position: Position, notice: &'a str) -> Self {
        Self::new(110, Some(position), notice)
    }

    /// An event; more is to come.
    pub(crate) fn event(position: Position, event: &'a Event) -> Self {
        Self { time: Some(event.time), ..Self::new(206, Some(position), event.data.as_str()) }
    }

    /// The answer.
    pub(crate) fn answer(payload: &'a str) -> Self {
        Self::new(200, None, payload)
    }

    /// Published there.
    pub(crate) fn published(position: Position, payload: &'a str) -> Self {
        Self::new(201, Some(position), payload)
    }

    /// Published there, when its key came before.
    pub(crate) fn replayed(position: Position, payload: &'a str) -> Self {
        Self::new(200, Some(position), payload)
    }

    /// The reply that is a problem.
    pub(crate) fn problem(status: u16, problem: &'a str) -> Self {
        Self::new(status, None, problem)
    }

    /// Cancelled, or deleted.
    pub(crate) fn done() -> Self {
        Self::new(204, None, "")
    }

    /// Appends it to `out`; without an id it is about the connection.
    pub(crate) fn format(&self, id: Option<Id>, out: &mut String) {
        let id = id.as_ref().map_or(NO_ID, Id::as_str);
        // Writing to a string cannot fail.
        let _ = write!(out, "{} {id}", self.status);
        if let Some(position) = self.position {
            let _ = write!(out, " {position}");
        }
        if let Some(time) = self.time {
            let _ = write!(out, " {time}");
        }
        if !self.payload.is_empty() {
            out.push('\n');
            out.push_str(self.payload);
        }
    }
}

#[cfg(test)]
mod tests;
