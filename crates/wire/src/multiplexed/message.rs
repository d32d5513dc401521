//! Messages of a client.

use std::str;

use super::fields::{FieldError, Fields};
use super::id::{Id, IdError};

/// A message of a client: `METHOD ID TARGET[ FIELD=VALUE…]` or `CANCEL ID`; a payload follows after a line feed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Message<'a> {
    /// `METHOD ID TARGET`, perhaps with fields and a payload.
    Request {
        /// The id, which the client chooses.
        id: Id,
        /// The request.
        request: Request<'a>,
    },
    /// `CANCEL ID`: the client no longer wants an answer to this request.
    Cancel(Id),
}

/// A request, apart from its id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request<'a> {
    /// The method: 1 to 16 capital letters. The server may not know it.
    pub method: &'a str,
    /// The path, perhaps with a query. It begins with a slash.
    pub target: &'a str,
    /// The header fields.
    pub fields: Fields<'a>,
    /// The payload; may be empty.
    pub payload: &'a [u8],
}

impl<'a> Request<'a> {
    /// The path and the query of the target.
    #[must_use]
    pub fn path_and_query(&self) -> (&'a str, Option<&'a str>) {
        // Searches bytes, since that is faster than to search text this short.
        match self.target.bytes().position(|byte| byte == b'?') {
            Some(end) => (&self.target[..end], Some(&self.target[end + 1..])),
            None => (self.target, None),
        }
    }
}

/// The error in a message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The line is longer than allowed.
    #[error("the line is longer than {limit} bytes")]
    LineTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The line has a byte that is not printable ASCII.
    #[error(
        "the line has byte {byte:#04x}: a line is printable ASCII, and the payload follows after a line feed"
    )]
    NotAscii {
        /// The first such byte.
        byte: u8,
    },
    /// The line has too few words.
    #[error(
        "a message must begin with METHOD ID TARGET, or CANCEL ID, with one space between the words"
    )]
    NotThreeWords,
    /// The method is not 1 to 16 capital letters.
    #[error("a method must be 1 to {METHOD_BYTES_MAX} of A-Z")]
    BadMethod,
    /// The id is invalid.
    #[error(transparent)]
    BadId(#[from] IdError),
    /// The target does not begin with a slash.
    #[error("a target must begin with /")]
    BadTarget,
    /// A field is invalid.
    #[error(transparent)]
    BadField(#[from] FieldError),
    /// A `CANCEL` has a target or a payload.
    #[error("CANCEL takes an id and nothing else")]
    CancelOfMore,
}

const METHOD_BYTES_MAX: usize = 16;

/// An error: a message is invalid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MalformedMessage {
    /// The id of the request, if it can be read. Always `None` for a `CANCEL`: an answer with the id would look like the
    /// end of the request to cancel.
    pub id: Option<Id>,
    /// The error.
    pub error: MessageError,
}

impl<'a> Message<'a> {
    /// Reads a message. Its line may have up to `line_bytes_max` bytes.
    ///
    /// # Errors
    /// When the message is invalid.
    pub fn parse(bytes: &'a [u8], line_bytes_max: usize) -> Result<Self, MalformedMessage> {
        // The line ends here or is too long: a payload, which may be long, is not searched.
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
        let malformed = |error| MalformedMessage { id: id(), error };
        if line.len() > line_bytes_max {
            return Err(malformed(MessageError::LineTooLong { limit: line_bytes_max }));
        }
        parse_line(line, payload).map_err(malformed)
    }

    /// The bytes of the message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Cancel(id) => format!("{CANCEL} {}", id.as_str()).into_bytes(),
            Self::Request { id, request: Request { method, target, fields, payload } } => {
                let mut line = format!("{method} {} {target}", id.as_str());
                fields.write(&mut line);
                let mut bytes = line.into_bytes();
                if !payload.is_empty() {
                    bytes.push(b'\n');
                    bytes.extend_from_slice(payload);
                }
                bytes
            }
        }
    }
}

fn parse_line<'a>(line: &'a [u8], payload: &'a [u8]) -> Result<Message<'a>, MessageError> {
    if let Some(&byte) = line.iter().find(|byte| !(b' '..=b'~').contains(byte)) {
        return Err(MessageError::NotAscii { byte });
    }
    // All of it is ASCII, as was just seen.
    let (method, rest) = first_word(str::from_utf8(line).unwrap_or_default());
    let (id, rest) = first_word(rest.ok_or(MessageError::NotThreeWords)?);
    let (target, fields) = rest.map(first_word).unzip();
    let fits = (1..=METHOD_BYTES_MAX).contains(&method.len());
    if !fits || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(MessageError::BadMethod);
    }
    let id = Id::parse(id.as_bytes()).ok_or(IdError)?;
    match target {
        None if method != CANCEL => Err(MessageError::NotThreeWords),
        None if payload.is_empty() => Ok(Message::Cancel(id)),
        _ if method == CANCEL => Err(MessageError::CancelOfMore),
        Some(target) if target.starts_with('/') => {
            let fields = fields.flatten().map(Fields::parse).transpose()?.unwrap_or_default();
            Ok(Message::Request { id, request: Request { method, target, fields, payload } })
        }
        _ => Err(MessageError::BadTarget),
    }
}

pub(super) fn first_word(line: &str) -> (&str, Option<&str>) {
    // Searches bytes, since that is faster than to search text this short.
    match line.bytes().position(|byte| byte == b' ') {
        Some(end) => (&line[..end], Some(&line[end + 1..])),
        None => (line, None),
    }
}

const CANCEL: &str = "CANCEL";

#[cfg(test)]
mod tests;
