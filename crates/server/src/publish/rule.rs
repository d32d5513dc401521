//! A rule in force, with the number of its topics and their total.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::total::Total;
use crate::TopicRule;

/// A rule in force.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) terms: TopicRule,
    /// The number of its topics. Locked while one is created or deleted.
    pub(super) created: Mutex<usize>,
    /// The limit on its topics together; `None` for a rule of one topic.
    pub(super) total: Option<Arc<Total>>,
}

/// Creates a rule without topics.
impl From<TopicRule> for Rule {
    fn from(terms: TopicRule) -> Self {
        let is_for_many = terms.topics.name().is_none();
        let total = is_for_many.then(|| Arc::new(Total::new(terms.bytes_total_max)));
        Self { terms, created: Mutex::new(0), total }
    }
}
