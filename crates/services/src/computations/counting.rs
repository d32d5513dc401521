//! The changes that the actions of a tree will make, before they begin. Pure.
//!
//! The list that each sort gets is known before: it is made here, or in the order of the sort before it. The changes follow from
//! its length, or are counted in less time than the algorithm takes. Where nothing is faster than the algorithm, it sorts the list,
//! or two shorter ones of the same kind if that takes too many steps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::{Context, Waker};

use super::action::{Algorithm, Criterion};
use super::board::Board;
use super::list;
use super::sorting::{self, merge_writes, radix_writes};
use super::tree::{Action, ActionKind, ActionTree};
use super::work::SortWork;

/// The steps that all algorithms together take at most, by their estimates: some milliseconds.
const STEPS: u64 = 1 << 18;

/// The steps between two looks at the changes, which are kept until then.
const TURN_STEPS: u32 = 4_096;

/// Returns the changes of each action, and whether they are certain.
pub(super) fn count(tree: &ActionTree) -> (Vec<u64>, bool) {
    let actions = &tree.actions;
    let kinds = actions.iter().map(|action| action.kind);
    let sorts = kinds
        .filter(|kind| matches!(kind, ActionKind::Sort { algorithm, .. } if must_sort(*algorithm)));
    let mut counting =
        Counting { actions, steps: STEPS, sorts: sorts.count() as u64, is_exact: true };
    let (mut changes, mut lists) = (vec![0; actions.len()], vec![Vec::new(); actions.len()]);
    let mut done = vec![None];
    while let Some(parent) = done.pop() {
        for at in (0..actions.len()).filter(|at| actions[*at].after == parent) {
            (lists[at], changes[at]) = match actions[at].kind {
                ActionKind::List { distribution, seed } => {
                    (list::make(distribution, actions[at].size, seed), 0)
                }
                ActionKind::Sort { algorithm, criterion } => {
                    let list = parent.map(|parent| lists[parent].clone()).unwrap_or_default();
                    counting.sort(at, algorithm, criterion, list)
                }
            };
            done.push(Some(at));
        }
    }
    (changes, counting.is_exact)
}

/// Returns true if nothing counts the changes of an algorithm in less time than it takes.
fn must_sort(algorithm: Algorithm) -> bool {
    use Algorithm::{Comb, Heap, Quick, Shell, Tim};
    matches!(algorithm, Quick | Heap | Shell | Comb | Tim)
}

struct Counting<'a> {
    actions: &'a [Action],
    /// The steps that are left for the algorithms that must sort, and how many of these are left.
    steps: u64,
    sorts: u64,
    is_exact: bool,
}

impl Counting<'_> {
    /// Returns the sorted list of an action, and the changes that lead to it.
    fn sort(
        &mut self,
        at: usize,
        algorithm: Algorithm,
        criterion: Criterion,
        mut list: Vec<u32>,
    ) -> (Vec<u32>, u64) {
        let len = list.len();
        let key = |value: &u32| criterion.key(*value, len);
        let changes = match algorithm {
            Algorithm::Merge => merge_writes(len),
            Algorithm::Radix => radix_writes(len, criterion.key_max(len)),
            Algorithm::Insertion | Algorithm::Bubble | Algorithm::Cocktail => {
                inversions(list.iter().map(key), criterion.key_max(len))
            }
            Algorithm::Selection => {
                let changes = selection(&mut list, key);
                return (list, changes);
            }
            Algorithm::Quick
            | Algorithm::Heap
            | Algorithm::Shell
            | Algorithm::Comb
            | Algorithm::Tim => {
                let part = self.part(len, |len| SortWork::new(algorithm, criterion, len).total);
                if part == len {
                    return run(algorithm, &Board::new(&list, criterion));
                }
                // The changes for each element grow with the logarithm of the length, if at all.
                let [few, many] = [part.div_ceil(4), part].map(|len| {
                    let list = self.actions[at].after.map(|parent| self.list(parent, len));
                    let board = Board::new(&list.unwrap_or_default(), criterion);
                    run(algorithm, &board).1 as f64 / len as f64
                });
                let doublings = (len as f64 / part as f64).log2();
                (len as f64 * (many + (many - few).max(0.0) / 2.0 * doublings)) as u64
            }
        };
        list.sort_by_key(key);
        (list, changes)
    }

    /// Returns the list of an action as it would be with this length.
    fn list(&self, at: usize, len: usize) -> Vec<u32> {
        match self.actions[at].kind {
            ActionKind::List { distribution, seed } => list::make(distribution, len, seed),
            ActionKind::Sort { criterion, .. } => {
                let parent = self.actions[at].after;
                let mut list = parent.map(|parent| self.list(parent, len)).unwrap_or_default();
                list.sort_by_key(|value| criterion.key(*value, len));
                list
            }
        }
    }

    /// Returns the number of elements that an algorithm can sort in its share of the steps, and takes those.
    fn part(&mut self, len: usize, work: impl Fn(usize) -> u64) -> usize {
        let share = self.steps / self.sorts.max(1);
        let halves = std::iter::successors(Some(len), |len| Some(len / 2));
        let count = halves.take_while(|len| *len > 0).find(|len| work(*len) <= share).unwrap_or(1);
        self.sorts = self.sorts.saturating_sub(1);
        self.steps = self.steps.saturating_sub(work(count));
        self.is_exact &= count == len;
        count
    }
}

/// Sorts a board. Returns its values, and the changes.
fn run(algorithm: Algorithm, board: &Board) -> (Vec<u32>, u64) {
    let mut sorting = Box::pin(sorting::sort(algorithm, board));
    let mut changes = 0;
    loop {
        board.grant(TURN_STEPS, u64::MAX);
        let polled = sorting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        changes += board.take_changes().len() as u64;
        if polled.is_ready() {
            return ((0..board.len()).map(|at| board.get(at)).collect(), changes);
        }
    }
}

/// Returns the pairs that are in the wrong order: each swap of neighbours that a stable sort makes rights one of them.
fn inversions(keys: impl Iterator<Item = u32>, key_max: u32) -> u64 {
    // A Fenwick tree of the keys so far.
    let mut counts = vec![0_u64; key_max as usize + 2];
    let low_bit = |at: usize| at & at.wrapping_neg();
    let mut inversions = 0;
    for (before, key) in (0..).zip(keys) {
        let place = key as usize + 1;
        let down = std::iter::successors(Some(place), |at| Some(at - low_bit(*at)));
        let not_larger: u64 = down.take_while(|at| *at > 0).map(|at| counts[at]).sum();
        inversions += before - not_larger;
        let up = std::iter::successors(Some(place), |at| Some(at + low_bit(*at)));
        let count = counts.len();
        up.take_while(|at| *at < count).for_each(|at| counts[at] += 1);
    }
    inversions
}

/// Sorts a list as selection sort does. Returns the swaps.
fn selection(list: &mut [u32], key: impl Fn(&u32) -> u32) -> u64 {
    let mut rest: BinaryHeap<_> =
        list.iter().enumerate().map(|(at, value)| Reverse((key(value), at))).collect();
    let mut swaps = 0;
    for first in 0..list.len() {
        // An element that was swapped away from the front has left an entry there.
        let mut places = std::iter::from_fn(|| rest.pop()).map(|Reverse((_, at))| at);
        let smallest = places.find(|at| *at >= first).unwrap_or(first);
        if smallest != first {
            list.swap(first, smallest);
            rest.push(Reverse((key(&list[smallest]), smallest)));
            swaps += 1;
        }
    }
    swaps
}
