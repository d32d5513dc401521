//! The topics that the readers of a connection follow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anemone_hub::{Head, Topic};
use anemone_wire::multiplexed::Id;
use anemone_ws::reactor::SendWaker;
use futures_util::FutureExt;
use tokio::task::coop::unconstrained;

use super::sending::ENCODING;
use crate::read::fan::{Fan, Subscription};
use crate::read::pages::SharedPage;
use crate::read::reader::{ReadEnd, Reader};

/// The topics of a connection's readers by their addresses in memory, since a name may belong to another topic by
/// now.
#[derive(Debug)]
pub(super) struct FollowedTopics {
    fan: Fan,
    topics: BTreeMap<usize, FollowedTopic>,
}

#[derive(Debug)]
struct FollowedTopic {
    /// Keeps the topic alive, so that its address stays unique.
    _topic: Arc<Topic>,
    /// When it grows, all readers get a turn.
    head: Head,
    readers: BTreeSet<Id>,
    subscription: Subscription,
}

impl FollowedTopics {
    pub(super) fn new(fan: &Fan) -> Self {
        Self { fan: fan.clone(), topics: BTreeMap::new() }
    }

    pub(super) fn follow(&mut self, topic: &Arc<Topic>, id: Id, waker: &SendWaker) {
        let followed = self.topics.entry(address(topic)).or_insert_with(|| {
            let subscription = self.fan.subscribe(topic, waker.clone());
            let (_topic, head, readers) = (Arc::clone(topic), topic.head(), BTreeSet::new());
            FollowedTopic { _topic, head, readers, subscription }
        });
        followed.readers.insert(id);
    }

    pub(super) fn leave(&mut self, topic: &Arc<Topic>, id: Id) {
        let address = address(topic);
        if let Some(followed) = self.topics.get_mut(&address) {
            followed.readers.remove(&id);
            if followed.readers.is_empty() {
                self.topics.remove(&address);
            }
        }
    }

    pub(super) fn with_news(&mut self) -> impl Iterator<Item = Id> {
        let followed = self.topics.values_mut();
        let with_news =
            followed.filter_map(|followed| followed.has_news().then_some(&followed.readers));
        with_news.flatten().copied()
    }

    /// Returns the next page of a reader of one of the topics; `None` when everything was read.
    pub(super) fn read(&self, reader: &mut Reader) -> Result<Option<Arc<SharedPage>>, ReadEnd> {
        let Some(followed) = self.topics.get(&address(reader.topic())) else { return Ok(None) };
        followed.subscription.read(reader, &ENCODING)
    }

    pub(super) fn clear(&mut self) {
        self.topics.clear();
    }
}

impl FollowedTopic {
    /// Returns true if the topic has grown or was deleted since the last call.
    fn has_news(&mut self) -> bool {
        // tokio would otherwise make a task that has used up its turn wait.
        unconstrained(self.head.grown()).now_or_never().is_some()
    }
}

fn address(topic: &Arc<Topic>) -> usize {
    Arc::as_ptr(topic).addr()
}
