//! Messages to send, and received ones.

use anemone_proto::{Message, MessageKind, Piece};
use bytes::Bytes;
use bytestring::ByteString;

/// A received message, or one to send.
///
/// Its payload is shared: a clone copies nothing, and neither does a conversion from or to [`Bytes`], [`ByteString`],
/// `String` or `Vec<u8>`. Only a `Vec` of bytes that others share is a copy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Incoming {
    /// A text message.
    Text(ByteString),
    /// A binary message.
    Binary(Bytes),
}

impl Incoming {
    /// Borrows the message.
    #[must_use]
    pub fn message(&self) -> Message<'_> {
        match self {
            Self::Text(text) => Message::Text(text),
            Self::Binary(bytes) => Message::Binary(bytes),
        }
    }

    /// Returns the payload's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.message().as_bytes()
    }

    /// Returns the text of a text message.
    ///
    /// # Errors
    /// Returns the message itself if it is binary.
    pub fn into_text(self) -> Result<ByteString, Self> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Binary(_) => Err(self),
        }
    }

    /// Returns the payload of either kind. The same as `Bytes::from`.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// Copies the payload, which is borrowed.
impl From<Message<'_>> for Incoming {
    fn from(message: Message<'_>) -> Self {
        match message {
            Message::Text(text) => Self::Text(text.into()),
            Message::Binary(bytes) => Self::Binary(Bytes::copy_from_slice(bytes)),
        }
    }
}

impl From<ByteString> for Incoming {
    fn from(text: ByteString) -> Self {
        Self::Text(text)
    }
}

impl From<String> for Incoming {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Bytes> for Incoming {
    fn from(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }
}

impl From<Vec<u8>> for Incoming {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Binary(bytes.into())
    }
}

impl From<Incoming> for Bytes {
    fn from(message: Incoming) -> Self {
        message.into_bytes()
    }
}

/// The result of [`WebSocket::turn`](super::WebSocket::turn).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Turn {
    /// The peer sent a message.
    Message(Incoming),
    /// Everything queued has been written.
    Drained,
    /// The closing handshake is done.
    Closed,
}

/// A part of a received message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IncomingPiece {
    /// The kind of the whole message.
    pub kind: MessageKind,
    /// The bytes of this piece; maybe none. A piece of text can begin and end within a character. The connection
    /// still checks that the whole message is UTF-8, and reports an error at the last piece at the latest.
    pub bytes: Vec<u8>,
    /// True for the first piece of the message.
    pub is_first: bool,
    /// True for the last piece of the message.
    pub is_last: bool,
}

impl From<Piece<'_>> for IncomingPiece {
    fn from(piece: Piece<'_>) -> Self {
        let Piece { kind, bytes, is_first, is_last } = piece;
        Self { kind, bytes: bytes.to_vec(), is_first, is_last }
    }
}

impl From<IncomingPiece> for Bytes {
    fn from(piece: IncomingPiece) -> Self {
        piece.bytes.into()
    }
}

/// A received message or piece.
#[derive(Debug)]
pub(super) enum Received {
    Message(Incoming),
    Piece(IncomingPiece),
}

impl From<Received> for IncomingPiece {
    fn from(received: Received) -> Self {
        let message = match received {
            Received::Piece(piece) => return piece,
            Received::Message(message) => message,
        };
        let kind = message.message().kind();
        Self { kind, bytes: message.into_bytes().into(), is_first: true, is_last: true }
    }
}

/// The pieces of a message that is being joined.
#[derive(Debug, Default)]
pub(super) struct Collected(Option<IncomingPiece>);

impl Collected {
    /// Adds a piece and returns the message if it is complete. A piece without a beginning belongs to a message whose
    /// first pieces the caller has already taken, and is discarded.
    pub(super) fn add(&mut self, piece: IncomingPiece) -> Option<Incoming> {
        let is_last = piece.is_last;
        match &mut self.0 {
            Some(begun) => begun.bytes.extend_from_slice(&piece.bytes),
            None if piece.is_first => self.0 = Some(piece),
            None => {}
        }
        if is_last { self.0.take().map(IncomingPiece::into_message) } else { None }
    }

    pub(super) fn take(&mut self) -> Option<IncomingPiece> {
        self.0.take()
    }
}

impl IncomingPiece {
    /// Makes a message of all its bytes.
    fn into_message(self) -> Incoming {
        match self.kind {
            // The connection has checked that it is UTF-8, so nothing is replaced.
            MessageKind::Text => String::from_utf8(self.bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
                .into(),
            MessageKind::Binary => self.bytes.into(),
        }
    }
}

/// A value that can be sent as one message: text is sent as text, bytes as binary.
pub trait AsMessage {
    /// Returns the message.
    fn as_message(&self) -> Message<'_>;
}

impl AsMessage for Message<'_> {
    fn as_message(&self) -> Message<'_> {
        *self
    }
}

impl AsMessage for Incoming {
    fn as_message(&self) -> Message<'_> {
        self.message()
    }
}

impl AsMessage for str {
    fn as_message(&self) -> Message<'_> {
        Message::Text(self)
    }
}

impl AsMessage for String {
    fn as_message(&self) -> Message<'_> {
        Message::Text(self)
    }
}

impl AsMessage for [u8] {
    fn as_message(&self) -> Message<'_> {
        Message::Binary(self)
    }
}

impl<const N: usize> AsMessage for [u8; N] {
    fn as_message(&self) -> Message<'_> {
        Message::Binary(self)
    }
}

impl AsMessage for Vec<u8> {
    fn as_message(&self) -> Message<'_> {
        Message::Binary(self)
    }
}

impl AsMessage for ByteString {
    fn as_message(&self) -> Message<'_> {
        Message::Text(self)
    }
}

impl AsMessage for Bytes {
    fn as_message(&self) -> Message<'_> {
        Message::Binary(self)
    }
}

impl<M: AsMessage + ?Sized> AsMessage for &M {
    fn as_message(&self) -> Message<'_> {
        (**self).as_message()
    }
}

#[cfg(test)]
mod tests;
