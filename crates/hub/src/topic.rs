//! A topic: a named log that is appended to and read on from positions.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

use crate::log::MemoryLog;
use crate::{After, Data, Epoch, Event, Position, PublishError, ReadError, Retention, UnixTime};

/// A topic's name: 1 to 128 of `A-Z a-z 0-9 . _ -`, beginning with a letter or a digit, so that it
/// needs no escaping in a path.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// The longest name, in bytes.
    pub const BYTES_MAX: usize = 128;

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not a topic's name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a topic's name is 1 to 128 of A-Z a-z 0-9 . _ - and begins with a letter or a digit")]
pub struct TopicNameError;

impl FromStr for TopicName {
    type Err = TopicNameError;

    fn from_str(text: &str) -> Result<Self, TopicNameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !begins_well || text.len() > Self::BYTES_MAX || !text.bytes().all(allowed) {
            return Err(TopicNameError);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An append-only log of events with a name. Shared by reference; every method takes `&self`.
#[derive(Debug)]
pub struct Topic {
    name: TopicName,
    epoch: Epoch,
    log: Mutex<MemoryLog>,
    head: watch::Sender<u64>,
}

/// How much one [`Topic::read`] may return.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PageLimit {
    /// Most events in a page. Default 1,000.
    pub events_max: usize,
    /// Most bytes of data in a page, unless its first event alone is larger. Default 1 MiB.
    pub bytes_max: u64,
}

impl Default for PageLimit {
    fn default() -> Self {
        Self { events_max: 1_000, bytes_max: 1 << 20 }
    }
}

/// What a read gives: the events after a position, and the position to read on from.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Offset of the oldest event the log keeps, or of the next to come when it keeps none.
    pub first: u64,
    /// What is missing before `events`, if anything is.
    pub gap: Option<Gap>,
    /// In the log's order, without a hole.
    pub events: Vec<Arc<Event>>,
    /// Where to read on.
    pub next: Position,
}

/// Events a reader asked for and does not get.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gap {
    /// Why they are missing.
    pub reason: GapReason,
    /// The position the reader asked to read on from.
    pub after: Position,
    /// How many events are missing; `None` when that cannot be known.
    pub missed: Option<u64>,
    /// The position reading goes on from.
    pub resume: Position,
}

/// Why a reader does not get what it asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GapReason {
    /// The events were there and are no longer kept.
    Retention,
    /// The position is of another log; how many of its events were not seen is not known.
    Epoch,
}

/// What a topic says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicInfo {
    /// Its name.
    pub name: TopicName,
    /// The position of its newest event.
    pub head: Position,
    /// Offset of the oldest event kept.
    pub first: u64,
    /// Bytes kept, data and bookkeeping.
    pub bytes: u64,
}

impl Topic {
    /// An empty topic that begins `epoch`.
    #[must_use]
    pub fn new(name: TopicName, epoch: Epoch, retention: Retention) -> Self {
        let log = Mutex::new(MemoryLog::new(retention));
        Self { name, epoch, log, head: watch::Sender::new(0) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// Appends an event and wakes everyone who waits for it. Returns its position.
    ///
    /// # Errors
    /// [`PublishError::TooBig`] when the event alone is larger than the log's bound in bytes.
    pub fn publish(&self, time: UnixTime, data: Data) -> Result<Position, PublishError> {
        let mut log = self.log();
        let offset = log.append(time, data)?;
        log.expire(time);
        drop(log);
        // Two publishers can come here in the other order, so the head only ever moves forward.
        self.head.send_if_modified(|head| {
            let moved = *head < offset;
            *head = offset.max(*head);
            moved
        });
        Ok(self.position(offset))
    }

    /// The position that `after` stands for. One of another epoch stays as it is: the read that
    /// begins there tells of the gap.
    ///
    /// # Errors
    /// [`ReadError::Ahead`] when it is a position of this log that was not reached yet.
    pub fn start(&self, now: UnixTime, after: After) -> Result<Position, ReadError> {
        let mut log = self.log();
        log.expire(now);
        let before_first = log.first() - 1;
        match after {
            After::Position(position) => self.reached(position, log.head()).map(|()| position),
            After::Earliest => Ok(self.position(before_first)),
            After::Latest => Ok(self.position(log.head())),
            After::Newest => Ok(self.position(log.head().saturating_sub(1).max(before_first))),
        }
    }

    /// The events after `position`, maybe none, and where to read on. Never waits.
    ///
    /// # Errors
    /// [`ReadError::Ahead`] when `position` is of this log and was not reached yet.
    pub fn read(
        &self,
        now: UnixTime,
        position: Position,
        limit: PageLimit,
    ) -> Result<Page, ReadError> {
        let mut log = self.log();
        self.reached(position, log.head())?;
        log.expire(now);
        let first = log.first();
        let resume = self.position(first - 1);
        let gap = if position.epoch != self.epoch {
            Some(Gap { reason: GapReason::Epoch, after: position, missed: None, resume })
        } else if position.offset < resume.offset {
            let missed = Some(resume.offset - position.offset);
            Some(Gap { reason: GapReason::Retention, after: position, missed, resume })
        } else {
            None
        };
        let from = gap.map_or(position, |gap| gap.resume);
        let events = log.read(from.offset, limit.events_max, limit.bytes_max);
        let next = events.last().map_or(from, |event| self.position(event.offset));
        Ok(Page { first, gap, events, next })
    }

    /// Watches for growth.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { epoch: self.epoch, offset: self.head.subscribe() }
    }

    /// What it holds now.
    #[must_use]
    pub fn info(&self, now: UnixTime) -> TopicInfo {
        let mut log = self.log();
        log.expire(now);
        TopicInfo {
            name: self.name.clone(),
            head: self.position(log.head()),
            first: log.first(),
            bytes: log.bytes(),
        }
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

    fn log(&self) -> MutexGuard<'_, MemoryLog> {
        // No method panics while it holds the lock, so a poisoned log is still a whole one.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells when a topic has grown past a position.
#[derive(Clone, Debug)]
pub struct Head {
    epoch: Epoch,
    offset: watch::Receiver<u64>,
}

impl Head {
    /// Waits until the topic has grown since the last call, or since the watch began. Never returns
    /// once the topic is gone.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn grown(&mut self) {
        if self.offset.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the topic has an event after `position`; at once when it has one already, or
    /// when `position` is of another epoch (reading there has a gap to tell). Never returns once
    /// the topic is gone.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn passed(&mut self, position: Position) {
        if position.epoch != self.epoch {
            return;
        }
        if self.offset.wait_for(|head| *head > position.offset).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests;
