//! The lanes of runs: one for works that compute, and one for light works, which sleep nearly all the time. Each lane has
//! slots and a queue of its own, so that a run waits only for others of its lane. Pure.

/// The part of the time for which a light work computes at most: one in so many.
pub(crate) const LIGHT_ONE_IN: u32 = 16;

/// The most slots for light works: each is a thread.
const LIGHT_SLOTS_MAX: usize = 256;

/// The lane of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lane {
    Computing,
    /// That of light works, which sleep nearly all the time.
    Light,
}

impl Lane {
    pub(crate) const ALL: [Self; 2] = [Self::Computing, Self::Light];

    /// Returns the number of its slots. All light works together compute at most as much as there are slots for those that
    /// compute.
    pub(crate) fn slots(self, running_max: usize) -> usize {
        match self {
            Self::Computing => running_max,
            Self::Light => running_max.saturating_mul(LIGHT_ONE_IN as usize).min(LIGHT_SLOTS_MAX),
        }
    }
}
