//! Every algorithm sorts, by every criterion, however often it pauses; and its work is what it was said to be.

use std::task::{Context, Poll, Waker};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::computations::action::{Algorithm, Criterion, Distribution, Word, to_u32};
use crate::computations::board::{Board, ListChange, ListChangeKind};
use crate::computations::work::{SortWork, Unit};
use crate::computations::{list, sorting};

fn all<W: Word>() -> impl Iterator<Item = W> {
    W::ALL.iter().map(|(_, word)| *word)
}

fn is_stable(algorithm: Algorithm) -> bool {
    use Algorithm::{Bubble, Cocktail, Insertion, Merge, Radix, Tim};
    matches!(algorithm, Merge | Insertion | Bubble | Cocktail | Tim | Radix)
}

/// Sorts a board, with so many steps between two pauses. Returns the changes.
fn run(algorithm: Algorithm, board: &Board, steps: u32) -> Vec<ListChange> {
    let mut sort = Box::pin(sorting::sort(algorithm, board));
    let mut changes = Vec::new();
    loop {
        board.grant(steps, u64::MAX);
        let polled = sort.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let taken = board.take_changes();
        assert!(taken.len() <= steps as usize, "no more than it was granted");
        changes.extend(taken);
        if polled == Poll::Ready(()) {
            return changes;
        }
    }
}

fn values(board: &Board) -> Vec<u32> {
    (0..board.len()).map(|at| board.get(at)).collect()
}

/// Lists of up to 150 elements, with their values in the range that lists have.
fn lists() -> impl Strategy<Value = Vec<u32>> {
    let distributions = prop::sample::select(all::<Distribution>().collect::<Vec<_>>());
    let made = (distributions, 1_usize..150, any::<u64>());
    let made = made.prop_map(|(distribution, size, seed)| list::make(distribution, size, seed));
    let any = vec(any::<prop::sample::Index>(), 1..150).prop_map(|indexes| {
        let size = indexes.len();
        indexes.iter().map(|index| to_u32(index.index(size)) + 1).collect()
    });
    prop_oneof![made, any]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_ends_sorted_stable_ones_stable_and_the_changes_give_the_final_list(
        original in lists(), steps in 1_u32..500
    ) {
        for (algorithm, criterion) in all().flat_map(|algorithm| all().map(move |by| (algorithm, by))) {
            let board = Board::new(&original, criterion);
            let changes = run(algorithm, &board, steps);
            let sorted = values(&board);
            let mut expected = original.clone();
            expected.sort_by_key(|value| criterion.key(*value, original.len()));
            let keys = |list: &[u32]| -> Vec<u32> { list.iter().map(|value| board.key(*value)).collect() };
            prop_assert_eq!(keys(&sorted), keys(&expected), "{:?} {:?}", algorithm, criterion);
            if is_stable(algorithm) {
                prop_assert_eq!(&sorted, &expected, "{:?} {:?}", algorithm, criterion);
            }
            let in_order = |mut list: Vec<u32>| { list.sort_unstable(); list };
            prop_assert_eq!(in_order(sorted.clone()), in_order(original.clone()));
            let mut replayed = original.clone();
            for change in &changes {
                match change.kind {
                    ListChangeKind::Swap(first, second) => replayed.swap(first, second),
                    ListChangeKind::Write(at, value) => replayed[at] = value,
                }
            }
            prop_assert_eq!(replayed, sorted, "{:?}", algorithm);
        }
    }

    #[test]
    fn pauses_change_nothing(original in lists(), steps in 1_u32..50) {
        for algorithm in all() {
            let [often, never] = [steps, u32::MAX].map(|steps| {
                let board = Board::new(&original, Criterion::Ascending);
                (run(algorithm, &board, steps), board.comparisons())
            });
            prop_assert_eq!(often, never, "{:?}", algorithm);
        }
    }
}

#[test]
fn a_key_is_at_most_the_largest_key() {
    for (criterion, size) in
        all::<Criterion>().flat_map(|by| [1, 9, 10, 1_000].map(|size| (by, size)))
    {
        let keys = (1..=to_u32(size)).map(|value| criterion.key(value, size));
        assert!(keys.max().unwrap() <= criterion.key_max(size), "{criterion:?} {size}");
    }
    let keys = [1, 19, 999].map(|value| Criterion::ByDigitSum.key(value, 1_000));
    assert_eq!(keys, [1, 10, 27]);
    assert_eq!(Criterion::ByLastDigit.key(120, 1_000), 0);
}

/// The steps of a sort, in the unit of its work.
fn steps(algorithm: Algorithm, criterion: Criterion, original: &[u32], unit: Unit) -> u64 {
    let board = Board::new(original, criterion);
    let changes = run(algorithm, &board, u32::MAX);
    match unit {
        Unit::Comparisons => board.comparisons(),
        Unit::Writes => changes.len() as u64, // Those that count writes swap nothing.
    }
}

#[test]
fn counted_work_is_exact_for_every_length() {
    for algorithm in [Algorithm::Selection, Algorithm::Merge, Algorithm::Radix] {
        for (size, criterion) in (1..130).flat_map(|size| all().map(move |by| (size, by))) {
            let work = SortWork::new(algorithm, criterion, size);
            assert!(work.is_exact);
            let original = list::make(Distribution::Random, size, 3);
            let done = steps(algorithm, criterion, &original, work.unit);
            assert_eq!(done, work.total, "{algorithm:?} {criterion:?} {size}");
        }
    }
}

#[test]
fn estimates_hold_within_a_third_for_random_lists() {
    for algorithm in all::<Algorithm>() {
        for size in [100, 1_000] {
            let work = SortWork::new(algorithm, Criterion::Ascending, size);
            let original = list::make(Distribution::Random, size, 5);
            let done = steps(algorithm, Criterion::Ascending, &original, work.unit);
            let share = done as f64 / work.total as f64;
            assert!((0.66..1.34).contains(&share), "{algorithm:?} {size}: {share}");
        }
    }
}
