//! The receiving half: bytes in, whole messages and control frames out.
//!
//! A frame that lies whole in the input is unmasked there and handed out from there. Only what was
//! cut by the end of the input, is one fragment of several or is compressed is put together here;
//! compressed bytes are never kept, each piece is inflated as it comes, and never by more than
//! `INFLATED_BYTES_MAX` at once.

mod assembly;
mod payload;
mod whole;

use std::ops::Range;

use self::assembly::{ANNOUNCED_BYTES_MAX, Assembly, check_text};
use self::payload::Payload;
use super::deflate::Incoming;
use crate::frame::Control;
use crate::{Config, HEADER_BYTES_MAX, Header, MessageKind, Opcode, ProtocolError, Role, Time};

/// The result of one step through the input, and where its payload lies.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Step {
    Message(MessageKind, Place),
    /// Part of a message that is taken as it comes.
    Piece {
        kind: MessageKind,
        place: Place,
        is_first: bool,
        is_last: bool,
    },
    Control(Control, Place),
}

/// Most compressed bytes that are looked at to inflate a piece. Those that are not used are masked again.
const DEFLATED_BYTES_MAX: usize = 16 << 10;
/// A shorter rest is not worth a read of its own.
const REST_BYTES_MIN: usize = 64 << 10;

/// The buffer that takes the rest of a large frame without a copy: see [`Connection::rest`](super::Connection::rest).
#[derive(Debug)]
pub struct Rest<'a> {
    /// The message so far. The next bytes are to be appended; there is room for some.
    pub bytes: &'a mut Vec<u8>,
    /// At most so many.
    pub len: usize,
}

/// The place of a payload, which is unmasked.
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
    /// The frame of which the input's end cut something off. Boxed: an idle connection has none.
    cut: Option<Box<Cut>>,
    /// The message whose fragments or bytes are still coming. Boxed: an idle connection has none.
    message: Option<Box<Assembly>>,
    /// The bytes of the assembly that were handed out and can be forgotten.
    taken: Taken,
    /// Messages that did not come whole are handed out as they come.
    takes_pieces: bool,
    /// Steps end when much was inflated, though there is nothing to report.
    pauses: bool,
    /// Compression, where it was negotiated. Boxed: most connections have none.
    deflate: Option<Box<Incoming>>,
}

/// The bytes that were handed out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Taken {
    Nothing,
    Piece,
    Message,
}

/// A frame that did not come whole, or did so only now.
#[derive(Debug, Default)]
struct Cut {
    header: [u8; HEADER_BYTES_MAX],
    header_len: u8,
    /// Once its header is whole: the frame whose payload is still coming.
    frame: Option<Payload>,
    /// The payload of a control frame, as far as it came.
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

    /// Whether a message has begun and not ended.
    pub(super) fn is_amid_message(&self) -> bool {
        self.taken != Taken::Message && self.message.is_some()
    }

    /// The time at which the message began that has not ended.
    pub(super) fn message_began_at(&self) -> Option<Time> {
        let message = self.message.as_ref().filter(|_| self.taken != Taken::Message);
        message.map(|message| message.began_at)
    }

    /// The bytes kept of a message that has not come whole.
    pub(super) fn held_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |message| message.held_bytes())
    }

    /// Forgets it, for nothing more is expected.
    pub(super) fn abandon(&mut self) {
        (self.message, self.cut, self.taken) = (None, None, Taken::Nothing);
    }

    pub(super) fn take_pieces(&mut self) {
        self.takes_pieces = true;
    }

    pub(super) fn pause(&mut self) {
        self.pauses = true;
    }

    /// Gives back the memory of the last message, or of a piece of it, if it was collected and is no longer
    /// looked at.
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

    /// Goes through `input` up to and including the next message or control frame. Returns how
    /// much of it that took: all of it when there is no step to report.
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

    /// Does the same for what may be cut, compressed, part of a message, or wrong.
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

    /// Goes on through the input from `at`, which it moves, up to the next thing to report.
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
                self.cut = None; // what was cut came whole, and an idle connection has none
            }
            if step.is_some() {
                return Ok(step);
            }
        }
    }

    /// The buffer for the rest of a large frame, and how many bytes that is.
    pub(super) fn rest(&mut self) -> Option<Rest<'_>> {
        let frame = self.cut.as_ref()?.frame.as_ref()?;
        let message = self.message.as_mut()?;
        let is_plain = message.inflater.is_none() && !frame.header.opcode.is_control();
        let len = usize::try_from(frame.header.payload_len - frame.received).ok()?;
        if !is_plain || self.takes_pieces || len < REST_BYTES_MIN {
            return None;
        }
        // No more at once than has come already, for a peer that only announces.
        message.bytes.reserve(len.min(ANNOUNCED_BYTES_MAX.max(message.bytes.len())));
        Some(Rest { bytes: &mut message.bytes, len })
    }

    /// Takes what was added to the rest of a frame, from `begin` on.
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
        Ok(Some(Step::Message(message.kind, Place::Collected)))
    }

    /// The payload of the message that was collected.
    pub(super) fn take_message(&mut self) -> &[u8] {
        self.taken = Taken::Message;
        self.message.as_ref().map_or(&[], |message| &message.bytes)
    }

    /// The piece of a message that was inflated.
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

    /// The payload of the control frame that was collected.
    pub(super) fn control(&self) -> &[u8] {
        self.cut.as_ref().map_or(&[], |cut| &cut.control)
    }

    /// Reads a header, one that was cut before included.
    fn next_header(&mut self, input: &[u8]) -> Result<(usize, Option<Header>), ProtocolError> {
        if self.cut.as_ref().is_none_or(|cut| cut.header_len == 0) {
            // What was cut came whole.
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
            // How long a compressed message is shows only when it is inflated.
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

    /// RFC 7692 section 6.1: the first frame of a message may say that the message is compressed; no
    /// later one, and no control frame.
    fn may_be_compressed(&self, header: &Header) -> bool {
        self.deflate.is_some() && matches!(header.opcode, Opcode::Text | Opcode::Binary)
    }

    /// Whether this frame's payload is to be inflated.
    fn is_compressed(&self, header: &Header) -> bool {
        match &self.message {
            _ if header.opcode.is_control() => false,
            Some(message) => message.inflater.is_some(),
            None => header.rsv1,
        }
    }

    /// Inflates what came of a frame, up to a limit. Returns how much of the input that took, the frame as far
    /// as it came, and what there is to report.
    ///
    /// All of the input can be used up and there be more to inflate: the last byte is left then, to be called
    /// again.
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
            Some(Step::Message(kind, Place::Collected))
        } else if self.takes_pieces && (is_last || !message.bytes.is_empty()) {
            message.has_begun = true;
            Some(Step::Piece { kind, place: Place::Collected, is_first, is_last })
        } else {
            if self.takes_pieces {
                message.bytes = Vec::new(); // room was made for what did not come
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
            return Some(Step::Control(control, Place::Input(range)));
        }
        self.cut.get_or_insert_default().control.extend_from_slice(piece);
        is_whole.then_some(Step::Control(control, Place::Collected))
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
            _ => MessageKind::Text, // a continuation finds its kind in the assembly
        };
        if in_place && self.message.is_none() && header.fin && !header.rsv1 {
            return Ok(Some(Step::Message(kind, Place::Input(range))));
        }
        self.collect(config, now, kind, frame, piece, range)
    }

    /// Adds to the message in the making. Not inlined: the way past it is the one that most
    /// messages take.
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
            let place = Place::Input(range);
            return Ok(Some(Step::Piece { kind, place, is_first, is_last }));
        }
        message.push(frame, piece)?;
        if !is_last {
            return Ok(None);
        }
        message.finish(config)?;
        Ok(Some(Step::Message(message.kind, Place::Collected)))
    }
}

/// Masks a piece of a frame's payload that begins after so many bytes of it, or undoes that.
fn mask(header: &Header, begin: u64, piece: &mut [u8]) {
    if let Some(key) = header.mask {
        key.rotated(begin).apply(piece);
    }
}
