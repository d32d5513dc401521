//! Wakers, which make a connection send.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use tokio::sync::Notify;

/// The identity of a connection in a loop. No value is used twice.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Token {
    pub(super) key: u32,
    pub(super) generation: u32,
}

/// The queue of woken connections, which wakes the task that serves them: the loop, or the task of one connection.
#[derive(Debug, Default)]
pub(super) struct WakeQueue {
    woken: RefCell<Vec<Token>>,
    told: Notify,
}

impl WakeQueue {
    /// Queues a connection and wakes the task.
    fn wake(&self, token: Token) {
        let mut woken = self.woken.borrow_mut();
        // If the queue is not empty, the task has been woken and has not run since.
        if woken.is_empty() {
            self.told.notify_one();
        }
        if woken.last() != Some(&token) {
            woken.push(token);
        }
    }

    /// Wakes the task for another reason.
    pub(super) fn notify(&self) {
        self.told.notify_one();
    }

    /// Waits until the task is woken; returns at once if it was since the last call. Cancel safe.
    pub(super) async fn notified(&self) {
        self.told.notified().await;
    }

    /// Returns true if [`take`](Self::take) has connections.
    pub(super) fn has_woken(&self) -> bool {
        !self.woken.borrow().is_empty()
    }

    /// Takes the connections that were woken.
    pub(super) fn take(&self) -> Vec<Token> {
        self.woken.take()
    }
}

/// Wakes one connection. A waker is cheap to clone, and equal only to its clones.
#[derive(Clone, Debug)]
pub struct SendWaker {
    wakes: Rc<WakeQueue>,
    token: Token,
}

impl SendWaker {
    pub(super) fn new(wakes: &Rc<WakeQueue>, token: Token) -> Self {
        Self { wakes: Rc::clone(wakes), token }
    }

    /// Makes the loop call [`Handler::on_ready`](super::Handler::on_ready) for the connection, if it still exists.
    pub fn wake(&self) {
        self.wakes.wake(self.token);
    }
}

impl PartialEq for SendWaker {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.wakes, &other.wakes) && self.token == other.token
    }
}

impl Eq for SendWaker {}

impl Hash for SendWaker {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Rc::as_ptr(&self.wakes).hash(state);
        self.token.hash(state);
    }
}
