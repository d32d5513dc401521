//! The total that the topics of a rule may keep together.
//!
//! Topics say what each of them keeps, and nobody adds that up for each event: what is admitted is added to the last sum,
//! which is then too high, for retention drops what it drops. Only when that would pass the bound it is summed up anew.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shortest time between two sums after one that found little room: each goes through all topics.
const SUM_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Room of less than one in so many parts of the bound is little. With more, there are few sums for what is published.
const LITTLE: u64 = 16;

/// The bound of a rule, and what counts against it.
#[derive(Debug)]
pub(super) struct Total {
    bytes_max: u64,
    counted: Mutex<Counted>,
}

#[derive(Debug)]
struct Counted {
    /// At most this is kept and on its way. Nobody knows before the first sum.
    bytes: Option<u64>,
    /// The time of the last sum, if it found little room.
    little_at: Option<Instant>,
    /// Admitted and maybe not in its topic yet.
    on_the_way: u64,
    /// Admitted ever.
    admitted: u64,
    /// The number of deletions.
    deletions: u64,
}

/// That so many bytes may be published. They are on their way until this is dropped.
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
            Counted { bytes: None, little_at: None, on_the_way: 0, admitted: 0, deletions: 0 };
        Self { bytes_max, counted: Mutex::new(counted) }
    }

    /// Admits so many bytes if there is room for them. `sum` says what all topics keep; nobody else waits for it.
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
            // What is on its way may be there already, and so may what is admitted meanwhile; then it counts twice until
            // the next sum.
            let Counted { on_the_way, admitted, deletions, .. } = *counted;
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

    /// Something was deleted: it is worth summing up again.
    pub(super) fn forget(&self) {
        let mut counted = self.counted();
        (counted.bytes, counted.little_at) = (None, None);
        counted.deletions += 1;
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        // Nothing panics while it holds the lock.
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
