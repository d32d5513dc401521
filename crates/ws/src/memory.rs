//! What a process holds for its peers, all threads together, and how much that may be.
//!
//! A peer that does not read, or does not send the rest, has this end hold something for it. Each such place counts
//! what it holds in a [`Held`]. When it is too much together, those let go who have held something for
//! the longest time: a [`relief`](Memory::relieve) goes through the ages, the oldest first, until
//! little enough is held.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

/// Who has held something for longer lets go at once.
const AGE_MAX: Duration = Duration::from_secs(600);
/// Nobody younger has to let go: a busy peer holds something for moments.
const AGE_MIN: Duration = Duration::from_millis(50);
/// From one age to the next, and the time that those have who are concerned.
const AGE_STEP: f64 = 0.75;
const STEP_TIME: Duration = Duration::from_millis(2);

/// The bytes that a process may hold for its peers. Clones are handles to the same ones.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bytes_max: usize,
    held_bytes: AtomicUsize,
    is_exceeded: Notify,
    begun: Instant,
    /// Milliseconds after that, and 1.
    exceeded_at: AtomicU64,
    /// Who has held something since then, or for longer, is to let go.
    cutoff: watch::Sender<Option<Instant>>,
}

impl Default for Memory {
    /// As much as there is.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Memory {
    /// May hold so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Shared {
            bytes_max,
            held_bytes: AtomicUsize::new(0),
            is_exceeded: Notify::new(),
            begun: Instant::now(),
            exceeded_at: AtomicU64::new(0),
            cutoff: watch::Sender::new(None),
        }))
    }

    /// How much it may hold.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// How much it holds.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.0.held_bytes.load(Ordering::Relaxed)
    }

    /// Whether that is too much: nothing new is to be begun.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.held_bytes() > self.bytes_max()
    }

    /// Whether it is too much, or was so lately.
    #[must_use]
    pub fn was_exceeded_within(&self, time: Duration) -> bool {
        let at = self.0.exceeded_at.load(Ordering::Relaxed);
        self.is_exceeded()
            || at > 0 && self.0.begun + Duration::from_millis(at) + time > Instant::now()
    }

    /// A place that holds nothing yet.
    #[must_use]
    pub fn share(&self) -> Held {
        Held { memory: self.clone(), bytes: 0 }
    }

    /// Has those who hold something let go of it, the oldest first, whenever it is too much, until it is a tenth
    /// less than it may be. For as long as it is polled, by one task of the process or by several.
    pub async fn relieve(&self) -> Infallible {
        loop {
            let exceeded = self.0.is_exceeded.notified();
            if !self.is_exceeded() {
                exceeded.await;
            }
            let mut age = AGE_MAX;
            while self.held_bytes() > self.bytes_max() / 10 * 9 {
                // A clock that began a moment ago has no time that long ago.
                if let Some(cutoff) = Instant::now().checked_sub(age) {
                    self.0.cutoff.send_replace(Some(cutoff));
                }
                age = age.mul_f64(AGE_STEP).max(AGE_MIN);
                sleep(STEP_TIME).await;
            }
        }
    }

    /// Tells, each time it changes, since when one has to have held something to let go of it.
    #[must_use]
    pub fn cutoff(&self) -> watch::Receiver<Option<Instant>> {
        self.0.cutoff.subscribe()
    }

    /// Returns once those are to let go who have held something since `since`.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn wanted_back(&self, since: Instant) {
        // The sender is here, so this does not fail.
        let _ = self.cutoff().wait_for(|cutoff| cutoff.is_some_and(|cutoff| since <= cutoff)).await;
    }

    fn add(&self, bytes: usize) {
        let before = self.0.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.bytes_max() {
            let millis = self.0.begun.elapsed().as_millis();
            self.0
                .exceeded_at
                .store(u64::try_from(millis).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
            self.0.is_exceeded.notify_waiters();
        }
    }
}

/// Bytes that are held in one place; dropping it gives them back.
#[derive(Debug)]
pub struct Held {
    memory: Memory,
    bytes: usize,
}

impl Held {
    /// So much is held here now.
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.memory.add(bytes - self.bytes);
        } else if bytes < self.bytes {
            self.memory.0.held_bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// How much is held here.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What all hold together.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tokio::task::{LocalSet, spawn_local};

    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let memory = Memory::new(100);
        let (mut one, mut other) = (memory.share(), memory.share());
        one.set(60);
        other.set(40);
        assert!(!memory.is_exceeded());
        other.set(41);
        assert!(memory.is_exceeded());
        one.set(10);
        assert_eq!((memory.held_bytes(), memory.is_exceeded()), (51, false));
        drop((one, other));
        assert_eq!(memory.held_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_let_go_first_and_about_as_many_as_need_to() {
        let gone = Rc::new(RefCell::new(Vec::new()));
        let test = async {
            let memory = Memory::new(100);
            let relief = memory.clone();
            spawn_local(async move { relief.relieve().await });
            let hold = |name: u32, bytes| {
                let (memory, gone) = (memory.clone(), Rc::clone(&gone));
                let mut held = memory.share();
                held.set(bytes);
                spawn_local(async move {
                    memory.wanted_back(Instant::now()).await;
                    gone.borrow_mut().push(name);
                    drop(held);
                });
            };
            for name in 0..10 {
                hold(name, 10);
                sleep(Duration::from_secs(10)).await;
            }
            assert_eq!((memory.held_bytes(), gone.borrow().len()), (100, 0), "as much as it may");
            hold(10, 15);
            sleep(Duration::from_secs(5)).await;
            // About as many as have to, for ages are gone through in steps; those of one step in any order.
            gone.borrow_mut().sort_unstable();
            assert_eq!(*gone.borrow(), [0, 1, 2, 3]);
            assert_eq!(memory.held_bytes(), 75);
            assert!(memory.was_exceeded_within(Duration::from_secs(10)));
            assert!(!memory.was_exceeded_within(Duration::from_secs(4)));
            hold(11, 200);
            sleep(Duration::from_secs(5)).await;
            assert_eq!(memory.held_bytes(), 0, "even the youngest, if nothing else helps");
        };
        LocalSet::new().run_until(test).await;
    }
}
