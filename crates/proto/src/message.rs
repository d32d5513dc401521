//! Messages and pieces of messages (RFC 6455 section 5.6).

/// The kind of a message: text or binary.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MessageKind {
    /// UTF-8 text.
    Text,
    /// Any bytes.
    Binary,
}

/// A whole message, borrowed from the buffer in which it arrived or from which it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Message<'a> {
    /// UTF-8 text.
    Text(&'a str),
    /// Any bytes.
    Binary(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Returns the kind of the message.
    #[must_use]
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Text(_) => MessageKind::Text,
            Self::Binary(_) => MessageKind::Binary,
        }
    }

    /// Returns the payload's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// A part of a received message. The pieces of a message follow each other, with only control frames between them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece<'a> {
    /// The kind of the whole message.
    pub kind: MessageKind,
    /// The bytes of this piece; maybe none. A piece of text can begin and end within a character. The connection
    /// still checks that the whole message is UTF-8.
    pub bytes: &'a [u8],
    /// True for the first piece of the message.
    pub is_first: bool,
    /// True for the last piece of the message.
    pub is_last: bool,
}
