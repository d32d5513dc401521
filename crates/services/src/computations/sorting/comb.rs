//! Comb sort: a bubble sort over a gap that shrinks by 1.3 to 1. Not stable.

use super::Board;

pub(super) async fn sort(list: &Board) {
    let mut gap = list.len();
    let mut has_swapped = false;
    while gap > 1 || has_swapped {
        gap = (gap * 10 / 13).max(1);
        has_swapped = false;
        for at in gap..list.len() {
            if list.is_before(list.get(at), list.get(at - gap)).await {
                list.swap(at - gap, at).await;
                has_swapped = true;
            }
        }
    }
}
