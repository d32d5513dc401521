//! The locks of a data directory, and the one order in which they are taken.
//!
//! Locks are taken in this order: `file`, `begun` of [`Disk`], `meta`, `leftover`, `intake`, `kept`, `carried`, and of
//! [`Disk`] `marks`. While one of the others is held nothing more is locked: `logs` of [`Disk`], both `fault`, those of
//! the queue, `coming` of [`Disk`]. Of two topics nobody locks the same but `begin` of [`Disk`], which locks `meta`, `leftover` and `kept` of
//! one after the other. `file`, `begun`, `meta`, `leftover`, `carried` and `marks` are held while the disk is waited for.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// No method panics while it holds one of these locks, so a poisoned one still guards a whole thing.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
