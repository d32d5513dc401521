//! Who may publish, and which topics are created and deleted for that.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use anemone_hub::{Data, Hub, IdempotencyKey, Storage, Topic, TopicName, UnixTime};
use http::HeaderValue;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::spawn_blocking;

use super::content::{Bounds, Content};
use super::expected::Expected;
use super::keeping::append;
use super::outcome::Outcome;
use super::total::{Admission, Total};
use crate::request::client::{Client, Foreign};
use crate::request::methods::Methods;
use crate::request::names::unknown_topic;
use crate::{Kind, Limits, Problem, PublishRight, SlowReader, TopicRule, TopicRules};

/// Why a client may not publish to a topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// There is no such topic, and it is not one to be created.
    Unknown,
    /// The topic takes nothing from clients.
    Nobody,
    /// Only clients on this machine may.
    NotLocal(Foreign),
}

impl Refusal {
    /// The problem that the client is told.
    pub(crate) fn problem(self, name: &TopicName) -> Problem {
        match self {
            Self::Unknown => unknown_topic(name.as_str()),
            Self::Nobody => {
                let problem = Problem::new(Kind::MethodNotAllowed, "this topic takes no messages");
                problem.field("allow", HeaderValue::from_static(Methods::Read.as_str()))
            }
            Self::NotLocal(foreign) => Problem::new(
                Kind::PublishRefused,
                format!(
                    "only clients on the server's own machine may publish to this topic; {foreign}"
                ),
            ),
        }
    }
}

/// The topics that are published to.
#[derive(Debug)]
pub(crate) struct Publishing {
    hub: Hub,
    rules: TopicRules,
    /// The number of topics of each rule. Held while one is created or deleted.
    created: Mutex<Vec<usize>>,
    /// The total that those of each rule may keep together; `None` for a rule of one topic.
    totals: Vec<Option<Arc<Total>>>,
}

impl Publishing {
    /// Creates the topics that are declared by name and not there yet, and has the rules hold for those
    /// that are there.
    ///
    /// # Errors
    /// When a topic cannot be kept as its rule says.
    pub(crate) fn new(hub: Hub, rules: TopicRules) -> io::Result<Self> {
        let declared = rules.iter().filter_map(|rule| rule.topics.name().cloned());
        let known = hub.topics().into_iter().map(|topic| topic.name().clone());
        let mut names: Vec<TopicName> = declared.chain(known).collect();
        names.sort();
        names.dedup();
        let mut created = vec![0; rules.iter().count()];
        for name in names {
            if let Some((index, rule)) = rules.of(&name) {
                hub.ensure(name, rule.options()).map_err(io::Error::other)?;
                created[index] += 1;
            }
        }
        let total = |rule: &TopicRule| match rule.topics.name() {
            Some(_) => None,
            None => Some(Arc::new(Total::new(rule.bytes_total_max))),
        };
        let totals = rules.iter().map(total).collect();
        Ok(Self { hub, rules, created: Mutex::new(created), totals })
    }

    /// The methods of the topic of this name, whether it is there or not; not by whom.
    pub(crate) fn methods(&self, name: &TopicName) -> Methods {
        match self.rules.of(name) {
            None | Some((_, TopicRule { publish: PublishRight::Nobody, .. })) => Methods::Read,
            Some((_, rule)) if rule.topics.name().is_some() => Methods::Publish,
            Some(_) => Methods::Delete,
        }
    }

    /// The storage of the topic of this name, if its first event may create it.
    pub(crate) fn may_create(&self, name: &TopicName) -> Option<Storage> {
        let rule = self.rules.of(name).filter(|_| self.methods(name) == Methods::Delete);
        rule.map(|(_, rule)| rule.storage)
    }

    /// The treatment of slow readers of the topic of this name.
    pub(crate) fn slow_reader(&self, name: &TopicName) -> SlowReader {
        self.rules.slow_reader(name)
    }

    /// Whether a client may publish to a topic.
    pub(crate) fn permit(
        self: &Arc<Self>,
        name: &TopicName,
        client: Client,
    ) -> Result<PublishPermit, Refusal> {
        let refusal = || match self.hub.topic(name) {
            Some(_) => Refusal::Nobody,
            None => Refusal::Unknown,
        };
        let (rule, right) =
            self.rules.of(name).map(|(index, rule)| (index, rule.publish)).ok_or_else(refusal)?;
        match right {
            PublishRight::Nobody => return Err(refusal()),
            PublishRight::Loopback => client.check_local().map_err(Refusal::NotLocal)?,
            PublishRight::Anyone => {}
        }
        Ok(PublishPermit { publishing: Arc::clone(self), name: name.clone(), rule })
    }

    /// Creates a topic, unless somebody has meanwhile.
    async fn create(
        &self,
        name: &TopicName,
        index: usize,
        rule: &TopicRule,
    ) -> Result<Arc<Topic>, Problem> {
        let mut created = self.created().await;
        if let Some(topic) = self.hub.topic(name) {
            return Ok(topic);
        }
        let TopicRule { topics, topics_max, .. } = rule;
        if created[index] >= *topics_max {
            let detail = format!("there are {topics_max} topics {topics} already, no more may be");
            return Err(Problem::new(Kind::TooManyTopics, detail));
        }
        let (name, options) = (name.clone(), rule.options());
        let topic = self.change(move |hub| hub.create(name, options)).await??;
        created[index] += 1;
        Ok(topic)
    }

    /// The bytes that the topics of a rule keep together.
    fn kept_bytes(&self, index: usize) -> u64 {
        let topics = self.hub.topics().into_iter();
        let own =
            topics.filter(|topic| self.rules.of(topic.name()).is_some_and(|(of, _)| of == index));
        own.map(|topic| topic.info(UnixTime::now()).bytes).sum()
    }

    /// Creates or deletes a topic: on a disk that takes its time.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(Hub) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let hub = self.hub.clone();
        if hub.data().is_none() {
            return Ok(work(hub));
        }
        let failed =
            |error: tokio::task::JoinError| Problem::new(Kind::Internal, error.to_string());
        spawn_blocking(move || work(hub)).await.map_err(failed)
    }

    async fn created(&self) -> MutexGuard<'_, Vec<usize>> {
        self.created.lock().await
    }
}

/// A body that a client sends to be published.
#[derive(Debug)]
pub(crate) struct Sent<'a> {
    pub(crate) content: Content,
    pub(crate) body: &'a [u8],
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) expected: Expected,
}

/// The right of a client to publish to a topic, which may have to be created yet.
#[derive(Clone, Debug)]
pub(crate) struct PublishPermit {
    publishing: Arc<Publishing>,
    name: TopicName,
    rule: usize,
}

impl PublishPermit {
    /// Publishes what a body says: all of it, or nothing. Returns once it is kept.
    ///
    /// # Cancel safety
    /// When the future is dropped, the events may be kept or not.
    pub(crate) async fn submit(&self, limits: &Limits, sent: Sent<'_>) -> Result<Outcome, Problem> {
        let Sent { content, body, key, expected } = sent;
        let (rule, publishing) = (self.rule()?, &self.publishing);
        let bounds =
            Bounds { event_bytes_max: rule.event_bytes_max, events_max: limits.batch_events_max };
        let events = content.events(body, bounds)?;
        let topic = publishing.hub.topic(&self.name);
        // A retry was admitted when it came first, and is to be told how that went.
        let is_retry =
            topic.as_ref().zip(key).is_some_and(|(topic, key)| topic.knows(UnixTime::now(), key));
        let _admission = if is_retry { None } else { self.admit(topic.as_deref(), &events)? };
        let topic = match topic {
            Some(topic) => topic,
            None if expected != Expected::Anything => {
                let detail = "there is no topic of this name yet: publish to it without If-Match";
                return Err(Problem::new(Kind::PreconditionFailed, detail));
            }
            None => self.create().await?,
        };
        let heads = match expected {
            Expected::Heads(heads) => Some(heads),
            Expected::Anything | Expected::Topic => None,
        };
        append(&topic, events, (key, heads), limits.publish_timeout).await
    }

    /// Creates the topic, unless it is there.
    pub(super) async fn create(&self) -> Result<Arc<Topic>, Problem> {
        self.publishing.create(&self.name, self.rule, self.rule()?).await
    }

    /// Deletes the topic with all it keeps.
    pub(crate) async fn delete(&self) -> Result<(), Problem> {
        let (name, publishing) = (self.name.clone(), &self.publishing);
        let mut created = publishing.created().await;
        publishing.change(move |hub| hub.delete(&name)).await??;
        created[self.rule] = created[self.rule].saturating_sub(1);
        if let Some(Some(total)) = publishing.totals.get(self.rule) {
            total.forget();
        }
        Ok(())
    }

    /// Sees that the topics of the rule keep no more than they may together. `topic` is where these events are
    /// to go, if it is there.
    pub(super) fn admit(
        &self,
        topic: Option<&Topic>,
        events: &[Data],
    ) -> Result<Option<Admission>, Problem> {
        let (index, rule, publishing) = (self.rule, self.rule()?, &self.publishing);
        let Some(Some(total)) = publishing.totals.get(index) else { return Ok(None) };
        let cost = |data: &Data| data.bytes().len() as u64 + TopicRule::OVERHEAD_BYTES_MAX;
        let bytes = events.iter().map(cost).sum();
        let admission = total.admit(Instant::now(), bytes, || publishing.kept_bytes(index));
        // A full topic drops as much as it takes in, so its total does not grow.
        let is_full =
            |topic: &Topic| topic.info(UnixTime::now()).bytes + bytes > rule.retention.bytes_max;
        if admission.is_some() || topic.is_some_and(is_full) {
            return Ok(admission);
        }
        let TopicRule { topics, bytes_total_max, .. } = rule;
        let detail =
            format!("topics {topics} keep as much as they may together, {bytes_total_max} bytes");
        Err(Problem::new(Kind::StorageFull, detail))
    }

    pub(super) fn rule(&self) -> Result<&TopicRule, Problem> {
        let rule = self.publishing.rules.get(self.rule);
        rule.ok_or_else(|| Problem::new(Kind::Internal, "a topic has lost its rule"))
    }
}
