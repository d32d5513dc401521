//! The health of stored events.

use std::time::Duration;

use crate::StorageError;

/// The health of a topic, or of a whole data directory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Health {
    /// The error of the last attempt to keep something; `None` once an attempt has succeeded. Reading is not
    /// affected.
    pub writing: Option<StorageError>,
    /// The number of damaged events. They are reported as gaps, and the events around them can be read. They count
    /// until retention has passed them.
    pub damaged_events: u64,
    /// The time that the oldest waiting batch has waited for the disk, if that is at least 5 s. Only for a data
    /// directory, not for a topic in it.
    pub behind: Option<Duration>,
}

impl Health {
    /// Returns true if nothing is wrong.
    #[must_use]
    pub fn is_well(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            writing: self.writing.or(other.writing),
            damaged_events: self.damaged_events + other.damaged_events,
            behind: self.behind.max(other.behind),
        }
    }
}
