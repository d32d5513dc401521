//! Wakers, which make a connection send.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    shared: Arc<SharedQueue>,
}

/// The part of the queue that other threads use, too.
#[derive(Debug, Default)]
struct SharedQueue {
    woken: Mutex<Vec<Token>>,
    /// True if there may be connections in `woken`.
    has_woken: AtomicBool,
    told: Notify,
}

impl WakeQueue {
    /// Queues a connection and wakes the task.
    fn wake(&self, token: Token) {
        let mut woken = self.woken.borrow_mut();
        // If the queue is not empty, the task has been woken and has not run since.
        if woken.is_empty() {
            self.notify();
        }
        if woken.last() != Some(&token) {
            woken.push(token);
        }
    }

    /// Wakes the task for another reason.
    pub(super) fn notify(&self) {
        self.shared.told.notify_one();
    }

    /// Waits until the task is woken; returns at once if it was since the last call. Cancel safe.
    pub(super) async fn notified(&self) {
        self.shared.told.notified().await;
    }

    /// Returns true if [`take`](Self::take) has connections.
    pub(super) fn has_woken(&self) -> bool {
        !self.woken.borrow().is_empty() || self.shared.has_woken.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Vec<Token> {
        let mut woken = self.woken.take();
        if self.shared.has_woken.load(Ordering::Acquire) {
            self.shared.take(&mut woken);
        }
        woken
    }
}

impl SharedQueue {
    /// Queues a connection and wakes the task.
    fn wake(&self, token: Token) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        if woken.last() != Some(&token) {
            woken.push(token);
        }
        if !self.has_woken.swap(true, Ordering::Release) {
            self.told.notify_one();
        }
    }

    fn take(&self, taken: &mut Vec<Token>) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_woken.store(false, Ordering::Release);
        taken.append(&mut woken);
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

    /// Returns a waker of the same connection for other threads, which costs a little more.
    #[must_use]
    pub fn to_sync(&self) -> SyncWaker {
        SyncWaker { wakes: Arc::clone(&self.wakes.shared), token: self.token }
    }
}

/// Wakes one connection from any thread.
#[derive(Clone, Debug)]
pub struct SyncWaker {
    wakes: Arc<SharedQueue>,
    token: Token,
}

impl SyncWaker {
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn a_connection_is_woken_from_any_thread_once_until_it_is_taken() {
        let wakes = Rc::<WakeQueue>::default();
        let tokens = [0, 1].map(|key| Token { key, generation: 1 });
        let wakers = tokens.map(|token| SendWaker::new(&wakes, token));
        let shared = wakers[1].to_sync();
        thread::spawn(move || (0..3).for_each(|_| shared.wake())).join().unwrap();
        wakes.notified().await;
        wakers[0].wake();
        assert!(wakes.has_woken());
        assert_eq!(wakes.take(), tokens);
        assert!(!wakes.has_woken() && wakes.take().is_empty());
        let shared = wakers[0].to_sync();
        let woken = thread::spawn(move || shared.wake());
        while !wakes.has_woken() {
            wakes.notified().await;
        }
        assert_eq!(wakes.take(), [tokens[0]]);
        woken.join().unwrap();
    }
}
