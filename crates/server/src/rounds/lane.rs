//! Lanes: the tasks that have one place in the line together, such as those for the requests of one HTTP/2 connection.
//!
//! A lane is dear when its turns take whole shares. So is a new one, since nothing is known of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::turn::TURN_TIME;

/// The share of a round: two turns. The last task to begin may exceed it.
pub(super) const SHARE: Duration = TURN_TIME.saturating_mul(2);

/// The tasks that have one place in the line together.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Those who wait; while there are some, the lane is in a line. Changes only under the lock of the rounds.
    waiting: Mutex<VecDeque<oneshot::Sender<()>>>,
    /// The cost of its last turns: two more for each that took a whole share, one less for each other. One alone makes no
    /// lane dear, since the system may have done something else meanwhile.
    cost: AtomicU8,
}

/// The cost from which a lane is dear, that of a new one, and the greatest one.
const DEAR: u8 = 3;
const DEAREST: u8 = 4;

impl Default for Lane {
    fn default() -> Self {
        Self { waiting: Mutex::default(), cost: AtomicU8::new(DEAR) }
    }
}

impl Lane {
    pub(super) fn count(&self, time: Duration) {
        // Only one task of a lane has a turn at a time.
        let cost = self.cost.load(Ordering::Relaxed);
        let cost = if time >= SHARE { DEAREST.min(cost + 2) } else { cost.saturating_sub(1) };
        self.cost.store(cost, Ordering::Relaxed);
    }

    /// Admits its first task that is still there; false if there is none.
    pub(super) fn admit(&self) -> bool {
        let mut waiting = self.waiting();
        while let Some(next) = waiting.pop_front() {
            if next.send(()).is_ok() {
                return true;
            }
        }
        false
    }

    pub(super) fn is_waited_in(&self) -> bool {
        !self.waiting().is_empty()
    }

    pub(super) fn is_dear(&self) -> bool {
        self.cost.load(Ordering::Relaxed) >= DEAR
    }

    pub(super) fn waiting(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<()>>> {
        // No method panics while it holds the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_turn_in_three_makes_no_lane_dear_and_one_in_two_does() {
        let lane = Lane::default();
        assert!(lane.is_dear(), "nothing is known of it");
        let mut after = |time| {
            lane.count(time);
            lane.is_dear()
        };
        let (long, short) = (SHARE, SHARE / 2);
        let few = [short, short, short, long, short, short, long, short, short];
        assert!(!few.into_iter().any(&mut after));
        let dear = [long, short].into_iter().cycle().take(100).filter(|time| after(*time)).count();
        assert!(dear >= 90, "{dear}");
    }
}
