//! Wakers, which tell a connection that there is something to send.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use tokio::sync::Notify;

/// Which connection of a loop; never used twice.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Token {
    pub(super) key: u32,
    pub(super) generation: u32,
}

/// A bell that wakes a task, be it the loop with its many connections or one that has a task to itself.
#[derive(Debug, Default)]
pub(super) struct Bell {
    woken: RefCell<Vec<Token>>,
    told: Notify,
}

impl Bell {
    /// Wakes the task for one of its connections.
    fn wake(&self, token: Token) {
        let mut woken = self.woken.borrow_mut();
        // Whoever came first has told the task, and it has not been here since.
        if woken.is_empty() {
            self.told.notify_one();
        }
        if woken.last() != Some(&token) {
            woken.push(token);
        }
    }

    /// Wakes the task for something else.
    pub(super) fn ring(&self) {
        self.told.notify_one();
    }

    /// Returns once the task is woken, or was since the last time. Cancel safe.
    pub(super) async fn rung(&self) {
        self.told.notified().await;
    }

    /// Whether [`take`](Self::take) has anything.
    pub(super) fn has_woken(&self) -> bool {
        !self.woken.borrow().is_empty()
    }

    /// The connections it was woken for.
    pub(super) fn take(&self) -> Vec<Token> {
        self.woken.take()
    }
}

/// Wakes one connection. Cheap to clone; equal to its clones, and to no other connection's.
#[derive(Clone, Debug)]
pub struct Waker {
    bell: Rc<Bell>,
    token: Token,
}

impl Waker {
    pub(super) fn new(bell: &Rc<Bell>, token: Token) -> Self {
        Self { bell: Rc::clone(bell), token }
    }

    /// Has [`Handler::on_ready`](super::Handler::on_ready) called for the connection, if it is still there.
    pub fn wake(&self) {
        self.bell.wake(self.token);
    }
}

impl PartialEq for Waker {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.bell, &other.bell) && self.token == other.token
    }
}

impl Eq for Waker {}

impl Hash for Waker {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Rc::as_ptr(&self.bell).hash(state);
        self.token.hash(state);
    }
}
