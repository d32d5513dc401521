//! The errors of a hub, by operation.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anemone_wire::DEPTH_MAX;

use crate::{Position, TopicName};

/// A value that cannot be an event's data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// It is not JSON, or has no JSON form.
    #[error("event data is not one JSON value: {0}")]
    Json(#[from] serde_json::Error),
    /// It has more than [`DEPTH_MAX`] levels of arrays and objects.
    #[error("nested deeper than {DEPTH_MAX} arrays and objects")]
    TooDeep,
}

/// An error of creating a topic.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// There is a topic of this name.
    #[error("topic {0} already exists")]
    Exists(TopicName),
    /// The topic's directory could not be created.
    #[error("cannot store topic {name}")]
    Storage {
        /// The name of the topic.
        name: TopicName,
        /// The error of the storage.
        #[source]
        error: StorageError,
    },
    /// The data directory is closed.
    #[error("the data directory is closed")]
    Closed,
}

/// An error of deleting a topic.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeleteError {
    /// There is no topic of this name.
    #[error("there is no topic {0}")]
    Unknown(TopicName),
    /// The topic's directory could not be removed; the topic is unchanged.
    #[error("cannot remove topic {name}")]
    Storage {
        /// The name of the topic.
        name: TopicName,
        /// The error of the storage.
        #[source]
        error: StorageError,
    },
}

/// An error of publishing. None of the events is in the topic, and no reader has seen one.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The events alone exceed the log's limit, or [`Batch::BYTES_MAX`](crate::Batch::BYTES_MAX).
    #[error("event needs {bytes} bytes in the log, which holds at most {bytes_max}")]
    TooBig {
        /// The bytes that they would count for.
        bytes: u64,
        /// The log's limit.
        bytes_max: u64,
    },
    /// The batch has no events.
    #[error("there is no event to publish")]
    Empty,
    /// The topic's newest event is not at a position that the batch requires (HTTP 412).
    #[error("the topic is at {head}, which does not match the condition")]
    HeadMoved {
        /// The position of the newest event.
        head: Position,
    },
    /// The key was recently used with other events (HTTP 422).
    #[error("this idempotency key was used for other events a short while ago")]
    KeyReused,
    /// The disk has no space left (HTTP 507). Publishing works again once there is some.
    #[error("there is no space to store the event")]
    StorageFull(#[source] StorageError),
    /// The events could not be stored: the file system is read-only, or failed (HTTP 503).
    #[error("cannot store the event")]
    StorageFailed(#[source] StorageError),
    /// The queue for the disk is full (HTTP 503); try again in a moment.
    #[error("the disk is behind: {bytes} bytes are waiting for it, at most {bytes_max} may")]
    Busy {
        /// The bytes that wait.
        bytes: u64,
        /// The bytes that may wait.
        bytes_max: u64,
    },
    /// The topic was deleted.
    #[error("the topic was deleted")]
    Deleted,
    /// The topic has ended.
    #[error("the topic has ended")]
    Ended,
    /// The topic is awaited, and not created yet: see [`Hub::create`](crate::Hub::create).
    #[error("the topic is not created yet")]
    Awaited,
    /// The data directory is closed: the server stops.
    #[error("the data directory is closed")]
    Closed,
}

impl From<StorageError> for PublishError {
    fn from(error: StorageError) -> Self {
        if error.is_full() { Self::StorageFull(error) } else { Self::StorageFailed(error) }
    }
}

/// A topic could not be read from a position.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The position is of this log but has not been reached: no reader can have been given it.
    #[error("position {position} is ahead of the topic, which is at {head}")]
    Ahead {
        /// The position that was asked for.
        position: Position,
        /// The position of the newest event.
        head: Position,
    },
    /// The topic was deleted; nothing more will come.
    #[error("the topic was deleted")]
    Deleted,
    /// The topic has ended, and the reader has all of it.
    #[error("the topic has ended, and there is nothing after this position")]
    Ended,
    /// The disk failed. Reading from the same position later is safe.
    #[error("cannot read the topic")]
    Storage(#[source] StorageError),
}

/// An error of opening a data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another [`DataDir`](crate::DataDir) of this one, has it open.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// Another version wrote it, in a format that this version does not know.
    #[error(
        "{} has format {format}, but this version supports only format {known}: use the version that wrote it, \
         or start with an empty data directory",
        path.display()
    )]
    Format {
        /// The file with the format.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The known format.
        known: u32,
    },
    /// The file system failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    Make,
    Open,
    Lock,
    Read,
    Write,
    Cut,
    Rename,
    Flush,
    Remove,
    Close,
    StartWriter,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Make => "make",
            Self::Open => "open",
            Self::Lock => "lock",
            Self::Read => "read",
            Self::Write => "write",
            Self::Cut => "cut",
            Self::Rename => "rename",
            Self::Flush => "flush",
            Self::Remove => "remove",
            Self::Close => "close",
            Self::StartWriter => "start the writer of",
        })
    }
}

/// An error of the file system, which is its `source`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct StorageError {
    action: Action,
    path: PathBuf,
    source: Arc<io::Error>,
}

impl StorageError {
    pub(crate) fn new(action: Action, path: &Path, error: io::Error) -> Self {
        Self { action, path: path.to_owned(), source: Arc::new(error) }
    }

    /// Returns the operation that failed.
    pub(crate) fn action(&self) -> Action {
        self.action
    }

    /// Formats the error with its cause, for a log, which shows no sources.
    pub(crate) fn with_cause(&self) -> String {
        format!("{self}: {}", self.source)
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Returns the file or directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if there is no space: the disk is full, or a quota or a limit on the size of files is reached.
    #[must_use]
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }
}

impl PartialEq for StorageError {
    /// Two errors are equal if the same operation failed in the same way.
    fn eq(&self, other: &Self) -> bool {
        let parts = |error: &Self| (error.action, error.kind(), error.source.raw_os_error());
        parts(self) == parts(other) && self.path == other.path
    }
}

impl Eq for StorageError {}
