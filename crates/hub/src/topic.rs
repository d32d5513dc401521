//! A topic: a named log to which publishers append and from which readers read.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

use crate::log::{DataDir, Extent, Log, MemoryLog, NoLog, SharedBytes, TopicProgress, WhenFull};
use crate::{
    After, Batch, Data, Epoch, Gap, GapReason, Health, IdempotencyKey, Keeps, NewEvent, Note, Page,
    PageLimit, Position, PublishError, Published, ReadError, Receipt, Retention, Start,
    StorageError, TopicName, TopicOptions, UnixTime,
};

/// An append-only log of events with a name. Shared by reference; every method takes `&self`.
///
/// ```
/// use anemone_hub::{After, Data, Epoch, PageLimit, Retention, Topic, UnixTime};
///
/// let wind = Topic::new("wind".parse()?, Epoch::random()?, Retention::default());
/// for speed in [2.74, 2.81, 2.65] {
///     wind.publish(UnixTime::now(), Data::json(&speed)?)?;
/// }
/// let now = UnixTime::now();
/// let first = wind.start(now, After::Earliest)?;
/// let page = wind.read(now, first, PageLimit { events_max: 2, ..PageLimit::default() })?;
/// let rest = wind.read(now, page.next, PageLimit::default())?;
/// assert_eq!((page.events.len(), rest.events[0].data.as_str()), (2, "2.65"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Topic {
    name: TopicName,
    epoch: Epoch,
    /// The log; `None` while the topic is only awaited.
    log: OnceLock<Box<dyn Log>>,
    progress: watch::Sender<TopicProgress>,
    /// Dropped when the topic is created or no longer awaited.
    while_awaited: Mutex<Option<WhileAwaited>>,
}

/// The guard of an awaited topic in the list of those. Dropping it removes the entry.
pub(crate) type WhileAwaited = Box<dyn Any + Send + Sync>;

/// The distance of a reader from the newest event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Lag {
    /// The events that it has not read, including those no longer kept; only the kept ones, if its position belongs
    /// to another epoch.
    pub events: u64,
    /// The bytes of data of the kept events. For events only on disk this is approximate, up to 64 KiB too many.
    pub bytes: u64,
}

/// A summary of a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicInfo {
    /// Its name.
    pub name: TopicName,
    /// The position of its newest event.
    pub head: Position,
    /// The offset of the oldest kept event.
    pub first: u64,
    /// The bytes kept: data and overhead, with the keys.
    pub bytes: u64,
    /// The time of its oldest event, if one is kept. On disk, it may be that of an event shortly before.
    pub oldest: Option<UnixTime>,
    /// The time of its newest event, if one is kept. For a topic on disk without an event since the start, it is the
    /// latest time among the last ones.
    pub newest: Option<UnixTime>,
}

impl TopicInfo {
    /// Returns the number of kept events, with those that are damaged.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.head.offset.saturating_add(1).saturating_sub(self.first)
    }
}

impl Topic {
    /// Creates an empty topic in memory that begins `epoch`. It shares no bytes with others: without a limit in bytes,
    /// it keeps [`Hub::MEMORY_BYTES_MAX`](crate::Hub::MEMORY_BYTES_MAX).
    #[must_use]
    pub fn new(name: TopicName, epoch: Epoch, retention: Retention) -> Self {
        let topic = Self::awaited(name, epoch, None);
        topic.create_in_memory(retention.into(), &SharedBytes::new(SharedBytes::IN_MEMORY_MAX));
        topic
    }

    pub(crate) fn awaited(name: TopicName, epoch: Epoch, held: Option<WhileAwaited>) -> Self {
        let (log, progress) = (OnceLock::new(), watch::Sender::new(TopicProgress::default()));
        Self { name, epoch, log, progress, while_awaited: Mutex::new(held) }
    }

    pub(crate) fn create_in_memory(&self, options: TopicOptions, shared: &Arc<SharedBytes>) {
        self.set_log(Box::new(MemoryLog::new(self.epoch, options, shared, self.progress.clone())));
    }

    pub(crate) fn create_in(
        &self,
        data: &DataDir,
        options: TopicOptions,
    ) -> Result<(), StorageError> {
        let log = data.create(&self.name, self.epoch, options, self.progress.clone())?;
        self.set_log(Box::new(log));
        Ok(())
    }

    /// Sets its log; the first one stays.
    fn set_log(&self, log: Box<dyn Log>) {
        let _ = self.log.set(log);
    }

    /// Creates a topic with this log, which moves `progress`.
    pub(crate) fn of(
        name: TopicName,
        epoch: Epoch,
        log: impl Log + 'static,
        progress: watch::Sender<TopicProgress>,
    ) -> Self {
        let log: Box<dyn Log> = Box::new(log);
        Self { name, epoch, log: log.into(), progress, while_awaited: Mutex::default() }
    }

    /// Takes the guard, which the caller drops: the topic is no longer awaited.
    pub(crate) fn take_held(&self) -> Option<WhileAwaited> {
        self.while_awaited.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn log(&self) -> &dyn Log {
        self.log.get().map_or(&NoLog, |log| &**log)
    }

    /// Returns true if the topic is created, and not only awaited: see [`Hub::await_topic`](crate::Hub::await_topic).
    #[must_use]
    pub fn is_created(&self) -> bool {
        self.log.get().is_some()
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// Appends an event, wakes all waiting readers, and returns its position.
    ///
    /// In memory, all of that is done on return. On disk, the event is **handed over** on return, and readers see it
    /// once it is written. The position is the one that it has if it is kept; [`Topic::health`] reports one that
    /// could not be. While the disk's queue is full, this blocks its thread for at most 1 second, without depending
    /// on a runtime. [`Topic::append`] never blocks, and reports whether an event is kept.
    ///
    /// # Errors
    /// [`PublishError::TooBig`] when the event alone exceeds the log's limit in bytes, [`PublishError::Busy`] when
    /// the disk is still behind after 1 second, [`PublishError::Deleted`] and [`PublishError::Closed`].
    pub fn publish(&self, time: UnixTime, data: Data) -> Result<Position, PublishError> {
        self.takes_events()?;
        let batch = Batch::from(NewEvent { time, data });
        let receipt = self.log().append(time, &batch, WhenFull::Wait)?;
        Ok(receipt.published.last)
    }

    /// Appends a batch, as a whole or not at all. Never waits. The receipt completes when the batch is kept: in
    /// memory at once, on disk when it is written and, if the data directory requires it, flushed.
    ///
    /// A batch with a known key is not appended again; the receipt has the positions of the first time, even if those
    /// events are no longer kept. The age of keys is measured at `now`.
    ///
    /// # Errors
    /// At once [`PublishError::Empty`], [`PublishError::TooBig`], [`PublishError::KeyReused`],
    /// [`PublishError::HeadMoved`], [`PublishError::Busy`] and [`PublishError::Closed`]; from the receipt
    /// [`PublishError::StorageFull`] and [`PublishError::StorageFailed`]; from both [`PublishError::Deleted`].
    pub fn append(&self, now: UnixTime, batch: &Batch) -> Result<Receipt, PublishError> {
        self.takes_events()?;
        self.log().append(now, batch, WhenFull::Refuse)
    }

    /// Appends a batch like [`Topic::append`], and waits: for room while the disk is behind, and until the batch is
    /// kept.
    ///
    /// # Errors
    /// All of [`PublishError`] except [`PublishError::Busy`].
    ///
    /// # Cancel safety
    /// After dropping the future, the batch may be kept or not. Publish it again with the same key to make sure that
    /// it is there once.
    pub async fn publish_kept(
        &self,
        now: UnixTime,
        batch: &Batch,
    ) -> Result<Published, PublishError> {
        loop {
            // Begins before the attempt, so that no later notification is missed.
            let room = self.log().room().map(tokio::sync::Notify::notified);
            match (self.append(now, batch), room) {
                (Err(PublishError::Busy { .. }), Some(room)) => room.await,
                (taken, _) => return taken?.await,
            }
        }
    }

    /// Returns the position for `start`. A position of another epoch stays as it is, and the read from there reports
    /// the gap. [`After::Earliest`], [`After::Last`] and [`Start::Since`] may read one or two pieces of the disk, to
    /// begin without a gap; the others do not.
    ///
    /// # Errors
    /// [`ReadError::Ahead`] for a position of this log that was not reached yet, [`ReadError::Deleted`], and for
    /// [`Start::Since`] also [`ReadError::Storage`] when the disk fails.
    pub fn start(&self, now: UnixTime, start: impl Into<Start>) -> Result<Position, ReadError> {
        self.gives_events()?;
        let extent = || self.log().extent(now);
        match start.into() {
            Start::After(After::Position(position) | After::Anew(position)) => {
                self.reached(position, extent().head).map(|()| position)
            }
            Start::After(After::Earliest) => Ok(self.position(self.log().first(now) - 1)),
            Start::After(After::Latest) => Ok(self.position(extent().head)),
            Start::Newest => {
                let Extent { first, head, .. } = extent();
                Ok(self.position(head.saturating_sub(1).max(first - 1)))
            }
            Start::After(After::Last(count)) => {
                let (first, head) = (self.log().first(now), extent().head);
                Ok(self.position(head.saturating_sub(count.get()).max(first - 1)))
            }
            Start::Since(time) => self
                .log()
                .since(now, time)
                .map(|offset| self.position(offset))
                .map_err(|error| self.read_error(error)),
        }
    }

    /// Returns the events after `position`, maybe none, and the position to continue from. Never waits for another
    /// event. Events that are not in memory are read from disk, about one page of it.
    ///
    /// # Errors
    /// - [`ReadError::Ahead`] when `position` belongs to this log and was not reached yet.
    /// - [`ReadError::Ended`] when nothing is left of a topic that has ended, even if it is deleted by now.
    /// - [`ReadError::Deleted`] for any other topic that is deleted.
    /// - [`ReadError::Storage`] when the disk fails.
    pub fn read(
        &self,
        now: UnixTime,
        position: Position,
        limit: PageLimit,
    ) -> Result<Page, ReadError> {
        let is_own = position.epoch == self.epoch;
        if is_own && self.ends_at(position.offset) {
            return Err(ReadError::Ended);
        }
        self.gives_events()?;
        let after = if is_own { position.offset } else { 0 };
        let slice = self.log().read(now, after, limit).map_err(|error| self.read_error(error))?;
        // Events that a deletion has dropped meanwhile are no gap.
        self.gives_events()?;
        self.reached(position, slice.head)?;
        let from = self.position(slice.from);
        let gap = |reason, missed| Gap { reason, after: position, missed, resume: from };
        let gap = if !is_own {
            Some(gap(GapReason::Epoch, None))
        } else if slice.from > after {
            let is_kept = after + 1 >= slice.first;
            let reason = if is_kept { GapReason::Damaged } else { GapReason::Retention };
            Some(gap(reason, Some(slice.from - after)))
        } else {
            None
        };
        let next = slice.events.last().map_or(from, |event| self.position(event.offset));
        if slice.is_last && gap.is_none() && slice.events.is_empty() {
            return Err(ReadError::Ended);
        }
        Ok(Page { first: slice.first, gap, events: slice.events, next, is_last: slice.is_last })
    }

    /// Watches the topic for new events.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { epoch: self.epoch, progress: self.progress.subscribe() }
    }

    /// Returns a summary of its contents. Never waits for the disk, so events that have just become too old may still
    /// count; the next read is exact.
    #[must_use]
    pub fn info(&self, now: UnixTime) -> TopicInfo {
        let extent = self.log().extent(now);
        TopicInfo {
            name: self.name.clone(),
            head: self.position(extent.head),
            first: extent.first,
            bytes: extent.bytes,
            oldest: extent.oldest,
            newest: extent.newest,
        }
    }

    /// Returns what it keeps; `None` while it is only awaited.
    #[must_use]
    pub fn keeps(&self) -> Option<Keeps> {
        self.log().keeps()
    }

    /// Returns true if its events are in a data directory, and so survive a restart.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.log().is_on_disk()
    }

    /// Returns the distance of a reader at this position. Its time does not depend on the number of events, and it
    /// never waits for the disk.
    #[must_use]
    pub fn lag(&self, now: UnixTime, position: Position) -> Lag {
        let extent = self.log().extent(now);
        let is_own = position.epoch == self.epoch;
        let after = if is_own { position.offset } else { extent.first - 1 };
        let events = extent.head.saturating_sub(after);
        Lag { events, bytes: self.log().data_bytes_after(after) }
    }

    /// Returns true if a batch with this key was published within the window of keys, so that this is a retry.
    #[must_use]
    pub fn knows(&self, now: UnixTime, key: IdempotencyKey) -> bool {
        self.log().knows(now, key)
    }

    /// Returns the note of the newest batch that has one; retention does not remove it. On disk it is as safe as its
    /// batch: after any end, both are there or neither.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        self.log().note()
    }

    /// Keeps a note without a batch, which becomes the newest: for a publisher that has nothing to publish yet.
    /// Blocks for the disk, so use it rarely.
    ///
    /// # Errors
    /// When it cannot be kept now. It is the newest all the same, and is kept before the next event.
    pub fn set_note(&self, note: Note) -> Result<(), StorageError> {
        self.log().set_note(note)
    }

    /// Returns the health of its storage. In memory it is always good.
    #[must_use]
    pub fn health(&self) -> Health {
        self.log().health()
    }

    /// Ends the topic: it takes no more events, its readers get the rest, and then [`ReadError::Ended`]. Returns false,
    /// and changes nothing, if it has ended before, or is not a topic in memory.
    pub fn end(&self) -> bool {
        self.log().end(UnixTime::default(), None)
    }

    /// Publishes the last event and ends the topic, in one step. The limits of the topic do not refuse the event.
    /// Returns false, and does nothing, if it has ended before.
    pub(crate) fn end_with(&self, last: NewEvent) -> bool {
        self.log().end(last.time, Some(last))
    }

    /// Drops the oldest events until the topic takes at most `bytes`, or has only its newest event.
    pub(crate) fn shrink_to(&self, bytes: u64) {
        self.log().shrink_to(bytes);
    }

    pub(crate) fn bytes(&self, now: UnixTime) -> u64 {
        self.log().extent(now).bytes
    }

    pub(crate) fn configure(&self, options: TopicOptions) {
        self.log().configure(options);
    }

    /// Deletes the topic, and wakes and notifies its readers.
    pub(crate) fn delete(&self) -> Result<(), StorageError> {
        self.log().delete()?;
        self.progress.send_modify(|progress| progress.deleted = true);
        Ok(())
    }

    fn takes_events(&self) -> Result<(), PublishError> {
        if self.progress.borrow().deleted { Err(PublishError::Deleted) } else { Ok(()) }
    }

    fn gives_events(&self) -> Result<(), ReadError> {
        let is_deleted = self.progress.borrow().deleted || self.log().is_deleted();
        if is_deleted { Err(ReadError::Deleted) } else { Ok(()) }
    }

    fn read_error(&self, error: StorageError) -> ReadError {
        // A deletion removes the files that a reader is about to open.
        self.gives_events().err().unwrap_or(ReadError::Storage(error))
    }

    fn ends_at(&self, offset: u64) -> bool {
        let progress = self.progress.borrow();
        progress.ended && progress.head == offset
    }

    fn position(&self, offset: u64) -> Position {
        Position { epoch: self.epoch, offset }
    }

    fn reached(&self, position: Position, head: u64) -> Result<(), ReadError> {
        if position.epoch == self.epoch && position.offset > head {
            return Err(ReadError::Ahead { position, head: self.position(head) });
        }
        Ok(())
    }
}

/// Watches a topic for new events, its end and its deletion.
///
/// ```
/// use anemone_hub::{After, Data, Epoch, Retention, Topic, UnixTime};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let wind = Topic::new("wind".parse()?, Epoch::random()?, Retention::default());
/// let position = wind.start(UnixTime::now(), After::Latest)?;
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let mut head = wind.head();
/// let waiting = head.passed(position);
/// wind.publish(UnixTime::now(), Data::json(&2.74)?)?; // usually by another task
/// waiting.await;
/// let page = wind.read(UnixTime::now(), position, Default::default())?;
/// assert_eq!(page.events.len(), 1);
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Head {
    epoch: Epoch,
    progress: watch::Receiver<TopicProgress>,
}

impl Head {
    /// Waits until the topic has grown, ended or was deleted since the last call, or since the watch began. Returns
    /// only once for an end and for a deletion, and then never again.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn grown(&mut self) {
        if self.progress.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until there is something to read after `position`: an event, the end or the deletion of the topic, or, at
    /// once, the gap if `position` belongs to another epoch.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn passed(&mut self, position: Position) {
        if position.epoch != self.epoch {
            return;
        }
        let is_past = |progress: &TopicProgress| {
            progress.deleted || progress.ended || progress.head > position.offset
        };
        if self.progress.wait_for(is_past).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests;
