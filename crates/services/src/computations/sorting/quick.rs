//! Quick sort: parts a range around its middle element (Hoare), then sorts both parts. Not stable.

use super::Board;

pub(super) async fn sort(list: &Board) {
    // The larger part waits, so that few ranges do.
    let mut waiting = vec![(0, list.len())];
    while let Some((mut first, mut end)) = waiting.pop() {
        while end - first > 1 {
            let middle = part(list, first, end).await;
            if middle - first < end - middle {
                waiting.push((middle, end));
                end = middle;
            } else {
                waiting.push((first, middle));
                first = middle;
            }
        }
    }
}

/// Moves what belongs before the pivot to the left. Returns the beginning of the right part; neither part is empty.
async fn part(list: &Board, first: usize, end: usize) -> usize {
    let pivot = list.get(first + (end - first - 1) / 2);
    let (mut left, mut right) = (first, end - 1);
    loop {
        while list.is_before(list.get(left), pivot).await {
            left += 1;
        }
        while list.is_before(pivot, list.get(right)).await {
            right -= 1;
        }
        if left >= right {
            return right + 1;
        }
        list.swap(left, right).await;
        left += 1;
        right -= 1;
    }
}
