//! The topics that the readers of a connection follow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anemone_hub::{Head, Topic};
use anemone_wire::multiplexed::Id;
use anemone_wire::{Position, UnixTime};
use anemone_ws::reactor::SendWaker;

use crate::read::fan::{Fan, Subscription};
use crate::read::reader;

/// The topics of a connection's readers by their addresses in memory, since a name may belong to another topic by
/// now.
#[derive(Debug)]
pub(super) struct FollowedTopics {
    fan: Fan,
    topics: BTreeMap<usize, FollowedTopic>,
}

/// A topic and its readers on this connection.
#[derive(Debug)]
struct FollowedTopic {
    topic: Arc<Topic>,
    head: Head,
    /// All readers have read up to here, or have a turn.
    seen: Position,
    readers: BTreeSet<Id>,
    _subscription: Subscription,
}

impl FollowedTopics {
    pub(super) fn new(fan: &Fan) -> Self {
        Self { fan: fan.clone(), topics: BTreeMap::new() }
    }

    /// Adds a reader of a topic.
    pub(super) fn follow(&mut self, topic: &Arc<Topic>, id: Id, waker: &SendWaker) {
        let followed = self.topics.entry(address(topic)).or_insert_with(|| {
            let subscription = self.fan.subscribe(topic, waker.clone());
            FollowedTopic::new(Arc::clone(topic), subscription)
        });
        followed.readers.insert(id);
    }

    /// Removes a reader of a topic.
    pub(super) fn leave(&mut self, topic: &Arc<Topic>, id: Id) {
        let address = address(topic);
        if let Some(followed) = self.topics.get_mut(&address) {
            followed.readers.remove(&id);
            if followed.readers.is_empty() {
                self.topics.remove(&address);
            }
        }
    }

    /// Returns the readers whose topics have news.
    pub(super) fn with_news(&mut self) -> impl Iterator<Item = Id> {
        let followed = self.topics.values_mut();
        let with_news =
            followed.filter_map(|followed| followed.has_news().then_some(&followed.readers));
        with_news.flatten().copied()
    }

    pub(super) fn clear(&mut self) {
        self.topics.clear();
    }
}

impl FollowedTopic {
    fn new(topic: Arc<Topic>, subscription: Subscription) -> Self {
        let (head, seen) = (topic.head(), topic.info(UnixTime::now()).head);
        Self { topic, head, seen, readers: BTreeSet::new(), _subscription: subscription }
    }

    /// Returns true if the topic has events that not all readers have read.
    fn has_news(&mut self) -> bool {
        let has_news = reader::is_past(&mut self.head, self.seen);
        if has_news {
            self.seen = self.topic.info(UnixTime::now()).head;
        }
        has_news
    }
}

fn address(topic: &Arc<Topic>) -> usize {
    Arc::as_ptr(topic).addr()
}
