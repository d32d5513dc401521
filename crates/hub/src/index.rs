//! The index: a topic of the hub's own, whose events say which topics are created and deleted, in that order.

use std::sync::Arc;
use std::time::Duration;

use crate::log::SharedBytes;
use crate::{Data, Epoch, Retention, Topic, TopicName, TopicOptions, UnixTime};

/// The topic of the index, in memory. It is not among the topics of the hub.
#[derive(Debug)]
pub(crate) struct Index(Arc<Topic>);

/// The bytes that an event of the index counts for at most: the longest name, the words around it, and what an event in
/// memory costs.
const EVENT_BYTES_MAX: u64 = TopicName::BYTES_MAX as u64 + 192;

impl Index {
    pub(crate) fn new(epoch: Epoch, events_max: u64) -> Self {
        let topic = Topic::awaited(TopicName::of_index(), epoch, None);
        topic.create_in_memory(options(events_max), &SharedBytes::new(0));
        Self(Arc::new(topic))
    }

    pub(crate) fn topic(&self) -> &Arc<Topic> {
        &self.0
    }

    pub(crate) fn keep(&self, events_max: u64) {
        self.0.configure(options(events_max));
    }

    /// Says that a topic was created. The caller says everything in its order.
    pub(crate) fn created(&self, name: &TopicName) {
        self.tell(r#"{"created":""#, name);
    }

    pub(crate) fn deleted(&self, name: &TopicName) {
        self.tell(r#"{"deleted":""#, name);
    }

    fn tell(&self, words: &str, name: &TopicName) {
        // A name needs no escaping.
        let data = Data::from_json([words, name.as_str(), "\"}"].concat());
        // A topic in memory takes an event that fits its limits.
        let _ = self.0.publish(UnixTime::now(), data);
    }
}

fn options(events_max: u64) -> TopicOptions {
    let bytes_max = events_max.saturating_mul(EVENT_BYTES_MAX);
    Retention { events_max, bytes_max, age_max: Duration::MAX }.into()
}
