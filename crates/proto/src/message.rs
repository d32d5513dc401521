//! Messages: what an application sends and receives, whole (RFC 6455 section 5.6).

/// The kind of a message: text or binary.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MessageKind {
    /// UTF-8 text.
    Text,
    /// Any bytes.
    Binary,
}

/// One whole message, borrowed from the buffer it arrived in or is sent from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Message<'a> {
    /// UTF-8 text.
    Text(&'a str),
    /// Any bytes.
    Binary(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Text or binary.
    #[must_use]
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Text(_) => MessageKind::Text,
            Self::Binary(_) => MessageKind::Binary,
        }
    }

    /// The payload's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// Part of a message, handed out as it came. The pieces of a message follow each other, with nothing but
/// control frames between them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece<'a> {
    /// Of the whole message.
    pub kind: MessageKind,
    /// The bytes that came; maybe none. A piece of text can begin and end within a character; that all of
    /// it is UTF-8 is checked all the same.
    pub bytes: &'a [u8],
    /// Whether the message begins here.
    pub is_first: bool,
    /// Whether it ends here.
    pub is_last: bool,
}
