//! The receiving half: bytes in, whole messages and control frames out.
//!
//! A frame that lies whole in the input is unmasked there and handed out from there. Only what was
//! cut by the end of the input, is one fragment of several or is compressed is put together here;
//! compressed bytes are never kept, each piece is inflated as it comes.

use std::ops::Range;

use super::deflate::{Incoming, violation};
use crate::extension::Inflater;
use crate::utf8::Utf8Checker;
use crate::{
    Config, HEADER_BYTES_MAX, Header, MaskKey, MessageKind, Opcode, ProtocolError, Role, Time,
};

/// What one step through the input came upon, and where its payload lies.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Step {
    Message(MessageKind, Place),
    /// Part of a message that is taken as it comes, where it lies in the input.
    Piece {
        kind: MessageKind,
        range: Range<usize>,
        is_first: bool,
        is_last: bool,
    },
    Control(Opcode, Place),
}

/// Room that is made for a frame on its announcement alone.
const ANNOUNCED_BYTES_MAX: usize = 1 << 20;
/// A shorter rest is not worth a read of its own.
const REST_BYTES_MIN: usize = 64 << 10;

/// Where the rest of a large frame goes, without a copy: see [`Connection::rest`](super::Connection::rest).
#[derive(Debug)]
pub struct Rest<'a> {
    /// What came of the message. The next bytes are to be appended; there is room for some.
    pub bytes: &'a mut Vec<u8>,
    /// At most so many.
    pub len: usize,
}

/// A message that came in one frame, all at once.
pub(super) struct Whole {
    pub(super) kind: MessageKind,
    /// How much of the input it took.
    pub(super) consumed: usize,
    /// Where it lies in the input, unmasked.
    pub(super) payload: Range<usize>,
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
    /// The frame of which the input's end cut something off. Boxed: an idle connection has none.
    cut: Option<Box<Cut>>,
    /// The message whose fragments or bytes are still coming. Boxed: an idle connection has none.
    message: Option<Box<Assembly>>,
    /// The last assembly was handed out and can be forgotten.
    message_taken: bool,
    /// Messages that did not come whole are handed out as they come.
    takes_pieces: bool,
    /// Compression, where it was negotiated. Boxed: most connections have none.
    deflate: Option<Box<Incoming>>,
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
    began_at: Time,
    bytes: Vec<u8>,
    /// How much of it came, unless it is compressed.
    len: u64,
    /// Where its first frame said that it is compressed.
    inflater: Option<Inflater>,
    utf8: Utf8Checker,
    fragments: u32,
}

impl Receiver {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            cut: None,
            message: None,
            message_taken: false,
            takes_pieces: false,
            deflate: None,
        }
    }

    pub(super) fn set_deflate(&mut self, deflate: Incoming) {
        self.deflate = Some(Box::new(deflate));
    }

    /// Whether a message has begun and not ended.
    pub(super) fn is_amid_message(&self) -> bool {
        !self.message_taken && self.message.is_some()
    }

    /// When the message began that has not ended.
    pub(super) fn message_began_at(&self) -> Option<Time> {
        self.message.as_ref().filter(|_| !self.message_taken).map(|message| message.began_at)
    }

    pub(super) fn take_pieces(&mut self) {
        self.takes_pieces = true;
    }

    /// Gives back the memory of the last message, if it was collected and is no longer looked at.
    #[inline]
    pub(super) fn forget_message(&mut self) {
        if std::mem::take(&mut self.message_taken) {
            self.message = None;
        }
    }

    /// Goes through `input` up to and including the next message or control frame. Returns how
    /// much of it that took: all of it when there is no step to report.
    pub(super) fn step(
        &mut self,
        config: &Config,
        now: Time,
        input: &mut [u8],
    ) -> (usize, Result<Option<Step>, ProtocolError>) {
        self.forget_message();
        let mut at = 0;
        loop {
            let frame = match self.cut.as_mut().and_then(|cut| cut.frame.take()) {
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
            let received = Payload { received: frame.received + take as u64, ..frame };
            let in_place = is_whole && frame.received == 0;
            let step = if received.header.opcode.is_control() {
                self.control_piece(&received, piece, is_whole, in_place.then_some(range))
            } else {
                match self.data_piece(config, now, &received, piece, range) {
                    Ok(step) => step,
                    Err(error) => return (input.len(), Err(error)),
                }
            };
            if !is_whole {
                self.cut.get_or_insert_default().frame = Some(received);
                return (at, Ok(step));
            }
            if !received.header.opcode.is_control() {
                self.cut = None; // what was cut came whole, and an idle connection has none
            }
            if step.is_some() {
                return (at, Ok(step));
            }
        }
    }

    /// The way that most messages take: one frame, not compressed, all there, of less than 64 KiB.
    /// `None` leaves everything to [`step`](Self::step), which also finds what is wrong.
    #[inline]
    pub(super) fn whole_message(&self, config: &Config, input: &mut [u8]) -> Option<Whole> {
        let is_between_messages = self.cut.is_none() && self.message.is_none();
        let [first, second, rest @ ..] = input else { return None };
        let kind = match first {
            0x81 => MessageKind::Text,
            0x82 => MessageKind::Binary,
            _ => return None,
        };
        let is_masked = *second & 0x80 != 0;
        if !is_between_messages || is_masked != self.role.receives_masked() {
            return None;
        }
        let (len, len_bytes) = match *second & 0x7f {
            len @ 0..=125 => (usize::from(len), 0),
            126 => match usize::from(u16::from_be_bytes(*rest.first_chunk()?)) {
                0..=125 => return None,
                len => (len, 2),
            },
            _ => return None,
        };
        if len as u64 > config.frame_bytes_max.min(config.message_bytes_max) {
            return None;
        }
        let begin = 2 + len_bytes + if is_masked { 4 } else { 0 };
        let consumed = begin + len;
        let (header, payload) = input.get_mut(..consumed)?.split_at_mut(begin);
        if is_masked {
            MaskKey(*header.last_chunk()?).apply(payload);
        }
        Some(Whole { kind, consumed, payload: begin..consumed })
    }

    /// Where the rest of a large frame is to go, and how many bytes that is.
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
        self.message_taken = true;
        self.message.as_ref().map_or(&[], |message| &message.bytes)
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
        self.cut.get_or_insert_default().control.extend_from_slice(piece);
        is_whole.then_some(Step::Control(opcode, Place::Collected))
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
        let deflate = self.deflate.as_mut();
        let message = self.message.get_or_insert_with(|| {
            let inflater = deflate.filter(|_| header.rsv1).map(|deflate| deflate.begin());
            Box::new(Assembly::new(kind, now, inflater))
        });
        let is_last = header.fin && frame.received == header.payload_len;
        if self.takes_pieces && message.inflater.is_none() {
            check_text(message.kind, &mut message.utf8, piece)?;
            message.len += piece.len() as u64;
            let kind = message.kind;
            if is_last {
                message.finish(config)?;
                self.message = None;
            }
            return Ok(Some(Step::Piece { kind, range, is_first, is_last }));
        }
        message.push(config, frame, piece)?;
        if !is_last {
            return Ok(None);
        }
        message.finish(config)?;
        if let (Some(deflate), Some(inflater)) = (&mut self.deflate, message.inflater.take()) {
            deflate.end(inflater);
        }
        Ok(Some(Step::Message(message.kind, Place::Collected)))
    }
}

impl Assembly {
    fn new(kind: MessageKind, began_at: Time, inflater: Option<Inflater>) -> Self {
        Self {
            kind,
            began_at,
            bytes: Vec::new(),
            len: 0,
            inflater,
            utf8: Utf8Checker::default(),
            fragments: 1,
        }
    }

    /// Appends a piece of a frame that was announced and found within the limits.
    fn push(
        &mut self,
        config: &Config,
        frame: &Payload,
        piece: &[u8],
    ) -> Result<(), ProtocolError> {
        if let Some(inflater) = &mut self.inflater {
            let limit = config.message_bytes_max;
            let len_max = usize::try_from(limit).unwrap_or(usize::MAX);
            let before = self.bytes.len();
            let result = inflater.push(piece, &mut self.bytes, len_max);
            // Text is wrong before what follows it is, however the input was cut.
            check_text(self.kind, &mut self.utf8, &self.bytes[before..])?;
            return result.map_err(|error| violation(error, limit));
        }
        check_text(self.kind, &mut self.utf8, piece)?;
        if frame.received == piece.len() as u64 {
            // The frame's first piece: room for all of it at once, but no more than a first
            // megabyte for a peer that only announces.
            let announced = usize::try_from(frame.header.payload_len).unwrap_or(usize::MAX);
            self.bytes.reserve(announced.min(ANNOUNCED_BYTES_MAX).max(piece.len()));
        }
        self.bytes.extend_from_slice(piece);
        self.len += piece.len() as u64;
        Ok(())
    }

    fn finish(&mut self, config: &Config) -> Result<(), ProtocolError> {
        if let Some(inflater) = &mut self.inflater {
            inflater.finish().map_err(|error| violation(error, config.message_bytes_max))?;
        }
        match self.kind {
            MessageKind::Text => self.utf8.finish().map_err(|_| ProtocolError::TextNotUtf8),
            MessageKind::Binary => Ok(()),
        }
    }
}

fn check_text(
    kind: MessageKind,
    utf8: &mut Utf8Checker,
    piece: &[u8],
) -> Result<(), ProtocolError> {
    match kind {
        MessageKind::Text => utf8.push(piece).map_err(|_| ProtocolError::TextNotUtf8),
        MessageKind::Binary => Ok(()),
    }
}
