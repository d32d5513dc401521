//! Heap sort: makes a heap, then moves its largest element behind it, again and again. Not stable.

use super::Board;

pub(super) async fn sort(list: &Board) {
    for root in (0..list.len() / 2).rev() {
        sift_down(list, root, list.len()).await;
    }
    for last in (1..list.len()).rev() {
        list.swap(0, last).await;
        sift_down(list, 0, last).await;
    }
}

/// Moves an element down until both of its children are smaller.
async fn sift_down(list: &Board, mut root: usize, end: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= end {
            return;
        }
        if child + 1 < end && list.is_before(list.get(child), list.get(child + 1)).await {
            child += 1;
        }
        if !list.is_before(list.get(root), list.get(child)).await {
            return;
        }
        list.swap(root, child).await;
        root = child;
    }
}
