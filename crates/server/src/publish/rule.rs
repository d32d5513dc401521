//! A rule in force, with the number of its topics and their total.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anemone_hub::{Batch, Hub, Topic, TopicName, TurnLimits, Turns};

use super::keeping::refused;
use super::total::Total;
use crate::{Kind, Problem, TopicRule};

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) terms: TopicRule,
    /// The number of its topics. Changes only in a turn, which lasts until the change is done.
    pub(super) created: AtomicUsize,
    /// The turns of clients who create or delete one: one at a time, since it takes time on a disk.
    pub(super) changing: Turns,
    /// The limit on its topics together; `None` for a rule of one topic, and without such a limit.
    pub(super) total: Option<Arc<Total>>,
}

impl From<TopicRule> for Rule {
    fn from(terms: TopicRule) -> Self {
        let is_for_many = terms.topics.name().is_none();
        let total = terms.total().filter(|_| is_for_many);
        let total = total.map(|bytes_max| Arc::new(Total::new(bytes_max)));
        let turns = TurnLimits { places: 1, waiting_per_client_max: usize::MAX };
        Self { terms, created: AtomicUsize::new(0), changing: Turns::new(turns), total }
    }
}

impl Rule {
    /// Creates a topic that can take its first batch, unless it was created meanwhile. Called in a turn.
    pub(super) fn create(
        &self,
        hub: &Hub,
        name: TopicName,
        first: &Batch,
    ) -> Result<Arc<Topic>, Problem> {
        if let Some(topic) = hub.topic(&name) {
            return Ok(topic);
        }
        let TopicRule { topics, topics_max, .. } = &self.terms;
        if self.created.load(Ordering::Relaxed) >= *topics_max {
            let detail = format!(
                "there already are {topics_max} topics {topics}, the most that are allowed"
            );
            return Err(Problem::new(Kind::TooManyTopics, detail));
        }
        let options = self.terms.options();
        hub.check_first(options, first).map_err(|error| refused(error, first))?;
        let topic = hub.create(name, options)?;
        self.created.fetch_add(1, Ordering::Relaxed);
        Ok(topic)
    }

    /// Deletes a topic with its contents. Called in a turn.
    pub(super) fn delete(&self, hub: &Hub, name: &TopicName) -> Result<(), Problem> {
        hub.delete(name)?;
        let created = self.created.load(Ordering::Relaxed);
        self.created.store(created.saturating_sub(1), Ordering::Relaxed);
        if let Some(total) = &self.total {
            total.forget();
        }
        Ok(())
    }
}
