//! Those who are to let go of what is held for their peers, by the clock of the loop.

use anemone_proto::Time;

use crate::Wanted;
use crate::clock::Clock;

#[derive(Clone, Copy, Debug)]
pub(super) enum Concerned {
    /// Those who have held something since then, or for longer.
    Since(Time),
    /// Those whose handlers have so many bytes open, or more.
    Open(usize),
}

impl Concerned {
    pub(super) fn of(wanted: Wanted, clock: Clock) -> Self {
        match wanted {
            Wanted::Since(cutoff) => Self::Since(clock.time(cutoff)),
            Wanted::Open(bytes) => Self::Open(bytes),
        }
    }
}
