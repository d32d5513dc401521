//! Health: what is wrong with the keeping of events, if anything is.

use std::time::Duration;

use crate::StorageError;

/// The health of a topic, or of a whole data directory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Health {
    /// The reason why the last attempt to keep something failed; `None` once one has succeeded. Reading goes on
    /// all the same.
    pub writing: Option<StorageError>,
    /// Events that were kept and are damaged: they are told as gaps, and what is around them is read.
    /// They are counted until retention is past them.
    pub damaged_events: u64,
    /// For how long the oldest of what waits for the disk has done so, once that is 5 s. Of a data
    /// directory alone, not of a topic in it.
    pub behind: Option<Duration>,
}

impl Health {
    /// Returns whether nothing is wrong.
    #[must_use]
    pub fn is_well(&self) -> bool {
        *self == Self::default()
    }

    /// The health of two together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            writing: self.writing.or(other.writing),
            damaged_events: self.damaged_events + other.damaged_events,
            behind: self.behind.max(other.behind),
        }
    }
}
