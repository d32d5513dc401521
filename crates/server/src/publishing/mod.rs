//! How what a client publishes gets into a topic, whatever the transport.
//!
//! Owns who may, and which topics are created and deleted for it. That a batch goes in whole and once is
//! the hub's part; what the events are made of is in `content`, what was sent under which key in `window`.

mod content;
mod idempotency;
mod window;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::{Duration, Instant};

use anemone_hub::{
    Batch, CreateError, Data, DeleteError, Hub, IdempotencyKey, NewEvent, Position, PublishError,
    Receipt, StorageError, Topic, TopicName,
};
use http::HeaderValue;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

pub(crate) use content::{Bounds, Content, of_message};
pub(crate) use idempotency::{key, no_parameters};
use window::Window;

use crate::client::Client;
use crate::fields::Fields;
use crate::reading::now;
use crate::{Kind, Limits, Problem, PublishRight, SlowReader, TopicRule, TopicRules, routes};

/// Where a batch is in its topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Published {
    pub(crate) first: Position,
    pub(crate) last: Position,
}

impl Published {
    /// As every transport tells it: `{"position":P,"first":P,"count":N}`.
    pub(crate) fn to_json(self) -> String {
        let Self { first, last } = self;
        let count = last.offset - first.offset + 1; // a batch has its places in a row
        format!(r#"{{"position":"{last}","first":"{first}","count":{count}}}"#)
    }
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    Published(Published),
    /// Its key was seen before: it is there since then, and nothing was appended.
    Repeated(Published),
}

/// Why a client may not publish to a topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// There is no such topic, and it is not one to be created.
    Unknown,
    /// The topic takes nothing from clients.
    Nobody,
    /// Only clients on this machine may.
    NotLocal,
}

impl Refusal {
    /// What the client is told.
    pub(crate) fn problem(self, name: &TopicName) -> Problem {
        match self {
            Self::Unknown => routes::unknown_topic(name.as_str()),
            Self::Nobody => {
                let problem = Problem::new(Kind::MethodNotAllowed, "this topic takes no messages");
                problem.field("allow", HeaderValue::from_static(Methods::Read.as_str()))
            }
            Self::NotLocal => Problem::new(
                Kind::PublishRefused,
                "only clients on the server's own machine may publish to this topic",
            ),
        }
    }
}

/// What can be done with a topic by HTTP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Methods {
    Read,
    /// And publish.
    Publish,
    /// And delete.
    Delete,
}

impl Methods {
    /// As `Allow` has them.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "GET, HEAD",
            Self::Publish => "GET, HEAD, POST",
            Self::Delete => "GET, HEAD, POST, DELETE",
        }
    }
}

/// The topics that are published to.
#[derive(Debug)]
pub(crate) struct Publishing {
    hub: Hub,
    rules: TopicRules,
    /// How many topics there are of each rule. Held while one is created or deleted.
    created: Mutex<Vec<usize>>,
    /// What was sent under which key, of the topics where there were any.
    windows: Lock<HashMap<TopicName, Arc<Lock<Window>>>>,
    digests: RandomState,
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
        let (created, windows) = (Mutex::new(created), Lock::default());
        Ok(Self { hub, rules, created, windows, digests: RandomState::new() })
    }

    /// What may be done with the topic of this name, whether it is there or not; not by whom.
    pub(crate) fn methods(&self, name: &TopicName) -> Methods {
        match self.rules.of(name) {
            None | Some((_, TopicRule { publish: PublishRight::Nobody, .. })) => Methods::Read,
            Some((_, rule)) if rule.topics.name().is_some() => Methods::Publish,
            Some(_) => Methods::Delete,
        }
    }

    /// What becomes of slow readers of the topic of this name.
    pub(crate) fn slow_reader(&self, name: &TopicName) -> SlowReader {
        self.rules.slow_reader(name)
    }

    /// Whether a client may publish to a topic: `fields` are those of its request, or of the
    /// handshake of its connection.
    pub(crate) fn permit(
        self: &Arc<Self>,
        name: &TopicName,
        client: Client,
        fields: &(impl Fields + ?Sized),
    ) -> Result<Permit, Refusal> {
        let refusal = || match self.hub.topic(name) {
            Some(_) => Refusal::Nobody,
            None => Refusal::Unknown,
        };
        let (rule, right) =
            self.rules.of(name).map(|(index, rule)| (index, rule.publish)).ok_or_else(refusal)?;
        match right {
            PublishRight::Nobody => return Err(refusal()),
            PublishRight::Loopback if !client.is_local(fields) => return Err(Refusal::NotLocal),
            PublishRight::Loopback | PublishRight::Anyone => {}
        }
        Ok(Permit { publishing: Arc::clone(self), name: name.clone(), rule })
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

    /// Sees that a key is not used for something else than it was a short while ago.
    ///
    /// By a digest of 64 bits, that of the standard hasher under keys drawn at each start: this finds a
    /// client's mistake, and misses one in 2^64; since nobody knows the keys, nobody can make two bodies alike.
    /// That a batch is not appended twice does not hang on it.
    fn check_key(
        &self,
        topic: &TopicName,
        rule: &TopicRule,
        key: &IdempotencyKey,
        sent: (Content, &[u8]),
    ) -> Result<(), Problem> {
        let window = {
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new(Lock::new(Window::new(rule.keys)));
            Arc::clone(windows.entry(topic.clone()).or_insert_with(new))
        };
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        if window.is_as_before(Instant::now(), key, self.digests.hash_one(sent)) {
            return Ok(());
        }
        let detail = "this idempotency key was used for another body a short while ago";
        Err(Problem::new(Kind::KeyReused, detail))
    }
}

/// That a client may publish to a topic, which may have to be created yet.
#[derive(Clone, Debug)]
pub(crate) struct Permit {
    publishing: Arc<Publishing>,
    name: TopicName,
    rule: usize,
}

impl Permit {
    /// Publishes what a body says: all of it, or nothing. Returns once it is kept.
    ///
    /// # Cancel safety
    /// When the future is dropped, the events may be kept or not.
    pub(crate) async fn submit(
        &self,
        limits: &Limits,
        content: Content,
        body: &[u8],
        key: Option<IdempotencyKey>,
    ) -> Result<Outcome, Problem> {
        let (rule, publishing) = (self.rule()?, &self.publishing);
        let bounds =
            Bounds { event_bytes_max: rule.event_bytes_max, events_max: limits.batch_events_max };
        let events = content.events(body, bounds)?;
        let topic = match publishing.hub.topic(&self.name) {
            Some(topic) => topic,
            None => publishing.create(&self.name, self.rule, rule).await?,
        };
        if let Some(key) = &key {
            publishing.check_key(&self.name, rule, key, (content, body))?;
        }
        append(&topic, events, key, limits.publish_timeout).await
    }

    /// For a connection that publishes again and again; `topic` is the one that the permit is for.
    pub(crate) fn writer(&self, topic: &Arc<Topic>, limits: &Limits) -> Result<Writer, Problem> {
        let (event_bytes_max, timeout) = (self.rule()?.event_bytes_max, limits.publish_timeout);
        Ok(Writer { topic: Arc::clone(topic), event_bytes_max, timeout })
    }

    /// Deletes the topic with all it keeps.
    pub(crate) async fn delete(&self) -> Result<(), Problem> {
        let (name, publishing) = (self.name.clone(), &self.publishing);
        let mut created = publishing.created().await;
        publishing.change(move |hub| hub.delete(&name)).await??;
        created[self.rule] = created[self.rule].saturating_sub(1);
        publishing.windows.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
        Ok(())
    }

    fn rule(&self) -> Result<&TopicRule, Problem> {
        let rule = self.publishing.rules.get(self.rule);
        rule.ok_or_else(|| Problem::new(Kind::Internal, "a topic has lost its rule"))
    }
}

/// Appends events in a row, at one time, and waits until they are kept.
async fn append(
    topic: &Topic,
    events: Vec<Data>,
    key: Option<IdempotencyKey>,
    limit: Duration,
) -> Result<Outcome, Problem> {
    let (time, count) = (now(), events.len());
    let events = events.into_iter().map(|data| NewEvent { time, data }).collect();
    let batch = Batch { events, key };
    match in_time(limit, topic.publish_kept(time, &batch)).await? {
        Ok(anemone_hub::Published { first, last, repeated }) => {
            let published = Published { first, last };
            let outcome = if repeated { Outcome::Repeated } else { Outcome::Published };
            Ok(outcome(published))
        }
        Err(error @ PublishError::TooBig { .. }) if count > 1 => {
            Err(Problem::new(Kind::BodyTooBig, error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// What comes of handing something in, if that is known in time.
async fn in_time<T>(limit: Duration, kept: impl Future<Output = T>) -> Result<T, Problem> {
    timeout(limit, kept).await.map_err(|_| {
        let detail = format!("the disk is behind: not kept within {limit:?}, but it may be yet");
        behind(detail)
    })
}

/// The disk takes its time. It may not later.
fn behind(detail: String) -> Problem {
    let problem = Problem::new(Kind::StorageFailed, detail);
    problem.field("retry-after", HeaderValue::from_static("1"))
}

/// A topic that a connection may publish to.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    topic: Arc<Topic>,
    /// Bound on each event's data.
    pub(crate) event_bytes_max: usize,
    timeout: Duration,
}

impl Writer {
    /// Publishes one event, which has its place in the log on return; the receipt tells once it is
    /// kept. How many may wait for that is the log's limit.
    pub(crate) fn publish(&self, data: Data) -> Result<Receipt, Problem> {
        let time = now();
        Ok(self.topic.append(time, &NewEvent { time, data }.into())?)
    }

    /// Waits until an event is kept.
    pub(crate) fn kept(
        &self,
        receipt: Receipt,
    ) -> impl Future<Output = Result<(), Problem>> + use<> {
        let timeout = self.timeout;
        async move { Ok(in_time(timeout, receipt).await?.map(|_| ())?) }
    }
}

impl From<PublishError> for Problem {
    fn from(error: PublishError) -> Self {
        let kind = match &error {
            PublishError::TooBig { .. } => Kind::EventTooBig,
            PublishError::Empty => Kind::BadBody,
            PublishError::StorageFull(_) => Kind::StorageFull,
            PublishError::Deleted => Kind::TopicDeleted,
            PublishError::Closed => Kind::Stopping,
            PublishError::Busy { .. } => return behind(error.to_string()),
            _ => Kind::StorageFailed,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<CreateError> for Problem {
    fn from(error: CreateError) -> Self {
        let kind = match &error {
            CreateError::Storage { error, .. } => failed(error),
            CreateError::Closed => Kind::Stopping,
            _ => Kind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<DeleteError> for Problem {
    fn from(error: DeleteError) -> Self {
        let kind = match &error {
            DeleteError::Unknown(_) => Kind::UnknownTopic,
            _ => Kind::StorageFailed,
        };
        Self::new(kind, error.to_string())
    }
}

fn failed(error: &StorageError) -> Kind {
    if error.is_full() { Kind::StorageFull } else { Kind::StorageFailed }
}
