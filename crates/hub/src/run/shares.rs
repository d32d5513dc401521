//! The share of each owner in the memory of runs, and the order in which runs that have ended are forgotten. Pure.
//!
//! When memory is short, the owner whose runs take the most makes room, whether they have ended or not. So nobody
//! loses a result because others keep many, or have runs that grow.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Instant;

/// A run that has ended: the time until which it is kept, and its number.
pub(crate) type Ended = (Instant, u64);

/// The shares of all owners. Whoever has no owner of its own belongs to the owner `None`.
#[derive(Debug)]
pub(crate) struct Shares<O> {
    owners: HashMap<Option<O>, Share>,
    /// All runs that have ended, in the order of their ends.
    ended: BTreeMap<Ended, Option<O>>,
    /// All owners, by the bytes of their shares.
    largest: BTreeSet<(u64, Option<O>)>,
}

#[derive(Debug, Default)]
struct Share {
    /// The bytes of all runs of the owner, whether they have ended or not.
    bytes: u64,
    ended: BTreeSet<Ended>,
}

impl<O: Copy + Hash + Ord> Shares<O> {
    pub(crate) fn new() -> Self {
        Self { owners: HashMap::new(), ended: BTreeMap::new(), largest: BTreeSet::new() }
    }

    pub(crate) fn count(&mut self, owner: Option<O>, before: u64, after: u64) {
        self.change(owner, |share| share.bytes = share.bytes - before + after);
    }

    pub(crate) fn end(&mut self, owner: Option<O>, run: Ended) {
        self.ended.insert(run, owner);
        self.change(owner, |share| {
            share.ended.insert(run);
        });
    }

    pub(crate) fn forget(&mut self, run: Ended, bytes: u64) {
        let Some(owner) = self.ended.remove(&run) else { return };
        self.change(owner, |share| {
            share.ended.remove(&run);
            share.bytes -= bytes;
        });
    }

    pub(crate) fn oldest(&self) -> Option<Ended> {
        self.ended.first_key_value().map(|(run, _)| *run)
    }

    pub(crate) fn largest_first(&self) -> impl Iterator<Item = Option<O>> {
        self.largest.iter().rev().map(|(_, owner)| *owner)
    }

    pub(crate) fn oldest_of(&self, owner: Option<O>, spared: Option<u64>) -> Option<Ended> {
        let mut ended = self.owners.get(&owner)?.ended.iter().copied();
        ended.find(|(_, number)| Some(*number) != spared)
    }

    fn change(&mut self, owner: Option<O>, change: impl FnOnce(&mut Share)) {
        let share = self.owners.entry(owner).or_default();
        self.largest.remove(&(share.bytes, owner));
        change(share);
        if share.ended.is_empty() && share.bytes == 0 {
            self.owners.remove(&owner);
        } else {
            self.largest.insert((share.bytes, owner));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// A run of the model: its owner, its bytes, and its end.
    type Model = BTreeMap<u64, (Option<u8>, u64, Option<Ended>)>;

    fn bytes_of(model: &Model, owner: Option<u8>) -> u64 {
        model.values().filter(|run| run.0 == owner).map(|run| run.1).sum()
    }

    /// Looks through all runs for the owners and the order of their shares.
    fn expected(model: &Model) -> Vec<Option<u8>> {
        let owners = model.values().map(|run| run.0).collect::<BTreeSet<_>>();
        let mut shares: Vec<_> = owners.iter().map(|of| (bytes_of(model, *of), *of)).collect();
        shares.sort_unstable();
        shares.into_iter().rev().map(|(_, owner)| owner).collect()
    }

    proptest! {
        #[test]
        fn the_order_of_the_shares_is_right_whatever_happened_before(
            steps in prop::collection::vec((0..4_u8, prop::option::of(0..3_u8), 1..100_u64), 0..100),
        ) {
            let (begun, mut shares, mut model) = (Instant::now(), Shares::new(), Model::new());
            for (number, (step, owner, bytes)) in (0_u64..).zip(steps) {
                let some = model.keys().nth(bytes as usize % model.len().max(1)).copied();
                match (step, some.and_then(|number| model.get_mut(&number))) {
                    (0, _) | (_, None) => {
                        shares.count(owner, 0, bytes);
                        model.insert(number, (owner, bytes, None));
                    }
                    (1, Some(run)) => {
                        shares.count(run.0, run.1, bytes);
                        run.1 = bytes;
                    }
                    (2, Some(run)) if run.2.is_none() => {
                        let ended = (begun + Duration::from_secs(bytes), number);
                        shares.end(run.0, ended);
                        run.2 = Some(ended);
                    }
                    _ => {
                        let Some(ended) = shares.oldest_of(owner, None) else { continue };
                        let is_it = |run: &(_, _, Option<Ended>)| run.2 == Some(ended);
                        let found = model.iter().find(|(_, run)| is_it(run)).map(|(at, run)| (*at, run.1));
                        let (at, bytes) = found.unwrap();
                        shares.forget(ended, bytes);
                        model.remove(&at);
                    }
                }
                prop_assert!(shares.largest_first().eq(expected(&model)));
                let of_owner = model.values().filter(|run| run.0 == owner);
                let oldest = of_owner.filter_map(|run| run.2).min();
                prop_assert_eq!(shares.oldest_of(owner, None), oldest);
                let oldest = model.values().filter_map(|run| run.2).min();
                prop_assert_eq!(shares.oldest(), oldest);
                let owners = model.values().map(|run| run.0).collect::<BTreeSet<_>>();
                prop_assert_eq!(shares.owners.len(), owners.len());
            }
        }
    }
}
