//! Sends the same messages to many connections of a thread.
//!
//! Each message is encoded once and kept in a log. A member is a position in that log: a burst of messages wakes it
//! once, it queues all messages that are new to it, and the loop writes them together. A slow member therefore has no
//! queue of its own. A member that falls behind the log gets an error.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use anemone_proto::{MisuseError, Prepared, Sender};
use slab::Slab;

use super::SendWaker;
use crate::{Memory, Reservation};

/// A group of connections that get the same messages. Clones are handles to the same group.
#[derive(Clone, Debug)]
pub struct Broadcast(Rc<BroadcastState>);

#[derive(Debug)]
struct BroadcastState {
    log: RefCell<Log>,
    members: RefCell<Slab<SendWaker>>,
    /// True once the members have been woken, until the first of them delivers.
    is_told: Cell<bool>,
}

/// The newest messages.
#[derive(Debug)]
struct Log {
    messages: VecDeque<Rc<Prepared>>,
    bytes: usize,
    bytes_max: usize,
    held: Reservation,
    /// The number of messages that were dropped before these.
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

/// A connection's membership of a [`Broadcast`]. Dropping it leaves the group.
#[derive(Debug)]
pub struct Member {
    broadcast: Rc<BroadcastState>,
    key: usize,
    waker: SendWaker,
    /// The number of the next message to deliver.
    next: u64,
}

/// An error of [`Member::deliver`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DeliverError {
    /// The member was too slow: the log dropped messages before the member got them.
    #[error("too slow: {missed} messages were dropped before they could be sent")]
    Missed {
        /// The number of messages.
        missed: u64,
    },
    /// The connection takes no more messages.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
}

impl Broadcast {
    /// A member queues at most about this much in one turn and continues in the next, so a member that does not read
    /// holds no more.
    const TURN_BYTES_MAX: usize = 64 << 10;

    /// Creates a group whose log keeps up to `bytes_max` bytes of encoded messages, and always the newest message. The
    /// log counts in `memory`.
    #[must_use]
    pub fn new(memory: &Memory, bytes_max: usize) -> Self {
        let held = memory.reservation();
        let log = Log { messages: VecDeque::new(), bytes: 0, bytes_max, held, dropped: 0 };
        let (log, members) = (RefCell::new(log), RefCell::default());
        Self(Rc::new(BroadcastState { log, members, is_told: Cell::new(false) }))
    }

    /// Adds a connection, which gets all messages from now on.
    #[must_use]
    pub fn join(&self, waker: SendWaker) -> Member {
        let (broadcast, next) = (Rc::clone(&self.0), self.0.log.borrow().end());
        // The members that were woken may all have left.
        broadcast.is_told.set(false);
        let key = broadcast.members.borrow_mut().insert(waker.clone());
        Member { broadcast, key, waker, next }
    }

    /// Sends a message to all members. The log drops its oldest messages beyond its limit.
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

    /// Reports `missed` lost messages to every member.
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
    /// Queues the new messages. Called from [`Handler::on_ready`](super::Handler::on_ready).
    ///
    /// # Errors
    /// Returns [`DeliverError::Missed`] once when messages are gone; the next call delivers those after them.
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
