//! Topics that somebody waits for before there is an event in them.
//!
//! Such a topic has a name and an epoch, and no log: nothing is kept for it, in memory or on disk, and it is gone
//! with the last who holds it. When the topic is created, the same one gets its log, so that who waits has it, and a
//! position in it stays one. A name's next epoch can be told at any time, so a position is good, too, when nobody held
//! the topic meanwhile.

use std::any::Any;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{Epoch, Topic, TopicName};

/// Those that are awaited, by name. Their locks are taken in this order: this one, then that of the hub's topics.
#[derive(Debug, Default)]
pub(crate) struct Awaited(Mutex<HashMap<TopicName, Weak<Topic>>>);

/// The entry of an awaited topic, which the topic holds; it goes when the topic does, or has its log.
struct Listed<G> {
    all: Weak<Awaited>,
    name: TopicName,
    /// Given back to its caller then.
    _admission: G,
}

impl Awaited {
    pub(crate) fn lock(&self) -> Locked<'_> {
        // Nothing panics while it holds the lock.
        Locked(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// All that are awaited, while nobody else looks at them.
pub(crate) struct Locked<'a>(MutexGuard<'a, HashMap<TopicName, Weak<Topic>>>);

impl Locked<'_> {
    pub(crate) fn get(&self, name: &TopicName) -> Option<Arc<Topic>> {
        self.0.get(name).and_then(Weak::upgrade)
    }

    /// A new one, with what its caller wants to have back.
    pub(crate) fn insert(
        &mut self,
        all: &Arc<Awaited>,
        (name, epoch): (TopicName, Epoch),
        admission: impl Any + Send + Sync,
    ) -> Arc<Topic> {
        let listed = Listed { all: Arc::downgrade(all), name: name.clone(), _admission: admission };
        let topic = Arc::new(Topic::awaited(name.clone(), epoch, Some(Box::new(listed))));
        self.0.insert(name, Arc::downgrade(&topic));
        topic
    }

    /// It is awaited no longer.
    pub(crate) fn remove(&mut self, name: &TopicName) {
        self.0.remove(name);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<G> Drop for Listed<G> {
    fn drop(&mut self) {
        let Some(all) = self.all.upgrade() else { return };
        let mut awaited = all.lock();
        // Another one may be awaited by this name again, and this one may have got its log.
        if awaited.0.get(&self.name).is_some_and(|topic| topic.strong_count() == 0) {
            awaited.remove(&self.name);
        }
    }
}

/// The epochs that topics begin: the hub's, and another one after a deletion, so that no topic has the epoch of one of the same
/// name before it.
///
/// Deletions are counted for each of [`GROUPS`](Self::GROUPS) of names. Counted for all together, each would end the
/// epochs of all who are waited for, and a count for each name would grow with the names.
#[derive(Debug)]
pub(crate) struct Epochs {
    first: Epoch,
    deletions: [AtomicU64; Self::GROUPS],
}

impl Epochs {
    const GROUPS: usize = 256;

    pub(crate) fn new(first: Epoch) -> Self {
        Self { first, deletions: [const { AtomicU64::new(0) }; Self::GROUPS] }
    }

    /// The epoch that a topic of this name begins.
    pub(crate) fn of(&self, name: &TopicName) -> Epoch {
        // An odd step through the 48 bits of an epoch comes back to the first after all others.
        const STEP: u64 = 0x9E37_79B9_7F4B;
        let deletions = self.deletions(name).load(Ordering::Acquire);
        Epoch::from_bits(self.first.bits().wrapping_add(deletions.wrapping_mul(STEP)))
    }

    /// One of this name was deleted.
    pub(crate) fn deleted(&self, name: &TopicName) {
        self.deletions(name).fetch_add(1, Ordering::AcqRel);
    }

    fn deletions(&self, name: &TopicName) -> &AtomicU64 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        #[expect(clippy::cast_possible_truncation, reason = "of a group's number")]
        let group = hasher.finish() as usize % Self::GROUPS;
        &self.deletions[group]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn epochs_of_a_name_are_distinct_and_those_of_most_others_stay() {
        let epochs = Epochs::new(Epoch::from_bits(u64::MAX));
        let names: Vec<TopicName> = (0..1000).map(|n| format!("a{n}").parse().unwrap()).collect();
        let before: Vec<Epoch> = names.iter().map(|name| epochs.of(name)).collect();
        let mut seen = HashSet::new();
        for _ in 0..10_000 {
            assert!(seen.insert(epochs.of(&names[0])));
            epochs.deleted(&names[0]);
        }
        let stayed = names.iter().zip(&before).filter(|(name, epoch)| epochs.of(name) == **epoch);
        assert!(stayed.count() > 980);
    }
}
