//! A log in memory: a ring of shared events, bounded by [`Retention`].

use std::collections::VecDeque;
use std::sync::Arc;

use crate::event::EVENT_OVERHEAD_BYTES;
use crate::retention::Held;
use crate::{Data, Event, PublishError, Retention, UnixTime};

/// Events `first()..=head()`, without a hole.
#[derive(Debug)]
pub(crate) struct MemoryLog {
    events: VecDeque<Arc<Event>>,
    bytes: u64,
    head: u64,
    retention: Retention,
}

impl MemoryLog {
    pub(crate) fn new(retention: Retention) -> Self {
        Self { events: VecDeque::new(), bytes: 0, head: 0, retention }
    }

    /// Offset of the newest event ever appended; 0 before the first.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Offset of the oldest event kept, or of the next one to come when none is.
    pub(crate) fn first(&self) -> u64 {
        self.head + 1 - self.events.len() as u64
    }

    /// What the log holds, in [`Retention::bytes_max`]'s count.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends and returns the new head.
    pub(crate) fn append(&mut self, time: UnixTime, data: Data) -> Result<u64, PublishError> {
        let event = Event { offset: self.head + 1, time, data };
        let bytes = event.cost_bytes();
        if bytes > self.retention.bytes_max {
            return Err(PublishError::TooBig { bytes, bytes_max: self.retention.bytes_max });
        }
        self.head = event.offset;
        self.bytes += bytes;
        self.events.push_back(Arc::new(event));
        Ok(self.head)
    }

    /// Drops what retention no longer keeps.
    pub(crate) fn expire(&mut self, now: UnixTime) {
        while let Some(oldest) = self.events.front() {
            let events = self.events.len() as u64;
            let held = Held { events, bytes: self.bytes, oldest: oldest.time };
            if !self.retention.is_passed(held, now) {
                return;
            }
            self.bytes -= oldest.cost_bytes();
            self.events.pop_front();
        }
    }

    /// The events after `offset`, oldest first, as many as fit: `events_max`, and `bytes_max`
    /// unless the first alone is larger. An offset before the log reads from its first event.
    pub(crate) fn read(&self, offset: u64, events_max: usize, bytes_max: u64) -> Vec<Arc<Event>> {
        let skip = usize::try_from((offset + 1).saturating_sub(self.first())).unwrap_or(usize::MAX);
        let available = self.events.len().saturating_sub(skip);
        let mut page = Vec::with_capacity(available.min(events_max));
        let mut bytes = 0;
        for event in self.events.iter().skip(skip).take(events_max) {
            bytes += event.cost_bytes() - EVENT_OVERHEAD_BYTES;
            if bytes > bytes_max && !page.is_empty() {
                break;
            }
            page.push(Arc::clone(event));
        }
        page
    }
}
