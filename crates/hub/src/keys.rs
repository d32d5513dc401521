//! The window of keys that a topic remembers: the newest ones, limited by count, age and bytes. Pure.
//!
//! A key is remembered as its digest, with a digest of its events and their place, so long and short keys take the
//! same few bytes. It does not matter if the events are still kept.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use hashbrown::HashTable;

use crate::{IdempotencyKey, PublishError, UnixTime};

/// The limits of the keys that a topic remembers. The oldest keys are dropped beyond any limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyWindow {
    /// The most keys remembered; 0 for none. Default 10,000, which take 640 KB. Keys count in
    /// [`Retention::bytes_max`](crate::Retention::bytes_max), of which they take at most half, or what the newest
    /// batch leaves.
    pub keys_max: usize,
    /// The longest time that a key is remembered after the time of its batch's first event. Default 10 minutes.
    pub age_max: Duration,
}

impl Default for KeyWindow {
    fn default() -> Self {
        Self { keys_max: 10_000, age_max: Duration::from_secs(600) }
    }
}

/// The place of a batch: the offsets of its first and last events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// A key, with a digest of its events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Keyed {
    pub(crate) key: IdempotencyKey,
    /// A digest of 64 bits, which reveals a publisher's mistake. Forged collisions only confuse their own publisher.
    pub(crate) content: u64,
}

impl Keyed {
    /// The length of its encoding.
    pub(crate) const BYTES: usize = 24;

    /// Encodes it for a log.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.key.digest());
        bytes[16..].copy_from_slice(&self.content.to_le_bytes());
        bytes
    }

    /// Decodes it from a log.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (key, content) = bytes.split_first_chunk()?;
        let content = u64::from_le_bytes(content.try_into().ok()?);
        Some(Self { key: IdempotencyKey::of_digest(*key), content })
    }
}

/// A remembered key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    pub(crate) keyed: Keyed,
    /// The time of the first event of its batch.
    pub(crate) time: UnixTime,
    first: u64,
    /// The number of events after the first.
    more: u32,
}

impl Seen {
    pub(crate) fn new(keyed: Keyed, time: UnixTime, place: Place) -> Self {
        // A batch has at most 2^30 bytes, and each of its events more than one.
        let more = u32::try_from(place.last - place.first).unwrap_or(u32::MAX);
        Self { keyed, time, first: place.first, more }
    }

    pub(crate) fn place(&self) -> Place {
        Place { first: self.first, last: self.first + u64::from(self.more) }
    }
}

/// The bytes of a key that count for its topic: the key and its place in the index.
pub(crate) const KEY_BYTES: u64 = size_of::<Seen>() as u64 + 16;

/// Returns the bytes that the keys of a topic with `bytes_max` may take besides its newest batch.
pub(crate) fn room_beside(batch_bytes: u64, bytes_max: u64) -> u64 {
    bytes_max.saturating_sub(batch_bytes).min(bytes_max / 2)
}

/// The keys in the window, with the places of their batches.
#[derive(Debug)]
pub(crate) struct Keys {
    window: KeyWindow,
    /// Oldest first, in the order of offsets. An entry no longer counts if its key came again later.
    order: VecDeque<Seen>,
    /// The number of each key: its place in `order` counted from the beginning, modulo 2^32.
    index: HashTable<u32>,
    oldest: u32,
    /// Has a secret of its own, so that nobody can choose colliding keys.
    hasher: RandomState,
}

impl Keys {
    pub(crate) fn new(window: KeyWindow) -> Self {
        let (order, index) = (VecDeque::new(), HashTable::new());
        Self { window, order, index, oldest: 0, hasher: RandomState::new() }
    }

    pub(crate) fn set_window(&mut self, window: KeyWindow) {
        self.window = window;
    }

    /// Returns the bytes that count for the topic.
    pub(crate) fn bytes(&self) -> u64 {
        self.order.len() as u64 * KEY_BYTES
    }

    /// Returns the remembered key, if it is in the window.
    pub(crate) fn find(&mut self, now: UnixTime, key: IdempotencyKey) -> Option<Seen> {
        self.expire(now);
        let (order, oldest) = (&self.order, self.oldest);
        let is_it =
            |number: &u32| at(order, oldest, *number).is_some_and(|seen| seen.keyed.key == key);
        let number = self.index.find(self.hasher.hash_one(key), is_it)?;
        let seen = at(order, oldest, *number)?;
        (now.since(seen.time) <= self.window.age_max).then_some(*seen)
    }

    /// Returns the place of the batch of this key, if the key is in the window.
    pub(crate) fn repeats(
        &mut self,
        now: UnixTime,
        keyed: Keyed,
    ) -> Result<Option<Place>, PublishError> {
        match self.find(now, keyed.key) {
            Some(seen) if seen.keyed != keyed => Err(PublishError::KeyReused),
            found => Ok(found.map(|seen| seen.place())),
        }
    }

    /// Remembers a key that [`Keys::find`] does not find, of a batch after all remembered ones.
    pub(crate) fn remember(&mut self, seen: Seen) {
        if self.order.len() == self.order.capacity() {
            // Grows by an eighth instead of doubling, so that the memory stays close to the counted bytes.
            self.order.reserve_exact(self.order.len() / 8 + 1);
        }
        let number = self.number(self.order.len());
        self.order.push_back(seen);
        let (order, oldest, hasher) = (&self.order, self.oldest, &self.hasher);
        let key_of = |number: u32| at(order, oldest, number).map(|seen| seen.keyed.key);
        let hash = hasher.hash_one(seen.keyed.key);
        match self.index.find_mut(hash, |number| key_of(*number) == Some(seen.keyed.key)) {
            // The old entry was too old to count, and stood behind one with a later time.
            Some(known) => *known = number,
            None => {
                let hash_of = |number: &u32| key_of(*number).map_or(0, |key| hasher.hash_one(key));
                self.index.insert_unique(hash, number, hash_of);
            }
        }
        self.expire(seen.time);
    }

    /// Remembers a key that was found on disk, unless it was found before.
    pub(crate) fn learn(&mut self, seen: Seen) {
        if self.find(seen.time, seen.keyed.key).is_none() {
            self.remember(seen);
        }
    }

    /// Returns the keys of batches that end after `after` and before `below`.
    pub(crate) fn between(&self, after: u64, below: u64) -> impl ExactSizeIterator<Item = Seen> {
        let until = |offset| self.order.partition_point(|seen| seen.place().last < offset);
        let (begin, end) = (until(after + 1), until(below));
        self.order.iter().skip(begin).take(end.saturating_sub(begin)).copied()
    }

    /// Removes the keys of batches after `offset`, which were not kept.
    pub(crate) fn forget_after(&mut self, offset: u64) {
        while self.order.back().is_some_and(|seen| seen.place().last > offset) {
            self.unlist(self.order.len() - 1);
            self.order.pop_back();
        }
    }

    pub(crate) fn forget_up_to(&mut self, offset: u64) {
        while self.order.front().is_some_and(|seen| seen.place().last <= offset) {
            self.forget_oldest();
        }
        self.shrink();
    }

    /// Removes the oldest keys until the rest counts for at most `bytes`.
    pub(crate) fn forget_beyond(&mut self, bytes: u64) {
        while self.bytes() > bytes {
            self.forget_oldest();
        }
        self.shrink();
    }

    pub(crate) fn expire(&mut self, now: UnixTime) {
        while let Some(oldest) = self.order.front() {
            let is_old = now.since(oldest.time) > self.window.age_max;
            if self.order.len() <= self.window.keys_max && !is_old {
                break;
            }
            self.forget_oldest();
        }
        self.shrink();
    }

    fn forget_oldest(&mut self) {
        self.unlist(0);
        if self.order.pop_front().is_some() {
            self.oldest = self.oldest.wrapping_add(1);
        }
    }

    /// Removes the key at this place from the index, unless it came again later.
    fn unlist(&mut self, place: usize) {
        let (number, Some(seen)) = (self.number(place), self.order.get(place)) else { return };
        let hash = self.hasher.hash_one(seen.keyed.key);
        if let Ok(entry) = self.index.find_entry(hash, |listed| *listed == number) {
            entry.remove();
        }
    }

    fn number(&self, place: usize) -> u32 {
        // Fewer than 2^32 keys are remembered at once.
        self.oldest.wrapping_add(place as u32)
    }

    /// Frees memory after many keys were removed.
    fn shrink(&mut self) {
        let len = self.order.len();
        if self.order.capacity() / 2 > len + 8 {
            self.order.shrink_to(len + len / 8);
            let (order, oldest, hasher) = (&self.order, self.oldest, &self.hasher);
            let hash_of = |number: &u32| {
                at(order, oldest, *number).map_or(0, |seen| hasher.hash_one(seen.keyed.key))
            };
            self.index.shrink_to(len, hash_of);
        }
    }
}

fn at(order: &VecDeque<Seen>, oldest: u32, number: u32) -> Option<&Seen> {
    order.get(number.wrapping_sub(oldest) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn seen(seconds: u64, name: &str, offset: u64) -> Seen {
        Seen::new(Keyed { key: key(name), content: 7 }, at(seconds), place(offset))
    }

    fn window(keys_max: usize, seconds: u64) -> Keys {
        Keys::new(KeyWindow { keys_max, age_max: Duration::from_secs(seconds) })
    }

    fn find(keys: &mut Keys, seconds: u64, name: &str) -> Option<Place> {
        keys.find(at(seconds), key(name)).map(|seen| seen.place())
    }

    #[test]
    fn the_oldest_key_goes_when_there_are_too_many() {
        let mut keys = window(2, 100);
        for (offset, name) in [(1, "a"), (2, "b"), (3, "c")] {
            keys.remember(seen(0, name, offset));
        }
        assert_eq!(find(&mut keys, 0, "a"), None);
        assert_eq!(find(&mut keys, 0, "b"), Some(place(2)));
        assert_eq!(find(&mut keys, 0, "c"), Some(place(3)));
    }

    #[test]
    fn a_key_is_known_up_to_its_age_and_no_longer() {
        let mut keys = window(9, 10);
        keys.remember(seen(5, "a", 1));
        assert_eq!(find(&mut keys, 15, "a"), Some(place(1)));
        assert_eq!(find(&mut keys, 16, "a"), None);
        assert!(keys.order.is_empty() && keys.index.is_empty());
    }

    #[test]
    fn an_old_key_behind_a_younger_one_does_not_count_and_can_come_again() {
        let mut keys = window(9, 10);
        keys.remember(seen(100, "late", 1));
        keys.remember(seen(5, "a", 2));
        assert_eq!(find(&mut keys, 20, "a"), None);
        keys.remember(seen(20, "a", 3));
        assert_eq!(find(&mut keys, 20, "a"), Some(place(3)));
        assert_eq!((keys.order.len(), keys.index.len()), (3, 2));
        keys.forget_beyond(KEY_BYTES);
        assert_eq!(find(&mut keys, 20, "a"), Some(place(3)));
        assert_eq!((keys.order.len(), keys.index.len()), (1, 1));
    }

    #[test]
    fn a_window_of_none_remembers_none() {
        let mut keys = window(0, 10);
        keys.remember(seen(0, "a", 1));
        assert_eq!(find(&mut keys, 0, "a"), None);
        assert!(keys.index.is_empty());
    }

    #[test]
    fn keys_of_what_was_not_kept_are_forgotten() {
        let mut keys = window(9, 10);
        for (offset, name) in [(1, "a"), (2, "b"), (3, "c")] {
            keys.remember(seen(0, name, offset));
        }
        keys.forget_after(1);
        assert_eq!(find(&mut keys, 0, "a"), Some(place(1)));
        assert_eq!(find(&mut keys, 0, "b"), None);
        assert_eq!(find(&mut keys, 0, "c"), None);
    }

    #[test]
    fn the_oldest_go_when_they_take_too_much_and_give_back_what_they_took() {
        let mut keys = window(usize::MAX, 10);
        for number in 1..=1_000 {
            keys.remember(seen(0, &number.to_string(), number));
        }
        assert_eq!(keys.bytes(), 1_000 * KEY_BYTES);
        keys.forget_beyond(10 * KEY_BYTES + 1);
        assert_eq!(keys.bytes(), 10 * KEY_BYTES);
        assert_eq!(find(&mut keys, 0, "990"), None);
        for number in 991..=1_000 {
            assert_eq!(find(&mut keys, 0, &number.to_string()), Some(place(number)));
        }
        assert!(keys.order.capacity() <= 30 && keys.index.capacity() <= 30);
    }

    #[test]
    fn a_batch_keeps_its_place() {
        let place = Place { first: u64::MAX - 1_000, last: u64::MAX - 1 };
        assert_eq!(Seen::new(seen(0, "a", 1).keyed, at(0), place).place(), place);
    }

    proptest! {
        /// A list that is searched from its end knows the same.
        #[test]
        fn what_is_known_is_what_a_list_knows(
            steps in prop::collection::vec((0_u8..12, 0_u64..4, 0_u8..20), 1..200),
            keys_max in 0_usize..8,
        ) {
            let mut keys = window(keys_max, 5);
            keys.oldest = u32::MAX - 20;
            let mut list: Vec<(u64, u8, u64)> = Vec::new();
            let (mut now, mut offset) = (0, 0_u64);
            for (name, seconds, what) in steps {
                now += seconds;
                list.retain(|(time, ..)| now - time <= 5);
                list.drain(..list.len().saturating_sub(keys_max));
                let text = name.to_string();
                if what == 0 {
                    let beyond = offset.saturating_sub(2);
                    keys.forget_after(beyond);
                    list.retain(|(_, _, offset)| *offset <= beyond);
                    continue;
                }
                let known = list.iter().find(|(_, known, _)| *known == name);
                prop_assert_eq!(find(&mut keys, now, &text), known.map(|known| place(known.2)));
                if known.is_none() {
                    offset += 1;
                    keys.remember(seen(now, &text, offset));
                    list.push((now, name, offset));
                }
            }
        }
    }
}
