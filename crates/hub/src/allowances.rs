//! The allowances of topics that share a number of bytes. Pure.
//!
//! A topic asks for a larger allowance before it holds more. While bytes are free, it gets them. After that, the topic
//! with the largest allowance gives up some of it, and so evicts its oldest events, until no other topic has more than
//! the one that asks. That one then evicts its own. So busy topics end with equal allowances, and a topic with at most
//! an equal share of all bytes never gives up anything.

use std::collections::{BTreeSet, HashMap};

/// The allowances of all topics. Together they are never more than the bytes to share, except after a
/// [`join`](Self::join) and before the next [`fit`](Self::fit).
#[derive(Debug)]
pub(crate) struct Allowances {
    bytes_max: u64,
    sum: u64,
    /// The allowance of each topic, by its number.
    of: HashMap<u64, u64>,
    /// All topics, by their allowances.
    largest: BTreeSet<(u64, u64)>,
    next: u64,
}

/// The need of a topic for a larger allowance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Need {
    /// The bytes without which a larger allowance is useless: those of its newest batch.
    pub(crate) least: u64,
    /// The bytes that it would hold without evicting anything.
    pub(crate) whole: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Change {
    pub(crate) topic: u64,
    /// Its allowance now.
    pub(crate) bytes: u64,
}

/// The most topics that give up bytes at once, so that an append has little work. Only the least need may take from more.
const GIVERS_MAX: usize = 4;

/// The smallest and the largest number of bytes that a topic gets in advance, so that it does not ask for each event.
const ADVANCE_MIN: u64 = 4 << 10;
const ADVANCE_MAX: u64 = 64 << 10;

/// Returns the bytes that a topic gets in advance while some are free: a sixteenth of what it holds, within bounds.
fn advance(held: u64) -> u64 {
    (held / 16).clamp(ADVANCE_MIN, ADVANCE_MAX)
}

/// Returns the allowance that is enough for a topic which holds this much; `None` if it has little more than that.
pub(crate) fn enough(held: u64, allowance: u64) -> Option<u64> {
    let kept = held.saturating_add(advance(held));
    (allowance > kept.saturating_add(advance(held))).then_some(kept)
}

impl Allowances {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let (of, largest) = Default::default();
        Self { bytes_max, sum: 0, of, largest, next: 0 }
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    pub(crate) fn equal_share(&self) -> u64 {
        self.bytes_max / (self.of.len() as u64).max(1)
    }

    /// Adds a topic that holds this much already, and returns its number.
    pub(crate) fn join(&mut self, held: u64) -> u64 {
        let topic = self.next;
        self.next += 1;
        self.of.insert(topic, 0);
        self.largest.insert((0, topic));
        self.set(topic, held);
        topic
    }

    pub(crate) fn leave(&mut self, topic: u64) {
        self.set(topic, 0);
        self.largest.remove(&(0, topic));
        self.of.remove(&topic);
    }

    pub(crate) fn lower(&mut self, topic: u64, bytes: u64) {
        if bytes < self.bytes_of(topic) {
            self.set(topic, bytes);
        }
    }

    /// Raises the allowance of a topic as far as it is fair, but changes nothing if that is less than its least need.
    /// Returns all changes: at first those of topics that must evict, and then its own.
    pub(crate) fn grow(&mut self, topic: u64, need: Need) -> Vec<Change> {
        let own = self.bytes_of(topic);
        if need.whole <= own || !self.can_hold(topic, need.least) {
            return Vec::new();
        }
        let mut free = self.bytes_max.saturating_sub(self.sum);
        let mut changes = Vec::new();
        for (goal, givers_max) in [(need.least, usize::MAX), (need.whole, GIVERS_MAX)] {
            let floor = self.floor(goal);
            for _ in 0..givers_max {
                let missing = goal.saturating_sub(own.saturating_add(free));
                let Some((bytes, giver)) = self.largest_other(topic) else { break };
                let given = missing.min(bytes.saturating_sub(floor));
                if given == 0 {
                    break;
                }
                free += given;
                self.set(giver, bytes - given);
                changes.push(Change { topic: giver, bytes: bytes - given });
            }
        }
        let wanted = need.whole.saturating_add(advance(need.whole));
        let bytes = own.saturating_add(free).min(wanted);
        if bytes > own {
            self.set(topic, bytes);
            changes.push(Change { topic, bytes });
        }
        changes
    }

    pub(crate) fn can_hold(&self, topic: u64, bytes: u64) -> bool {
        let (free, floor) = (self.bytes_max.saturating_sub(self.sum), self.floor(bytes));
        let mut missing = bytes.saturating_sub(self.bytes_of(topic).saturating_add(free));
        for (of_other, other) in self.largest.iter().rev() {
            if missing == 0 || *of_other <= floor {
                break;
            }
            let given = if *other == topic { 0 } else { of_other - floor };
            missing = missing.saturating_sub(given);
        }
        missing == 0
    }

    /// Checks that a topic which joins now could hold this much. If not, returns its equal share.
    pub(crate) fn check_another(&mut self, bytes: u64) -> Result<(), u64> {
        let another = self.join(0);
        let held = if self.can_hold(another, bytes) { Ok(()) } else { Err(self.equal_share()) };
        self.leave(another);
        held
    }

    /// Returns the allowance that a topic keeps in any case while another one grows to `goal`: as much as that one has
    /// then, and an equal share.
    fn floor(&self, goal: u64) -> u64 {
        goal.max(self.equal_share())
    }

    pub(crate) fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max;
    }

    /// Lowers the largest allowances to one level, so that all together are no more than the bytes to share. Returns
    /// the changes.
    pub(crate) fn fit(&mut self) -> Vec<Change> {
        if self.sum <= self.bytes_max {
            return Vec::new();
        }
        let (mut left, mut topics) = (self.bytes_max, self.of.len() as u64);
        let level = self.largest.iter().map(|(bytes, _)| *bytes).find_map(|bytes| {
            let level = left / topics;
            left = left.saturating_sub(bytes);
            topics -= 1;
            (bytes > level).then_some(level)
        });
        let Some(level) = level else { return Vec::new() };
        let above = self.largest.iter().rev().take_while(|(bytes, _)| *bytes > level);
        let changes: Vec<_> =
            above.map(|(_, topic)| Change { topic: *topic, bytes: level }).collect();
        changes.iter().for_each(|change| self.set(change.topic, change.bytes));
        changes
    }

    fn bytes_of(&self, topic: u64) -> u64 {
        self.of.get(&topic).copied().unwrap_or(0)
    }

    fn largest_other(&self, topic: u64) -> Option<(u64, u64)> {
        self.largest.iter().rev().find(|(_, other)| *other != topic).copied()
    }

    fn set(&mut self, topic: u64, bytes: u64) {
        let Some(own) = self.of.get_mut(&topic) else { return };
        self.sum = self.sum - *own + bytes;
        self.largest.remove(&(*own, topic));
        self.largest.insert((bytes, topic));
        *own = bytes;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KIB: u64 = 1 << 10;

    fn all(bytes: u64) -> Need {
        Need { least: bytes, whole: bytes }
    }

    /// The allowances of topics that hold this much already.
    fn of<const N: usize>(bytes_max: u64, held: [u64; N]) -> (Allowances, [u64; N]) {
        let mut allowances = Allowances::new(bytes_max);
        let topics = held.map(|held| allowances.join(held));
        (allowances, topics)
    }

    #[test]
    fn a_topic_alone_gets_everything_and_not_a_byte_more() {
        let (mut allowances, [topic]) = of(100 * KIB, [0]);
        allowances.grow(topic, all(KIB));
        assert_eq!(allowances.bytes_of(topic), 5 * KIB, "some in advance");
        allowances.grow(topic, all(100 * KIB));
        assert_eq!(allowances.bytes_of(topic), 100 * KIB);
        assert_eq!(allowances.grow(topic, all(100 * KIB + 1)), [], "more than there is");
        allowances.grow(topic, Need { least: 1, whole: 200 * KIB });
        assert_eq!(allowances.bytes_of(topic), 100 * KIB);
    }

    #[test]
    fn the_topic_with_the_largest_allowance_gives_until_it_has_no_more_than_the_other() {
        let (mut allowances, [large, small, new]) = of(100 * KIB, [70 * KIB, 30 * KIB, 0]);
        let changes = allowances.grow(new, all(10 * KIB));
        let given = Change { topic: large, bytes: 60 * KIB };
        assert_eq!(changes, [given, Change { topic: new, bytes: 10 * KIB }]);
        allowances.grow(new, Need { least: 1, whole: 35 * KIB });
        assert_eq!([large, small, new].map(|it| allowances.bytes_of(it) / KIB), [35, 30, 35]);
        assert_eq!(allowances.grow(new, Need { least: 1, whole: 36 * KIB }), []);
    }

    #[test]
    fn a_batch_that_would_take_from_topics_with_less_takes_nothing() {
        let (mut allowances, [_, topic]) = of(100, [60, 40]);
        assert_eq!(allowances.grow(topic, all(61)), []);
        assert!(!allowances.can_hold(topic, 61) && allowances.can_hold(topic, 50));
    }

    #[test]
    fn for_its_batch_a_topic_takes_from_as_many_as_it_needs_and_otherwise_from_a_few() {
        let held = [20; 50];
        let (mut allowances, topics) = of(1000, held);
        let new = allowances.join(0);
        let changes = allowances.grow(new, Need { least: 0, whole: 10 });
        assert_eq!((changes.len(), allowances.bytes_of(new)), (GIVERS_MAX + 1, 4), "{changes:?}");
        let changes = allowances.grow(new, Need { least: 19, whole: 19 });
        assert_eq!((changes.len(), allowances.bytes_of(new)), (16, 19));
        let changes = allowances.grow(topics[0], Need { least: 1, whole: 24 });
        assert_eq!(changes, [], "nobody has more");
    }

    #[test]
    fn what_a_topic_no_longer_needs_is_free() {
        let (mut allowances, [first, second]) = of(100 * KIB, [100 * KIB, 0]);
        assert_eq!(enough(98 * KIB, 100 * KIB), None);
        let lower = enough(10 * KIB, 100 * KIB).unwrap();
        assert_eq!(lower, 14 * KIB);
        allowances.lower(first, lower);
        let changes = allowances.grow(second, all(80 * KIB));
        assert_eq!(changes, [Change { topic: second, bytes: 85 * KIB }]);
        allowances.leave(first);
        allowances.grow(second, all(100 * KIB));
        assert_eq!((allowances.bytes_of(second), allowances.equal_share()), (100 * KIB, 100 * KIB));
    }

    #[test]
    fn fewer_bytes_than_before_are_shared_from_the_top() {
        for (bytes_max, expected) in [
            (1000, [10, 200, 300]),
            (510, [10, 200, 300]),
            (500, [10, 200, 290]),
            (400, [10, 195, 195]),
            (30, [10, 10, 10]),
            (20, [6, 6, 6]),
            (0, [0, 0, 0]),
        ] {
            let (mut allowances, topics) = of(bytes_max, [10, 200, 300]);
            allowances.fit();
            assert_eq!(topics.map(|topic| allowances.bytes_of(topic)), expected, "{bytes_max}");
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Join,
        Leave(usize),
        Grow(usize, u64, u64),
        Lower(usize, u64),
        Limit(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = || prop_oneof![0_u64..200, 0_u64..100 * KIB];
        let step = prop_oneof![
            1 => Just(Step::Join),
            1 => (0_usize..20).prop_map(Step::Leave),
            8 => (0_usize..20, bytes(), bytes())
                .prop_map(|(topic, least, more)| Step::Grow(topic, least, least + more)),
            2 => (0_usize..20, bytes()).prop_map(|(topic, bytes)| Step::Lower(topic, bytes)),
            1 => bytes().prop_map(Step::Limit),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        /// Whatever topics ask for: all together have no more than there is; nobody has less than an equal share because
        /// of others, except while nobody has more than it asks for; nobody gives to a topic that has more; nobody gives
        /// while bytes are free; few give for more than a batch.
        #[test]
        fn whatever_topics_ask_for_is_shared_fairly(steps in steps()) {
            let mut allowances = Allowances::new(100 * KIB);
            let mut topics: Vec<u64> = Vec::new();
            for step in steps {
                let at = |index: usize| topics.get(index % topics.len().max(1)).copied();
                let before: HashMap<u64, u64> = allowances.of.clone();
                let free = allowances.bytes_max - allowances.sum;
                match step {
                    Step::Join => topics.push(allowances.join(0)),
                    Step::Leave(index) => if let Some(topic) = at(index) {
                        allowances.leave(topic);
                        topics.retain(|other| *other != topic);
                    },
                    Step::Lower(index, bytes) => if let Some(topic) = at(index) {
                        allowances.lower(topic, bytes);
                    },
                    Step::Limit(bytes_max) => {
                        allowances.set_bytes_max(bytes_max);
                        let changes = allowances.fit();
                        let share = allowances.equal_share();
                        for Change { topic, bytes } in changes {
                            prop_assert!(bytes < before[&topic] && bytes >= share);
                        }
                    }
                    Step::Grow(index, least, whole) => if let Some(topic) = at(index) {
                        let can = allowances.can_hold(topic, least);
                        let changes = allowances.grow(topic, Need { least, whole });
                        let (own, share) = (allowances.bytes_of(topic), allowances.equal_share());
                        prop_assert!(own >= before[&topic]);
                        prop_assert!(own >= least || (!can && changes.is_empty()));
                        let few = changes.len() <= GIVERS_MAX;
                        let largest = allowances.largest_other(topic).map_or(0, |(bytes, _)| bytes);
                        let is_behind = can && few && own < whole && own < share;
                        prop_assert!(!is_behind || largest <= whole.max(share), "its share");
                        prop_assert!(least > 0 || changes.len() <= GIVERS_MAX + 1);
                        for other in topics.iter().filter(|other| **other != topic) {
                            let (had, has) = (before[other], allowances.bytes_of(*other));
                            if has < had {
                                prop_assert!(has >= share && has >= least, "of the largest only");
                                prop_assert!(whole > before[&topic] + free, "nothing was free");
                            }
                        }
                    },
                }
                prop_assert!(allowances.sum <= allowances.bytes_max);
                prop_assert_eq!(allowances.sum, allowances.of.values().sum::<u64>());
                prop_assert_eq!(allowances.largest.len(), allowances.of.len());
            }
        }
    }
}
