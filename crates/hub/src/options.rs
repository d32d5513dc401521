//! The options of a topic.

use crate::{KeyWindow, Retention};

/// The options of a new topic. A [`Retention`] alone converts to options with the other defaults.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TopicOptions {
    /// The limits of its contents.
    pub retention: Retention,
    /// The idempotency keys that it remembers.
    pub keys: KeyWindow,
    /// The place of its contents.
    pub storage: Storage,
}

/// The place of a topic's contents.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Storage {
    /// The hub's data directory, or memory if there is none.
    #[default]
    Data,
    /// Memory in any case, for events that are worthless after a restart.
    Memory,
}

impl From<Retention> for TopicOptions {
    fn from(retention: Retention) -> Self {
        Self { retention, ..Self::default() }
    }
}
