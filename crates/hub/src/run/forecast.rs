//! The order in which those who wait get slots, if nobody comes or leaves. Pure.
//!
//! Takes the turns of [`SlotQueue`](super::queue::SlotQueue) ahead, with the number of each owner in place of the owner. It
//! takes one step for each owner at the beginning, and then a few for each run, however many wait.

use std::collections::{VecDeque, vec_deque};

pub(super) struct WaitingOwner<'a, T> {
    pub(super) turn: u64,
    /// The number of slots it has.
    pub(super) running: usize,
    pub(super) items: vec_deque::Iter<'a, T>,
}

/// Those who wait, in their order.
pub(super) struct Forecast<'a, T> {
    running_max: usize,
    owners: Vec<WaitingOwner<'a, T>>,
    /// The ring of turns: the one before and the one after each owner. The last entry is its beginning and end.
    ring: Vec<[usize; 2]>,
    /// The runs that have a slot, the oldest first; `None` for those who do not wait, since the order is the same without them.
    running: VecDeque<Option<usize>>,
}

impl<'a, T> Forecast<'a, T> {
    /// Begins with the owners who wait, by their turn, and with the turn of each who has a slot, the oldest first.
    pub(super) fn new(
        running_max: usize,
        owners: Vec<WaitingOwner<'a, T>>,
        running: impl Iterator<Item = u64>,
    ) -> Self {
        let number = |turn| owners.binary_search_by_key(&turn, |owner| owner.turn).ok();
        let running = running.map(number).collect();
        let len = owners.len() + 1;
        let ring = (0..len).map(|number| [(number + len - 1) % len, (number + 1) % len]).collect();
        Self { running_max, owners, ring, running }
    }

    fn next_owner(&self) -> Option<usize> {
        let half = self.running_max.div_ceil(2);
        let end = self.owners.len();
        let after = |number: &usize| Some(self.ring[*number][1]).filter(|after| *after != end);
        let first = after(&end)?;
        let mut turns = std::iter::successors(Some(first), after);
        Some(turns.find(|number| self.owners[*number].running < half).unwrap_or(first))
    }

    fn leave_turns(&mut self, number: usize) {
        let [before, after] = self.ring[number];
        self.ring[before][1] = after;
        self.ring[after][0] = before;
    }

    /// Moves an owner to the end of the turns, or out of them if none of its own waits.
    fn settle(&mut self, number: usize) {
        self.leave_turns(number);
        if self.owners[number].items.len() > 0 {
            let end = self.owners.len();
            let last = self.ring[end][0];
            self.ring[number] = [last, end];
            self.ring[last][1] = number;
            self.ring[end][0] = number;
        } else {
            // Leaving again changes nothing.
            self.ring[number] = [number; 2];
        }
    }

    /// Returns the oldest slot; false if there is none.
    fn release(&mut self) -> bool {
        let Some(oldest) = self.running.pop_front() else { return false };
        if let Some(number) = oldest {
            self.owners[number].running -= 1;
            self.settle(number);
        }
        true
    }
}

impl<'a, T> Iterator for Forecast<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        while self.running.len() >= self.running_max {
            if !self.release() {
                return None;
            }
        }
        let number = self.next_owner()?;
        let owner = &mut self.owners[number];
        let item = owner.items.next()?;
        owner.running += 1;
        self.running.push_back(Some(number));
        self.settle(number);
        Some(item)
    }
}
