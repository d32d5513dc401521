//! The locks of a data directory, and the one order in which they are taken.
//!
//! A thread that holds one of these takes only those behind it:
//!
//! 1. `file` of a [`DiskLog`](super::log::DiskLog): the writer's side
//! 2. `phase` of [`Disk`](super::shared::Disk)
//! 3. `meta` of [`Groundwork`](super::groundwork::Groundwork)
//! 4. `leftover` of the same
//! 5. `intake` of a `DiskLog`: the publishers' side
//! 6. `kept` of [`Readable`](super::reading::Readable): the readers' side
//! 7. `carried` of a `DiskLog`
//! 8. `marks` of `Disk`
//! 9. any one of the others: that of the [`Queue`](super::queue::Queue), `logs` of [`Desk`](super::desk::Desk), both
//!    `fault`s
//!
//! A thread holds locks of one topic at a time. While it waits for the disk it holds none but 1 to 4, 7 and 8, so that
//! publishers and readers never wait for the disk behind it; the one exception is the search for what is left of a
//! segment in which damage was read, under 6.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// No method panics while it holds one of these locks, so a poisoned one still guards a whole thing.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
