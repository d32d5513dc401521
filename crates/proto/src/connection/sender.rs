//! The sending half: messages and control frames in, bytes out.
//!
//! Owns the output buffer and the rules of sending. The driver writes [`Sender::transmit`] to its stream and reports
//! how many bytes it wrote.

use super::deflate::Outgoing;
use super::prepared::opcode;
use super::{Output, Prepared};
use crate::{CloseFrame, Header, MaskKey, Message, MessageKind, MisuseError, Opcode};

/// The source of a client's masking keys: unpredictable bytes (RFC 6455 section 10.3).
pub type MaskKeys = Box<dyn FnMut() -> MaskKey + Send>;

/// The sending half of a [`Connection`](crate::Connection).
///
/// Sending never fails for lack of space: frames are queued. The caller checks [`Sender::queued_bytes`], and stops
/// reading from its peer or its source while that is large.
pub struct Sender {
    /// `None` while nothing is queued.
    output: Option<Box<Output>>,
    /// The number of bytes of the output that are written.
    written: usize,
    /// A client's source of keys; a server does not mask.
    mask_keys: Option<MaskKeys>,
    fragmented: Option<MessageKind>,
    close_sent: bool,
    /// Compression, if it was negotiated. Boxed, because most connections have none.
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

    pub(super) fn is_compressed(&self) -> bool {
        self.deflate.is_some()
    }

    pub(super) fn set_deflate(&mut self, deflate: Option<Outgoing>) {
        self.deflate = deflate.map(Box::new);
    }

    /// Queues a whole message in one frame, compressed if that was negotiated and makes it smaller.
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
            self.queue_data(Header::new(opcode, 0), payload);
        } else {
            let output = self.output.get_or_insert_default();
            Header::encode_plain(opcode, payload.len(), output.own_mut());
            output.extend_from_slice(payload);
        }
        Ok(())
    }

    /// Queues a message that was encoded once for many connections. The peer sees no difference to
    /// [`send`](Self::send).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_prepared(&mut self, prepared: &Prepared) -> Result<(), MisuseError> {
        self.check_open()?;
        if self.fragmented.is_some() {
            return Err(MisuseError::MessageUnfinished);
        }
        // A client masks every frame with a new key.
        let shared = match self.mask_keys {
            Some(_) => None,
            None => prepared.frame(self.deflate.as_deref_mut()),
        };
        match shared {
            Some(frame) => self.output.get_or_insert_default().append_shared(frame),
            None => self.queue_data(Header::new(opcode(prepared.kind()), 0), prepared.payload()),
        }
        Ok(())
    }

    /// Queues a fragment of a message; `fin` marks the last one. The caller ensures that the fragments of a text
    /// message are UTF-8 together (section 5.6). If compression was negotiated, a message in several fragments is
    /// always compressed.
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
        self.queue_data(Header { fin, ..Header::new(opcode, 0) }, payload);
        Ok(())
    }

    /// Queues a ping, which is allowed between fragments (section 5.4).
    ///
    /// # Errors
    /// [`MisuseError::Closing`]; [`MisuseError::ControlPayloadTooLong`] above 125 bytes.
    pub fn ping(&mut self, payload: &[u8]) -> Result<(), MisuseError> {
        self.control(Opcode::Ping, payload)
    }

    /// Queues an unsolicited pong (section 5.5.3). Pings are answered without it.
    ///
    /// # Errors
    /// As [`ping`](Self::ping).
    pub fn pong(&mut self, payload: &[u8]) -> Result<(), MisuseError> {
        self.control(Opcode::Pong, payload)
    }

    /// Queues a close frame, which is the last frame of this end. `None` sends one without a code.
    ///
    /// # Errors
    /// [`MisuseError::Closing`] if one is queued already.
    pub fn close(&mut self, frame: Option<&CloseFrame>) -> Result<(), MisuseError> {
        self.check_open()?;
        let payload = frame.map(CloseFrame::encode).unwrap_or_default();
        self.queue_frame(Header::new(Opcode::Close, 0), &payload);
        self.close_sent = true;
        Ok(())
    }

    /// Returns true if a close frame is queued or sent.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.close_sent
    }

    /// Returns the next bytes to write to the stream.
    #[must_use]
    pub fn transmit(&self) -> &[u8] {
        self.output.as_ref().map_or(&[], |output| &output.own()[self.written..])
    }

    /// Reports that the first `len` bytes of [`transmit`](Self::transmit) are written.
    pub fn transmitted(&mut self, len: usize) {
        let Some(output) = &mut self.output else { return };
        self.written = self.written.saturating_add(len);
        if self.written >= output.len() {
            self.output = None;
            self.written = 0;
        } else if self.written >= output.own().len() / 2 {
            // With a slow reader the output may never be empty, so written bytes are removed before that. They must
            // be half of all, so that no more bytes are moved than were written.
            output.own_mut().drain(..self.written);
            self.written = 0;
        }
    }

    /// Returns the number of bytes queued and not written.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.output.as_ref().map_or(0, |output| output.len() - self.written)
    }

    /// Exchanges the queued output for `output`. A driver of many connections can lend one output to the connection
    /// that it serves, and an idle connection has none. Use this instead of [`transmit`](Self::transmit), not
    /// together with it.
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
        self.queue_frame(Header::new(opcode, 0), payload);
        Ok(())
    }

    /// Queues a frame of a message, compressed if that was negotiated and makes it smaller.
    #[inline(never)]
    fn queue_data(&mut self, header: Header, payload: &[u8]) {
        if self.deflate.is_none() || !self.queue_compressed(header, payload) {
            self.queue_frame(header, payload);
        }
    }

    /// Queues the frame compressed; returns false if it is to be sent uncompressed.
    #[inline(never)]
    fn queue_compressed(&mut self, header: Header, payload: &[u8]) -> bool {
        let is_first = header.opcode != Opcode::Continuation;
        let deflate = self.deflate.as_mut();
        let compressed =
            deflate.and_then(|deflate| deflate.compress(payload, is_first, header.fin));
        let Some(compressed) = compressed else { return false };
        // On the first fragment only (RFC 7692 section 6.1).
        self.queue_frame(Header { rsv1: is_first, ..header }, compressed.payload());
        true
    }

    /// Queues a frame, with its length and masking key.
    fn queue_frame(&mut self, header: Header, payload: &[u8]) {
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
