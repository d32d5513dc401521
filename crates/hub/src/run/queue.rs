//! The queue of runs: order, places and slots. Pure.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use super::limits::RunLimits;

/// Those who wait for a slot, in order, and the number of slots taken.
#[derive(Debug)]
pub(crate) struct Queue<O, T> {
    waiting: VecDeque<(Option<O>, T)>,
    /// The number of waiting runs of each owner that has any.
    owners: HashMap<O, usize>,
    running: usize,
}

/// The reason why nobody more may wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueueFull {
    /// The queue is full.
    ForAll,
    /// The owner has too many in it.
    ForOwner,
}

impl<O: Copy + Eq + Hash, T> Queue<O, T> {
    pub(crate) fn new() -> Self {
        Self { waiting: VecDeque::new(), owners: HashMap::new(), running: 0 }
    }

    /// Checks that one more may come: there is a slot for it, or it may wait.
    pub(crate) fn admits(&self, limits: &RunLimits, owner: Option<O>) -> Result<(), QueueFull> {
        let waiting = self.waiting.len();
        let of_owner = owner.and_then(|owner| self.owners.get(&owner)).copied();
        if self.running + waiting < limits.running_max {
            Ok(())
        } else if waiting >= limits.queued_max {
            Err(QueueFull::ForAll)
        } else if owner.is_some() && of_owner.unwrap_or(0) >= limits.queued_per_owner_max {
            Err(QueueFull::ForOwner)
        } else {
            Ok(())
        }
    }

    /// Adds one at the end.
    pub(crate) fn push(&mut self, owner: Option<O>, item: T) {
        if let Some(owner) = owner {
            *self.owners.entry(owner).or_default() += 1;
        }
        self.waiting.push_back((owner, item));
    }

    /// Returns the next one, which takes a slot, if one is free.
    pub(crate) fn next(&mut self, limits: &RunLimits) -> Option<T> {
        if self.running >= limits.running_max {
            return None;
        }
        let (owner, item) = self.waiting.pop_front()?;
        self.leave(owner);
        self.running += 1;
        Some(item)
    }

    /// Returns a slot.
    pub(crate) fn release(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Removes one that waits.
    pub(crate) fn remove(&mut self, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let place = self.waiting.iter().position(|(_, item)| is_it(item))?;
        let (owner, item) = self.waiting.remove(place)?;
        self.leave(owner);
        Some(item)
    }

    /// Returns those that wait, in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter().map(|(_, item)| item)
    }

    /// Returns the number of slots taken.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    fn leave(&mut self, owner: Option<O>) {
        let Some(owner) = owner else { return };
        if let Some(count) = self.owners.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.owners.remove(&owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(running_max: usize, queued_max: usize, queued_per_owner_max: usize) -> RunLimits {
        RunLimits { running_max, queued_max, queued_per_owner_max, ..RunLimits::default() }
    }

    #[test]
    fn the_first_come_is_the_first_served_and_slots_are_limited() {
        let limits = limits(2, 9, 9);
        let mut queue = Queue::<u8, _>::new();
        (1..=4).for_each(|number| queue.push(None, number));
        assert_eq!(
            [queue.next(&limits), queue.next(&limits), queue.next(&limits)],
            [Some(1), Some(2), None]
        );
        queue.release();
        assert_eq!(queue.next(&limits), Some(3));
        assert_eq!(queue.waiting().copied().collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn the_queue_has_its_limit_and_each_owner_has_one() {
        let limits = limits(1, 3, 2);
        let mut queue = Queue::new();
        assert_eq!(queue.admits(&limits, Some('a')), Ok(()));
        queue.push(Some('a'), 0);
        queue.next(&limits);
        queue.push(Some('a'), 1);
        assert_eq!(queue.admits(&limits, Some('a')), Ok(()));
        queue.push(Some('a'), 2);
        assert_eq!(queue.admits(&limits, Some('a')), Err(QueueFull::ForOwner));
        assert_eq!(queue.admits(&limits, Some('b')), Ok(()));
        assert_eq!(queue.admits(&limits, None), Ok(()), "an exempt client has no limit of its own");
        queue.push(Some('b'), 3);
        assert_eq!(queue.admits(&limits, None), Err(QueueFull::ForAll));
        assert_eq!(queue.remove(|item| *item == 1), Some(1));
        assert_eq!(queue.admits(&limits, Some('a')), Ok(()));
    }

    #[test]
    fn without_a_queue_there_are_slots_alone() {
        let limits = limits(1, 0, 0);
        let mut queue = Queue::new();
        assert_eq!(queue.admits(&limits, Some(1)), Ok(()));
        queue.push(Some(1), 0);
        queue.next(&limits);
        assert_eq!(queue.admits(&limits, None), Err(QueueFull::ForAll));
    }

    proptest! {
        /// Steps: come (0), go on (1), leave (2), end (3).
        #[test]
        fn no_slot_and_no_one_is_lost(
            steps in prop::collection::vec((0_u8..4, 0_u8..3, 0_usize..9), 0..300),
            limits in (1_usize..4, 0_usize..6, 0_usize..4),
        ) {
            let limits = self::limits(limits.0, limits.1, limits.2);
            let (mut queue, mut running, mut line) = (Queue::new(), 0, Vec::<(u8, usize)>::new());
            for (number, (step, owner, place)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        let admits = queue.admits(&limits, Some(owner)).is_ok();
                        let of_owner = line.iter().filter(|(own, _)| *own == owner).count();
                        let waits = running + line.len() >= limits.running_max;
                        let fits = line.len() < limits.queued_max && of_owner < limits.queued_per_owner_max;
                        prop_assert_eq!(admits, !waits || fits);
                        if admits {
                            queue.push(Some(owner), number);
                            line.push((owner, number));
                        }
                    }
                    1 => {
                        let next = (running < limits.running_max && !line.is_empty()).then(|| line.remove(0).1);
                        running += usize::from(next.is_some());
                        prop_assert_eq!(queue.next(&limits), next);
                    }
                    2 => {
                        let gone = (place < line.len()).then(|| line.remove(place).1);
                        prop_assert_eq!(queue.remove(|item| Some(*item) == gone), gone);
                    }
                    _ if running > 0 => {
                        running -= 1;
                        queue.release();
                    }
                    _ => {}
                }
                let waiting: Vec<_> = line.iter().map(|(_, number)| *number).collect();
                prop_assert_eq!(queue.waiting().copied().collect::<Vec<_>>(), waiting);
                prop_assert_eq!(queue.running(), running);
                let owners = line.iter().map(|(owner, _)| owner).collect::<std::collections::BTreeSet<_>>();
                prop_assert_eq!(queue.owners.len(), owners.len());
            }
        }
    }
}
