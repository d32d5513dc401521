//! What can go wrong, by who asked for it.

use crate::{Position, TopicName};

/// A value could not be taken as an event's data.
#[derive(Debug, thiserror::Error)]
#[error("event data is not one JSON value: {0}")]
pub struct DataError(#[from] serde_json::Error);

/// A topic could not be created.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// There is one of this name.
    #[error("topic {0} exists already")]
    Exists(TopicName),
}

/// An event could not be published.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The event alone is larger than all that the log may keep.
    #[error("event needs {bytes} bytes in the log, which keeps {bytes_max}")]
    TooBig {
        /// What it would count for.
        bytes: u64,
        /// The log's limit.
        bytes_max: u64,
    },
}

/// A topic could not be read from a position.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The position is of this log but has not been reached: no reader can have been given it.
    #[error("position {position} is ahead of the topic, which is at {head}")]
    Ahead {
        /// What was asked for.
        position: Position,
        /// The position of the newest event.
        head: Position,
    },
}
