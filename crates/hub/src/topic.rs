//! A topic: a named log that is appended to and read on from positions.

use std::any::Any;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

use crate::log::{DataDir, Extent, Log, MemoryLog, NoLog, Progress, WhenFull};
use crate::{
    After, Batch, Data, Epoch, Gap, GapReason, Health, IdempotencyKey, NewEvent, Note, Page,
    PageLimit, Position, PublishError, Published, ReadError, Receipt, Retention, Start,
    StorageError, TopicName, TopicOptions, UnixTime,
};

/// An append-only log of events with a name. Shared by reference; every method takes `&self`.
#[derive(Debug)]
pub struct Topic {
    name: TopicName,
    epoch: Epoch,
    /// None until it is created, of one that somebody waits for.
    log: OnceLock<Box<dyn Log>>,
    progress: watch::Sender<Progress>,
    /// Dropped when it is created, or gone.
    while_awaited: Mutex<Option<WhileAwaited>>,
}

/// The things that an awaited topic holds for those who list it: they are told by its drop that it is awaited no longer.
pub(crate) type WhileAwaited = Box<dyn Any + Send + Sync>;

/// The distance that a reader is behind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Lag {
    /// Events that it has not read, also those that are no longer kept; those kept, when its position is of
    /// another epoch.
    pub events: u64,
    /// Bytes of the data of those that are kept. Of what is on the disk alone about that, up to 64 KiB more.
    pub bytes: u64,
}

/// A topic's description of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicInfo {
    /// Its name.
    pub name: TopicName,
    /// The position of its newest event.
    pub head: Position,
    /// Offset of the oldest event kept.
    pub first: u64,
    /// Bytes kept, data and bookkeeping, keys included.
    pub bytes: u64,
}

impl Topic {
    /// An empty topic in memory that begins `epoch`.
    #[must_use]
    pub fn new(name: TopicName, epoch: Epoch, retention: Retention) -> Self {
        let topic = Self::awaited(name, epoch, None);
        topic.create_in_memory(retention.into());
        topic
    }

    /// One that is not created yet.
    pub(crate) fn awaited(name: TopicName, epoch: Epoch, held: Option<WhileAwaited>) -> Self {
        let (log, progress) = (OnceLock::new(), watch::Sender::new(Progress::default()));
        Self { name, epoch, log, progress, while_awaited: Mutex::new(held) }
    }

    pub(crate) fn create_in_memory(&self, options: TopicOptions) {
        self.begin(Box::new(MemoryLog::new(self.epoch, options, self.progress.clone())));
    }

    pub(crate) fn create_in(
        &self,
        data: &DataDir,
        options: TopicOptions,
    ) -> Result<(), StorageError> {
        let log = data.create(&self.name, self.epoch, options, self.progress.clone())?;
        self.begin(Box::new(log));
        Ok(())
    }

    /// Gets its log; the first one stays.
    fn begin(&self, log: Box<dyn Log>) {
        let _ = self.log.set(log);
    }

    /// A topic with this log, which moves `progress`.
    pub(crate) fn of(
        name: TopicName,
        epoch: Epoch,
        log: impl Log + 'static,
        progress: watch::Sender<Progress>,
    ) -> Self {
        let log: Box<dyn Log> = Box::new(log);
        Self { name, epoch, log: log.into(), progress, while_awaited: Mutex::default() }
    }

    /// The caller drops it: the topic is awaited no longer.
    pub(crate) fn take_held(&self) -> Option<WhileAwaited> {
        self.while_awaited.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn log(&self) -> &dyn Log {
        self.log.get().map_or(&NoLog, |log| &**log)
    }

    /// Returns whether it is created, and not only awaited: see [`Hub::await_topic`](crate::Hub::await_topic).
    #[must_use]
    pub fn is_created(&self) -> bool {
        self.log.get().is_some()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// Appends an event and wakes everyone who waits for it. Returns its position.
    ///
    /// In memory that is all done on return. On disk the event is **handed over** on return and seen by
    /// readers once it is written; the position is the one it has if it is kept, and [`Topic::health`]
    /// tells of one that could not be. While as much waits for the disk as may, this blocks its thread,
    /// at most 1 second; what it waits for needs no runtime to go on. [`Topic::append`] never blocks,
    /// and tells whether an event is kept.
    ///
    /// # Errors
    /// [`PublishError::TooBig`] when the event alone is larger than the log's bound in bytes,
    /// [`PublishError::Busy`] when the disk is still behind after 1 second, [`PublishError::Deleted`] and
    /// [`PublishError::Closed`].
    pub fn publish(&self, time: UnixTime, data: Data) -> Result<Position, PublishError> {
        self.takes_events()?;
        let batch = Batch::from(NewEvent { time, data });
        let receipt = self.log().append(time, &batch, WhenFull::Wait)?;
        Ok(receipt.published.last)
    }

    /// Appends a batch, all of it or nothing. The receipt completes once it is kept: in memory at once,
    /// on disk once it is written and, if the data directory says so, flushed. Never waits.
    ///
    /// A batch with a key that was published before is not appended again; the receipt has the positions
    /// of the first time, also when its events are no longer kept. `now` is the time that the age of keys is
    /// measured at.
    ///
    /// # Errors
    /// At once [`PublishError::Empty`], [`PublishError::TooBig`], [`PublishError::KeyReused`],
    /// [`PublishError::HeadMoved`], [`PublishError::Busy`] and [`PublishError::Closed`]; from the receipt [`PublishError::StorageFull`] and
    /// [`PublishError::StorageFailed`]; [`PublishError::Deleted`] from both.
    pub fn append(&self, now: UnixTime, batch: &Batch) -> Result<Receipt, PublishError> {
        self.takes_events()?;
        if batch.events.is_empty() {
            return Err(PublishError::Empty);
        }
        self.log().append(now, batch, WhenFull::Refuse)
    }

    /// Appends a batch as [`Topic::append`] does, and waits: for room while the disk is behind, and until
    /// the batch is kept.
    ///
    /// # Errors
    /// All of [`PublishError`] but [`PublishError::Busy`].
    ///
    /// # Cancel safety
    /// Dropping the future may leave the batch kept or not. Publish it again with the same key to be sure
    /// that it is there once.
    pub async fn publish_kept(
        &self,
        now: UnixTime,
        batch: &Batch,
    ) -> Result<Published, PublishError> {
        loop {
            // Begun before the attempt: what is taken from now on is not missed.
            let room = self.log().room().map(tokio::sync::Notify::notified);
            match (self.append(now, batch), room) {
                (Err(PublishError::Busy { .. }), Some(room)) => room.await,
                (taken, _) => return taken?.await,
            }
        }
    }

    /// The position that `start` stands for. One of another epoch stays as it is: the read that
    /// begins there tells of the gap. [`After::Earliest`], [`After::Last`] and [`Start::Since`] may read a piece of the
    /// disk or two, to be where reading begins without a gap; the others do not.
    ///
    /// # Errors
    /// [`ReadError::Ahead`] when it is a position of this log that was not reached yet,
    /// [`ReadError::Deleted`], and of [`Start::Since`] [`ReadError::Storage`] when the disk fails.
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
                .map_err(ReadError::Storage),
        }
    }

    /// The events after `position`, maybe none, and where to read on. Never waits for another event; what
    /// is no longer in memory is read from the disk, about one page of it.
    ///
    /// # Errors
    /// [`ReadError::Ahead`] when `position` is of this log and was not reached yet,
    /// [`ReadError::Deleted`], and [`ReadError::Storage`] when the disk fails.
    pub fn read(
        &self,
        now: UnixTime,
        position: Position,
        limit: PageLimit,
    ) -> Result<Page, ReadError> {
        self.gives_events()?;
        let is_own = position.epoch == self.epoch;
        let after = if is_own { position.offset } else { 0 };
        let slice = self.log().read(now, after, limit).map_err(ReadError::Storage)?;
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
        Ok(Page { first: slice.first, gap, events: slice.events, next })
    }

    /// Watches for growth.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { epoch: self.epoch, progress: self.progress.subscribe() }
    }

    /// Its contents now. Never waits for the disk, so events that have just become too old may still count; the next
    /// read says to the event what is kept.
    #[must_use]
    pub fn info(&self, now: UnixTime) -> TopicInfo {
        let extent = self.log().extent(now);
        TopicInfo {
            name: self.name.clone(),
            head: self.position(extent.head),
            first: extent.first,
            bytes: extent.bytes,
        }
    }

    /// The distance that a reader at this position is behind. Takes no longer for more events, and never waits for the disk.
    #[must_use]
    pub fn lag(&self, now: UnixTime, position: Position) -> Lag {
        let extent = self.log().extent(now);
        let is_own = position.epoch == self.epoch;
        let after = if is_own { position.offset } else { extent.first - 1 };
        let events = extent.head.saturating_sub(after);
        Lag { events, bytes: self.log().data_bytes_after(after) }
    }

    /// Returns whether a batch with this key was published within the window of keys, so that the same one is a retry.
    #[must_use]
    pub fn knows(&self, now: UnixTime, key: IdempotencyKey) -> bool {
        self.log().knows(now, key)
    }

    /// The note of the newest batch that has one and is kept, or was: retention does not take it. On disk it is as
    /// safe as the batch, so that both or none of them are found after any end.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        self.log().note()
    }

    /// Keeps a note without a batch, which is the newest from now on: what a publisher wants to find again that has
    /// nothing to publish yet. Blocks for the disk, and is not for every day.
    ///
    /// # Errors
    /// When it cannot be kept now. It is the newest all the same, and kept before the next event is.
    pub fn set_note(&self, note: Note) -> Result<(), StorageError> {
        self.log().set_note(note)
    }

    /// The health of the keeping of its events. In memory all is always well.
    #[must_use]
    pub fn health(&self) -> Health {
        self.log().health()
    }

    pub(crate) fn configure(&self, options: TopicOptions) {
        self.log().configure(options);
    }

    /// Ends it: readers are woken and told.
    pub(crate) fn delete(&self) -> Result<(), StorageError> {
        self.log().delete()?;
        self.progress.send_modify(|progress| progress.deleted = true);
        Ok(())
    }

    fn takes_events(&self) -> Result<(), PublishError> {
        if self.progress.borrow().deleted { Err(PublishError::Deleted) } else { Ok(()) }
    }

    fn gives_events(&self) -> Result<(), ReadError> {
        if self.progress.borrow().deleted { Err(ReadError::Deleted) } else { Ok(()) }
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

/// Tells when a topic has grown past a position, or was deleted.
#[derive(Clone, Debug)]
pub struct Head {
    epoch: Epoch,
    progress: watch::Receiver<Progress>,
}

impl Head {
    /// Waits until the topic has grown, or was deleted, since the last call, or since the watch began.
    /// Never returns again after the call that a deletion ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn grown(&mut self) {
        if self.progress.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until there is something to read after `position`: an event; or the word that the topic
    /// was deleted; or, at once, the gap when `position` is of another epoch.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn passed(&mut self, position: Position) {
        if position.epoch != self.epoch {
            return;
        }
        let is_past = |progress: &Progress| progress.deleted || progress.head > position.offset;
        if self.progress.wait_for(is_past).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests;
