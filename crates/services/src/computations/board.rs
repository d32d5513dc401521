//! The list under an algorithm: it counts the steps, records the changes, and pauses the algorithm.
//!
//! Algorithms are async functions, so that one thread takes turns among many of them, and none runs on after a cancel. An
//! algorithm waits only here, when it has used up the steps of its turn. No runtime and no waker is involved: the one
//! who polls grants the steps.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;

use super::action::Criterion;

/// A list while it is sorted.
#[derive(Debug)]
pub(super) struct Board {
    values: Vec<Cell<u32>>,
    criterion: Criterion,
    comparisons: Cell<u64>,
    /// The changes that [`take_changes`](Self::take_changes) has not returned.
    changes: RefCell<Vec<ListChange>>,
    /// The comparisons and changes before the next pause.
    steps_left: Cell<u32>,
    /// The changes before the next pause.
    changes_left: Cell<u64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ListChange {
    pub(super) kind: ListChangeKind,
    /// The comparisons before it, since the beginning.
    pub(super) comparisons: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ListChangeKind {
    /// The elements at two positions have changed places.
    Swap(usize, usize),
    /// A position has a new value.
    Write(usize, u32),
}

impl Board {
    pub(super) fn new(values: &[u32], criterion: Criterion) -> Self {
        Self {
            values: values.iter().copied().map(Cell::new).collect(),
            criterion,
            comparisons: Cell::new(0),
            changes: RefCell::default(),
            steps_left: Cell::new(0),
            changes_left: Cell::new(0),
        }
    }

    /// Allows this many steps, and at most this many changes, before the next pause.
    pub(super) fn grant(&self, steps: u32, changes: u64) {
        self.steps_left.set(steps);
        self.changes_left.set(changes);
    }

    /// Returns the changes since the last call.
    pub(super) fn take_changes(&self) -> Vec<ListChange> {
        self.changes.take()
    }

    /// Returns the comparisons since the beginning.
    pub(super) fn comparisons(&self) -> u64 {
        self.comparisons.get()
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn get(&self, at: usize) -> u32 {
        self.values[at].get()
    }

    /// Returns the key of a value: the number by which it is sorted, ascending.
    pub(super) fn key(&self, value: u32) -> u32 {
        self.criterion.key(value, self.len())
    }

    /// Returns the largest key that a value of this list may have.
    pub(super) fn key_max(&self) -> u32 {
        self.criterion.key_max(self.len())
    }

    /// Compares two values: returns true if the first belongs before the second, false also if they are equal.
    pub(super) async fn is_before(&self, first: u32, second: u32) -> bool {
        poll_fn(|_| self.step(0)).await;
        self.comparisons.set(self.comparisons.get() + 1);
        self.key(first) < self.key(second)
    }

    /// Lets the elements at two positions change places. A position and itself are no change.
    pub(super) async fn swap(&self, first: usize, second: usize) {
        if first != second {
            poll_fn(|_| self.step(1)).await;
            self.values[first].swap(&self.values[second]);
            self.record(ListChangeKind::Swap(first, second));
        }
    }

    /// Writes a value, also one that is there already.
    pub(super) async fn write(&self, at: usize, value: u32) {
        poll_fn(|_| self.step(1)).await;
        self.values[at].set(value);
        self.record(ListChangeKind::Write(at, value));
    }

    /// Takes one step, or pauses.
    fn step(&self, changes: u64) -> Poll<()> {
        let steps_left = self.steps_left.get().checked_sub(1);
        let changes_left = self.changes_left.get().checked_sub(changes);
        let Some((steps, changes)) = steps_left.zip(changes_left) else { return Poll::Pending };
        self.grant(steps, changes);
        Poll::Ready(())
    }

    fn record(&self, kind: ListChangeKind) {
        self.changes.borrow_mut().push(ListChange { kind, comparisons: self.comparisons.get() });
    }
}
