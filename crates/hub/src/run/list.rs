//! The list of runs, and the numbers of those that have ended, by their state.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
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

/// The runs to list: those of one service, or of all; in these states, or in all if there are none.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedRuns<'a> {
    pub(super) service: Option<&'a str>,
    pub(super) states: &'a [RunState],
}

impl ListedRuns<'_> {
    /// Returns true if a run of this service is to be listed while it is in this state.
    pub(super) fn has(self, service: &str, state: RunState) -> bool {
        self.service.is_none_or(|wanted| wanted == service) && self.has_state(state)
    }

    fn has_state(self, state: RunState) -> bool {
        self.states.is_empty() || self.states.contains(&state)
    }
}

/// A set for each state, so that a list takes no look at all runs.
type Sets = [BTreeSet<u64>; RunState::ALL.len()];

/// The numbers of the runs that have ended: of all, and of those of each service.
#[derive(Debug, Default)]
pub(super) struct EndedRuns {
    all: Sets,
    by_service: HashMap<String, Sets>,
}

impl EndedRuns {
    pub(super) fn add(&mut self, service: &str, state: RunState, number: u64) {
        self.all[state as usize].insert(number);
        let sets = self.by_service.entry(service.to_owned()).or_default();
        sets[state as usize].insert(number);
    }

    pub(super) fn remove(&mut self, service: &str, number: u64) {
        let of_service = self.by_service.get_mut(service);
        for set in self.all.iter_mut().chain(of_service.into_iter().flatten()) {
            set.remove(&number);
        }
        let of_service = self.by_service.get(service);
        if of_service.is_some_and(|sets| sets.iter().all(BTreeSet::is_empty)) {
            self.by_service.remove(service);
        }
    }

    pub(super) fn count(&self, listed: ListedRuns<'_>) -> usize {
        self.sets_of(listed).map(BTreeSet::len).sum()
    }

    /// Returns the numbers of these runs that have ended, at most `limit` of them, newest first.
    pub(super) fn newest(&self, listed: ListedRuns<'_>, limit: usize) -> Vec<u64> {
        let newest_of_each = self.sets_of(listed).flat_map(|set| set.iter().rev().take(limit));
        let mut numbers: Vec<u64> = newest_of_each.copied().collect();
        numbers.sort_unstable_by_key(|number| Reverse(*number));
        numbers.truncate(limit);
        numbers
    }

    fn sets_of(&self, listed: ListedRuns<'_>) -> impl Iterator<Item = &BTreeSet<u64>> {
        let sets = match listed.service {
            Some(service) => self.by_service.get(service),
            None => Some(&self.all),
        };
        let states = RunState::ALL.into_iter().zip(sets.into_iter().flatten());
        states.filter(move |(state, _)| listed.has_state(*state)).map(|(_, set)| set)
    }
}
