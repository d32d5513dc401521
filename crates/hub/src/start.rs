//! The place where reading a topic begins.

use anemone_wire::After;

use crate::UnixTime;

/// The place where reading begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Start {
    /// The place that a reader asks for.
    After(After),
    /// The newest event, that one included, if there is one.
    Newest,
    /// The oldest event kept whose time is this or later, and then in the log's order: where a clock went back,
    /// earlier times may follow. Where there is no such event, only what comes from now on.
    Since(UnixTime),
}

impl From<After> for Start {
    fn from(after: After) -> Self {
        Self::After(after)
    }
}
