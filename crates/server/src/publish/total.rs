//! The limit on the total of all topics of a rule.
//!
//! Topics know their sizes, but the sizes are not added up for each event. Admitted bytes are added to the last sum,
//! which becomes too high, since retention drops events. Only when that estimate would exceed the limit, the sum is
//! computed again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The shortest interval between two sums after one that found little room, since each goes through all topics.
const SUM_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Room below this fraction of the limit is little. With more room, sums are rare.
const LITTLE: u64 = 16;

/// The limit of a rule, and the bytes that count against it.
#[derive(Debug)]
pub(super) struct Total {
    bytes_max: u64,
    counted: Mutex<Estimate>,
}

#[derive(Debug)]
struct Estimate {
    /// The upper estimate of the bytes kept and under way; `None` before the first sum.
    bytes: Option<u64>,
    /// The time of the last sum, if it found little room.
    little_at: Option<Instant>,
    /// The bytes that are admitted and maybe not in their topic yet.
    on_the_way: u64,
    admitted: u64,
    deletions: u64,
}

/// The admission of some bytes, which are under way until this is dropped.
#[derive(Debug)]
pub(super) struct Admission {
    total: Arc<Total>,
    bytes: u64,
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.total.counted().on_the_way -= self.bytes;
    }
}

impl Total {
    pub(super) fn new(bytes_max: u64) -> Self {
        let counted =
            Estimate { bytes: None, little_at: None, on_the_way: 0, admitted: 0, deletions: 0 };
        Self { bytes_max, counted: Mutex::new(counted) }
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Admits some bytes if there is room for them. `sum` adds up all topics; it does not block other callers.
    pub(super) fn admit(
        self: &Arc<Self>,
        now: Instant,
        bytes: u64,
        sum: impl FnOnce() -> u64,
    ) -> Option<Admission> {
        let mut counted = self.counted();
        let fits = |kept: u64| kept.saturating_add(bytes) <= self.bytes_max;
        if !counted.bytes.is_some_and(fits) {
            let is_fresh = |at: Instant| now.saturating_duration_since(at) < SUM_INTERVAL_MIN;
            if counted.little_at.is_some_and(is_fresh) {
                return None;
            }
            // Bytes under way may be in the sum already, and so may bytes that are admitted meanwhile; they then
            // count twice until the next sum.
            let Estimate { on_the_way, admitted, deletions, .. } = *counted;
            drop(counted);
            let kept = sum().saturating_add(on_the_way);
            counted = self.counted();
            let kept = kept.saturating_add(counted.admitted.wrapping_sub(admitted));
            let is_little = self.bytes_max.saturating_sub(kept) < self.bytes_max / LITTLE;
            let is_current = counted.deletions == deletions;
            (counted.bytes, counted.little_at) =
                (Some(kept), (is_little && is_current).then_some(now));
        }
        let kept = counted.bytes.filter(|kept| fits(*kept))?;
        counted.bytes = Some(kept + bytes);
        counted.on_the_way += bytes;
        counted.admitted = counted.admitted.wrapping_add(bytes);
        Some(Admission { total: Arc::clone(self), bytes })
    }

    /// Records a deletion, after which a new sum is worthwhile.
    pub(super) fn forget(&self) {
        let mut counted = self.counted();
        (counted.bytes, counted.little_at) = (None, None);
        counted.deletions += 1;
    }

    fn counted(&self) -> MutexGuard<'_, Estimate> {
        // No method panics while it holds the lock.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: fn() -> u64 = || panic!("summed up");

    #[test]
    fn as_much_is_admitted_as_there_is_room_for_and_not_a_byte_more() {
        let (total, now) = (Arc::new(Total::new(100)), Instant::now());
        let first = total.admit(now, 40, || 30);
        assert!(first.is_some());
        assert!(total.admit(now, 30, NEVER).is_some(), "up to the last byte");
        assert!(total.admit(now, 1, || 60).is_none(), "40 are on their way");
        assert!(total.admit(now, 0, NEVER).is_some());
        drop(first);
        assert!(total.admit(now + SUM_INTERVAL_MIN, 40, || 60).is_some());
    }

    #[test]
    fn while_there_is_room_it_is_summed_up_as_often_as_that_is_used_up() {
        let (total, now) = (Arc::new(Total::new(100)), Instant::now());
        for _ in 0..10 {
            assert!(total.admit(now, 90, || 10).is_some());
        }
    }

    #[test]
    fn with_little_room_it_is_summed_up_once_in_a_while() {
        let (total, now) = (Arc::new(Total::new(160)), Instant::now());
        assert!(total.admit(now, 20, || 151).is_none());
        let later = now + SUM_INTERVAL_MIN;
        assert!(total.admit(later - Duration::from_nanos(1), 20, NEVER).is_none());
        assert!(total.admit(later, 20, || 150).is_none(), "10 are not little, and not enough");
        assert!(total.admit(later, 20, || 140).is_some());
    }

    #[test]
    fn nobody_waits_while_it_is_summed_up_and_what_comes_meanwhile_counts() {
        let (total, now) = (Arc::new(Total::new(100)), Instant::now());
        assert!(total.admit(now, 10, || 0).is_some());
        let admission = total.admit(now, 95, || {
            assert!(total.counted.try_lock().is_ok(), "held while it is summed up");
            // Another publisher is done before the sum is, which has not seen its topic.
            assert!(total.admit(now, 30, NEVER).is_some());
            0
        });
        assert!(admission.is_none(), "30 came meanwhile");
        assert!(total.admit(now + SUM_INTERVAL_MIN, 95, || 30).is_none());
        assert!(total.admit(now + 2 * SUM_INTERVAL_MIN, 70, || 30).is_some());
    }

    #[test]
    fn a_deletion_while_it_is_summed_up_has_it_summed_up_again_at_once() {
        let (total, now) = (Arc::new(Total::new(10)), Instant::now());
        let admission = total.admit(now, 1, || {
            total.forget();
            10
        });
        assert!(admission.is_none());
        assert!(total.admit(now, 1, || 9).is_some());
    }

    #[test]
    fn after_a_deletion_it_is_summed_up_at_once() {
        let (total, now) = (Arc::new(Total::new(10)), Instant::now());
        assert!(total.admit(now, 1, || 10).is_none());
        total.forget();
        assert!(total.admit(now, 1, || 9).is_some());
    }
}
