//! Tim sort: finds runs that are sorted already, makes short ones longer, and merges neighbours of about equal length.
//! Stable. It merges without galloping.

use super::{Board, insertion, merge};

/// Runs of at least half as many elements are sorted by insertion.
const RUN_MAX: usize = 64;

pub(super) async fn sort(list: &Board) {
    let run_min = run_min(list.len());
    // The beginnings of the runs that wait for a merge, and the end of the last one.
    let mut bounds = vec![0];
    let mut end = 0;
    while end < list.len() {
        let first = end;
        let sorted_to = find_run(list, first).await;
        end = sorted_to.max((first + run_min).min(list.len()));
        insertion::sort_range(list, first, sorted_to, end).await;
        bounds.push(end);
        while let Some(at) = due(&bounds) {
            merge_at(list, &mut bounds, at).await;
        }
    }
    while bounds.len() > 2 {
        let at = bounds.len() - 2;
        merge_at(list, &mut bounds, at).await;
    }
}

/// Merges the two runs that meet at this bound.
async fn merge_at(list: &Board, bounds: &mut Vec<usize>, at: usize) {
    merge::merge(list, bounds[at - 1], bounds[at], bounds[at + 1]).await;
    bounds.remove(at);
}

/// Returns a length from 32 to 64: the length of the list is a power of two times this, or a little less.
fn run_min(mut len: usize) -> usize {
    let mut is_more = 0;
    while len >= RUN_MAX {
        is_more |= len % 2;
        len /= 2;
    }
    len + is_more
}

/// Returns the end of the sorted run that begins here. One that falls strictly is reversed first, which is stable.
async fn find_run(list: &Board, first: usize) -> usize {
    let mut end = first + 1;
    if end == list.len() {
        return end;
    }
    let falls = list.is_before(list.get(end), list.get(first)).await;
    end += 1;
    while end < list.len() && list.is_before(list.get(end), list.get(end - 1)).await == falls {
        end += 1;
    }
    if falls {
        for at in 0..(end - first) / 2 {
            list.swap(first + at, end - 1 - at).await;
        }
    }
    end
}

/// Returns the bound at which two runs are to be merged: each run is to be longer than the next, and longer than the next
/// two together.
fn due(bounds: &[usize]) -> Option<usize> {
    let last = bounds.len() - 1;
    let length = |back: usize| (back < last).then(|| bounds[last - back] - bounds[last - back - 1]);
    let (third, second) = (length(0)?, length(1)?);
    let (first, zeroth) = (length(2), length(3));
    let is_short = first.is_some_and(|first| first <= second + third)
        || zeroth.zip(first).is_some_and(|(zeroth, first)| zeroth <= first + second);
    if is_short && first.is_some_and(|first| first < third) {
        Some(last - 2)
    } else {
        (is_short || second <= third).then_some(last - 1)
    }
}
