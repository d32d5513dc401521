//! A message that is being assembled. Its bytes are inflated and checked as they arrive.

use super::payload::Payload;
use crate::connection::deflate::violation;
use crate::extension::{Bounds, Inflater, Pushed};
use crate::utf8::Utf8Checker;
use crate::{Config, MessageKind, ProtocolError, Time};

/// The most bytes inflated at once: the length of a piece of a compressed message, and the work after which a driver
/// can serve other connections. A smaller value makes it expensive to compress the pieces of a reply, because each
/// begins without context.
const INFLATED_BYTES_MAX: usize = 32 << 10;
/// The most memory that is reserved for a frame on the announced length alone.
pub(super) const ANNOUNCED_BYTES_MAX: usize = 1 << 20;
/// The approximate memory of an inflater and its window.
const INFLATER_BYTES: usize = 45 << 10;

/// A message that is being assembled.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) kind: MessageKind,
    pub(super) began_at: Time,
    /// All received bytes, or the last inflated piece.
    pub(super) bytes: Vec<u8>,
    /// The number of received bytes, inflated.
    pub(super) len: u64,
    /// The inflater, if the first frame said that the message is compressed.
    pub(super) inflater: Option<Inflater>,
    /// True if the inflater has already taken the next byte of the frame, and may have more output from before it.
    is_ahead: bool,
    /// True once a piece was returned.
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

    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.inflater.as_ref().map_or(0, |_| INFLATER_BYTES)
    }

    /// Inflates compressed bytes, up to [`INFLATED_BYTES_MAX`]. Returns the number of bytes consumed.
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
        // Invalid text is reported before an error after it, however the input was cut.
        check_text(self.kind, &mut self.utf8, &self.bytes[before..])?;
        let is_paused = result.map_err(|error| violation(error, limit))? == Pushed::Paused;
        let used = skipped + used;
        self.is_ahead = is_paused && used == piece.len();
        Ok(used - usize::from(self.is_ahead))
    }

    /// Appends a piece of a frame whose header was within the limits.
    #[inline]
    pub(super) fn push(&mut self, frame: &Payload, piece: &[u8]) -> Result<(), ProtocolError> {
        check_text(self.kind, &mut self.utf8, piece)?;
        if frame.received == piece.len() as u64 {
            // The first piece of the frame: reserve memory for all of it, but at most a megabyte, in case the peer
            // only announces it.
            let announced = usize::try_from(frame.header.payload_len).unwrap_or(usize::MAX);
            self.bytes.reserve(announced.min(ANNOUNCED_BYTES_MAX).max(piece.len()));
        }
        self.bytes.extend_from_slice(piece);
        self.len += piece.len() as u64;
        Ok(())
    }

    /// Checks that the message may end here.
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
