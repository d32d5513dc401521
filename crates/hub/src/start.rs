//! The place at which reading a topic begins.

use anemone_wire::After;

use crate::UnixTime;

/// The place at which reading begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Start {
    /// The place that a reader asks for.
    After(After),
    /// Just before the newest event, if there is one.
    Newest,
    /// The oldest kept event whose time is this or later, and then the log's order: if a clock went back, earlier
    /// times may follow. If there is no such event, reading begins with future events.
    Since(UnixTime),
}

impl From<After> for Start {
    fn from(after: After) -> Self {
        Self::After(after)
    }
}
