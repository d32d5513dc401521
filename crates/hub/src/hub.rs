//! The hub: the topics of one server, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::{CreateError, Epoch, Retention, Topic, TopicName};

/// All topics of a server. Cheap to clone; clones share the topics.
#[derive(Clone, Debug)]
pub struct Hub {
    epoch: Epoch,
    topics: Arc<RwLock<BTreeMap<TopicName, Arc<Topic>>>>,
}

impl Hub {
    /// No topics yet. `epoch` should be drawn at random once per start of the server: it tells
    /// positions in these topics from positions in any that were kept before.
    #[must_use]
    pub fn new(epoch: Epoch) -> Self {
        Self { epoch, topics: Arc::default() }
    }

    /// Creates an empty topic.
    ///
    /// # Errors
    /// [`CreateError::Exists`] when there is one of this name.
    pub fn create(&self, name: TopicName, retention: Retention) -> Result<Arc<Topic>, CreateError> {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        if topics.contains_key(&name) {
            return Err(CreateError::Exists(name));
        }
        let topic = Arc::new(Topic::new(name.clone(), self.epoch, retention));
        topics.insert(name, Arc::clone(&topic));
        Ok(topic)
    }

    /// The topic of this name.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Option<Arc<Topic>> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.get(name).cloned()
    }

    /// All topics, in the order of their names.
    #[must_use]
    pub fn topics(&self) -> Vec<Arc<Topic>> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_once() {
        let hub = Hub::new(Epoch::from_bits(1));
        let name: TopicName = "wind".parse().unwrap();
        hub.create(name.clone(), Retention::default()).unwrap();
        let again = hub.create(name.clone(), Retention::default()).unwrap_err();
        assert_eq!(again, CreateError::Exists(name.clone()));
        assert_eq!(hub.topic(&name).map(|topic| topic.name().clone()), Some(name));
        assert!(hub.topic(&"other".parse().unwrap()).is_none());
    }
}
