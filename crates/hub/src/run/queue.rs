//! The queue of runs: whose turn it is, places and slots. Pure.
//!
//! The owners who wait take turns, and each one's own come in order. Owners who wait go to the end of the turns when
//! they get a slot, and when they return one; so a newcomer is behind those who wait already, and before the next one
//! of an owner who has just had a slot. An owner gets no more than half of the slots while others wait.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use super::forecast::{Forecast, WaitingOwner};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct QueueLimits {
    /// The number of slots.
    pub(crate) running_max: usize,
    pub(crate) queued_max: usize,
    pub(crate) queued_per_owner_max: usize,
}

/// Those who wait for a slot and those who have one. Whoever has no owner of its own belongs to the owner `None`.
#[derive(Debug)]
pub(crate) struct SlotQueue<O, T, R> {
    owners: HashMap<Option<O>, Owned<T>>,
    turns: BTreeMap<u64, Option<O>>,
    next_turn: u64,
    len: usize,
    /// Those who have slots, in the order in which they got them.
    running: VecDeque<(Option<O>, R)>,
}

#[derive(Debug)]
struct Owned<T> {
    waiting: VecDeque<T>,
    /// The number of slots it has.
    running: usize,
    /// 0 before its first turn.
    turn: u64,
}

/// The reason why nobody more may wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueueFull {
    /// The queue is full.
    ForAll,
    /// The owner has too many in it.
    ForOwner,
}

impl<O: Copy + Eq + Hash, T, R> SlotQueue<O, T, R> {
    pub(crate) fn new() -> Self {
        let (owners, turns, running) = (HashMap::new(), BTreeMap::new(), VecDeque::new());
        Self { owners, turns, next_turn: 1, len: 0, running }
    }

    /// Checks that one more may come: there is a slot for it, or it may wait. The owner `None` has no limit of its own.
    pub(crate) fn admits(&self, limits: &QueueLimits, owner: Option<O>) -> Result<(), QueueFull> {
        let waiting = self.len;
        let of_owner = self.len_of(owner);
        if self.running.len() + waiting < limits.running_max {
            Ok(())
        } else if waiting >= limits.queued_max {
            Err(QueueFull::ForAll)
        } else if owner.is_some() && of_owner >= limits.queued_per_owner_max {
            Err(QueueFull::ForOwner)
        } else {
            Ok(())
        }
    }

    /// Adds one as the last of its owner.
    pub(crate) fn push(&mut self, owner: Option<O>, item: T) {
        let new = || Owned { waiting: VecDeque::new(), running: 0, turn: 0 };
        let owned = self.owners.entry(owner).or_insert_with(new);
        owned.waiting.push_back(item);
        self.len += 1;
        if owned.waiting.len() == 1 {
            self.settle(owner);
        }
    }

    /// Returns the next one, which takes a slot, if one is free; `begin` returns what has the slot.
    pub(crate) fn next(&mut self, limits: &QueueLimits, begin: impl FnOnce(&T) -> R) -> Option<T> {
        if self.running.len() >= limits.running_max {
            return None;
        }
        let half = limits.running_max.div_ceil(2);
        let has_less = |owner| self.owners.get(owner).is_some_and(|owned| owned.running < half);
        // Two owners with half of the slots each leave none, so only one who waits alone has more.
        let owner = self.turns.values().find(|owner| has_less(owner));
        let owner = *owner.or_else(|| self.turns.values().next())?;
        let owned = self.owners.get_mut(&owner)?;
        let item = owned.waiting.pop_front()?;
        self.len -= 1;
        owned.running += 1;
        self.running.push_back((owner, begin(&item)));
        self.settle(owner);
        Some(item)
    }

    /// Returns the slot of one who has it.
    pub(crate) fn release(&mut self, is_it: impl Fn(&R) -> bool) {
        let place = self.running.iter().position(|(_, running)| is_it(running));
        let Some((owner, _)) = place.and_then(|place| self.running.remove(place)) else { return };
        if let Some(owned) = self.owners.get_mut(&owner) {
            owned.running -= 1;
            self.settle(owner);
        }
    }

    pub(crate) fn remove(&mut self, owner: Option<O>, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let owned = self.owners.get_mut(&owner)?;
        let place = owned.waiting.iter().position(is_it)?;
        let item = owned.waiting.remove(place)?;
        self.len -= 1;
        if owned.waiting.is_empty() {
            self.settle(owner);
        }
        Some(item)
    }

    /// Returns those that wait, in no order.
    pub(crate) fn all_waiting(&self) -> impl Iterator<Item = &T> {
        self.owners.values().flat_map(|owned| &owned.waiting)
    }

    /// Returns the number of those who wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn len_of(&self, owner: Option<O>) -> usize {
        self.owners.get(&owner).map_or(0, |owned| owned.waiting.len())
    }

    pub(crate) fn owners_waiting(&self) -> usize {
        self.turns.len()
    }

    pub(crate) fn last_but_one_of(&self, owner: Option<O>) -> Option<&T> {
        self.owners.get(&owner)?.waiting.iter().nth_back(1)
    }

    /// Returns those that wait, in the order in which they get slots if nobody comes or leaves, and the slots are
    /// returned in the order in which they were taken; at most `count` of them. Looks at as few owners and slots.
    pub(crate) fn next_in_line(
        &self,
        limits: &QueueLimits,
        count: usize,
    ) -> impl Iterator<Item = &T> {
        // With each step at most two owners go to the end of the turns: one who returns a slot, and one who gets it,
        // who is the first or the second.
        let near = self.turns.values().take(count.saturating_mul(2).saturating_add(2));
        let owners = near.filter_map(|owner| self.owners.get(owner));
        let owners = owners.map(|Owned { waiting, running, turn }| WaitingOwner {
            items: waiting.iter(),
            running: *running,
            turn: *turn,
        });
        let turn = |(owner, _): &(Option<O>, R)| self.owners.get(owner).map_or(0, |own| own.turn);
        let running = self.running.iter().map(turn);
        Forecast::new(limits.running_max, owners.collect(), running).take(count)
    }

    /// Returns those who have slots, in the order in which they got them.
    pub(crate) fn running(&self) -> impl ExactSizeIterator<Item = &R> {
        self.running.iter().map(|(_, running)| running)
    }

    /// Moves an owner to the end of the turns, or out of them if none of its own waits.
    fn settle(&mut self, owner: Option<O>) {
        let Some(owned) = self.owners.get_mut(&owner) else { return };
        self.turns.remove(&owned.turn);
        if !owned.waiting.is_empty() {
            owned.turn = self.next_turn;
            self.turns.insert(owned.turn, owner);
            self.next_turn += 1;
        } else if owned.running == 0 {
            self.owners.remove(&owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(running_max: usize, queued_max: usize, queued_per_owner_max: usize) -> QueueLimits {
        QueueLimits { running_max, queued_max, queued_per_owner_max }
    }

    type Numbers = SlotQueue<char, usize, usize>;

    fn next(queue: &mut Numbers, limits: &QueueLimits) -> Option<usize> {
        queue.next(limits, |number| *number)
    }

    fn waiting(queue: &Numbers, limits: &QueueLimits) -> Vec<usize> {
        queue.next_in_line(limits, usize::MAX).copied().collect()
    }

    #[test]
    fn the_first_come_is_the_first_served_and_slots_are_limited() {
        let limits = limits(2, 9, 9);
        let mut queue = Numbers::new();
        (1..=4).for_each(|number| queue.push(None, number));
        let began = [(); 3].map(|()| next(&mut queue, &limits));
        assert_eq!(began, [Some(1), Some(2), None]);
        queue.release(|number| *number == 1);
        assert_eq!(next(&mut queue, &limits), Some(3));
        assert_eq!(waiting(&queue, &limits), [4]);
        assert!(queue.running().eq(&[2, 3]));
    }

    #[test]
    fn the_queue_has_its_limit_and_each_owner_has_one() {
        let limits = limits(1, 3, 2);
        let mut queue = Numbers::new();
        assert_eq!(queue.admits(&limits, Some('a')), Ok(()));
        queue.push(Some('a'), 0);
        next(&mut queue, &limits);
        queue.push(Some('a'), 1);
        assert_eq!(queue.admits(&limits, Some('a')), Ok(()));
        queue.push(Some('a'), 2);
        assert_eq!(queue.admits(&limits, Some('a')), Err(QueueFull::ForOwner));
        assert_eq!(queue.admits(&limits, Some('b')), Ok(()));
        assert_eq!(queue.admits(&limits, None), Ok(()), "an exempt client has no limit of its own");
        queue.push(Some('b'), 3);
        assert_eq!(queue.admits(&limits, None), Err(QueueFull::ForAll));
        assert_eq!(queue.remove(Some('a'), |item| *item == 1), Some(1));
        assert_eq!(queue.admits(&limits, Some('a')), Ok(()));
    }

    #[test]
    fn without_a_queue_there_are_slots_alone() {
        let limits = limits(1, 0, 0);
        let mut queue = Numbers::new();
        assert_eq!(queue.admits(&limits, Some('a')), Ok(()));
        queue.push(Some('a'), 0);
        next(&mut queue, &limits);
        assert_eq!(queue.admits(&limits, None), Err(QueueFull::ForAll));
    }

    #[test]
    fn owners_take_turns_and_the_newcomer_is_before_the_one_who_has_just_had_a_slot() {
        let limits = limits(1, 99, 99);
        let mut queue = Numbers::new();
        (0..4).for_each(|number| queue.push(Some('a'), number));
        assert_eq!(next(&mut queue, &limits), Some(0));
        (10..12).for_each(|number| queue.push(Some('b'), number));
        queue.push(None, 20);
        assert_eq!(waiting(&queue, &limits), [10, 20, 1, 11, 2, 3]);
    }

    #[test]
    fn an_owner_has_half_of_the_slots_while_others_wait_and_all_of_them_otherwise() {
        let limits = limits(4, 99, 99);
        let mut queue = Numbers::new();
        (0..6).for_each(|number| queue.push(Some('a'), number));
        let began: Vec<_> = (0..4).map_while(|_| next(&mut queue, &limits)).collect();
        assert_eq!(began, [0, 1, 2, 3], "alone");
        (10..14).for_each(|number| queue.push(Some('b'), number));
        for expected in [10, 11] {
            queue.release(|number| *number < 10);
            assert_eq!(next(&mut queue, &limits), Some(expected));
        }
        queue.release(|number| *number >= 10);
        assert_eq!(next(&mut queue, &limits), Some(12), "a has half of the slots");
        queue.release(|number| *number < 10);
        assert_eq!(next(&mut queue, &limits), Some(4), "b has half of the slots");
    }

    proptest! {
        /// Steps: come (0, 1), go on (2), leave (3), end (4).
        #[test]
        fn no_slot_and_no_one_is_lost_and_places_are_true(
            steps in prop::collection::vec((0_u8..5, 0_u8..4, 0_usize..9), 0..200),
            limits in (1_usize..6, 0_usize..12, 0_usize..6),
        ) {
            let limits = self::limits(limits.0, limits.1, limits.2);
            let mut queue = SlotQueue::<u8, (Option<u8>, usize), (Option<u8>, usize)>::new();
            let (mut line, mut running) = (Vec::new(), Vec::new());
            for (number, (step, owner, place)) in steps.into_iter().enumerate() {
                let owner = (owner > 0).then_some(owner);
                match step {
                    0 | 1 => {
                        let admits = queue.admits(&limits, owner).is_ok();
                        let of_owner = line.iter().filter(|(own, _)| *own == owner).count();
                        let waits = running.len() + line.len() >= limits.running_max;
                        let fits = owner.is_none() || of_owner < limits.queued_per_owner_max;
                        prop_assert_eq!(admits, !waits || (line.len() < limits.queued_max && fits));
                        if admits {
                            queue.push(owner, (owner, number));
                            line.push((owner, number));
                        }
                    }
                    2 => {
                        let first = queue.next_in_line(&limits, 1).next().copied();
                        let is_free = running.len() < limits.running_max;
                        let next = queue.next(&limits, |item| *item);
                        prop_assert_eq!(next, first.filter(|_| is_free));
                        if let Some(next) = next {
                            let oldest = line.iter().find(|(own, _)| *own == next.0).copied();
                            prop_assert_eq!(oldest, Some(next), "each owner's come in order");
                            line.retain(|item| *item != next);
                            running.push(next);
                            let others_wait = line.iter().any(|(own, _)| *own != next.0);
                            let slots = running.iter().filter(|(own, _)| *own == next.0).count();
                            prop_assert!(!others_wait || slots <= limits.running_max.div_ceil(2));
                        }
                    }
                    3 => {
                        let gone = (place < line.len()).then(|| line.remove(place));
                        let owner = gone.and_then(|(owner, _)| owner);
                        prop_assert_eq!(queue.remove(owner, |item| Some(*item) == gone), gone);
                    }
                    _ if place < running.len() => {
                        let ended = running.remove(place);
                        queue.release(|item| *item == ended);
                    }
                    _ => {}
                }
                let mut waiting: Vec<_> = queue.next_in_line(&limits, usize::MAX).copied().collect();
                for count in 0..waiting.len() {
                    prop_assert!(queue.next_in_line(&limits, count).eq(&waiting[..count]));
                }
                prop_assert_eq!((queue.len(), queue.owners_waiting()), (line.len(), {
                    line.iter().map(|(owner, _)| owner).collect::<std::collections::BTreeSet<_>>().len()
                }));
                waiting.sort_by_key(|(_, number)| *number);
                prop_assert_eq!(&waiting, &line);
                prop_assert!(queue.running().eq(&running));
                let owners = line.iter().chain(&running).map(|(owner, _)| owner);
                let owners = owners.collect::<std::collections::BTreeSet<_>>().len();
                prop_assert_eq!(queue.owners.len(), owners);
            }
            let told: Vec<_> = queue.next_in_line(&limits, usize::MAX).copied().collect();
            let mut served = Vec::new();
            while served.len() < told.len() {
                match queue.next(&limits, |item| *item) {
                    Some(item) => served.push(item),
                    None => {
                        let first = *queue.running().next().unwrap();
                        queue.release(|item| *item == first);
                    }
                }
            }
            prop_assert_eq!(served, told);
        }
    }
}
