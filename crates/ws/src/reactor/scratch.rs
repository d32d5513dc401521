//! The buffers of a loop, which its sockets use one after the other.

use std::time::Instant;

use anemone_proto::Output;

use super::budget::Budget;
use super::protocol::Queued;
use super::survey::LoopFigures;

/// The buffers that all sockets of a thread share, one at a time.
#[derive(Debug)]
pub(super) struct Scratch {
    input: Box<[u8]>,
    /// The offset of a page boundary in the buffer: the kernel copies faster to there.
    begin: usize,
    pub(super) output: Queued,
    pub(super) budget: Budget,
    pub(super) figures: LoopFigures,
}

impl Scratch {
    /// The most bytes read from a socket at once. A busy socket seldom needs a second read, and the buffer stays in
    /// the processor's cache. It is a little more than a power of two, to hold that much payload with its headers.
    pub(super) const INPUT_BYTES: usize = (256 + 8) << 10;
    const PAGE_BYTES: usize = 4096;
    const OUTPUT_KEPT_BYTES: usize = 1 << 20;

    pub(super) fn new(clock: fn() -> Instant) -> Self {
        let input = vec![0; Self::INPUT_BYTES + Self::PAGE_BYTES].into_boxed_slice();
        let begin = input.as_ptr().addr().wrapping_neg() % Self::PAGE_BYTES;
        let output = Some(Box::new(Output::scattered()));
        let figures = LoopFigures::default();
        Self { input, begin, output, budget: Budget::new(clock), figures }
    }

    #[inline]
    pub(super) fn input(&self) -> &[u8] {
        &self.input[self.begin..][..Self::INPUT_BYTES]
    }

    /// Lets output that is queued in this turn refer to the input instead of copying it.
    #[inline]
    pub(super) fn lend_input(&mut self) -> (&mut [u8], &mut Queued, &mut Budget) {
        let input = &mut self.input[self.begin..][..Self::INPUT_BYTES];
        self.output.get_or_insert_default().lend(input);
        (input, &mut self.output, &mut self.budget)
    }

    /// Discards the queued output, and with it the reference to the input.
    #[inline]
    pub(super) fn clear_output(&mut self) {
        if let Some(output) = &mut self.output {
            output.clear(Self::OUTPUT_KEPT_BYTES);
        }
    }
}
