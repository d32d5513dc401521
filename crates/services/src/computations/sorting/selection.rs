//! Selection sort: swaps the smallest of the rest to the front of the rest. Not stable.

use super::Board;

pub(super) async fn sort(list: &Board) {
    for first in 0..list.len() {
        let mut smallest = first;
        for at in first + 1..list.len() {
            if list.is_before(list.get(at), list.get(smallest)).await {
                smallest = at;
            }
        }
        list.swap(first, smallest).await;
    }
}
