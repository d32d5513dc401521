//! A message in the making: its bytes as far as they came, inflated and checked as they come.

use super::payload::Payload;
use crate::connection::deflate::violation;
use crate::extension::{Bounds, Inflater, Pushed};
use crate::utf8::Utf8Checker;
use crate::{Config, MessageKind, ProtocolError, Time};

/// Most that is inflated at once, in bytes: so long is a piece of a compressed message, and so often can
/// whoever drives the connection turn to others. Less makes compressing the pieces of a reply expensive: each
/// begins anew.
const INFLATED_BYTES_MAX: usize = 32 << 10;
/// Room that is made for a frame on its announcement alone.
pub(super) const ANNOUNCED_BYTES_MAX: usize = 1 << 20;
/// About what it takes to inflate a message, with its window.
const INFLATER_BYTES: usize = 45 << 10;

/// A message in the making.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) kind: MessageKind,
    pub(super) began_at: Time,
    /// All that came, or the last piece that was inflated.
    pub(super) bytes: Vec<u8>,
    /// The number of its bytes that came, once inflated.
    pub(super) len: u64,
    /// There is one if its first frame said that the message is compressed.
    pub(super) inflater: Option<Inflater>,
    /// The inflater has had the next byte of the frame, and may have more to give before the one after it.
    is_ahead: bool,
    /// A piece was handed out.
    pub(super) has_begun: bool,
    pub(super) utf8: Utf8Checker,
    pub(super) fragments: u32,
}

impl Assembly {
    #[inline]
    pub(super) fn new(kind: MessageKind, began_at: Time, inflater: Option<Inflater>) -> Self {
        Self {
            kind,
            began_at,
            bytes: Vec::new(),
            len: 0,
            inflater,
            is_ahead: false,
            has_begun: false,
            utf8: Utf8Checker::default(),
            fragments: 1,
        }
    }

    /// The bytes that it takes in memory.
    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.inflater.as_ref().map_or(0, |_| INFLATER_BYTES)
    }

    /// Inflates compressed bytes, up to [`INFLATED_BYTES_MAX`]. Returns how many of them are done with.
    #[inline]
    pub(super) fn inflate(
        &mut self,
        config: &Config,
        piece: &[u8],
    ) -> Result<usize, ProtocolError> {
        let Some(inflater) = self.inflater.as_mut().filter(|_| !piece.is_empty()) else {
            return Ok(0);
        };
        let skipped = usize::from(self.is_ahead).min(piece.len());
        let limit = config.message_bytes_max;
        let before = self.bytes.len();
        let inflated_max = limit.saturating_sub(self.len);
        let bounds = Bounds {
            pause: before + INFLATED_BYTES_MAX,
            most: before.saturating_add(usize::try_from(inflated_max).unwrap_or(usize::MAX)),
        };
        let (used, result) = inflater.push(&piece[skipped..], &mut self.bytes, bounds);
        self.len += (self.bytes.len() - before) as u64;
        // Text is wrong before what follows it is, however the input was cut.
        check_text(self.kind, &mut self.utf8, &self.bytes[before..])?;
        let is_paused = result.map_err(|error| violation(error, limit))? == Pushed::Paused;
        let used = skipped + used;
        self.is_ahead = is_paused && used == piece.len();
        Ok(used - usize::from(self.is_ahead))
    }

    /// Appends a piece of a frame that was announced and found within the limits.
    #[inline]
    pub(super) fn push(&mut self, frame: &Payload, piece: &[u8]) -> Result<(), ProtocolError> {
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

    /// Checks that it may end here.
    #[inline]
    pub(super) fn finish(&mut self, config: &Config) -> Result<(), ProtocolError> {
        if let Some(inflater) = &mut self.inflater {
            inflater.finish().map_err(|error| violation(error, config.message_bytes_max))?;
        }
        match self.kind {
            MessageKind::Text => self.utf8.finish().map_err(|_| ProtocolError::TextNotUtf8),
            MessageKind::Binary => Ok(()),
        }
    }
}

/// Checks the next bytes of a message, if it is text.
#[inline]
pub(super) fn check_text(
    kind: MessageKind,
    utf8: &mut Utf8Checker,
    piece: &[u8],
) -> Result<(), ProtocolError> {
    match kind {
        MessageKind::Text => utf8.push(piece).map_err(|_| ProtocolError::TextNotUtf8),
        MessageKind::Binary => Ok(()),
    }
}
