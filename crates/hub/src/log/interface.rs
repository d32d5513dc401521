//! The interface of a log, and the types of its calls.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::{
    Batch, Event, Health, IdempotencyKey, Keeps, NewEvent, Note, PageLimit, PublishError, Receipt,
    StorageError, TopicOptions, UnixTime,
};

/// The log of one topic, shared among threads.
///
/// The contract, which `contract` tests for each log:
/// - **Order.** Offsets count from 1. A batch gets consecutive ones; no two events have the same.
/// - **All or nothing.** A batch is kept whole or not at all, also across a crash. No reader ever sees a refused
///   batch, and its offsets go to the next one.
/// - **Seen, then acknowledged.** After a batch is acknowledged, every read returns it. The head moves after the
///   events can be read and before the acknowledgement.
/// - **No silent holes.** A page is consecutive. If the event after a position is missing, [`Slice::from`] is after
///   that position, just before the next event.
/// - **Retention.** Readers see exactly the events within the retention, though files may contain more. `first` never
///   moves back while the log is open.
/// - **Keys.** A batch whose key is in the window is not appended. It is acknowledged with the place of the first
///   batch, and not before that batch is, even if its events are no longer kept. With other events, or for another request, it is
///   refused. Keys count in the bytes kept.
/// - **Limits.** No call holds more than one page in memory. Only `append` with [`WhenFull::Wait`], `configure` and
///   `delete` may block, and none depends on the caller's runtime.
pub(crate) trait Log: fmt::Debug + Send + Sync {
    /// Takes a batch, which is kept or about to be.
    fn append(
        &self,
        now: UnixTime,
        batch: &Batch,
        when_full: WhenFull,
    ) -> Result<Receipt, PublishError>;

    /// Returns a notifier of the times when a retry after [`PublishError::Busy`] may succeed; `None` if the log is
    /// never busy.
    fn room(&self) -> Option<&Notify> {
        None
    }

    /// Returns the events after `after`, oldest first, up to the limits of a page. The first event may exceed
    /// `bytes_max`.
    fn read(&self, now: UnixTime, after: u64, limit: PageLimit) -> Result<Slice, StorageError>;

    /// Returns the bytes of data of the events after `after`. On disk, it is only as exact as the index. Its time
    /// does not depend on the number of events.
    fn data_bytes_after(&self, after: u64) -> u64;

    /// Returns the exact offset of the oldest kept event. May read a piece of the disk.
    fn first(&self, now: UnixTime) -> u64;

    /// Returns the offset before the oldest kept event whose time is `time` or later, or else the head. Reads one or
    /// two pieces of the disk.
    fn since(&self, now: UnixTime, time: UnixTime) -> Result<u64, StorageError>;

    /// Returns the extent without using the disk. Events that are too old at `now` may still count, up to one file of
    /// them, until the next `read`, `append` or `first`; the other limits are exact.
    fn extent(&self, now: UnixTime) -> Extent;

    /// Returns the newest note of a batch, kept or not.
    fn note(&self) -> Option<Note>;

    /// Keeps a note without a batch, which becomes the newest.
    fn set_note(&self, note: Note) -> Result<(), StorageError>;

    /// Returns true if the key of a batch that is kept, or about to be, is in the window.
    fn knows(&self, now: UnixTime, key: IdempotencyKey) -> bool;

    /// Returns what it keeps; `None` for the log of a topic that is not created.
    fn keeps(&self) -> Option<Keeps>;

    /// Returns true if its events survive a restart.
    fn is_on_disk(&self) -> bool {
        false
    }

    /// Returns its health. A log in memory is always well.
    fn health(&self) -> Health {
        Health::default()
    }

    /// Changes the options of an open log. `health` reports if they could not be saved.
    fn configure(&self, options: TopicOptions);

    /// Appends the last event, if there is one, and refuses all later ones: no event is ever after it. Its bytes come on top
    /// of those that the log may keep, and push out no other event. It counts as one of the events that the log may keep.
    /// Returns false, and does nothing, if the log has ended before, or if it is a log that cannot end.
    fn end(&self, _now: UnixTime, _last: Option<NewEvent>) -> bool {
        false
    }

    /// Drops the oldest events until the log takes at most `bytes`, or has only its newest event. Does nothing in a
    /// log that cannot end.
    fn shrink_to(&self, _bytes: u64) {}

    /// Closes the log and removes its contents. Unacknowledged batches are refused.
    fn delete(&self) -> Result<(), StorageError>;

    /// Returns true once `delete` can no longer fail. It may still remove contents then, so that reads fail.
    fn is_deleted(&self) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WhenFull {
    /// Fails at once.
    Refuse,
    /// Blocks its thread for a limited time.
    Wait,
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    /// The offset of the oldest kept event, or else that of the next one.
    pub(crate) first: u64,
    /// The offset of the newest event.
    pub(crate) head: u64,
    /// The offset after which reading continued.
    pub(crate) from: u64,
    /// True if the log has ended, and no event follows these.
    pub(crate) is_last: bool,
    pub(crate) events: Vec<Arc<Event>>,
}

/// The range of events in a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) head: u64,
    /// The bytes of data and overhead, with the keys.
    pub(crate) bytes: u64,
    /// The time of the oldest event, if one is kept; on disk, maybe of one that was before it in its file.
    pub(crate) oldest: Option<UnixTime>,
    /// The time of the newest event, if one is kept; on disk, the latest time of its newest piece.
    pub(crate) newest: Option<UnixTime>,
}
