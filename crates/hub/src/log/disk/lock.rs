//! The locks of a data directory, and the order in which they are taken.
//!
//! Each lock has a place in that order: a thread that holds a lock takes only locks behind it. Debug builds, and so
//! all tests, check that.
//!
//! No thread holds the same lock of two topics. A thread that waits for the disk holds neither [`INTAKE`] nor
//! [`KEPT`], so publishers and readers never wait for the disk because of it. The one exception is the search for the
//! valid records of a damaged segment, which holds `KEPT`. The queue and the bytes that topics share have locks of their
//! own, after all of these.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file that is written: the writer's side of a log.
pub(super) const FILE: u8 = 1;
/// The phase of the directory.
pub(super) const PHASE: u8 = 2;
/// The facts in `topic.json`.
pub(super) const META: u8 = 3;
/// The changes to make before the first write.
pub(super) const LEFTOVER: u8 = 4;
/// The publishers' side of a log.
pub(super) const INTAKE: u8 = 5;
/// The readers' side of a log.
pub(super) const KEPT: u8 = 6;
/// The file of keys whose segments are gone.
pub(super) const CARRIED: u8 = 7;
/// The file of marks.
pub(super) const MARKS: u8 = 8;
/// A lock under which no other is taken.
pub(super) const LAST: u8 = 9;

#[derive(Debug, Default)]
pub(super) struct Lock<const PLACE: u8, T>(Mutex<T>);

impl<const PLACE: u8, T> Lock<PLACE, T> {
    pub(super) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }
}

/// Locks. No method panics while it holds one of these locks, so the value of a poisoned lock is still consistent.
pub(super) fn lock<const PLACE: u8, T>(lock: &Lock<PLACE, T>) -> Guard<'_, PLACE, T> {
    // Checks before it waits, so that a deadlock is reported.
    let held = HeldPlace::new();
    Guard { guard: lock.0.lock().unwrap_or_else(PoisonError::into_inner), _held: held }
}

/// The value of a lock that is held.
#[derive(Debug)]
pub(super) struct Guard<'a, const PLACE: u8, T> {
    guard: MutexGuard<'a, T>,
    _held: HeldPlace<PLACE>,
}

impl<const PLACE: u8, T> Deref for Guard<'_, PLACE, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<const PLACE: u8, T> DerefMut for Guard<'_, PLACE, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Records that this thread holds a lock of this place.
#[derive(Debug)]
struct HeldPlace<const PLACE: u8>;

#[cfg(debug_assertions)]
thread_local! {
    /// One bit for each place at which this thread holds a lock.
    static HELD: std::cell::Cell<u16> = const { std::cell::Cell::new(0) };
}

impl<const PLACE: u8> HeldPlace<PLACE> {
    fn new() -> Self {
        #[cfg(debug_assertions)]
        {
            let held = HELD.get();
            assert!(
                held >> PLACE == 0,
                "lock {PLACE} is taken under one at or behind it: {held:b}"
            );
            HELD.set(held | 1 << PLACE);
        }
        Self
    }
}

#[cfg(debug_assertions)]
impl<const PLACE: u8> Drop for HeldPlace<PLACE> {
    fn drop(&mut self) {
        HELD.set(HELD.get() & !(1 << PLACE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_taken_in_their_order_and_can_be_taken_again() {
        let (file, kept) = (Lock::<FILE, _>::new(1), Lock::<KEPT, _>::new(2));
        for _ in 0..2 {
            let (file, kept) = (lock(&file), lock(&kept));
            assert_eq!((*file, *kept), (1, 2));
        }
        drop(lock(&kept));
        drop(lock(&file));
    }

    #[test]
    #[should_panic(expected = "lock 1 is taken under one at or behind it")]
    fn a_lock_before_one_that_is_held_is_not_taken() {
        let (file, kept) = (Lock::<FILE, _>::new(1), Lock::<KEPT, _>::new(2));
        let _kept = lock(&kept);
        drop(lock(&file));
    }
}
