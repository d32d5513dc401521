//! A rule in force, and what its topics come to: their number, and the total that they may keep together.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::total::Total;
use crate::{TopicPattern, TopicRule};

/// A rule that is in force.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) terms: TopicRule,
    /// The number of its topics. Held while one is created or deleted.
    pub(super) created: Mutex<usize>,
    /// The total that its topics may keep together; `None` for a rule of one topic.
    pub(super) total: Option<Arc<Total>>,
}

impl Rule {
    /// The topics that it is about.
    pub(super) fn topics(&self) -> &TopicPattern {
        &self.terms.topics
    }
}

/// A rule without a topic so far.
impl From<TopicRule> for Rule {
    fn from(terms: TopicRule) -> Self {
        let is_for_many = terms.topics.name().is_none();
        let total = is_for_many.then(|| Arc::new(Total::new(terms.bytes_total_max)));
        Self { terms, created: Mutex::new(0), total }
    }
}
