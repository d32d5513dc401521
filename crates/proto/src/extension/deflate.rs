//! Compresses and inflates the payload of messages (RFC 7692 section 7.2) with zlib-rs.
//!
//! Owns the two streams and the octets that end a message's payload. The connection decides what to compress, and
//! whether a stream continues from one message to the next.

use std::fmt;

use zlib_rs::{Deflate, DeflateFlush, Inflate, InflateFlush, Status};

use super::{CompressionLevel, WindowBits};

/// The end of a flushed stream, which a payload omits: the length of an empty block (sections 7.2.1 and 7.2.2).
const TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];

/// The compressors and the inflater of a thread, while no connection uses them.
///
/// A driver keeps one set for each thread and lends it to connections with an [`ExchangeCodecs`]. A set is empty at
/// first and grows as needed: one inflater (about 45 KB), one compressor for each window size in use (about 260 KB
/// for the largest) and an output buffer of at most 64 KiB.
#[derive(Default)]
pub struct Codecs {
    inflater: Option<Inflater>,
    /// At most one for each window size.
    compressors: Vec<Compressor>,
    /// The output buffer of compressors. Its length is the part that has been initialized.
    pub(crate) output: Vec<u8>,
}

/// A function that exchanges `codecs` for the set of the calling thread.
///
/// ```
/// use std::cell::Cell;
/// use anemone_proto::Codecs;
///
/// thread_local! {
///     static CODECS: Cell<Codecs> = const { Cell::new(Codecs::new()) };
/// }
///
/// fn exchange(codecs: Codecs) -> Codecs {
///     CODECS.replace(codecs)
/// }
/// ```
///
/// A connection takes the set out while it works and puts it back before it returns. A function that always returns
/// empty sets works too; then each message creates its own.
pub type ExchangeCodecs = fn(Codecs) -> Codecs;

impl Codecs {
    const OUTPUT_BYTES_KEPT_MAX: usize = 64 << 10;

    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { inflater: None, compressors: Vec::new(), output: Vec::new() }
    }

    /// Takes an inflater without context.
    pub(crate) fn take_inflater(&mut self) -> Inflater {
        let mut inflater = self.inflater.take().unwrap_or_default();
        inflater.restart();
        inflater
    }

    pub(crate) fn keep_inflater(&mut self, inflater: Inflater) {
        self.inflater = Some(inflater);
    }

    /// Takes a compressor without context.
    pub(crate) fn take_compressor(
        &mut self,
        level: CompressionLevel,
        window: WindowBits,
    ) -> Compressor {
        let fits = |kept: &Compressor| kept.window == window && kept.level == level;
        let Some(at) = self.compressors.iter().position(fits) else {
            return Compressor::new(level, window);
        };
        let mut compressor = self.compressors.swap_remove(at);
        compressor.stream.reset();
        compressor
    }

    pub(crate) fn keep_compressor(&mut self, compressor: Compressor) {
        // A reset of zlib-rs 0.6.8 discards pending output, but not its offset in the buffer. The room left is then
        // too small, and a later message panics.
        if !compressor.is_flushed {
            return;
        }
        self.compressors.retain(|kept| kept.window != compressor.window);
        self.compressors.push(compressor);
    }
}

impl fmt::Debug for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codecs")
            .field("inflater", &self.inflater)
            .field("compressors", &self.compressors)
            .finish_non_exhaustive()
    }
}

/// The thread's codecs; dropping this returns them.
pub(crate) struct Lent {
    pub(crate) codecs: Codecs,
    exchange: ExchangeCodecs,
}

impl Lent {
    pub(crate) fn new(exchange: ExchangeCodecs) -> Self {
        Self { codecs: exchange(Codecs::new()), exchange }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut codecs = std::mem::take(&mut self.codecs);
        codecs.output.truncate(Codecs::OUTPUT_BYTES_KEPT_MAX);
        codecs.output.shrink_to(Codecs::OUTPUT_BYTES_KEPT_MAX);
        drop((self.exchange)(codecs));
    }
}

/// Compresses payloads of messages.
pub(crate) struct Compressor {
    stream: Deflate,
    level: CompressionLevel,
    window: WindowBits,
    /// True if the stream has no pending output.
    is_flushed: bool,
}

impl Compressor {
    /// The minimum growth of the output.
    const BLOCK_BYTES: usize = 4 << 10;

    pub(crate) fn new(level: CompressionLevel, window: WindowBits) -> Self {
        let stream = Deflate::new(i32::from(level.get()), false, window.get());
        Self { stream, level, window, is_flushed: true }
    }

    /// Compresses a whole message, or the next fragment of one, to the front of `output` and returns its length.
    pub(crate) fn compress(&mut self, mut input: &[u8], output: &mut Vec<u8>) -> usize {
        let mut len = 0;
        while !self.step(&mut input, output, &mut len) {}
        len
    }

    /// Compresses as [`compress`](Self::compress). Returns `None` if that takes more than `len_max` bytes; the stream
    /// then needs a reset, if it can be [kept](Codecs::keep_compressor) at all.
    pub(crate) fn compress_within(
        &mut self,
        mut input: &[u8],
        output: &mut Vec<u8>,
        len_max: usize,
    ) -> Option<usize> {
        let mut len = 0;
        while !self.step(&mut input, output, &mut len) {
            if len > len_max {
                return None;
            }
        }
        (len <= len_max).then_some(len)
    }

    /// Fills `output` from `len` on; returns true when all input is compressed.
    fn step(&mut self, input: &mut &[u8], output: &mut Vec<u8>, len: &mut usize) -> bool {
        if *len == output.len() {
            output.resize(len.saturating_mul(2).max(*len + Self::BLOCK_BYTES), 0);
        }
        let (read, written) = (self.stream.total_in(), self.stream.total_out());
        // Each fragment is flushed, so that the peer can read it before the next one.
        let status = self.stream.compress(input, &mut output[*len..], DeflateFlush::SyncFlush);
        // Only a finished stream or an empty output is an error.
        debug_assert!(status.is_ok(), "{status:?}");
        *input = &input[(self.stream.total_in() - read) as usize..];
        *len += (self.stream.total_out() - written) as usize;
        // Space left over means that everything was flushed.
        self.is_flushed = *len < output.len();
        self.is_flushed
    }

    /// Ends the payload of a message (section 7.2.1, step 3). `output` contains its last `len` bytes; returns their
    /// new number.
    pub(crate) fn end(output: &mut Vec<u8>, len: usize) -> usize {
        if output[..len].ends_with(&TAIL) {
            return len - TAIL.len();
        }
        // zlib does not flush twice in a row, which an empty message or an empty last fragment would need. The result
        // would be an empty block, which is a zero byte without its tail (section 7.2.3.6).
        output.truncate(len);
        output.push(0x00);
        len + 1
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, window, .. } = self;
        f.debug_struct("Compressor")
            .field("level", level)
            .field("window", window)
            .finish_non_exhaustive()
    }
}

pub(crate) struct Inflater {
    stream: Inflate,
    /// True if a block may begin here. It is known only at the beginning of a message and at the end of a stream.
    is_at_block: bool,
}

/// The limits for the length of the output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Bounds {
    /// The limit for one call.
    pub(crate) pause: usize,
    /// The limit for the whole message.
    pub(crate) most: usize,
}

/// The reason why inflating stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pushed {
    All,
    /// The output has reached the limit for one call. The consumed input may contain more.
    Paused,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum InflateError {
    /// The input does not follow section 7.2.1.
    Invalid,
    /// The message is longer than allowed.
    TooLong,
}

impl Default for Inflater {
    fn default() -> Self {
        // The largest window reads data that was compressed with any window (section 7.1.2).
        Self { stream: Inflate::new(false, WindowBits::MAX.get()), is_at_block: true }
    }
}

impl Inflater {
    /// The most output made at once.
    const BLOCK_BYTES_MAX: usize = 16 << 10;
    /// The least output made at once.
    const BLOCK_BYTES_MIN: usize = 256;

    /// Discards the context of all messages.
    pub(crate) fn restart(&mut self) {
        self.stream.reset(false);
        self.is_at_block = true;
    }

    /// Inflates the next piece of a message and appends it to `output`, which holds the earlier pieces and grows up
    /// to the limits of `bounds`. On an error, `output` holds everything that could be inflated. Returns the number
    /// of bytes consumed.
    pub(crate) fn push(
        &mut self,
        piece: &[u8],
        output: &mut Vec<u8>,
        bounds: Bounds,
    ) -> (usize, Result<Pushed, InflateError>) {
        let mut input = piece;
        let mut len = output.len();
        // Text and JSON grow to about four times their compressed length.
        let mut block =
            input.len().saturating_mul(4).clamp(Self::BLOCK_BYTES_MIN, Self::BLOCK_BYTES_MAX);
        // One byte above the limit shows that the limit is exceeded.
        let len_max = bounds.pause.min(bounds.most.saturating_add(1));
        let result = loop {
            if input.is_empty() && len < output.len() {
                break Ok(Pushed::All);
            }
            if len == len_max {
                break Ok(Pushed::Paused);
            }
            if len == output.len() {
                grow(output, block, len_max, bounds.most);
                block = (block * 2).min(Self::BLOCK_BYTES_MAX);
            }
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(input, &mut output[len..], InflateFlush::SyncFlush);
            let read = (self.stream.total_in() - read) as usize;
            let written = (self.stream.total_out() - written) as usize;
            input = &input[read..];
            len += written;
            self.is_at_block &= read == 0;
            // Check the limit per output block: 1 KiB of deflate can grow to 1 MiB. Check it before the status, which
            // may be about later input and so depends on where the input was cut.
            if len > bounds.most {
                len = bounds.most;
                break Err(InflateError::TooLong);
            }
            match status {
                // The block was marked as the stream's last: more blocks may follow at the next byte (section 7.2.1).
                // A library that ends a stream begins the next one without context, and so does this code. It refuses
                // a block that refers back over the end, which the specification does not rule out.
                Ok(Status::StreamEnd) => self.restart(),
                Ok(_) if read > 0 || written > 0 || input.is_empty() => {}
                Ok(_) | Err(_) => break Err(InflateError::Invalid),
            }
        };
        output.truncate(len);
        (piece.len() - input.len(), result)
    }

    /// Ends the message. Its payload must end where only the length of an empty block is missing (section 7.2.2, step
    /// 1), or where a block may begin.
    pub(crate) fn finish(&mut self) -> Result<(), InflateError> {
        if self.is_at_block {
            // The message is empty, or its last block ended the stream; some peers stop there.
            return Ok(());
        }
        // With `Block` the stream stops before the next block. It stops after four bytes if these were the length of
        // an empty block. Other data would consume the fifth byte too, or make output.
        let [a, b, c, d] = TAIL;
        let mut output = [0; 16];
        let (read, written) = (self.stream.total_in(), self.stream.total_out());
        let status = self.stream.decompress(&[a, b, c, d, 0], &mut output, InflateFlush::Block);
        let is_tail = self.stream.total_in() - read == 4 && self.stream.total_out() == written;
        self.is_at_block = true;
        if status.is_ok() && is_tail { Ok(()) } else { Err(InflateError::Invalid) }
    }
}

/// Makes room for one more block, up to `len_max` bytes in all. Never allocates more than one byte above `most`.
fn grow(output: &mut Vec<u8>, block: usize, len_max: usize, most: usize) {
    let len = output.len();
    let capacity_max = most.saturating_add(1);
    if output.capacity() - len < block {
        // Doubles each time, but ends exactly at the limit.
        let target = output.capacity().saturating_mul(2).max(len + block).min(capacity_max);
        output.reserve_exact(target - len);
    }
    output.resize((len + block).min(len_max), 0);
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
