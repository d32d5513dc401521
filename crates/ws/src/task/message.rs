//! Messages to send, and received ones.

use anemone_proto::Message;
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
