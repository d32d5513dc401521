//! The sending half: messages and control frames in, bytes out.
//!
//! Owns the output buffer and what may be sent when. The driver writes [`Sender::transmit`] to its
//! stream and reports how much went.

use super::deflate::Outgoing;
use super::prepared::opcode;
use super::{Output, Prepared};
use crate::{CloseFrame, Header, MaskKey, Message, MessageKind, MisuseError, Opcode};

/// The source of a client's masking keys: unpredictable bytes (RFC 6455 section 10.3).
pub type MaskKeys = Box<dyn FnMut() -> MaskKey + Send>;

/// The sending half of a [`Connection`](crate::Connection).
///
/// Sending never fails for want of room: bytes are queued. [`Sender::queued_bytes`] tells how many, so
/// that the caller can stop reading from its peer, or from its source, while they are stuck.
pub struct Sender {
    /// Nothing while nothing is queued.
    output: Option<Box<Output>>,
    /// The number of bytes of the output that are written already.
    written: usize,
    /// A client's source of keys; a server does not mask.
    mask_keys: Option<MaskKeys>,
    /// The kind of the fragmented message that is being sent.
    fragmented: Option<MessageKind>,
    close_sent: bool,
    /// Compression, where it was negotiated. Boxed: most connections have none.
    deflate: Option<Box<Outgoing>>,
}

impl Sender {
    pub(super) fn new(mask_keys: Option<MaskKeys>) -> Self {
        Self {
            output: None,
            written: 0,
            mask_keys,
            fragmented: None,
            close_sent: false,
            deflate: None,
        }
    }

    pub(super) fn set_deflate(&mut self, deflate: Option<Outgoing>) {
        self.deflate = deflate.map(Box::new);
    }

    /// Queues one whole message in one frame, compressed if that was negotiated and is of use.
    ///
    /// # Errors
    /// [`MisuseError::Closing`] once a close frame is queued; [`MisuseError::MessageUnfinished`]
    /// between the fragments of another message.
    #[inline]
    pub fn send(&mut self, message: Message<'_>) -> Result<(), MisuseError> {
        self.check_open()?;
        if self.fragmented.is_some() {
            return Err(MisuseError::MessageUnfinished);
        }
        let (opcode, payload) = (opcode(message.kind()), message.as_bytes());
        if self.deflate.is_some() || self.mask_keys.is_some() {
            self.data(Header::new(opcode, 0), payload);
        } else {
            let output = self.output.get_or_insert_default();
            Header::encode_plain(opcode, payload.len(), output.own_mut());
            output.extend_from_slice(payload);
        }
        Ok(())
    }

    /// Queues a message that was encoded once for many connections. To the peer no different from
    /// [`send`](Self::send).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_prepared(&mut self, prepared: &Prepared) -> Result<(), MisuseError> {
        self.check_open()?;
        if self.fragmented.is_some() {
            return Err(MisuseError::MessageUnfinished);
        }
        // A client masks every frame with a key of its own.
        let shared = match self.mask_keys {
            Some(_) => None,
            None => prepared.frame(self.deflate.as_deref_mut()),
        };
        match shared {
            Some(frame) => self.output.get_or_insert_default().append_shared(frame),
            None => self.data(Header::new(opcode(prepared.kind()), 0), prepared.payload()),
        }
        Ok(())
    }

    /// Queues one fragment of a message; `fin` marks the last. The caller sees to it that the
    /// fragments of a text message make up UTF-8 together (section 5.6). Where compression was
    /// negotiated a message in fragments is always compressed, except in one fragment.
    ///
    /// # Errors
    /// [`MisuseError::Closing`] once a close frame is queued; [`MisuseError::KindChanged`] when
    /// `kind` is not that of the fragments before.
    pub fn send_fragment(
        &mut self,
        kind: MessageKind,
        payload: &[u8],
        fin: bool,
    ) -> Result<(), MisuseError> {
        self.check_open()?;
        let opcode = match self.fragmented {
            None => opcode(kind),
            Some(begun) if begun == kind => Opcode::Continuation,
            Some(_) => return Err(MisuseError::KindChanged),
        };
        self.fragmented = (!fin).then_some(kind);
        self.data(Header { fin, ..Header::new(opcode, 0) }, payload);
        Ok(())
    }

    /// Queues a ping; it may stand between fragments (section 5.4).
    ///
    /// # Errors
    /// [`MisuseError::Closing`]; [`MisuseError::ControlPayloadTooLong`] above 125 bytes.
    pub fn ping(&mut self, payload: &[u8]) -> Result<(), MisuseError> {
        self.control(Opcode::Ping, payload)
    }

    /// Queues a pong that nobody asked for (section 5.5.3). Pings are answered without it.
    ///
    /// # Errors
    /// As [`ping`](Self::ping).
    pub fn pong(&mut self, payload: &[u8]) -> Result<(), MisuseError> {
        self.control(Opcode::Pong, payload)
    }

    /// Queues a close frame, the last frame of this end. `None` sends one without a code.
    ///
    /// # Errors
    /// [`MisuseError::Closing`] when one is queued already.
    pub fn close(&mut self, frame: Option<&CloseFrame>) -> Result<(), MisuseError> {
        self.check_open()?;
        let payload = frame.map(CloseFrame::encode).unwrap_or_default();
        self.frame(Header::new(Opcode::Close, 0), &payload);
        self.close_sent = true;
        Ok(())
    }

    /// Whether a close frame is queued or sent.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.close_sent
    }

    /// Bytes to be written to the stream next.
    #[must_use]
    pub fn transmit(&self) -> &[u8] {
        self.output.as_ref().map_or(&[], |output| &output.own()[self.written..])
    }

    /// Says that the first `len` bytes of [`transmit`](Self::transmit) are written.
    pub fn transmitted(&mut self, len: usize) {
        let Some(output) = &mut self.output else { return };
        self.written = self.written.saturating_add(len);
        if self.written >= output.len() {
            self.output = None;
            self.written = 0;
        } else if self.written >= output.own().len() / 2 {
            // A slow reader's output may never be empty: what is written goes before that. Only once
            // it is half of all, so that no more is moved than was written.
            output.own_mut().drain(..self.written);
            self.written = 0;
        }
    }

    /// Bytes queued and not written.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.output.as_ref().map_or(0, |output| output.len() - self.written)
    }

    /// Exchanges what is queued for `output` and what is in it. So a driver of many connections can
    /// lend one to whichever it serves, and an idle connection has none. Instead of
    /// [`transmit`](Self::transmit), not beside it.
    #[inline]
    pub fn exchange_output(&mut self, output: &mut Option<Box<Output>>) {
        debug_assert_eq!(self.written, 0, "a driver exchanges the output or transmits it");
        std::mem::swap(&mut self.output, output);
    }

    fn check_open(&self) -> Result<(), MisuseError> {
        if self.close_sent { Err(MisuseError::Closing) } else { Ok(()) }
    }

    fn control(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), MisuseError> {
        self.check_open()?;
        if payload.len() > 125 {
            return Err(MisuseError::ControlPayloadTooLong { len: payload.len() });
        }
        self.frame(Header::new(opcode, 0), payload);
        Ok(())
    }

    /// Queues a frame of a message, compressed if that was negotiated and is of use.
    #[inline(never)]
    fn data(&mut self, header: Header, payload: &[u8]) {
        if self.deflate.is_none() || !self.compressed(header, payload) {
            self.frame(header, payload);
        }
    }

    /// Queues it compressed, unless it is to be sent as it is.
    #[inline(never)]
    fn compressed(&mut self, header: Header, payload: &[u8]) -> bool {
        let is_first = header.opcode != Opcode::Continuation;
        let deflate = self.deflate.as_mut();
        let compressed =
            deflate.and_then(|deflate| deflate.compress(payload, is_first, header.fin));
        let Some(compressed) = compressed else { return false };
        // On the first fragment only (RFC 7692 section 6.1).
        self.frame(Header { rsv1: is_first, ..header }, compressed.payload());
        true
    }

    /// Queues a frame; its length and masking key are filled in here.
    fn frame(&mut self, header: Header, payload: &[u8]) {
        let mask = self.mask_keys.as_mut().map(|next| next());
        let output = self.output.get_or_insert_default();
        let header = Header { mask, payload_len: payload.len() as u64, ..header };
        let Some(key) = mask else {
            header.encode(output.own_mut());
            output.extend_from_slice(payload);
            return;
        };
        let bytes = output.own_mut();
        bytes.reserve(crate::HEADER_BYTES_MAX + payload.len());
        header.encode(bytes);
        let begin = bytes.len();
        bytes.extend_from_slice(payload);
        key.apply(&mut bytes[begin..]);
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender")
            .field("queued_bytes", &self.queued_bytes())
            .field("fragmented", &self.fragmented)
            .field("close_sent", &self.close_sent)
            .field("deflate", &self.deflate)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_is_never_all_written_takes_no_more_memory_than_twice_what_is_queued() {
        let mut sender = Sender::new(None);
        let (mut expected, mut written) = (Vec::new(), Vec::new());
        for i in 0..1000 {
            let payload = [i as u8; 123];
            sender.send(Message::Binary(&payload)).unwrap();
            Header::new(Opcode::Binary, 123).encode(&mut expected);
            expected.extend(payload);
            if i >= 4 {
                written.extend_from_slice(&sender.transmit()[..125]);
                sender.transmitted(125);
            }
            let own = sender.output.as_ref().map_or(0, |output| output.own().len());
            assert!(own <= 2 * sender.queued_bytes(), "{own}");
        }
        written.extend_from_slice(sender.transmit());
        assert_eq!(written, expected);
    }
}
