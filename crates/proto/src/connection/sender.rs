//! The sending half: messages and control frames in, bytes out.
//!
//! Owns the output buffer and what may be sent when. The driver writes [`Sender::transmit`] to its
//! stream and reports how much went.

use crate::{CloseFrame, Header, MaskKey, Message, MessageKind, MisuseError, Opcode};

/// Where a client's masking keys come from: unpredictable bytes (RFC 6455 section 10.3).
pub type MaskKeys = Box<dyn FnMut() -> MaskKey + Send>;

/// The sending half of a [`Connection`](crate::Connection).
///
/// Sending never fails for want of room: bytes are queued. [`Sender::queued_bytes`] tells how many, so
/// that the caller can stop reading from its peer, or from its source, while they are stuck.
pub struct Sender {
    pub(super) output: Vec<u8>,
    /// How much of `output` is written already.
    written: usize,
    /// A client's source of keys; a server does not mask.
    mask_keys: Option<MaskKeys>,
    /// The kind of the fragmented message that is being sent.
    fragmented: Option<MessageKind>,
    close_sent: bool,
}

impl Sender {
    /// Output kept allocated once everything is written, in bytes.
    pub(super) const KEPT_BYTES_MAX: usize = 4096;

    pub(super) fn new(mask_keys: Option<MaskKeys>) -> Self {
        Self { output: Vec::new(), written: 0, mask_keys, fragmented: None, close_sent: false }
    }

    /// Queues one whole message in one frame.
    ///
    /// # Errors
    /// [`MisuseError::Closing`] once a close frame is queued; [`MisuseError::MessageUnfinished`]
    /// between the fragments of another message.
    pub fn send(&mut self, message: Message<'_>) -> Result<(), MisuseError> {
        self.check_open()?;
        if self.fragmented.is_some() {
            return Err(MisuseError::MessageUnfinished);
        }
        let header = Header::new(opcode(message.kind()), message.as_bytes().len() as u64);
        self.frame(header, message.as_bytes());
        Ok(())
    }

    /// Queues one fragment of a message; `fin` marks the last. The caller sees to it that the
    /// fragments of a text message make up UTF-8 together (section 5.6).
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
        self.frame(Header { fin, ..Header::new(opcode, payload.len() as u64) }, payload);
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
        self.frame(Header::new(Opcode::Close, payload.len() as u64), &payload);
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
        &self.output[self.written..]
    }

    /// Says that the first `len` bytes of [`transmit`](Self::transmit) are written.
    pub fn transmitted(&mut self, len: usize) {
        self.written = (self.written + len).min(self.output.len());
        if self.written == self.output.len() {
            self.written = 0;
            self.output.clear();
            self.output.shrink_to(Self::KEPT_BYTES_MAX);
        }
    }

    /// Bytes queued and not written.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.output.len() - self.written
    }

    /// Exchanges what is queued, and the buffer it is in, for `buffer` and what is in it. So a
    /// driver of many connections can lend one buffer to whichever it serves, and an idle
    /// connection has none.
    pub fn exchange_output(&mut self, buffer: &mut Vec<u8>) {
        if self.written > 0 {
            self.output.drain(..self.written);
            self.written = 0;
        }
        std::mem::swap(&mut self.output, buffer);
    }

    fn check_open(&self) -> Result<(), MisuseError> {
        if self.close_sent { Err(MisuseError::Closing) } else { Ok(()) }
    }

    fn control(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), MisuseError> {
        self.check_open()?;
        if payload.len() > 125 {
            return Err(MisuseError::ControlPayloadTooLong { len: payload.len() });
        }
        self.frame(Header::new(opcode, payload.len() as u64), payload);
        Ok(())
    }

    fn frame(&mut self, header: Header, payload: &[u8]) {
        let mask = self.mask_keys.as_mut().map(|next| next());
        self.output.reserve(crate::HEADER_BYTES_MAX + payload.len());
        Header { mask, ..header }.encode(&mut self.output);
        let begin = self.output.len();
        self.output.extend_from_slice(payload);
        if let Some(key) = mask {
            key.apply(&mut self.output[begin..]);
        }
    }
}

fn opcode(kind: MessageKind) -> Opcode {
    match kind {
        MessageKind::Text => Opcode::Text,
        MessageKind::Binary => Opcode::Binary,
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender")
            .field("queued_bytes", &self.queued_bytes())
            .field("fragmented", &self.fragmented)
            .field("close_sent", &self.close_sent)
            .finish_non_exhaustive()
    }
}
