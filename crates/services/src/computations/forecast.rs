//! The progress of a run with a pace. Each list changes at that pace, so the run takes the time of the changes on the
//! longest way through the tree, and progress is the part of them that is done. Pure.

use super::counting;
use super::tree::ActionTree;

/// The changes of each action.
#[derive(Debug)]
pub(super) struct Forecast {
    changes: Vec<u64>,
    is_exact: bool,
}

impl Forecast {
    pub(super) fn new(tree: &ActionTree) -> Self {
        let (mut changes, is_exact) = counting::count(tree);
        // Each action counts for something, so that all is done only when the last one is.
        changes.iter_mut().for_each(|changes| *changes = (*changes).max(1));
        Self { changes, is_exact }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Returns how much is done, from 0 to 1. `changes` are those of an action so far; `None` if it is done.
    pub(super) fn done(&self, tree: &ActionTree, changes: impl Fn(usize) -> Option<u64>) -> f64 {
        let left = |at: usize| {
            changes(at).map_or(0, |changes| self.changes[at].saturating_sub(changes).max(1))
        };
        1.0 - longest(tree, left) as f64 / longest(tree, |at| self.changes[at]) as f64
    }
}

fn longest(tree: &ActionTree, changes: impl Fn(usize) -> u64) -> u64 {
    let way = |last| std::iter::successors(Some(last), |at: &usize| tree.actions[*at].after);
    (0..tree.actions.len()).map(|last| way(last).map(&changes).sum()).max().unwrap_or_default()
}
