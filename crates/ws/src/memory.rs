//! The memory that a process holds for its peers, all threads together, and how much that may be.
//!
//! A peer that does not read, or does not send the rest, has this end hold something for it. So has one that only
//! stays: a connection, a request that waits, a reader have their cost. Each such place counts
//! what it holds in a [`Held`]. When it is too much together, a [`relief`](Memory::relieve) has some let go of it: those
//! first whose peer does not go on, who held something for the longest time before the others; and then the connections on
//! which most is open, until little enough is held.

use std::convert::Infallible;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

/// A peer for whom something was held for longer is let go at once.
const AGE_MAX: Duration = Duration::from_secs(600);
/// Nobody younger has to let go: a busy peer holds something for moments.
const AGE_MIN: Duration = Duration::from_millis(50);
/// From one age to the next, and the time that those have who are concerned.
const AGE_STEP: f64 = 0.75;
const STEP_TIME: Duration = Duration::from_millis(2);
/// A connection on which less is open than this does not have to go: it has what any client may have, and others had
/// better wait.
const OPEN_BYTES_MIN: usize = 64 << 10;
/// The interval at which it is looked again, while nobody is left who could let go.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

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
    wanted: watch::Sender<Option<Wanted>>,
}

/// Those who are to let go of what is held for their peers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wanted {
    /// Those whose peer has not gone on since then, or for longer.
    Since(Instant),
    /// The connections on which so many bytes are open, or more.
    Open(usize),
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
            wanted: watch::Sender::new(None),
        }))
    }

    /// The number of bytes that it may hold.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// The number of bytes that it holds.
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

    /// A place that holds so much.
    #[must_use]
    pub fn hold(&self, bytes: usize) -> Held {
        let mut held = self.share();
        held.set(bytes);
        held
    }

    /// Whether it is an eighth more than it may be: then nobody is let in, not even to be told so in a reply of their own.
    #[must_use]
    pub fn is_far_exceeded(&self) -> bool {
        self.held_bytes() > self.bytes_max().saturating_add(self.bytes_max() / 8)
    }

    /// Has some let go of what they hold whenever it is too much, until it is a tenth less than it may be. For as long
    /// as it is polled, by one task of the process.
    pub async fn relieve(&self) -> Infallible {
        loop {
            let exceeded = self.0.is_exceeded.notified();
            if !self.is_exceeded() {
                exceeded.await;
            }
            for wanted in self.schedule() {
                if !self.wants_relief() {
                    break;
                }
                self.0.wanted.send_replace(Some(wanted));
                sleep(STEP_TIME).await;
            }
            if self.is_exceeded() {
                sleep(LOOK_AGAIN).await;
            }
        }
    }

    /// Whether somebody has yet to let go, once it was too much.
    #[must_use]
    pub fn wants_relief(&self) -> bool {
        self.held_bytes() > self.bytes_max() / 10 * 9
    }

    /// Those who are to let go, one kind after the other.
    fn schedule(&self) -> impl Iterator<Item = Wanted> + use<> {
        let ages = iter::successors(Some(AGE_MAX), |age| {
            (*age > AGE_MIN).then(|| age.mul_f64(AGE_STEP).max(AGE_MIN))
        });
        let sizes = iter::successors(Some(self.bytes_max() / 2), |bytes| Some(bytes / 2));
        let sizes = sizes.take_while(|bytes| *bytes >= OPEN_BYTES_MIN).map(Wanted::Open);
        // A clock that began a moment ago has no time that long ago.
        let ages = ages.filter_map(|age| Instant::now().checked_sub(age)).map(Wanted::Since);
        ages.chain(sizes)
    }

    /// Tells, each time it changes, who is to let go.
    #[must_use]
    pub fn wanted(&self) -> watch::Receiver<Option<Wanted>> {
        self.0.wanted.subscribe()
    }

    /// Returns once those are to let go whose peer has not gone on since `since`.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn wanted_back(&self, since: Instant) {
        let is_concerned = |wanted: &Option<Wanted>| {
            matches!(wanted, Some(Wanted::Since(cutoff)) if since <= *cutoff) && self.wants_relief()
        };
        // The sender is here, so this does not fail.
        let _ = self.wanted().wait_for(is_concerned).await;
    }

    /// Returns once the connections are to let go on which so much is open as `bytes` tells.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn open_wanted_back(&self, bytes: impl Fn() -> usize) {
        let mut wanted = self.wanted();
        while wanted.changed().await.is_ok() {
            let least = match *wanted.borrow_and_update() {
                Some(Wanted::Open(least)) if self.wants_relief() => least,
                _ => continue,
            };
            if bytes() >= least {
                return;
            }
        }
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

    /// The number of bytes that are held here.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory in which this counts, with all others.
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
    async fn the_oldest_let_go_first_and_as_many_as_need_to() {
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
            // As many as have to. Ages are gone through in steps, and those of one step go in any order.
            assert_eq!((gone.borrow().len(), memory.held_bytes()), (3, 85));
            assert!(gone.borrow().iter().all(|name| *name <= 3), "{gone:?}");
            assert!(memory.was_exceeded_within(Duration::from_secs(10)));
            assert!(!memory.was_exceeded_within(Duration::from_secs(4)));
            hold(11, 200);
            sleep(Duration::from_secs(5)).await;
            assert_eq!(memory.held_bytes(), 0, "even the youngest, if nothing else helps");
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn then_those_go_on_which_most_is_open_and_none_that_is_like_any_other() {
        const LITTLE: usize = OPEN_BYTES_MIN - 1;
        let gone = Rc::new(RefCell::new(Vec::new()));
        let test = async {
            let memory = Memory::new(100 * LITTLE);
            let relief = memory.clone();
            spawn_local(async move { relief.relieve().await });
            let open = |bytes: usize| {
                let (memory, gone) = (memory.clone(), Rc::clone(&gone));
                let held = memory.hold(bytes);
                spawn_local(async move {
                    memory.open_wanted_back(|| bytes).await;
                    gone.borrow_mut().push(bytes / LITTLE);
                    drop(held);
                });
            };
            for bytes in [10, 40, 20, 5].map(|times| times * LITTLE) {
                open(bytes);
                sleep(Duration::from_secs(1)).await;
            }
            assert!(gone.borrow().is_empty(), "so much may be held");
            (0..26).for_each(|_| open(LITTLE));
            sleep(Duration::from_secs(5)).await;
            assert_eq!(*gone.borrow(), [40], "the largest, which is enough");
            (0..100).for_each(|_| open(LITTLE));
            sleep(Duration::from_secs(5)).await;
            assert_eq!(*gone.borrow(), [40, 20, 10, 5], "the larger first, and nobody else");
            assert!(memory.is_exceeded());
        };
        LocalSet::new().run_until(test).await;
    }
}
