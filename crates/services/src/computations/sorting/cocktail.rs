//! Cocktail sort: a bubble sort that passes in both directions. Stable.

use super::Board;

pub(super) async fn sort(list: &Board) {
    let (mut first, mut end) = (0, list.len());
    while end - first > 1 {
        let unsorted = first + 1..end;
        end = first;
        for at in unsorted {
            if list.is_before(list.get(at), list.get(at - 1)).await {
                list.swap(at - 1, at).await;
                end = at;
            }
        }
        let unsorted = first + 1..end;
        first = end;
        for at in unsorted.rev() {
            if list.is_before(list.get(at), list.get(at - 1)).await {
                list.swap(at - 1, at).await;
                first = at;
            }
        }
    }
}
