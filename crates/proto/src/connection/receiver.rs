//! The receiving half: bytes in, whole messages and control frames out.
//!
//! A frame that lies whole in the input is unmasked there and handed out from there. Only what was
//! cut by the end of the input, or is one fragment of several, is copied.

use std::ops::Range;

use crate::utf8::Utf8Checker;
use crate::{Config, HEADER_BYTES_MAX, Header, MessageKind, Opcode, ProtocolError, Role};

/// What one step through the input came upon, and where its payload lies.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Step {
    Message(MessageKind, Place),
    Control(Opcode, Place),
}

/// Where a payload lies, unmasked.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// In the input just given.
    Input(Range<usize>),
    /// In the receiver, which collected it: [`Receiver::message`] or [`Receiver::control`].
    Collected,
}

#[derive(Debug)]
pub(super) struct Receiver {
    role: Role,
    /// A header that was cut by the end of the input.
    cut_header: [u8; HEADER_BYTES_MAX],
    cut_header_len: u8,
    /// The frame whose payload is still coming.
    frame: Option<Payload>,
    /// The message whose fragments or bytes are still coming. Boxed: an idle connection has none.
    message: Option<Box<Assembly>>,
    /// Payload of a control frame that was cut by the end of the input.
    control: Vec<u8>,
    /// The last assembly was handed out and can be forgotten.
    message_taken: bool,
}

/// A frame whose payload has not come whole.
#[derive(Debug)]
struct Payload {
    header: Header,
    received: u64,
}

/// A message in the making.
#[derive(Debug)]
struct Assembly {
    kind: MessageKind,
    bytes: Vec<u8>,
    utf8: Utf8Checker,
    fragments: u32,
}

impl Receiver {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            cut_header: [0; HEADER_BYTES_MAX],
            cut_header_len: 0,
            frame: None,
            message: None,
            control: Vec::new(),
            message_taken: false,
        }
    }

    /// Goes through `input` up to and including the next message or control frame. Returns how
    /// much of it that took: all of it when there is no step to report.
    pub(super) fn step(
        &mut self,
        config: &Config,
        input: &mut [u8],
    ) -> (usize, Result<Option<Step>, ProtocolError>) {
        if std::mem::take(&mut self.message_taken) {
            self.message = None;
        }
        let mut at = 0;
        loop {
            let frame = match self.frame.take() {
                Some(frame) => frame,
                None => match self.next_header(&input[at..]) {
                    Err(error) => return (input.len(), Err(error)),
                    Ok((used, None)) => return (at + used, Ok(None)),
                    Ok((used, Some(header))) => {
                        at += used;
                        if let Err(error) = self.begin_frame(config, &header) {
                            return (input.len(), Err(error));
                        }
                        Payload { header, received: 0 }
                    }
                },
            };
            let rest = frame.header.payload_len - frame.received;
            let available = input.len() - at;
            let take = usize::try_from(rest).unwrap_or(usize::MAX).min(available);
            let range = at..at + take;
            let piece = &mut input[range.clone()];
            at += take;
            if let Some(key) = frame.header.mask {
                key.rotated(frame.received).apply(piece);
            }
            let is_whole = take as u64 == rest;
            let in_place = is_whole && frame.received == 0;
            let received = Payload { received: frame.received + take as u64, ..frame };
            let step = if received.header.opcode.is_control() {
                self.control_piece(&received, piece, is_whole, in_place.then_some(range))
            } else {
                match self.data_piece(&received, piece, is_whole, in_place.then_some(range)) {
                    Ok(step) => step,
                    Err(error) => return (input.len(), Err(error)),
                }
            };
            if !is_whole {
                self.frame = Some(received);
                return (at, Ok(None));
            }
            if step.is_some() {
                return (at, Ok(step));
            }
        }
    }

    /// The payload of the message that was collected.
    pub(super) fn take_message(&mut self) -> &[u8] {
        self.message_taken = true;
        self.message.as_ref().map_or(&[], |message| &message.bytes)
    }

    /// The payload of the control frame that was collected.
    pub(super) fn control(&self) -> &[u8] {
        &self.control
    }

    /// Reads a header, one that was cut before included.
    fn next_header(&mut self, input: &[u8]) -> Result<(usize, Option<Header>), ProtocolError> {
        if self.cut_header_len == 0
            && let Some((header, used)) = Header::decode(input)?
        {
            return Ok((used, Some(header)));
        }
        let had = usize::from(self.cut_header_len);
        let taken = input.len().min(HEADER_BYTES_MAX - had);
        self.cut_header[had..had + taken].copy_from_slice(&input[..taken]);
        let Some((header, used)) = Header::decode(&self.cut_header[..had + taken])? else {
            self.cut_header_len = (had + taken) as u8;
            return Ok((taken, None));
        };
        self.cut_header_len = 0;
        Ok((used - had, Some(header)))
    }

    /// Checks a header against the state of the connection and its limits.
    fn begin_frame(&mut self, config: &Config, header: &Header) -> Result<(), ProtocolError> {
        if header.rsv1 {
            return Err(ProtocolError::ReservedBits { bits: 0b100 });
        }
        match (self.role.receives_masked(), header.mask) {
            (true, None) => return Err(ProtocolError::MaskMissing),
            (false, Some(_)) => return Err(ProtocolError::MaskUnexpected),
            _ => {}
        }
        if header.opcode.is_control() {
            self.control.clear();
            return Ok(());
        }
        let (len, limit) = (header.payload_len, config.frame_bytes_max);
        if len > limit {
            return Err(ProtocolError::FrameTooBig { len, limit });
        }
        let before = match (&mut self.message, header.opcode) {
            (None, Opcode::Continuation) => return Err(ProtocolError::ContinuationUnexpected),
            (None, _) => 0,
            (Some(message), Opcode::Continuation) => {
                message.fragments += 1;
                if message.fragments > config.fragments_max {
                    return Err(ProtocolError::TooManyFragments { limit: config.fragments_max });
                }
                message.bytes.len() as u64
            }
            (Some(_), opcode) => return Err(ProtocolError::MessageInterrupted { opcode }),
        };
        let (len, limit) = (before.saturating_add(len), config.message_bytes_max);
        if len > limit {
            return Err(ProtocolError::MessageTooBig { len, limit });
        }
        Ok(())
    }

    fn control_piece(
        &mut self,
        frame: &Payload,
        piece: &[u8],
        is_whole: bool,
        in_place: Option<Range<usize>>,
    ) -> Option<Step> {
        let opcode = frame.header.opcode;
        if let Some(range) = in_place {
            return Some(Step::Control(opcode, Place::Input(range)));
        }
        self.control.extend_from_slice(piece);
        is_whole.then_some(Step::Control(opcode, Place::Collected))
    }

    fn data_piece(
        &mut self,
        frame: &Payload,
        piece: &[u8],
        is_whole: bool,
        in_place: Option<Range<usize>>,
    ) -> Result<Option<Step>, ProtocolError> {
        let header = &frame.header;
        let kind = match header.opcode {
            Opcode::Binary => MessageKind::Binary,
            _ => MessageKind::Text, // a continuation finds its kind in the assembly
        };
        if let (Some(range), None, true) = (in_place, &self.message, header.fin) {
            return Ok(Some(Step::Message(kind, Place::Input(range))));
        }
        let message = self.message.get_or_insert_with(|| Box::new(Assembly::new(kind)));
        message.push(frame, piece)?;
        if !(header.fin && is_whole) {
            return Ok(None);
        }
        message.finish()?;
        Ok(Some(Step::Message(message.kind, Place::Collected)))
    }
}

impl Assembly {
    fn new(kind: MessageKind) -> Self {
        Self { kind, bytes: Vec::new(), utf8: Utf8Checker::default(), fragments: 1 }
    }

    /// Appends a piece of a frame that was announced and found within the limits.
    fn push(&mut self, frame: &Payload, piece: &[u8]) -> Result<(), ProtocolError> {
        if self.kind == MessageKind::Text {
            self.utf8.push(piece).map_err(|_| ProtocolError::TextNotUtf8)?;
        }
        if frame.received == piece.len() as u64 {
            // The frame's first piece: room for all of it at once, but no more than a first
            // megabyte for a peer that only announces.
            let announced = usize::try_from(frame.header.payload_len).unwrap_or(usize::MAX);
            self.bytes.reserve(announced.min(1 << 20).max(piece.len()));
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ProtocolError> {
        match self.kind {
            MessageKind::Text => self.utf8.finish().map_err(|_| ProtocolError::TextNotUtf8),
            MessageKind::Binary => Ok(()),
        }
    }
}
