//! Insertion sort: moves each element to its place among those before it. Stable.

use super::Board;

pub(super) async fn sort(list: &Board) {
    sort_range(list, 0, 1, list.len()).await;
}

/// Sorts a range, of which the elements before `sorted_to` are sorted.
pub(super) async fn sort_range(list: &Board, first: usize, sorted_to: usize, end: usize) {
    for unsorted in sorted_to..end {
        let mut at = unsorted;
        while at > first && list.is_before(list.get(at), list.get(at - 1)).await {
            list.swap(at - 1, at).await;
            at -= 1;
        }
    }
}
