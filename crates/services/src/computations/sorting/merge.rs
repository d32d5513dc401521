//! Merge sort, from short runs to long ones. Stable.

use super::Board;

pub(super) async fn sort(list: &Board) {
    for (first, middle, end) in merges(list.len()) {
        merge(list, first, middle, end).await;
    }
}

/// Merges two sorted neighbours: `first..middle` and `middle..end`. Each element is written once.
pub(super) async fn merge(list: &Board, first: usize, middle: usize, end: usize) {
    let merging: Vec<u32> = (first..end).map(|at| list.get(at)).collect();
    let (mut left, mut right) = merging.split_at(middle - first);
    for at in first..end {
        let takes_right = match (left.first(), right.first()) {
            (Some(left), Some(right)) => list.is_before(*right, *left).await,
            (left, _) => left.is_none(),
        };
        let side = if takes_right { &mut right } else { &mut left };
        if let Some((value, rest)) = side.split_first() {
            list.write(at, *value).await;
            *side = rest;
        }
    }
}

/// Returns the writes of a list of this length: known before it is sorted.
pub(super) fn writes(len: usize) -> u64 {
    merges(len).map(|(first, _, end)| (end - first) as u64).sum()
}

/// The merges of a list of this length, in their order.
fn merges(len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let lengths = std::iter::successors(Some(1), |length| Some(length * 2));
    lengths.take_while(move |length| *length < len).flat_map(move |length| {
        let firsts = (0..len - length).step_by(2 * length);
        firsts.map(move |first| (first, first + length, (first + 2 * length).min(len)))
    })
}
