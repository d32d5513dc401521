//! The permissions for publishing, and the topics that clients create and delete.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_hub::{
    Batch, Data, Hub, IdempotencyKey, Published, Storage, TooManyWait, Topic, TopicName, UnixTime,
    Waiter,
};
use http::HeaderValue;
use tokio::task::spawn_blocking;

use super::content::{Bounds, Content};
use super::expected::Expected;
use super::keeping::{append, batch, in_time};
use super::rule::Rule;
use super::total::Admission;
use crate::request::client::{Client, Foreign};
use crate::request::methods::{Methods, not_allowed};
use crate::request::names::unknown_topic;
use crate::topics::closest;
use crate::{Kind, Limits, Problem, PublishRight, SlowReader, TopicRule, TopicRules};

/// The reason why a client may not publish to a topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PublishRefusal {
    /// The topic does not exist, and no rule allows to create it.
    Unknown,
    /// The topic accepts nothing from clients.
    Nobody,
    /// It is a run, which accepts nothing.
    Run,
    /// The topic accepts events only from clients on this machine.
    NotLocal(Foreign),
}

impl PublishRefusal {
    pub(crate) fn problem(self, name: &TopicName) -> Problem {
        match self {
            Self::Unknown => unknown_topic(name.as_str()),
            Self::Nobody => {
                let problem =
                    Problem::new(Kind::MethodNotAllowed, "this topic accepts no messages");
                problem.field("allow", HeaderValue::from_static(Methods::Read.as_str()))
            }
            Self::Run => not_allowed("a message", Methods::Cancel),
            Self::NotLocal(foreign) => Problem::new(
                Kind::PublishRefused,
                format!(
                    "only clients on the server's own machine may publish to this topic; {foreign}"
                ),
            ),
        }
    }
}

/// The topics to which clients publish, and their rules.
#[derive(Debug)]
pub(crate) struct Publishing {
    hub: Hub,
    rules: Vec<Arc<Rule>>,
}

impl Publishing {
    /// Creates missing topics that are declared by name, and applies the rules to existing ones.
    ///
    /// # Errors
    /// When a topic cannot be stored according to its rule.
    pub(crate) fn new(hub: Hub, rules: TopicRules) -> io::Result<Self> {
        let declared = rules.iter().filter_map(|rule| rule.topics.name().cloned());
        let known = hub.topics().into_iter().map(|topic| topic.name().clone());
        let mut names: Vec<TopicName> = declared.chain(known).collect();
        names.sort();
        names.dedup();
        let mut rules: Vec<Rule> = rules.into_iter().map(Rule::from).collect();
        for name in names {
            if let Some(rule) = closest(&mut rules, |rule| &rule.terms.topics, &name) {
                hub.ensure(name, rule.terms.options()).map_err(io::Error::other)?;
                *rule.created.get_mut() += 1;
            }
        }
        Ok(Self { hub, rules: rules.into_iter().map(Arc::new).collect() })
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &TopicRule> {
        self.rules.iter().map(|rule| &rule.terms)
    }

    /// Returns the methods of the topic of this name, whether it exists or not, and independent of the client.
    pub(crate) fn methods(&self, name: &TopicName) -> Methods {
        match self.terms(name) {
            None | Some(TopicRule { publish: PublishRight::Nobody, .. }) => Methods::Read,
            Some(terms) if terms.topics.name().is_some() => Methods::Publish,
            Some(_) => Methods::Delete,
        }
    }

    /// Returns the storage of the topic of this name, if its first event may create it.
    pub(crate) fn may_create(&self, name: &TopicName) -> Option<Storage> {
        let terms = self.terms(name).filter(|_| self.methods(name) == Methods::Delete);
        terms.map(|terms| terms.storage)
    }

    /// Returns the treatment of slow readers of the topic of this name; without a rule, a gap.
    pub(crate) fn slow_reader(&self, name: &TopicName) -> SlowReader {
        self.terms(name).map_or(SlowReader::Gap, |terms| terms.slow_reader)
    }

    /// Returns the units of the topic of this name, if its rule has some.
    pub(crate) fn units(&self, name: &TopicName) -> Option<&BTreeMap<String, String>> {
        self.terms(name).map(|terms| &terms.units).filter(|units| !units.is_empty())
    }

    /// Returns the topic whose source tells its status in the topic of this name.
    pub(crate) fn status_of(&self, name: &TopicName) -> Option<&TopicName> {
        let named = self.terms(name).filter(|terms| terms.topics.name().is_some());
        named.and_then(|terms| terms.status_of.as_ref())
    }

    fn rule(&self, name: &TopicName) -> Option<&Arc<Rule>> {
        closest(&self.rules, |rule| &rule.terms.topics, name)
    }

    fn terms(&self, name: &TopicName) -> Option<&TopicRule> {
        self.rule(name).map(|rule| &rule.terms)
    }

    pub(crate) fn permit(
        self: &Arc<Self>,
        name: &TopicName,
        client: Client,
    ) -> Result<PublishPermit, PublishRefusal> {
        let exists = || name == self.hub.index().name() || self.hub.topic(name).is_some();
        let refusal = || match exists() {
            true => PublishRefusal::Nobody,
            false => PublishRefusal::Unknown,
        };
        let rule = self.rule(name).ok_or_else(refusal)?;
        match rule.terms.publish {
            PublishRight::Nobody => return Err(refusal()),
            PublishRight::Loopback => client.check_local().map_err(PublishRefusal::NotLocal)?,
            PublishRight::Anyone => {}
        }
        let (publishing, rule) = (Arc::clone(self), Arc::clone(rule));
        Ok(PublishPermit { publishing, name: name.clone(), rule, waiter: client.waiter() })
    }

    /// Returns the bytes kept by all topics of a rule.
    fn kept_bytes(&self, rule: &Arc<Rule>) -> u64 {
        let is_own = |topic: &Arc<Topic>| {
            self.rule(topic.name()).is_some_and(|other| Arc::ptr_eq(other, rule))
        };
        let topics = self.hub.topics().into_iter().filter(is_own);
        topics.map(|topic| topic.info(UnixTime::now()).bytes).sum()
    }
}

impl From<TooManyWait> for Problem {
    fn from(full: TooManyWait) -> Self {
        let problem = Self::new(Kind::TooManyRequests, full.to_string());
        problem.field("retry-after", HeaderValue::from_static("1"))
    }
}

#[derive(Debug)]
pub(crate) struct SentBody<'a> {
    pub(crate) content: Content,
    pub(crate) body: &'a [u8],
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) expected: Expected,
}

/// The permit of a client to publish to a topic, which may have to be created first.
#[derive(Clone, Debug)]
pub(crate) struct PublishPermit {
    publishing: Arc<Publishing>,
    name: TopicName,
    rule: Arc<Rule>,
    waiter: Waiter,
}

impl PublishPermit {
    /// Publishes the events of a body, all or none. Returns when they are kept.
    ///
    /// # Cancel safety
    /// After dropping the future, the events may be kept or not.
    pub(crate) async fn submit(
        &self,
        limits: &Limits,
        sent: SentBody<'_>,
    ) -> Result<Published, Problem> {
        let SentBody { content, body, key, expected } = sent;
        let event_bytes_max = self.event_bytes_max();
        let bounds = Bounds { event_bytes_max, events_max: limits.batch_events_max };
        let events = content.events(body, bounds)?;
        let topic = self.publishing.hub.topic(&self.name);
        // A retry was admitted the first time, and must get the outcome of that.
        let is_retry =
            topic.as_ref().zip(key).is_some_and(|(topic, key)| topic.knows(UnixTime::now(), key));
        let _admission = if is_retry { None } else { self.admit(topic.as_deref(), &events)? };
        let topic = match topic {
            Some(topic) => topic,
            None if expected != Expected::Anything => {
                let detail = "this topic does not exist yet: publish to it without If-Match";
                return Err(Problem::new(Kind::PreconditionFailed, detail));
            }
            None => self.create(batch(events.clone(), key), limits.publish_timeout).await?,
        };
        let heads = match expected {
            Expected::Heads(heads) => Some(heads),
            Expected::Anything | Expected::Topic => None,
        };
        let batch = Batch { heads, ..batch(events, key) };
        append(&topic, &batch, limits.publish_timeout).await
    }

    /// Creates the topic for its first batch, unless it exists. A batch that it could not take creates nothing.
    ///
    /// # Cancel safety
    /// After dropping the future, the topic may be created or not.
    pub(super) async fn create(
        &self,
        first: Batch,
        timeout: Duration,
    ) -> Result<Arc<Topic>, Problem> {
        let name = self.name.clone();
        in_time(timeout, self.change(move |hub, rule| rule.create(hub, name, &first))).await?
    }

    /// Deletes the topic with its contents.
    ///
    /// # Cancel safety
    /// After dropping the future, the topic may be deleted or not.
    pub(crate) async fn delete(&self) -> Result<(), Problem> {
        let name = self.name.clone();
        self.change(move |hub, rule| rule.delete(hub, &name)).await
    }

    /// Creates or deletes a topic in its turn, which lasts until that is done, also if nobody waits for it any more. It takes
    /// time on a disk.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Hub, &Rule) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.rule.changing.take(self.waiter).await?;
        let (hub, rule) = (self.publishing.hub.clone(), Arc::clone(&self.rule));
        let has_data = hub.data().is_some();
        let work = move || {
            let _turn = turn;
            work(&hub, &rule)
        };
        if !has_data {
            return work();
        }
        let failed =
            |error: tokio::task::JoinError| Problem::new(Kind::Internal, error.to_string());
        spawn_blocking(work).await.map_err(failed)?
    }

    /// Checks the limit on all topics of the rule together. `topic` is the destination of the events, if it exists.
    pub(super) fn admit(
        &self,
        topic: Option<&Topic>,
        events: &[Data],
    ) -> Result<Option<Admission>, Problem> {
        let Rule { terms, total: Some(total), .. } = &*self.rule else { return Ok(None) };
        let cost = |data: &Data| data.bytes().len() as u64 + TopicRule::OVERHEAD_BYTES_MAX;
        let bytes = events.iter().map(cost).sum();
        let kept_bytes = || self.publishing.kept_bytes(&self.rule);
        let admission = total.admit(Instant::now(), bytes, kept_bytes);
        // A full topic drops as much as it takes, so the total does not grow.
        let is_full =
            |topic: &Topic| topic.info(UnixTime::now()).bytes + bytes > terms.retention.bytes_max;
        if admission.is_some() || topic.is_some_and(is_full) {
            return Ok(admission);
        }
        let (topics, bytes_max) = (&terms.topics, total.bytes_max());
        let detail =
            format!("topics {topics} together have reached their limit of {bytes_max} bytes");
        Err(Problem::new(Kind::StorageFull, detail))
    }

    pub(super) fn event_bytes_max(&self) -> usize {
        self.rule.terms.event_bytes_max
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use std::sync::atomic::Ordering;

    use anemone_hub::{DataDir, DataOptions, Epoch};
    use futures_util::FutureExt;

    use super::*;
    use crate::peer::Peer;
    use crate::request::proxies::Proxies;

    fn is_done(future: Pin<&mut impl Future<Output = Result<Arc<Topic>, Problem>>>) -> bool {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(created) => created.is_ok(),
            Poll::Pending => false,
        }
    }

    /// A batch of one event with so many bytes.
    fn event_of(bytes: usize) -> Batch {
        batch(vec![Data::json(&"x".repeat(bytes)).unwrap()], None)
    }

    #[tokio::test]
    async fn an_event_that_a_new_topic_cannot_hold_creates_none() {
        let folder = tempfile::tempdir().unwrap();
        let options = DataOptions { bytes_max: 40 << 10, ..DataOptions::default() };
        let data = DataDir::open(folder.path(), options).unwrap();
        let on_disk = Hub::with_data(Epoch::from_bits(1), data).unwrap();
        let in_memory = Hub::new(Epoch::from_bits(1));
        in_memory.keep_in_memory(40 << 10);
        for hub in [on_disk, in_memory] {
            let rule = TopicRule {
                publish: PublishRight::Anyone,
                ..TopicRule::new("open-*".parse().unwrap())
            };
            let rules = TopicRules::new([rule]).unwrap();
            let publishing = Arc::new(Publishing::new(hub, rules).unwrap());
            let client = Client::of_connection(Peer::Unknown, &Proxies::default());
            let create = async |name: &str, bytes| {
                let permit = publishing.permit(&name.parse().unwrap(), client).unwrap();
                permit.create(event_of(bytes), Duration::from_secs(60)).await
            };
            create("open-a", 30 << 10).await.unwrap();
            // The two would share 40 KiB.
            let problem = create("open-b", 41 << 10).await.unwrap_err();
            assert_eq!(problem.kind(), Kind::EventTooBig);
            let created = publishing.rules[0].created.load(Ordering::Relaxed);
            assert_eq!((created, publishing.hub.topics().len()), (1, 1));
            create("open-b", 10 << 10).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_client_creates_its_topic_after_one_of_another_client_whatever_that_one_creates() {
        let rule = TopicRule {
            publish: PublishRight::Anyone,
            ..TopicRule::new("open-*".parse().unwrap())
        };
        let rules = TopicRules::new([rule]).unwrap();
        let publishing = Arc::new(Publishing::new(Hub::new(Epoch::from_bits(1)), rules).unwrap());
        let create = |address: &str, name: &str| {
            let peer = Peer::new(Ok(SocketAddr::new(address.parse().unwrap(), 1)));
            let client = Client::of_connection(peer, &Proxies::default());
            let permit = publishing.permit(&name.parse().unwrap(), client).unwrap();
            async move { permit.create(event_of(1), Duration::from_secs(60)).await }
        };
        let turn = publishing.rules[0].changing.try_take().unwrap();
        let mut busy: Vec<_> =
            (0..50).map(|at| Box::pin(create("192.0.2.1", &format!("open-{at}")))).collect();
        let mut other = pin!(create("192.0.2.2", "open-other"));
        assert!(!busy.iter_mut().any(|waiting| is_done(waiting.as_mut())));
        assert!(!is_done(other.as_mut()));
        drop(turn);
        assert!(is_done(busy[0].as_mut()));
        assert!(is_done(other.as_mut()));
        assert!(busy[1..].iter_mut().all(|waiting| is_done(waiting.as_mut())));
    }

    #[tokio::test]
    async fn a_change_counts_also_if_its_client_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path(), DataOptions::default()).unwrap();
        let rule = TopicRule {
            publish: PublishRight::Anyone,
            ..TopicRule::new("open-*".parse().unwrap())
        };
        let rules = TopicRules::new([rule]).unwrap();
        let hub = Hub::with_data(Epoch::from_bits(1), data).unwrap();
        let publishing = Arc::new(Publishing::new(hub, rules).unwrap());
        let client = Client::of_connection(Peer::Unknown, &Proxies::default());
        let permit = publishing.permit(&"open-a".parse().unwrap(), client).unwrap();
        let created = || publishing.rules[0].created.load(Ordering::Relaxed);
        // The first look begins the change.
        let mut create = Box::pin(permit.create(event_of(1), Duration::from_secs(60)));
        let _ = create.as_mut().now_or_never();
        drop(create);
        // The next one has its turn after it.
        permit.create(event_of(1), Duration::from_secs(60)).await.unwrap();
        assert_eq!(created(), 1);
        let mut delete = Box::pin(permit.delete());
        let _ = delete.as_mut().now_or_never();
        drop(delete);
        let _after = publishing.rules[0].changing.take(client.waiter()).await.unwrap();
        assert_eq!((created(), publishing.hub.topics().len()), (0, 0));
    }
}
