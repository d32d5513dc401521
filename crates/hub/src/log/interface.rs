//! The interface of a log, and the nouns of its calls.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::{
    Batch, Event, Health, IdempotencyKey, Note, PageLimit, PublishError, Receipt, StorageError,
    TopicOptions, UnixTime,
};

/// The log of one topic, shared among threads.
///
/// Its contract, which `contract` tests for each:
/// - **Order.** Offsets count from 1. A batch gets the next ones in a row; none is given to two events.
/// - **All or nothing.** A batch is kept whole or not at all, also across a crash. One that is refused
///   was never seen by a reader, and its offsets go to the next one.
/// - **Seen, then acknowledged.** Once a batch is acknowledged, every read gives it; the head is
///   moved before that and after the events can be read.
/// - **No hole is passed silently.** A page is consecutive. Where the event after a position is missing,
///   [`Slice::from`] is beyond that position, just before the next event there is.
/// - **Retention.** What the bounds allow is kept, to the event, and nobody is shown more, though files may
///   have it still. `first` never moves back while the log is open.
/// - **Keys.** A batch whose key is in the window is not appended; it is acknowledged with the places
///   of the first, and not before that one is, whether its events are still kept or not. With other
///   events it is refused. Keys count in the bytes that are kept.
/// - **Bounds.** No call holds more than one page in memory. Only `append` with [`WhenFull::Wait`],
///   `configure` and `delete` may block, and none needs the caller's runtime to go on.
pub(crate) trait Log: fmt::Debug + Send + Sync {
    /// Takes a batch over. It is kept, or about to be.
    fn append(
        &self,
        now: UnixTime,
        batch: &Batch,
        when_full: WhenFull,
    ) -> Result<Receipt, PublishError>;

    /// Tells when it may be worth trying again after [`PublishError::Busy`]; `None` when a log is
    /// never busy.
    fn room(&self) -> Option<&Notify>;

    /// The events after `after`, oldest first, as many as fit: `events_max`, and `bytes_max` unless
    /// the first alone is larger.
    fn read(&self, now: UnixTime, after: u64, limit: PageLimit) -> Result<Slice, StorageError>;

    /// Bytes of the data of the events after `after`: what a reader who is there has to read. On disk it may be
    /// off by what the index is coarse. Takes no longer for more events.
    fn data_bytes_after(&self, after: u64) -> u64;

    /// Offset of the oldest event kept, exactly, as a read says it. May read a piece of the disk, as a read does.
    fn first(&self, now: UnixTime) -> u64;

    /// Offset before the oldest event kept whose time is `time` or later; the head where there is none. Reads a piece of
    /// the disk or two, however much is kept.
    fn since(&self, now: UnixTime, time: UnixTime) -> Result<u64, StorageError>;

    /// Its extent, without the disk. What is too old by `now` alone may still count, up to a file of it, until the
    /// next `read`, `append` or `first`; by other bounds it is exact.
    fn extent(&self, now: UnixTime) -> Extent;

    /// The newest note of a batch that is kept, or was.
    fn note(&self) -> Option<Note>;

    /// Keeps a note without a batch: the newest one from now on.
    fn set_note(&self, note: Note) -> Result<(), StorageError>;

    /// Returns whether a key is in the window.
    fn knows(&self, now: UnixTime, key: IdempotencyKey) -> bool;

    /// Its health.
    fn health(&self) -> Health;

    /// Changes what may change while it is open. That they could not be noted down is told by `health`.
    fn configure(&self, options: TopicOptions);

    /// Ends it and removes what it keeps. What is handed over and not acknowledged is refused.
    fn delete(&self) -> Result<(), StorageError>;
}

/// The conduct of a publisher while as much waits as may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WhenFull {
    /// Is told at once.
    Refuse,
    /// Blocks its thread, within a bound.
    Wait,
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    /// Offset of the oldest event kept, or of the next one to come when none is.
    pub(crate) first: u64,
    /// Offset of the newest event.
    pub(crate) head: u64,
    /// The offset that reading went on after.
    pub(crate) from: u64,
    pub(crate) events: Vec<Arc<Event>>,
}

/// The events that a log holds, from the first to the last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) head: u64,
    /// Data and bookkeeping, keys included.
    pub(crate) bytes: u64,
}
