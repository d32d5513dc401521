//! Events that own their data, with pieces joined to messages.

use anemone_proto::{
    CloseFrame, Connection, Event, Message, MessageKind, Piece, ProtocolError, Time,
};

use crate::memory;

/// An item that came from the peer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Seen {
    Message(MessageKind, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<CloseFrame>),
    Failed(ProtocolError),
}

impl Seen {
    /// Returns true if nothing may come after it.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Close(_) | Self::Failed(_))
    }
}

/// Makes [`Seen`] of events, and checks the order of pieces.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    /// The bytes that the connection has allocated and not freed in [`receive`].
    pub(crate) held: isize,
    message: Option<(MessageKind, Vec<u8>)>,
}

impl Collector {
    /// `None` for a piece that does not end its message.
    pub(crate) fn take(&mut self, event: Event<'_>) -> Option<Seen> {
        Some(match event {
            Event::Message(message) => {
                assert!(self.message.is_none(), "a message between the pieces of another");
                let bytes = match message {
                    Message::Text(text) => text.as_bytes(),
                    Message::Binary(bytes) => bytes,
                };
                Seen::Message(message.kind(), bytes.to_vec())
            }
            Event::Piece(piece) => return self.piece(piece),
            Event::Ping(payload) => Seen::Ping(payload.to_vec()),
            Event::Pong { payload, .. } => Seen::Pong(payload.to_vec()),
            Event::Close(frame) => Seen::Close(frame),
            Event::Failed(error) => Seen::Failed(error),
        })
    }

    /// Returns true if a message that arrives in pieces is incomplete.
    pub(crate) fn is_amid_message(&self) -> bool {
        self.message.is_some()
    }

    fn piece(&mut self, piece: Piece<'_>) -> Option<Seen> {
        assert_eq!(piece.is_first, self.message.is_none(), "the first piece is not the first");
        let (kind, bytes) = self.message.get_or_insert_with(|| (piece.kind, Vec::new()));
        assert_eq!(*kind, piece.kind, "pieces of one message have two kinds");
        bytes.extend_from_slice(piece.bytes);
        if !piece.is_last {
            return None;
        }
        let (kind, bytes) = self.message.take()?;
        let is_text = kind == MessageKind::Text;
        assert!(!is_text || str::from_utf8(&bytes).is_ok(), "text in pieces is not UTF-8");
        Some(Seen::Message(kind, bytes))
    }
}

/// Gives all of `input` to the connection and returns what that made of it, checking the contract
/// of [`Connection::receive`] on the way.
pub(crate) fn receive(
    connection: &mut Connection,
    collector: &mut Collector,
    now: Time,
    input: &mut [u8],
) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        let (was_closed, len) = (connection.is_closed(), rest.len());
        let before = memory::live();
        let received = connection.receive(now, rest);
        collector.held += memory::live() - before;
        let consumed = received.consumed;
        assert!(0 < consumed && consumed <= len, "{consumed} of {len} used");
        let is_all = received.event.is_none();
        assert!(!is_all || consumed == len, "input is left over without an event");
        assert!(!was_closed || is_all, "an event after the end");
        let new = received.event.and_then(|event| collector.take(event));
        let is_end = new.as_ref().is_some_and(Seen::is_end);
        assert_eq!(is_end, connection.is_closed() && !was_closed, "{new:?}");
        seen.extend(new);
        rest = &mut rest[consumed..];
    }
    seen
}
