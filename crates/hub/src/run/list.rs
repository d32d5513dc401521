//! The list of runs, and the numbers of those that have ended, by their state.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use anemone_wire::RunState;

use super::run::Run;

/// Some of the runs, as [`Runs::list`](super::Runs::list) finds them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunList {
    /// The number of runs that were asked for, listed or not.
    pub total: usize,
    /// The first of them: those that have not ended, newest first, and then those that have.
    pub runs: Vec<Arc<Run>>,
}

/// The states of the runs to list; all if there are none.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedStates<'a>(pub(super) &'a [RunState]);

impl ListedStates<'_> {
    pub(super) fn has(self, state: RunState) -> bool {
        self.0.is_empty() || self.0.contains(&state)
    }
}

/// The numbers of the runs that have ended. Each state has a set, so that a list takes no look at all runs.
#[derive(Debug, Default)]
pub(super) struct EndedRuns {
    sets: [BTreeSet<u64>; RunState::ALL.len()],
}

impl EndedRuns {
    /// Adds the run with this number, which ended so.
    pub(super) fn add(&mut self, state: RunState, number: u64) {
        self.sets[state as usize].insert(number);
    }

    /// Removes a run that is forgotten.
    pub(super) fn remove(&mut self, number: u64) {
        for set in &mut self.sets {
            set.remove(&number);
        }
    }

    /// Returns the number of the runs that ended so.
    pub(super) fn count(&self, states: ListedStates<'_>) -> usize {
        self.sets_of(states).map(BTreeSet::len).sum()
    }

    /// Returns the numbers of the runs that ended so, at most `limit` of them, newest first.
    pub(super) fn newest(&self, states: ListedStates<'_>, limit: usize) -> Vec<u64> {
        let newest_of_each = self.sets_of(states).flat_map(|set| set.iter().rev().take(limit));
        let mut numbers: Vec<u64> = newest_of_each.copied().collect();
        numbers.sort_unstable_by_key(|number| Reverse(*number));
        numbers.truncate(limit);
        numbers
    }

    fn sets_of(&self, states: ListedStates<'_>) -> impl Iterator<Item = &BTreeSet<u64>> {
        let sets = RunState::ALL.into_iter().zip(&self.sets);
        sets.filter(move |(state, _)| states.has(*state)).map(|(_, set)| set)
    }
}
