//! The options of a topic.

use crate::{KeyWindow, Retention};

/// The choices for a topic that is created. A [`Retention`] alone is options with the other
/// defaults.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TopicOptions {
    /// The bounds on what it keeps.
    pub retention: Retention,
    /// Which idempotency keys it remembers.
    pub keys: KeyWindow,
    /// The place where it is kept.
    pub storage: Storage,
}

/// The place where a topic is kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Storage {
    /// In the hub's data directory; in memory when it has none.
    #[default]
    Data,
    /// In memory, whatever the hub has: what is worth nothing after a restart.
    Memory,
}

impl From<Retention> for TopicOptions {
    fn from(retention: Retention) -> Self {
        Self { retention, ..Self::default() }
    }
}
