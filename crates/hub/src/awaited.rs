//! Topics that readers wait for before they are created.
//!
//! Such a topic has a name and an epoch, and no log: nothing is stored for it, and it disappears with its last
//! holder. When the topic is created, the awaited one gets its log, so waiting readers have it, and positions in it
//! stay valid. The next epoch of a name is known at any time, so a position stays valid even if nobody held the topic
//! meanwhile.

use std::any::Any;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{Epoch, Topic, TopicName};

/// The awaited topics by name. Lock order: this, then the hub's topics.
#[derive(Debug, Default)]
pub(crate) struct Awaited(Mutex<HashMap<TopicName, Weak<Topic>>>);

/// The entry of an awaited topic, which the topic holds until it is created or dropped.
struct Listed<G> {
    all: Weak<Awaited>,
    name: TopicName,
    /// Dropped with the entry.
    _admission: G,
}

impl Awaited {
    pub(crate) fn lock(&self) -> Locked<'_> {
        // No method panics while it holds the lock.
        Locked(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(crate) struct Locked<'a>(MutexGuard<'a, HashMap<TopicName, Weak<Topic>>>);

impl Locked<'_> {
    pub(crate) fn get(&self, name: &TopicName) -> Option<Arc<Topic>> {
        self.0.get(name).and_then(Weak::upgrade)
    }

    /// Adds an awaited topic with the caller's guard.
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
        // The name may be awaited again with another topic, or this topic may be created.
        if awaited.0.get(&self.name).is_some_and(|topic| topic.strong_count() == 0) {
            awaited.remove(&self.name);
        }
    }
}

/// The epochs of new topics: the hub's, and a different one after a deletion, so that no topic has the epoch of an
/// earlier one of its name.
///
/// Deletions are counted in [`GROUPS`](Self::GROUPS) of names. One count for all names would change the epochs of all
/// awaited topics with each deletion, and a count for each name would grow with the names.
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

    /// Returns the epoch of the next topic of this name.
    pub(crate) fn of(&self, name: &TopicName) -> Epoch {
        // An odd step through the 48 bits of an epoch reaches all others before it returns to the first.
        const STEP: u64 = 0x9E37_79B9_7F4B;
        let deletions = self.deletions(name).load(Ordering::Acquire);
        Epoch::from_bits(self.first.bits().wrapping_add(deletions.wrapping_mul(STEP)))
    }

    /// Counts the deletion of a topic of this name.
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
