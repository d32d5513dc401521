//! The buffers of a thread's loop, which its sockets use one after the other.

use std::time::Instant;

use anemone_proto::Output;

use super::budget::Budget;
use super::protocol::Queued;

/// The buffers that all sockets of a thread share, one at a time.
#[derive(Debug)]
pub(super) struct Scratch {
    input: Box<[u8]>,
    /// The beginning of a page in it: the kernel copies faster to there.
    begin: usize,
    pub(super) output: Queued,
    pub(super) budget: Budget,
}

impl Scratch {
    /// Most bytes taken from a socket in one turn. Large enough that a busy socket seldom needs a
    /// second read, small enough to stay in the processor's cache. A little more than a power of
    /// two: as much payload comes with headers.
    pub(super) const INPUT_BYTES: usize = (256 + 8) << 10;
    const PAGE_BYTES: usize = 4096;
    /// Output capacity that is kept from turn to turn.
    const OUTPUT_KEPT_BYTES: usize = 1 << 20;

    pub(super) fn new(clock: fn() -> Instant) -> Self {
        let input = vec![0; Self::INPUT_BYTES + Self::PAGE_BYTES].into_boxed_slice();
        let begin = input.as_ptr().addr().wrapping_neg() % Self::PAGE_BYTES;
        let output = Some(Box::new(Output::scattered()));
        Self { input, begin, output, budget: Budget::new(clock) }
    }

    #[inline]
    pub(super) fn input(&self) -> &[u8] {
        &self.input[self.begin..][..Self::INPUT_BYTES]
    }

    /// Lets what is queued in this turn refer to the input instead of copying it.
    #[inline]
    pub(super) fn lend_input(&mut self) -> (&mut [u8], &mut Queued, &mut Budget) {
        let input = &mut self.input[self.begin..][..Self::INPUT_BYTES];
        self.output.get_or_insert_default().lend(input);
        (input, &mut self.output, &mut self.budget)
    }

    /// Forgets what was queued, and the input it may refer to.
    #[inline]
    pub(super) fn clear_output(&mut self) {
        if let Some(output) = &mut self.output {
            output.clear(Self::OUTPUT_KEPT_BYTES);
        }
    }
}
