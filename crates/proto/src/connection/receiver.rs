//! The receiving half: bytes in, whole messages and control frames out.
//!
//! A frame that lies complete in the input is unmasked and returned there. Only a frame cut by the end of the input,
//! a fragment or a compressed message is assembled here. Compressed bytes are never kept: each piece is inflated as
//! it arrives, by at most `INFLATED_BYTES_MAX` at once.

mod assembly;
mod payload;
mod whole;

use std::ops::Range;

use self::assembly::{ANNOUNCED_BYTES_MAX, Assembly, check_text};
use self::payload::Payload;
use super::deflate::Incoming;
use crate::frame::Control;
use crate::{Config, HEADER_BYTES_MAX, Header, MessageKind, Opcode, ProtocolError, Role, Time};

/// The result of one step through the input, and the place of its payload.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Step {
    Message(MessageKind, PayloadPlace),
    /// A part of a message that is returned as it arrives.
    Piece {
        kind: MessageKind,
        place: PayloadPlace,
        is_first: bool,
        is_last: bool,
    },
    Control(Control, PayloadPlace),
}

/// The most compressed bytes considered for one piece. Unused bytes are masked again.
const DEFLATED_BYTES_MAX: usize = 16 << 10;
/// A shorter rest is not worth a read of its own.
const REST_BYTES_MIN: usize = 64 << 10;

/// A buffer for the rest of a large frame, which needs no copy: see [`Connection::rest`](super::Connection::rest).
#[derive(Debug)]
pub struct Rest<'a> {
    /// The message so far. The next bytes are appended here; there is some free capacity.
    pub bytes: &'a mut Vec<u8>,
    /// The most bytes to append.
    pub len: usize,
}

#[derive(Debug, Eq, PartialEq)]
pub(super) enum PayloadPlace {
    /// In the input of this call.
    Input(Range<usize>),
    /// In the receiver, which collected the payload: [`Receiver::message`] or [`Receiver::control`].
    Collected,
}

#[derive(Debug)]
pub(super) struct Receiver {
    role: Role,
    /// The frame that the end of the input has cut. Boxed, because an idle connection has none.
    cut: Option<Box<Cut>>,
    /// The message that is incomplete. Boxed, because an idle connection has none.
    message: Option<Box<Assembly>>,
    /// The bytes of the assembly that were returned and can be freed.
    taken: Taken,
    /// True if incomplete messages are returned in pieces.
    takes_pieces: bool,
    /// True if a step ends after inflating much, though there is nothing to report.
    pauses: bool,
    /// Compression, if it was negotiated. Boxed, because most connections have none.
    deflate: Option<Box<Incoming>>,
}

/// The bytes that were returned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Taken {
    Nothing,
    Piece,
    Message,
}

/// A frame that arrived in several reads.
#[derive(Debug, Default)]
struct Cut {
    header: [u8; HEADER_BYTES_MAX],
    header_len: u8,
    /// The frame whose payload is arriving, once its header is complete.
    frame: Option<Payload>,
    /// The payload of a control frame, as far as it has arrived.
    control: Vec<u8>,
}

impl Receiver {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            cut: None,
            message: None,
            taken: Taken::Nothing,
            takes_pieces: false,
            pauses: false,
            deflate: None,
        }
    }

    pub(super) fn set_deflate(&mut self, deflate: Incoming) {
        self.deflate = Some(Box::new(deflate));
    }

    pub(super) fn is_amid_message(&self) -> bool {
        self.taken != Taken::Message && self.message.is_some()
    }

    pub(super) fn message_began_at(&self) -> Option<Time> {
        let message = self.message.as_ref().filter(|_| self.taken != Taken::Message);
        message.map(|message| message.began_at)
    }

    /// Returns the number of bytes kept of an incomplete message.
    pub(super) fn held_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |message| message.held_bytes())
    }

    /// Discards the message, since nothing more is expected.
    pub(super) fn abandon(&mut self) {
        (self.message, self.cut, self.taken) = (None, None, Taken::Nothing);
    }

    pub(super) fn take_pieces(&mut self) {
        self.takes_pieces = true;
    }

    pub(super) fn pause(&mut self) {
        self.pauses = true;
    }

    /// Frees the memory of the last collected message or piece, which is no longer borrowed.
    #[inline]
    pub(super) fn forget_message(&mut self) {
        if self.taken != Taken::Nothing {
            self.forget();
        }
    }

    #[inline(never)]
    fn forget(&mut self) {
        match (std::mem::replace(&mut self.taken, Taken::Nothing), &mut self.message) {
            (Taken::Piece, Some(message)) => message.bytes = Vec::new(),
            _ => self.message = None,
        }
    }

    /// Goes through `input` up to and including the next message or control frame. Returns the number of bytes
    /// consumed: all of them when there is nothing to report.
    #[inline]
    pub(super) fn step(
        &mut self,
        config: &Config,
        now: Time,
        input: &mut [u8],
    ) -> (usize, Result<Option<Step>, ProtocolError>) {
        self.forget_message();
        match self.whole_control(input) {
            Some((consumed, step)) => (consumed, Ok(Some(step))),
            None => self.step_through(config, now, input),
        }
    }

    /// Does the same for input that is cut, compressed, part of a message, or invalid.
    #[inline(never)]
    fn step_through(
        &mut self,
        config: &Config,
        now: Time,
        input: &mut [u8],
    ) -> (usize, Result<Option<Step>, ProtocolError>) {
        let mut at = 0;
        match self.step_from(config, now, input, &mut at) {
            Ok(step) => (at, Ok(step)),
            Err(error) => (input.len(), Err(error)),
        }
    }

    /// Continues through the input from `at`, which it moves, up to the next result.
    fn step_from(
        &mut self,
        config: &Config,
        now: Time,
        input: &mut [u8],
        at: &mut usize,
    ) -> Result<Option<Step>, ProtocolError> {
        loop {
            let frame = match self.cut.as_mut().and_then(|cut| cut.frame.take()) {
                Some(frame) => frame,
                None => {
                    let (used, header) = self.next_header(&input[*at..])?;
                    *at += used;
                    let Some(header) = header else { return Ok(None) };
                    self.begin_frame(config, &header)?;
                    Payload { header, received: 0 }
                }
            };
            if self.is_compressed(&frame.header) {
                let (used, frame, step) = self.inflate(config, now, frame, &mut input[*at..])?;
                *at += used;
                let is_whole = frame.received == frame.header.payload_len;
                if is_whole {
                    self.cut = None;
                } else {
                    self.cut.get_or_insert_default().frame = Some(frame);
                }
                if step.is_some() || self.pauses || (!is_whole && *at == input.len()) {
                    return Ok(step);
                }
                continue;
            }
            let rest = frame.header.payload_len - frame.received;
            let available = input.len() - *at;
            let take = usize::try_from(rest).unwrap_or(usize::MAX).min(available);
            let range = *at..*at + take;
            let piece = &mut input[range.clone()];
            *at += take;
            if let Some(key) = frame.header.mask {
                key.rotated(frame.received).apply(piece);
            }
            let is_whole = take as u64 == rest;
            let received = Payload { received: frame.received + take as u64, ..frame };
            let in_place = is_whole && frame.received == 0;
            let control = received.header.opcode.control();
            let step = match control {
                Some(control) => {
                    self.control_piece(control, piece, is_whole, in_place.then_some(range))
                }
                None => self.data_piece(config, now, &received, piece, range)?,
            };
            if !is_whole {
                self.cut.get_or_insert_default().frame = Some(received);
                return Ok(step);
            }
            if control.is_none() {
                self.cut = None; // the cut frame is complete, and an idle connection has none
            }
            if step.is_some() {
                return Ok(step);
            }
        }
    }

    /// Returns the buffer for the rest of a large frame.
    pub(super) fn rest(&mut self) -> Option<Rest<'_>> {
        let frame = self.cut.as_ref()?.frame.as_ref()?;
        let message = self.message.as_mut()?;
        let is_plain = message.inflater.is_none() && !frame.header.opcode.is_control();
        let len = usize::try_from(frame.header.payload_len - frame.received).ok()?;
        if !is_plain || self.takes_pieces || len < REST_BYTES_MIN {
            return None;
        }
        // No more at once than has arrived already, in case the peer only announces it.
        message.bytes.reserve(len.min(ANNOUNCED_BYTES_MAX.max(message.bytes.len())));
        Some(Rest { bytes: &mut message.bytes, len })
    }

    /// Takes bytes that were added to the rest of a frame, from `begin` on.
    pub(super) fn rest_received(
        &mut self,
        config: &Config,
        begin: usize,
    ) -> Result<Option<Step>, ProtocolError> {
        let (Some(cut), Some(message)) = (&mut self.cut, &mut self.message) else {
            return Ok(None);
        };
        let Some(frame) = &mut cut.frame else { return Ok(None) };
        let piece = message.bytes.get_mut(begin..).unwrap_or_default();
        if let Some(key) = frame.header.mask {
            key.rotated(frame.received).apply(piece);
        }
        check_text(message.kind, &mut message.utf8, piece)?;
        message.len += piece.len() as u64;
        frame.received += piece.len() as u64;
        if frame.received < frame.header.payload_len {
            return Ok(None);
        }
        let is_last = frame.header.fin;
        self.cut = None;
        if !is_last {
            return Ok(None);
        }
        message.finish(config)?;
        Ok(Some(Step::Message(message.kind, PayloadPlace::Collected)))
    }

    pub(super) fn take_message(&mut self) -> &[u8] {
        self.taken = Taken::Message;
        self.message.as_ref().map_or(&[], |message| &message.bytes)
    }

    /// Returns the inflated piece of a message.
    pub(super) fn take_piece(&mut self, is_last: bool) -> &[u8] {
        self.taken = if is_last { Taken::Message } else { Taken::Piece };
        self.message.as_ref().map_or(&[], |message| &message.bytes)
    }

    #[cfg(test)]
    pub(super) fn collected_len(&self) -> usize {
        self.message.as_ref().map_or(0, |message| message.bytes.len())
    }

    #[cfg(test)]
    pub(super) fn collected_capacity(&self) -> usize {
        self.message.as_ref().map_or(0, |message| message.bytes.capacity())
    }

    /// Returns the payload of the collected control frame.
    pub(super) fn control(&self) -> &[u8] {
        self.cut.as_ref().map_or(&[], |cut| &cut.control)
    }

    /// Reads a header, including one that was cut before.
    fn next_header(&mut self, input: &[u8]) -> Result<(usize, Option<Header>), ProtocolError> {
        if self.cut.as_ref().is_none_or(|cut| cut.header_len == 0) {
            // The cut frame is complete.
            self.cut = None;
            if let Some((header, used)) = Header::decode(input)? {
                return Ok((used, Some(header)));
            }
            if input.is_empty() {
                return Ok((0, None));
            }
        }
        let cut = self.cut.get_or_insert_default();
        let had = usize::from(cut.header_len);
        let taken = input.len().min(HEADER_BYTES_MAX - had);
        cut.header[had..had + taken].copy_from_slice(&input[..taken]);
        let Some((header, used)) = Header::decode(&cut.header[..had + taken])? else {
            cut.header_len = (had + taken) as u8;
            return Ok((taken, None));
        };
        cut.header_len = 0;
        Ok((used - had, Some(header)))
    }

    /// Checks a header against the state of the connection and its limits.
    fn begin_frame(&mut self, config: &Config, header: &Header) -> Result<(), ProtocolError> {
        if header.rsv1 && !self.may_be_compressed(header) {
            return Err(ProtocolError::ReservedBits { bits: 0b100 });
        }
        match (self.role.receives_masked(), header.mask) {
            (true, None) => return Err(ProtocolError::MaskMissing),
            (false, Some(_)) => return Err(ProtocolError::MaskUnexpected),
            _ => {}
        }
        if header.opcode.is_control() {
            return Ok(());
        }
        let (len, limit) = (header.payload_len, config.frame_bytes_max);
        if len > limit {
            return Err(ProtocolError::FrameTooBig { len, limit });
        }
        let before = match (&mut self.message, header.opcode) {
            (None, Opcode::Continuation) => return Err(ProtocolError::ContinuationUnexpected),
            // The length of a compressed message is known only after inflating.
            (None, _) if header.rsv1 => return Ok(()),
            (None, _) => 0,
            (Some(message), Opcode::Continuation) => {
                message.fragments += 1;
                if message.fragments > config.fragments_max {
                    return Err(ProtocolError::TooManyFragments { limit: config.fragments_max });
                }
                if message.inflater.is_some() {
                    return Ok(());
                }
                message.len
            }
            (Some(_), opcode) => return Err(ProtocolError::MessageInterrupted { opcode }),
        };
        let (len, limit) = (before.saturating_add(len), config.message_bytes_max);
        if len > limit {
            return Err(ProtocolError::MessageTooBig { len, limit });
        }
        Ok(())
    }

    /// Checks RFC 7692 section 6.1: only the first frame of a message may say that the message is compressed.
    fn may_be_compressed(&self, header: &Header) -> bool {
        self.deflate.is_some() && matches!(header.opcode, Opcode::Text | Opcode::Binary)
    }

    /// Returns true if this frame's payload is compressed.
    fn is_compressed(&self, header: &Header) -> bool {
        match &self.message {
            _ if header.opcode.is_control() => false,
            Some(message) => message.inflater.is_some(),
            None => header.rsv1,
        }
    }

    /// Inflates the payload of a frame, up to a limit. Returns the number of bytes consumed, the frame as far as it
    /// has arrived, and the result.
    ///
    /// Even if all input is consumed, there may be more to inflate. The last byte is then left over, so that this is
    /// called again.
    #[inline(never)]
    fn inflate(
        &mut self,
        config: &Config,
        now: Time,
        frame: Payload,
        input: &mut [u8],
    ) -> Result<(usize, Payload, Option<Step>), ProtocolError> {
        let Payload { header, received } = frame;
        let deflate = self.deflate.as_mut();
        let message = self.message.get_or_insert_with(|| {
            let kind = match header.opcode {
                Opcode::Binary => MessageKind::Binary,
                _ => MessageKind::Text,
            };
            Box::new(Assembly::new(kind, now, deflate.map(|deflate| deflate.begin())))
        });
        let rest = usize::try_from(header.payload_len - received).unwrap_or(usize::MAX);
        let available = rest.min(input.len()).min(DEFLATED_BYTES_MAX);
        let piece = &mut input[..available];
        mask(&header, received, piece);
        let used = message.inflate(config, piece)?;
        mask(&header, received + used as u64, &mut piece[used..]);
        let frame = Payload { header, received: received + used as u64 };
        let (kind, is_first) = (message.kind, !message.has_begun);
        let is_last = header.fin && frame.received == header.payload_len;
        if is_last {
            message.finish(config)?;
            if let (Some(deflate), Some(inflater)) = (&mut self.deflate, message.inflater.take()) {
                deflate.end(inflater);
            }
        }
        let comes_whole = is_first && is_last;
        let step = if is_last && (comes_whole || !self.takes_pieces) {
            Some(Step::Message(kind, PayloadPlace::Collected))
        } else if self.takes_pieces && (is_last || !message.bytes.is_empty()) {
            message.has_begun = true;
            Some(Step::Piece { kind, place: PayloadPlace::Collected, is_first, is_last })
        } else {
            if self.takes_pieces {
                message.bytes = Vec::new(); // the memory was reserved for bytes that did not come
            }
            None
        };
        Ok((used, frame, step))
    }

    fn control_piece(
        &mut self,
        control: Control,
        piece: &[u8],
        is_whole: bool,
        in_place: Option<Range<usize>>,
    ) -> Option<Step> {
        if let Some(range) = in_place {
            return Some(Step::Control(control, PayloadPlace::Input(range)));
        }
        self.cut.get_or_insert_default().control.extend_from_slice(piece);
        is_whole.then_some(Step::Control(control, PayloadPlace::Collected))
    }

    fn data_piece(
        &mut self,
        config: &Config,
        now: Time,
        frame: &Payload,
        piece: &[u8],
        range: Range<usize>,
    ) -> Result<Option<Step>, ProtocolError> {
        let header = &frame.header;
        let in_place = header.payload_len == piece.len() as u64;
        let kind = match header.opcode {
            Opcode::Binary => MessageKind::Binary,
            _ => MessageKind::Text, // the assembly knows the kind of a continuation
        };
        if in_place && self.message.is_none() && header.fin && !header.rsv1 {
            return Ok(Some(Step::Message(kind, PayloadPlace::Input(range))));
        }
        self.collect(config, now, kind, frame, piece, range)
    }

    /// Adds to the message that is being assembled. Not inlined, because most messages take the path without it.
    #[inline(never)]
    fn collect(
        &mut self,
        config: &Config,
        now: Time,
        kind: MessageKind,
        frame: &Payload,
        piece: &[u8],
        range: Range<usize>,
    ) -> Result<Option<Step>, ProtocolError> {
        let header = &frame.header;
        let is_first = self.message.is_none();
        let message = self.message.get_or_insert_with(|| Box::new(Assembly::new(kind, now, None)));
        let is_last = header.fin && frame.received == header.payload_len;
        if self.takes_pieces {
            check_text(message.kind, &mut message.utf8, piece)?;
            message.len += piece.len() as u64;
            let kind = message.kind;
            if is_last {
                message.finish(config)?;
                self.message = None;
            }
            let place = PayloadPlace::Input(range);
            return Ok(Some(Step::Piece { kind, place, is_first, is_last }));
        }
        message.push(frame, piece)?;
        if !is_last {
            return Ok(None);
        }
        message.finish(config)?;
        Ok(Some(Step::Message(message.kind, PayloadPlace::Collected)))
    }
}

/// Masks or unmasks a piece of a frame's payload that begins `begin` bytes into the payload.
fn mask(header: &Header, begin: u64, piece: &mut [u8]) {
    if let Some(key) = header.mask {
        key.rotated(begin).apply(piece);
    }
}
