//! Requests to release memory, with times of the loop's clock.

use anemone_proto::Time;

use crate::Release;
use crate::clock::Clock;

#[derive(Clone, Copy, Debug)]
pub(super) enum LoopRelease {
    /// Connections that have held memory since this time or for longer.
    Since(Time),
    /// Connections whose handlers count at least this many open bytes.
    Open(usize),
}

impl LoopRelease {
    pub(super) fn of(release: Release, clock: Clock) -> Self {
        match release {
            Release::Since(cutoff) => Self::Since(clock.time(cutoff)),
            Release::Open(bytes) => Self::Open(bytes),
        }
    }
}
