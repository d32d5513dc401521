//! Turns of clients at work of which only a little is done at the same time.
//!
//! As in the queue of runs, the clients who wait take turns, and none of them has more than half of the places while
//! others wait. Within a client, its connections take turns, and what comes on one connection comes in order. So
//! whoever waits is behind at most one of each other client, and one of each other connection of its own client,
//! however many those have.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::run::{OwnerKey, QueueLimits, SlotQueue};

/// One who waits for its turn.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Waiter {
    /// Its client. All who have none are one client, which may wait as often as it likes.
    pub client: Option<OwnerKey>,
    /// The number of its connection among those of the client.
    pub connection: u64,
}

/// The limits of [`Turns`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TurnLimits {
    /// The number of places: how much is done at the same time. At least one.
    pub places: usize,
    /// The most of one client that waits for a place.
    pub waiting_per_client_max: usize,
}

/// An error: too much of this client waits already.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{waiting_per_client_max} requests of this client wait for their turn already")]
pub struct TooManyWait {
    /// The limit.
    pub waiting_per_client_max: usize,
}

/// The places at a work, and those who wait for one. Cheap to clone; clones share the places.
#[derive(Clone, Debug)]
pub struct Turns(Arc<SharedTurns>);

#[derive(Debug)]
struct SharedTurns {
    limits: QueueLimits,
    line: Mutex<Line>,
}

/// A place at the work. Dropping it passes the place on.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    waiter: Waiter,
    number: u64,
}

impl Turns {
    /// Creates the places, which are all free.
    #[must_use]
    pub fn new(limits: TurnLimits) -> Self {
        let limits = QueueLimits {
            running_max: limits.places.max(1),
            queued_max: usize::MAX,
            queued_per_owner_max: limits.waiting_per_client_max,
        };
        Self(Arc::new(SharedTurns { limits, line: Mutex::new(Line::new()) }))
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// At once, when too much of the client waits already.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the line.
    pub async fn take(&self, waiter: Waiter) -> Result<Turn, TooManyWait> {
        let (call, called) = oneshot::channel();
        let turn = {
            let mut line = self.line();
            let waiting_per_client_max = self.0.limits.queued_per_owner_max;
            let is_full = line.queue.admits(&self.0.limits, waiter.client).is_err();
            if is_full {
                return Err(TooManyWait { waiting_per_client_max });
            }
            let number = line.enter(waiter, call);
            line.call_next(&self.0.limits);
            Turn { turns: self.clone(), waiter, number }
        };
        // Whoever waits is called, or has left the line with this future.
        let _ = called.await;
        Ok(turn)
    }

    /// Takes a place if one is free and nobody waits.
    #[must_use]
    pub fn try_take(&self) -> Option<Turn> {
        let mut line = self.line();
        if line.queue.running().len() >= self.0.limits.running_max || line.queue.len() > 0 {
            return None;
        }
        let waiter = Waiter::default();
        let number = line.enter(waiter, oneshot::channel().0);
        line.call_next(&self.0.limits);
        drop(line);
        Some(Turn { turns: self.clone(), waiter, number })
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // No method panics while it holds the lock.
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut line = self.turns.line();
        line.leave(self.waiter, self.number);
        line.call_next(&self.turns.0.limits);
    }
}

/// Those who wait.
#[derive(Debug)]
struct Line {
    /// The turns of the clients: one entry for each place that a client waits for, and one for each that it has.
    queue: SlotQueue<OwnerKey, Option<OwnerKey>, Option<OwnerKey>>,
    /// Those of each client who wait.
    clients: HashMap<Option<OwnerKey>, Connections>,
    next: u64,
}

/// Those of one client who wait.
#[derive(Debug, Default)]
struct Connections {
    /// The connections on which some wait, by their turn.
    turns: VecDeque<u64>,
    waiting: HashMap<u64, VecDeque<Waiting>>,
}

/// The number of one who waits, and the way to call it.
type Waiting = (u64, oneshot::Sender<()>);

impl Line {
    fn new() -> Self {
        Self { queue: SlotQueue::new(), clients: HashMap::new(), next: 0 }
    }

    /// Adds one as the last on its connection, and returns its number.
    fn enter(&mut self, waiter: Waiter, call: oneshot::Sender<()>) -> u64 {
        let number = self.next;
        self.next += 1;
        let Connections { turns, waiting } = self.clients.entry(waiter.client).or_default();
        let own = waiting.entry(waiter.connection).or_default();
        if own.is_empty() {
            turns.push_back(waiter.connection);
        }
        own.push_back((number, call));
        self.queue.push(waiter.client, waiter.client);
        number
    }

    /// Removes one who waits, or returns the place of one who has it.
    fn leave(&mut self, waiter: Waiter, number: u64) {
        let waits = self
            .clients
            .get_mut(&waiter.client)
            .is_some_and(|connections| connections.remove(waiter.connection, number));
        if waits {
            self.queue.remove(waiter.client, |_| true);
            self.forget_idle(waiter.client);
        } else {
            self.queue.release(|client| *client == waiter.client);
        }
    }

    /// Gives the free places to those whose turn it is.
    fn call_next(&mut self, limits: &QueueLimits) {
        while let Some(client) = self.queue.next(limits, |client| *client) {
            let next = self.clients.get_mut(&client).and_then(Connections::next);
            self.forget_idle(client);
            if let Some((_, call)) = next {
                // Fails if it is about to leave, and then it returns its place.
                let _ = call.send(());
            }
        }
    }

    fn forget_idle(&mut self, client: Option<OwnerKey>) {
        if self.clients.get(&client).is_some_and(|connections| connections.turns.is_empty()) {
            self.clients.remove(&client);
        }
    }
}

impl Connections {
    /// Removes the first one on the connection whose turn it is.
    fn next(&mut self) -> Option<Waiting> {
        let connection = self.turns.pop_front()?;
        let own = self.waiting.get_mut(&connection)?;
        let next = own.pop_front();
        if own.is_empty() {
            self.waiting.remove(&connection);
        } else {
            self.turns.push_back(connection);
        }
        next
    }

    fn remove(&mut self, connection: u64, number: u64) -> bool {
        let Some(own) = self.waiting.get_mut(&connection) else { return false };
        let before = own.len();
        own.retain(|(waiting, _)| *waiting != number);
        let has_left = own.len() < before;
        if own.is_empty() {
            self.waiting.remove(&connection);
            self.turns.retain(|waiting| *waiting != connection);
        }
        has_left
    }
}

#[cfg(test)]
mod tests;
