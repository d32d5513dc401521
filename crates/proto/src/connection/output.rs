//! The queue of bytes to write, which can refer to memory outside of it.
//!
//! A large reply may be part of its input, as in an echo, and many connections may send the same large frame. The
//! queue does not copy these bytes but stores their position. The owner of the input then turns the queue into
//! slices.

use std::ops::Range;
use std::sync::Arc;

/// Queued output, and the input that it may refer to.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// Sorted by `at`.
    stretches: Vec<Stretch>,
    stretched_bytes: usize,
    /// The address range of the lent input.
    lent: Range<usize>,
    /// True if the driver writes slices.
    is_scattered: bool,
}

/// A reference to bytes that are not copied.
#[derive(Clone, Debug)]
struct Stretch {
    /// The number of own bytes before it.
    at: usize,
    len: usize,
    whose: Whose,
}

#[derive(Clone, Debug)]
enum Whose {
    /// A piece of the lent input, from this address on.
    Input(usize),
    Shared(Arc<[u8]>),
}

impl Output {
    /// Shorter payloads are copied: one more slice in a system call costs as much as copying this many bytes.
    const STRETCH_BYTES_MIN: usize = 4096;

    /// Creates an empty queue for a driver that writes [`slices`](Self::slices), so that large frames are shared
    /// instead of copied.
    #[must_use]
    pub fn scattered() -> Self {
        Self { is_scattered: true, ..Self::default() }
    }

    /// Lets output refer to `input` until [`clear`](Self::clear). Until then the caller must not change input that
    /// has been handled, and must pass the same `input` to [`slices`](Self::slices).
    #[inline]
    pub fn lend(&mut self, input: &[u8]) {
        let addresses = input.as_ptr_range();
        self.lent = addresses.start.addr()..addresses.end.addr();
    }

    /// Appends bytes. Long ones that are part of the lent input are not copied.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        if !self.refer(bytes) {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Returns the queued bytes in order, as few slices.
    pub fn slices<'a>(&'a self, input: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let mut at = 0;
        let stretches = self.stretches.iter().flat_map(move |stretch| {
            let own = &self.bytes[at..stretch.at];
            at = stretch.at;
            let stretch = match &stretch.whose {
                Whose::Input(start) => &input[*start..*start + stretch.len],
                Whose::Shared(bytes) => bytes,
            };
            [own, stretch]
        });
        let last = self.stretches.last().map_or(0, |stretch| stretch.at);
        stretches.chain([&self.bytes[last..]]).filter(|slice| !slice.is_empty())
    }

    /// Returns all queued bytes, if none are references.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> Option<&[u8]> {
        self.stretches.is_empty().then_some(&self.bytes)
    }

    /// Returns the number of queued bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.stretched_bytes
    }

    /// Returns true if no bytes are queued.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Discards the queued bytes and the reference to the input; keeps an allocation of at most `kept_bytes`.
    pub fn clear(&mut self, kept_bytes: usize) {
        self.bytes.clear();
        if self.bytes.capacity() > kept_bytes {
            self.bytes.shrink_to(kept_bytes);
        }
        self.stretches.clear();
        self.stretched_bytes = 0;
        self.lent = 0..0;
    }

    /// Returns the own bytes, for a driver that lends no input.
    pub(super) fn own(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    pub(super) fn own_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Stores a reference to `bytes`, if they are long and part of the lent input.
    #[inline]
    pub(super) fn refer(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() < Self::STRETCH_BYTES_MIN {
            return false;
        }
        let addresses = bytes.as_ptr_range();
        if addresses.start.addr() < self.lent.start || addresses.end.addr() > self.lent.end {
            return false;
        }
        let start = addresses.start.addr() - self.lent.start;
        self.stretch(bytes.len(), Whose::Input(start));
        true
    }

    pub(super) fn append_shared(&mut self, bytes: &Arc<[u8]>) {
        if self.is_scattered && bytes.len() >= Self::STRETCH_BYTES_MIN {
            self.stretch(bytes.len(), Whose::Shared(Arc::clone(bytes)));
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn stretch(&mut self, len: usize, whose: Whose) {
        self.stretches.push(Stretch { at: self.bytes.len(), len, whose });
        self.stretched_bytes += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(output: &Output, input: &[u8]) -> Vec<u8> {
        output.slices(input).collect::<Vec<_>>().concat()
    }

    #[test]
    fn large_stretches_of_the_input_are_referred_to_and_everything_else_is_copied() {
        let input: Vec<u8> = (0..20_000).map(|i| i as u8).collect();
        let other = vec![7; 5000];
        let mut output = Output::default();
        output.lend(&input);
        let pieces = [
            &b"head"[..],
            &input[10..6000],
            b"",
            &input[100..200],
            &other,
            &input[6000..],
            b"end",
            &input,
        ];
        for piece in pieces {
            output.extend_from_slice(piece);
        }
        let expected = pieces.concat();
        assert_eq!(joined(&output, &input), expected);
        assert_eq!(output.len(), expected.len());
        assert_eq!(output.own().len(), 4 + 100 + 5000 + 3);
    }

    #[test]
    fn nothing_is_referred_to_once_cleared() {
        let input = vec![1; 10_000];
        let mut output = Output::default();
        output.lend(&input);
        output.extend_from_slice(&input);
        output.clear(0);
        assert!(output.is_empty());
        output.extend_from_slice(&input);
        assert_eq!(output.own().len(), input.len());
    }
}
