//! Which keys a topic has seen: a window of the newest ones, bounded by count and age. A pure rule.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::{IdempotencyKey, UnixTime};

/// How many keys a topic remembers, and for how long. A key goes as soon as one bound is passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyWindow {
    /// Most keys remembered; 0 remembers none. Default 10,000, which is at most about 4 MB of keys
    /// of the longest kind, and 1.5 MB of UUIDs.
    pub keys_max: usize,
    /// Longest time a key is remembered after the time of its batch's first event. Default 10 minutes.
    pub age_max: Duration,
}

impl Default for KeyWindow {
    fn default() -> Self {
        Self { keys_max: 10_000, age_max: Duration::from_secs(600) }
    }
}

/// Where a batch is: the offsets of its first and last event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// The keys in the window and where their batches are.
#[derive(Debug)]
pub(crate) struct Keys {
    window: KeyWindow,
    /// Oldest first, in the order of offsets.
    order: VecDeque<IdempotencyKey>,
    seen: HashMap<IdempotencyKey, (UnixTime, Place)>,
}

impl Keys {
    pub(crate) fn new(window: KeyWindow) -> Self {
        Self { window, order: VecDeque::new(), seen: HashMap::new() }
    }

    /// Applies other bounds from now on.
    pub(crate) fn set_window(&mut self, window: KeyWindow) {
        self.window = window;
    }

    /// Where the batch of this key is, if the key is in the window.
    pub(crate) fn find(&mut self, now: UnixTime, key: &IdempotencyKey) -> Option<Place> {
        self.expire(now);
        let (time, place) = self.seen.get(key)?;
        (now.since(*time) <= self.window.age_max).then_some(*place)
    }

    /// Remembers a key that [`Keys::find`] does not know, of a batch after all those remembered.
    pub(crate) fn remember(&mut self, time: UnixTime, key: IdempotencyKey, place: Place) {
        if self.seen.insert(key.clone(), (time, place)).is_some() {
            // It was too old to count, and stood behind one with a later time.
            self.order.retain(|older| *older != key);
        }
        self.order.push_back(key);
        self.expire(time);
    }

    /// Forgets the keys of batches after `offset`: they were not kept.
    pub(crate) fn forget_after(&mut self, offset: u64) {
        while let Some(key) = self.order.back()
            && self.seen.get(key).is_none_or(|(_, place)| place.last > offset)
        {
            self.seen.remove(key);
            self.order.pop_back();
        }
    }

    fn expire(&mut self, now: UnixTime) {
        while let Some(key) = self.order.front() {
            let is_old =
                self.seen.get(key).is_none_or(|(time, _)| now.since(*time) > self.window.age_max);
            if self.order.len() <= self.window.keys_max && !is_old {
                return;
            }
            self.seen.remove(key);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::from_micros(seconds * 1_000_000)
    }

    fn key(name: &str) -> IdempotencyKey {
        name.parse().unwrap()
    }

    fn place(offset: u64) -> Place {
        Place { first: offset, last: offset }
    }

    fn window(keys_max: usize, seconds: u64) -> Keys {
        Keys::new(KeyWindow { keys_max, age_max: Duration::from_secs(seconds) })
    }

    #[test]
    fn the_oldest_key_goes_when_there_are_too_many() {
        let mut keys = window(2, 100);
        for (offset, name) in [(1, "a"), (2, "b"), (3, "c")] {
            keys.remember(at(0), key(name), place(offset));
        }
        assert_eq!(keys.find(at(0), &key("a")), None);
        assert_eq!(keys.find(at(0), &key("b")), Some(place(2)));
        assert_eq!(keys.find(at(0), &key("c")), Some(place(3)));
    }

    #[test]
    fn a_key_is_known_up_to_its_age_and_no_longer() {
        let mut keys = window(9, 10);
        keys.remember(at(5), key("a"), place(1));
        assert_eq!(keys.find(at(15), &key("a")), Some(place(1)));
        assert_eq!(keys.find(at(16), &key("a")), None);
        assert!(keys.order.is_empty() && keys.seen.is_empty());
    }

    #[test]
    fn an_old_key_behind_a_younger_one_does_not_count_and_can_come_again() {
        let mut keys = window(9, 10);
        keys.remember(at(100), key("late"), place(1));
        keys.remember(at(5), key("a"), place(2));
        assert_eq!(keys.find(at(20), &key("a")), None);
        keys.remember(at(20), key("a"), place(3));
        assert_eq!(keys.find(at(20), &key("a")), Some(place(3)));
        assert_eq!(keys.order.len(), 2);
    }

    #[test]
    fn a_window_of_none_remembers_none() {
        let mut keys = window(0, 10);
        keys.remember(at(0), key("a"), place(1));
        assert_eq!(keys.find(at(0), &key("a")), None);
        assert!(keys.seen.is_empty());
    }

    #[test]
    fn keys_of_what_was_not_kept_are_forgotten() {
        let mut keys = window(9, 10);
        for (offset, name) in [(1, "a"), (2, "b"), (3, "c")] {
            keys.remember(at(0), key(name), place(offset));
        }
        keys.forget_after(1);
        assert_eq!(keys.find(at(0), &key("a")), Some(place(1)));
        assert_eq!(keys.find(at(0), &key("b")), None);
        assert_eq!(keys.find(at(0), &key("c")), None);
    }
}
