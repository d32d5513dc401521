//! The same messages for many connections of a thread.
//!
//! Each message is encoded once. A member is a position in the log of them: it is woken once for a burst,
//! queues all that is new to it, and the loop writes that in one go. So nothing is queued for one who is
//! slow, and who is too slow for the log is told.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use anemone_proto::{MisuseError, Prepared, Sender};
use slab::Slab;

use super::Waker;
use crate::{Held, Memory};

/// Messages to many. Clones are handles to the same.
#[derive(Clone, Debug)]
pub struct Broadcast(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    log: RefCell<Log>,
    members: RefCell<Slab<Waker>>,
    /// The members have been woken, and none was here since.
    is_told: Cell<bool>,
}

/// The newest messages.
#[derive(Debug)]
struct Log {
    messages: VecDeque<Rc<Prepared>>,
    bytes: usize,
    bytes_max: usize,
    held: Held,
    /// The number of messages that were dropped before them.
    dropped: u64,
}

impl Log {
    fn count(&mut self) {
        self.held.set(self.bytes);
    }

    fn end(&self) -> u64 {
        self.dropped + self.messages.len() as u64
    }
}

/// A connection's place among the members; dropping it leaves.
#[derive(Debug)]
pub struct Member {
    broadcast: Rc<Shared>,
    key: usize,
    waker: Waker,
    /// Which message is its next.
    next: u64,
}

/// Why a member could not be given what is new.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DeliverError {
    /// It was too slow: messages that it did not get are no longer kept.
    #[error("too slow: {missed} messages were dropped before they could be sent")]
    Missed {
        /// The number of messages.
        missed: u64,
    },
    /// Nothing more can be sent to it.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
}

impl Broadcast {
    /// Queued for one member in one turn. What is left then waits for the next, so that a member
    /// who does not read keeps no more.
    const TURN_BYTES_MAX: usize = 64 << 10;

    /// Keeps messages of up to `bytes_max` bytes on the wire, together, for those who are slow; the
    /// newest always.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self::within(&Memory::default(), bytes_max)
    }

    /// The same; what it keeps counts in `memory`.
    #[must_use]
    pub fn within(memory: &Memory, bytes_max: usize) -> Self {
        let held = memory.share();
        let log = Log { messages: VecDeque::new(), bytes: 0, bytes_max, held, dropped: 0 };
        let (log, members) = (RefCell::new(log), RefCell::default());
        Self(Rc::new(Shared { log, members, is_told: Cell::new(false) }))
    }

    /// Makes a connection a member that gets all messages from now on.
    #[must_use]
    pub fn join(&self, waker: Waker) -> Member {
        let (broadcast, next) = (Rc::clone(&self.0), self.0.log.borrow().end());
        // None may be left of those who were told.
        broadcast.is_told.set(false);
        let key = broadcast.members.borrow_mut().insert(waker.clone());
        Member { broadcast, key, waker, next }
    }

    /// Sends a message to all members, and drops the oldest that no longer fit.
    pub fn send(&self, message: Rc<Prepared>) {
        let mut log = self.0.log.borrow_mut();
        log.bytes += message.frame_bytes();
        log.messages.push_back(message);
        while log.bytes > log.bytes_max && log.messages.len() > 1 {
            if let Some(oldest) = log.messages.pop_front() {
                log.bytes -= oldest.frame_bytes();
                log.dropped += 1;
            }
        }
        log.count();
        if !self.0.is_told.replace(true) {
            self.0.members.borrow().iter().for_each(|(_, waker)| waker.wake());
        }
    }

    /// Messages were lost on their way here: every member has missed so many.
    pub fn skip(&self, missed: u64) {
        let mut log = self.0.log.borrow_mut();
        log.dropped = log.end() + missed;
        log.messages.clear();
        log.bytes = 0;
        log.count();
        self.0.members.borrow().iter().for_each(|(_, waker)| waker.wake());
    }
}

impl Member {
    /// Queues what is new, for [`Handler::on_ready`](super::Handler::on_ready).
    ///
    /// # Errors
    /// [`DeliverError::Missed`], once, when messages are gone; those after them come with the next call.
    pub fn deliver(&mut self, sender: &mut Sender) -> Result<(), DeliverError> {
        self.broadcast.is_told.set(false);
        let log = self.broadcast.log.borrow();
        if self.next < log.dropped {
            let missed = log.dropped - self.next;
            self.next = log.dropped;
            return Err(DeliverError::Missed { missed });
        }
        let skip = usize::try_from(self.next - log.dropped).unwrap_or(usize::MAX);
        for message in log.messages.range(skip.min(log.messages.len())..) {
            if sender.queued_bytes() >= Broadcast::TURN_BYTES_MAX {
                self.waker.wake();
                break;
            }
            sender.send_prepared(message)?;
            self.next += 1;
        }
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.broadcast.members.borrow_mut().remove(self.key);
    }
}

#[cfg(test)]
mod tests;
