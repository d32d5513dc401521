//! A message that is encoded once and sent on many connections.

use std::sync::{Arc, OnceLock};

use super::deflate::{Outgoing, Sharing};
use crate::{Header, Message, MessageKind, Opcode};

/// A message encoded once for many connections of a server, sent with [`Sender::send_prepared`](super::Sender).
///
/// Connections that compress without context takeover also share the compressed form, which is made when the first of
/// them asks. Every other connection encodes the message itself.
#[derive(Debug)]
pub struct Prepared {
    kind: MessageKind,
    frame: Arc<[u8]>,
    header_bytes: usize,
    compressed: OnceLock<SharedForm>,
}

/// The compressed form.
#[derive(Debug)]
struct SharedForm {
    sharing: Sharing,
    /// `None` if the message is sent uncompressed.
    frame: Option<Arc<[u8]>>,
}

impl Prepared {
    /// Encodes a message.
    #[must_use]
    pub fn new(message: Message<'_>) -> Self {
        let (kind, payload) = (message.kind(), message.as_bytes());
        let mut frame = Vec::with_capacity(crate::HEADER_BYTES_MAX + payload.len());
        Header::encode_plain(opcode(kind), payload.len(), &mut frame);
        let header_bytes = frame.len();
        frame.extend_from_slice(payload);
        Self { kind, frame: frame.into(), header_bytes, compressed: OnceLock::new() }
    }

    /// Returns the payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.frame[self.header_bytes..]
    }

    /// Returns the kind of the message.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Returns the length of the uncompressed frame in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.frame.len()
    }

    /// Returns the whole frame for an unmasked connection with the compression `deflate`. Returns `None` if that
    /// cannot be shared.
    pub(super) fn frame(&self, deflate: Option<&mut Outgoing>) -> Option<&Arc<[u8]>> {
        let Some(deflate) = deflate else { return Some(&self.frame) };
        let sharing = deflate.sharing()?;
        let compressed = self
            .compressed
            .get_or_init(|| SharedForm { frame: self.compress(deflate), sharing: sharing.clone() });
        (compressed.sharing == sharing).then(|| compressed.frame.as_ref().unwrap_or(&self.frame))
    }

    fn compress(&self, deflate: &mut Outgoing) -> Option<Arc<[u8]>> {
        let compressed = deflate.compress(self.payload(), true, true)?;
        let payload = compressed.payload();
        let mut frame = Vec::with_capacity(crate::HEADER_BYTES_MAX + payload.len());
        let header = Header::new(opcode(self.kind), payload.len() as u64);
        Header { rsv1: true, ..header }.encode(&mut frame);
        frame.extend_from_slice(payload);
        Some(frame.into())
    }
}

pub(super) fn opcode(kind: MessageKind) -> Opcode {
    match kind {
        MessageKind::Text => Opcode::Text,
        MessageKind::Binary => Opcode::Binary,
    }
}
