//! Bubble sort: swaps neighbours; behind the last swap of a pass, all is sorted. Stable.

use super::Board;

pub(super) async fn sort(list: &Board) {
    let mut unsorted = list.len();
    while unsorted > 1 {
        let mut last_swap = 0;
        for at in 1..unsorted {
            if list.is_before(list.get(at), list.get(at - 1)).await {
                list.swap(at - 1, at).await;
                last_swap = at;
            }
        }
        unsorted = last_swap;
    }
}
