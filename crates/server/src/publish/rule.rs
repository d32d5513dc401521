//! A rule in force, with the number of its topics and their total.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anemone_hub::{TurnLimits, Turns};

use super::total::Total;
use crate::TopicRule;

/// A rule in force.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) terms: TopicRule,
    /// The number of its topics. Changes only in a turn.
    pub(super) created: AtomicUsize,
    /// The turns of clients who create or delete one: one at a time, since it takes time on a disk.
    pub(super) changing: Turns,
    /// The limit on its topics together; `None` for a rule of one topic, and without such a limit.
    pub(super) total: Option<Arc<Total>>,
}

/// Creates a rule without topics.
impl From<TopicRule> for Rule {
    fn from(terms: TopicRule) -> Self {
        let is_for_many = terms.topics.name().is_none();
        let total = terms.total().filter(|_| is_for_many);
        let total = total.map(|bytes_max| Arc::new(Total::new(bytes_max)));
        let turns = TurnLimits { places: 1, waiting_per_client_max: usize::MAX };
        Self { terms, created: AtomicUsize::new(0), changing: Turns::new(turns), total }
    }
}
