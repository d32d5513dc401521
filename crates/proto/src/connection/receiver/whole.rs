//! The fast path for most frames: a whole message or control frame that lies complete in the input.

use std::ops::Range;

use super::{PayloadPlace, Receiver, Step};
use crate::frame::Control;
use crate::{Config, MaskKey, MessageKind};

/// A message that arrived whole in one frame.
pub(in crate::connection) struct Whole {
    pub(in crate::connection) kind: MessageKind,
    /// The number of input bytes that it took.
    pub(in crate::connection) consumed: usize,
    /// The range of its unmasked payload in the input.
    pub(in crate::connection) payload: Range<usize>,
}

impl Receiver {
    /// The fast path for most messages: one complete, uncompressed frame of less than 64 KiB. Returns `None` for
    /// everything else, which [`step`](Self::step) then handles, with all errors.
    #[inline]
    pub(in crate::connection) fn whole_message(
        &self,
        config: &Config,
        input: &mut [u8],
    ) -> Option<Whole> {
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

    /// The fast path for most pings and pongs: complete, maybe between the frames of a message. Returns `None` for
    /// everything else, which [`step_through`](Self::step_through) then handles, with all errors.
    #[inline]
    pub(super) fn whole_control(&self, input: &mut [u8]) -> Option<(usize, Step)> {
        let [first, second, ..] = input else { return None };
        let control = match first {
            0x89 => Control::Ping,
            0x8a => Control::Pong,
            _ => return None,
        };
        let is_masked = *second & 0x80 != 0;
        let len = usize::from(*second & 0x7f);
        if self.cut.is_some() || is_masked != self.role.receives_masked() || len > 125 {
            return None;
        }
        let begin = if is_masked { 2 + 4 } else { 2 };
        let consumed = begin + len;
        let (header, payload) = input.get_mut(..consumed)?.split_at_mut(begin);
        if is_masked && !payload.is_empty() {
            MaskKey(*header.last_chunk()?).apply(payload);
        }
        Some((consumed, Step::Control(control, PayloadPlace::Input(begin..consumed))))
    }
}
