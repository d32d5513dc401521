//! Messages as they are received and given to be sent.

use anemone_proto::Message;

/// A message that the peer sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Incoming {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Vec<u8>),
}

impl Incoming {
    /// The message, borrowed.
    #[must_use]
    pub fn message(&self) -> Message<'_> {
        match self {
            Self::Text(text) => Message::Text(text),
            Self::Binary(bytes) => Message::Binary(bytes),
        }
    }

    /// The payload's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.message().as_bytes()
    }
}

impl From<Message<'_>> for Incoming {
    fn from(message: Message<'_>) -> Self {
        match message {
            Message::Text(text) => Self::Text(text.to_owned()),
            Message::Binary(bytes) => Self::Binary(bytes.to_vec()),
        }
    }
}

/// What can be sent as one message: text is sent as text, bytes as binary.
pub trait AsMessage {
    /// The message.
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

impl<M: AsMessage + ?Sized> AsMessage for &M {
    fn as_message(&self) -> Message<'_> {
        (**self).as_message()
    }
}
