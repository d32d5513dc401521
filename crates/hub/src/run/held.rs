//! The bytes that works hold, before they begin and until they return, summed for each owner. Pure.

use std::collections::HashMap;
use std::hash::Hash;

/// The bytes of all works that hold any. Whoever has no owner of its own belongs to the owner `None`.
#[derive(Debug)]
pub(crate) struct HeldBytes<O, K> {
    works: HashMap<K, u64>,
    owners: HashMap<Option<O>, u64>,
    total: u64,
}

impl<O: Copy + Eq + Hash, K: Eq + Hash> HeldBytes<O, K> {
    pub(crate) fn new() -> Self {
        Self { works: HashMap::new(), owners: HashMap::new(), total: 0 }
    }

    /// Sets the bytes that the work of an owner holds; 0 for one that has returned.
    pub(crate) fn set(&mut self, work: K, owner: Option<O>, bytes: u64) {
        let before = match bytes {
            0 => self.works.remove(&work),
            _ => self.works.insert(work, bytes),
        };
        let before = before.unwrap_or(0);
        self.total = self.total - before + bytes;
        let of_owner = self.of_owner(owner) - before + bytes;
        match of_owner {
            0 => self.owners.remove(&owner),
            _ => self.owners.insert(owner, of_owner),
        };
    }

    pub(crate) fn of_owner(&self, owner: Option<O>) -> u64 {
        self.owners.get(&owner).copied().unwrap_or(0)
    }

    pub(crate) fn of_others(&self, owner: Option<O>) -> u64 {
        self.total - self.of_owner(owner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sums_are_those_of_the_works_whatever_happened_before(
            steps in prop::collection::vec((0..6_u8, prop_oneof![Just(0_u64), 1..100_u64]), 0..60),
        ) {
            let (mut held, mut model) = (HeldBytes::new(), BTreeMap::new());
            for (work, bytes) in steps {
                // Each work has one owner: one of two, or none.
                let owner = |work: u8| [None, Some(1), Some(2)][usize::from(work % 3)];
                held.set(work, owner(work), bytes);
                model.insert(work, bytes);
                for of in [None, Some(1), Some(2)] {
                    let (own, others): (Vec<_>, Vec<_>) =
                        model.iter().partition(|(work, _)| owner(**work) == of);
                    let sum = |works: Vec<(&u8, &u64)>| works.iter().map(|(_, bytes)| **bytes).sum::<u64>();
                    prop_assert_eq!([held.of_owner(of), held.of_others(of)], [sum(own), sum(others)]);
                }
                prop_assert_eq!(held.works.len(), model.values().filter(|bytes| **bytes > 0).count());
                prop_assert!(held.owners.values().all(|bytes| *bytes > 0));
            }
        }
    }
}
