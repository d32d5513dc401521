//! A limit on the memory that a process holds for its peers, over all threads.
//!
//! A peer that does not read, or does not complete a message, makes this end hold data for it. An idle connection, a
//! waiting request and a reader have a cost as well. Each of these counts its bytes in a [`Reservation`]. Above the
//! limit, [`relieve`](Memory::relieve) makes some of them release their memory: first those whose peers make no
//! progress, beginning with the oldest, then the connections with the most open bytes, until the process holds little
//! enough.

use std::convert::Infallible;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

/// Memory that has been held for longer is released first.
const AGE_MAX: Duration = Duration::from_secs(600);
/// Memory that is younger is not released: a busy peer's data is held for moments.
const AGE_MIN: Duration = Duration::from_millis(50);
/// The factor from one age to the next, and the time that holders of one age have to release their memory.
const AGE_STEP: f64 = 0.75;
const STEP_TIME: Duration = Duration::from_millis(2);
/// A connection with fewer open bytes is not closed: every client may have that much open, and others had better
/// wait.
const OPEN_BYTES_MIN: usize = 64 << 10;
/// The interval between rounds while the process still holds too much after one.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The memory that a process may hold for its peers. Clones are handles to the same count.
///
/// ```
/// use anemone_ws::Memory;
///
/// let memory = Memory::new(1000);
/// let mut body = memory.reserve(600); // counts until it is dropped
/// body.set(900);
/// assert_eq!((memory.held_bytes(), memory.is_exceeded()), (900, false));
/// let more = memory.reserve(200);
/// assert!(memory.is_exceeded());
/// drop((body, more));
/// assert_eq!(memory.held_bytes(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct Memory(Arc<MemoryState>);

#[derive(Debug)]
struct MemoryState {
    bytes_max: usize,
    held_bytes: AtomicUsize,
    is_exceeded: Notify,
    begun: Instant,
    /// The last time above the limit, in milliseconds after `begun`, plus 1; 0 before the first.
    exceeded_at: AtomicU64,
    release: watch::Sender<Option<Release>>,
}

/// A request to release memory; it says who is concerned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Release {
    /// Holders whose peers have made no progress since this time.
    Since(Instant),
    /// Connections with at least this many open bytes.
    Open(usize),
}

impl Default for Memory {
    /// Without a limit.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Memory {
    /// Creates a limit of `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(MemoryState {
            bytes_max,
            held_bytes: AtomicUsize::new(0),
            is_exceeded: Notify::new(),
            begun: Instant::now(),
            exceeded_at: AtomicU64::new(0),
            release: watch::Sender::new(None),
        }))
    }

    /// Returns the limit in bytes.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// Returns the number of bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.0.held_bytes.load(Ordering::Relaxed)
    }

    /// Returns true if more is held than the limit; nothing new should begin then.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.held_bytes() > self.bytes_max()
    }

    /// Returns true if the limit is exceeded, or was within the last `time`.
    #[must_use]
    pub fn was_exceeded_within(&self, time: Duration) -> bool {
        let at = self.0.exceeded_at.load(Ordering::Relaxed);
        self.is_exceeded()
            || at > 0 && self.0.begun + Duration::from_millis(at) + time > Instant::now()
    }

    /// Returns a reservation of 0 bytes.
    #[must_use]
    pub fn reservation(&self) -> Reservation {
        Reservation { memory: self.clone(), bytes: 0 }
    }

    /// Returns a reservation of `bytes` bytes.
    #[must_use]
    pub fn reserve(&self, bytes: usize) -> Reservation {
        let mut held = self.reservation();
        held.set(bytes);
        held
    }

    /// Returns true above nine eighths of the limit. Then connections are dropped at once, since even a reply that
    /// says so would take memory.
    #[must_use]
    pub fn is_far_exceeded(&self) -> bool {
        self.held_bytes() > self.bytes_max().saturating_add(self.bytes_max() / 8)
    }

    /// Whenever the limit is exceeded, makes holders release memory until a tenth of the limit is free. Runs while it
    /// is polled; one task of the process should.
    pub async fn relieve(&self) -> Infallible {
        loop {
            let exceeded = self.0.is_exceeded.notified();
            if !self.is_exceeded() {
                exceeded.await;
            }
            for release in self.schedule() {
                if !self.wants_relief() {
                    break;
                }
                self.0.release.send_replace(Some(release));
                sleep(STEP_TIME).await;
            }
            if self.is_exceeded() {
                sleep(LOOK_AGAIN).await;
            }
        }
    }

    /// Returns true while more than nine tenths of the limit is held, so that holders should go on releasing memory.
    #[must_use]
    pub fn wants_relief(&self) -> bool {
        self.held_bytes() > self.bytes_max() / 10 * 9
    }

    /// Returns the requests of one round, in order.
    fn schedule(&self) -> impl Iterator<Item = Release> + use<> {
        let ages = iter::successors(Some(AGE_MAX), |age| {
            (*age > AGE_MIN).then(|| age.mul_f64(AGE_STEP).max(AGE_MIN))
        });
        let sizes = iter::successors(Some(self.bytes_max() / 2), |bytes| Some(bytes / 2));
        let sizes = sizes.take_while(|bytes| *bytes >= OPEN_BYTES_MIN).map(Release::Open);
        // A clock that has just begun cannot represent that age.
        let ages = ages.filter_map(|age| Instant::now().checked_sub(age)).map(Release::Since);
        ages.chain(sizes)
    }

    /// Returns a receiver of each request to release memory.
    #[must_use]
    pub fn releases(&self) -> watch::Receiver<Option<Release>> {
        self.0.release.subscribe()
    }

    /// Waits until memory whose peer has made no progress since `since` must be released.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn must_release(&self, since: Instant) {
        let is_affected = |release: &Option<Release>| {
            matches!(release, Some(Release::Since(cutoff)) if since <= *cutoff)
                && self.wants_relief()
        };
        // The sender is a field of this value, so this does not fail.
        let _ = self.releases().wait_for(is_affected).await;
    }

    /// Waits until connections with `bytes()` open bytes must be closed.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn must_close(&self, bytes: impl Fn() -> usize) {
        let mut release = self.releases();
        while release.changed().await.is_ok() {
            let least = match *release.borrow_and_update() {
                Some(Release::Open(least)) if self.wants_relief() => least,
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

/// Bytes that one holder counts in a [`Memory`]. Dropping the reservation frees them.
#[derive(Debug)]
pub struct Reservation {
    memory: Memory,
    bytes: usize,
}

impl Reservation {
    /// Changes the reservation to `bytes` bytes.
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.memory.add(bytes - self.bytes);
        } else if bytes < self.bytes {
            self.memory.0.held_bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// Returns the number of reserved bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the memory in which the bytes count.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Drop for Reservation {
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
        let (mut one, mut other) = (memory.reservation(), memory.reservation());
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
                let mut held = memory.reservation();
                held.set(bytes);
                spawn_local(async move {
                    memory.must_release(Instant::now()).await;
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
            // Releases only as many as necessary. Ages are grouped in steps; within a step the order is arbitrary.
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
                let held = memory.reserve(bytes);
                spawn_local(async move {
                    memory.must_close(|| bytes).await;
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
