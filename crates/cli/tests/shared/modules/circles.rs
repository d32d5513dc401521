//! Circles of arrows.

use std::collections::BTreeSet;

/// The rooms that reach one another, circle by circle.
pub(crate) fn of(arrows: &BTreeSet<(usize, usize)>) -> Vec<BTreeSet<usize>> {
    let mut left: BTreeSet<usize> = arrows.iter().map(|(from, _)| *from).collect();
    left.retain(|room| reached(*room, arrows).contains(room));
    let mut circles = Vec::new();
    while let Some(first) = left.first().copied() {
        let ahead = reached(first, arrows);
        let comes_back = |room: &&usize| reached(**room, arrows).contains(&first);
        let circle: BTreeSet<usize> =
            left.intersection(&ahead).filter(comes_back).copied().collect();
        left.retain(|room| !circle.contains(room));
        circles.push(circle);
    }
    circles
}

/// All rooms that arrows lead to from here.
fn reached(from: usize, arrows: &BTreeSet<(usize, usize)>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(room) = next.pop() {
        let further = arrows.range((room, 0)..=(room, usize::MAX)).map(|(_, to)| *to);
        next.extend(further.filter(|to| reached.insert(*to)));
    }
    reached
}
