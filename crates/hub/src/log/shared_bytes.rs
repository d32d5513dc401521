//! The bytes that the logs of a hub share: those in memory, or those in a data directory.
//!
//! [`Allowances`] has the rule. Here are its lock and the logs that must evict. A log asks while it holds its own lock,
//! so it evicts nothing of others. Whoever has asked calls [`SharedBytes::evict`] once it holds no lock.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::allowances::{Allowances, Change, Need, enough};
use crate::{Batch, Keeps, PublishError, Retention};

/// The bytes that some logs share. No other lock is taken while its own is held.
#[derive(Debug)]
pub(crate) struct SharedBytes {
    sharing: Mutex<Sharing>,
    must_evict: AtomicBool,
    equal_share: AtomicU64,
}

#[derive(Debug)]
struct Sharing {
    allowances: Allowances,
    logs: HashMap<u64, Sharer>,
    lowered: Vec<Weak<dyn Evict>>,
}

#[derive(Debug)]
struct Sharer {
    bytes: Arc<AtomicU64>,
    log: Weak<dyn Evict>,
}

/// A log that can be told to evict what is beyond its allowance.
pub(crate) trait Evict: fmt::Debug + Send + Sync {
    fn evict(&self);
}

impl SharedBytes {
    /// The bytes that logs in memory share by default.
    pub(crate) const IN_MEMORY_MAX: u64 = 256 << 20;

    pub(crate) fn new(bytes_max: u64) -> Arc<Self> {
        let (logs, lowered) = Default::default();
        let sharing = Sharing { allowances: Allowances::new(bytes_max), logs, lowered };
        let must_evict = AtomicBool::new(false);
        Arc::new(Self { sharing: Mutex::new(sharing), must_evict, equal_share: bytes_max.into() })
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.lock().allowances.bytes_max()
    }

    /// Sets the bytes that all logs may hold together. Those that hold most evict the rest.
    pub(crate) fn set_bytes_max(&self, bytes_max: u64) {
        self.lock().allowances.set_bytes_max(bytes_max);
        self.fit();
    }

    /// Adds a log that holds this much already. [`fit`](Self::fit) then makes it and the others fit.
    pub(crate) fn join(self: &Arc<Self>, held: u64, log: Weak<dyn Evict>) -> Allowance {
        let bytes = Arc::new(AtomicU64::new(held));
        let mut sharing = self.lock();
        let number = sharing.allowances.join(held);
        sharing.logs.insert(number, Sharer { bytes: Arc::clone(&bytes), log });
        self.equal_share.store(sharing.allowances.equal_share(), Ordering::Relaxed);
        Allowance { shared: Arc::clone(self), number, bytes }
    }

    /// Checks that a log which joins now could take a batch of this size.
    pub(crate) fn check_another(
        &self,
        retention: Retention,
        bytes: u64,
    ) -> Result<(), PublishError> {
        let most = if retention.shares_bytes() {
            self.lock().allowances.check_another(bytes).err()
        } else {
            (bytes > retention.bytes_max).then_some(retention.bytes_max)
        };
        let bytes_max = most.unwrap_or(u64::MAX).min(Batch::BYTES_MAX);
        if most.is_none() && bytes <= bytes_max {
            return Ok(());
        }
        Err(PublishError::TooBig { bytes, bytes_max })
    }

    /// Lowers the largest allowances, so that all together fit, and evicts.
    pub(crate) fn fit(&self) {
        let mut sharing = self.lock();
        self.equal_share.store(sharing.allowances.equal_share(), Ordering::Relaxed);
        let changes = sharing.allowances.fit();
        self.apply(&mut sharing, changes, None);
        drop(sharing);
        self.evict();
    }

    /// Evicts from the logs whose allowances were lowered. The caller holds no lock.
    pub(crate) fn evict(&self) {
        if self.must_evict.swap(false, Ordering::AcqRel) {
            let lowered = std::mem::take(&mut self.lock().lowered);
            lowered.iter().filter_map(Weak::upgrade).for_each(|log| log.evict());
        }
    }

    /// Stores changed allowances, and lists the logs that must evict: all but the one that asked.
    fn apply(&self, sharing: &mut Sharing, changes: Vec<Change>, asker: Option<u64>) {
        for Change { topic, bytes } in changes {
            let Some(sharer) = sharing.logs.get(&topic) else { continue };
            sharer.bytes.store(bytes, Ordering::Relaxed);
            if asker != Some(topic) {
                sharing.lowered.push(Weak::clone(&sharer.log));
                self.must_evict.store(true, Ordering::Release);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sharing> {
        // No method panics while it holds the lock.
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The allowance of one log. Dropping it frees its bytes.
#[derive(Debug)]
pub(crate) struct Allowance {
    shared: Arc<SharedBytes>,
    number: u64,
    /// Changed only under the lock of `shared`, also for the sake of other logs.
    bytes: Arc<AtomicU64>,
}

impl Allowance {
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the retention with the bytes that the log may hold now.
    pub(crate) fn limit(&self, retention: Retention) -> Retention {
        if retention.shares_bytes() {
            return Retention { bytes_max: self.bytes(), ..retention };
        }
        retention
    }

    /// Returns the bytes that the log may hold, or is likely to: at least an equal share.
    pub(crate) fn likely(&self, retention: Retention) -> Retention {
        let limit = self.limit(retention);
        if retention.shares_bytes() {
            let equal_share = self.shared.equal_share.load(Ordering::Relaxed);
            return Retention { bytes_max: limit.bytes_max.max(equal_share), ..limit };
        }
        limit
    }

    pub(crate) fn keeps(&self, retention: Retention) -> Keeps {
        let shared_bytes_max = retention.shares_bytes().then(|| self.shared.bytes_max());
        Keeps { retention, shared_bytes_max }
    }

    /// Asks for more, if the log needs more, and returns the bytes that it may hold now.
    pub(crate) fn grow(&self, retention: Retention, need: Need) -> u64 {
        if !retention.shares_bytes() {
            return retention.bytes_max;
        }
        if need.whole > self.bytes() {
            let mut sharing = self.shared.lock();
            let changes = sharing.allowances.grow(self.number, need);
            self.shared.apply(&mut sharing, changes, Some(self.number));
        }
        self.bytes()
    }

    /// Returns the most bytes of a batch that the log could take now, if that is less than `bytes`.
    pub(crate) fn refuses(&self, retention: Retention, bytes: u64) -> Option<u64> {
        if !retention.shares_bytes() {
            return (bytes > retention.bytes_max).then_some(retention.bytes_max);
        }
        if bytes <= self.bytes() {
            return None;
        }
        let sharing = self.shared.lock();
        let is_refused = !sharing.allowances.can_hold(self.number, bytes);
        is_refused.then(|| self.bytes().max(sharing.allowances.equal_share()))
    }

    /// Gives back what a log that holds this much is unlikely to need soon.
    pub(crate) fn settle(&self, retention: Retention, held: u64) {
        let lower = match retention.shares_bytes() {
            true => enough(held, self.bytes()),
            false => (self.bytes() > 0).then_some(0),
        };
        if let Some(lower) = lower {
            let mut sharing = self.shared.lock();
            sharing.allowances.lower(self.number, lower);
            // Another log may have taken more meanwhile.
            let bytes = lower.min(self.bytes());
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }
}

impl Allowance {
    /// Frees its bytes: the log takes nothing more.
    pub(crate) fn leave(&self) {
        let mut sharing = self.shared.lock();
        sharing.allowances.leave(self.number);
        sharing.logs.remove(&self.number);
        self.bytes.store(0, Ordering::Relaxed);
        self.shared.equal_share.store(sharing.allowances.equal_share(), Ordering::Relaxed);
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.leave();
    }
}
