//! Shell sort: an insertion sort over gaps that shrink (Knuth: 1, 4, 13, 40, …). Not stable.

use super::Board;

pub(super) async fn sort(list: &Board) {
    let mut gap = 1;
    while gap < list.len() / 3 {
        gap = 3 * gap + 1;
    }
    while gap > 0 {
        for unsorted in gap..list.len() {
            let mut at = unsorted;
            while at >= gap && list.is_before(list.get(at), list.get(at - gap)).await {
                list.swap(at - gap, at).await;
                at -= gap;
            }
        }
        gap /= 3;
    }
}
