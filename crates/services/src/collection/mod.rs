//! A resource whose records are kept in a topic alone ("Resources" in `docs/PROTOCOL.md`).
//!
//! `event` has the data of the topic's events, `state` the records that they make, and `plan` what a wish means for them;
//! all three are pure. A `Collection` joins them with the topic: one change after the other is planned, published and,
//! once its event is kept, applied. So the order of the topic is the order of the changes, and the records can be built
//! again from the topic, whenever the process ends.

mod event;
mod options;
mod plan;
mod state;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::sync::oneshot;

use anemone_hub::{
    After, Batch, CreateError, Hub, IdempotencyKey, KeyWindow, NewEvent, PageLimit, Position,
    PublishError, ReadError, Retention, Topic, TopicName, TopicOptions, Turn, TurnLimits, Turns,
    UnixTime, Waiter,
};

pub use self::options::CollectionOptions;

use self::event::{RecordChange, RecordChangeKind};
use self::plan::{Rules, Wish, with_id, with_new_id};
use self::state::{State, Stored, Window, cost};
use crate::query::STEP_RECORDS;
use crate::{
    Call, Changed, Condition, Fields, Found, Methods, Query, Record, Resource, ResourceError,
    Schema,
};

/// An error of opening a collection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenCollectionError {
    /// Its topic could not be created.
    #[error("cannot create the topic of a collection")]
    Create(#[from] CreateError),
    /// Its topic could not be read.
    #[error("cannot read the topic of a collection")]
    Read(#[from] ReadError),
}

/// Records that are kept in a topic. Cheap to clone; clones share the records.
///
/// Each change is an event of the topic: `{"created":RECORD}`, `{"updated":RECORD}`, `{"patched":RECORD}` or
/// `{"removed":RECORD}`. Before the newest event of a record is evicted, the record is published again as
/// `{"kept":RECORD,"of":POSITION}`, where POSITION is that of its last change. The tag of a record is that position.
///
/// Clients take turns: at changes, of which there is one at a time, and at finds that look at many records. The [`Waiter`]
/// in the extensions of a [`Call`] says who waits.
///
/// Nobody else may publish to the topic. A change whose turn has come is carried out, even if its future is dropped. If the
/// runtime of the caller ends before, the change happens as a whole or not at all. A find stops soon after its future is
/// dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use anemone_hub::{Epoch, Hub};
/// use anemone_services::{Call, Collection, CollectionOptions, Field, Resource, Schema};
///
/// let hub = Hub::new(Epoch::random()?);
/// let schema = Schema::new("Station").field(Field::text("place", 1..=80));
/// let open = || Collection::open(&hub, "stations".parse().unwrap(), schema.clone(), CollectionOptions::default());
/// let stations = open()?;
/// let place = serde_json::from_str(r#"{"place":"Zugspitze"}"#)?;
/// let created = stations.create(place, &Call::default()).await?.record;
///
/// let id = created.fields["id"].as_str().unwrap();
/// assert_eq!(open()?.get(id, &Call::default()).await?.fields["place"], "Zugspitze");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Collection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    topic: Arc<Topic>,
    rules: Rules,
    window: Window,
    state: RwLock<State>,
    /// The turns of changes. One lasts from the plan of a change until its event is applied.
    changing: Turns,
    /// The turns of the finds that do not look at the records on the thread of their request.
    finding: Turns,
}

/// The number of times that a change is planned anew because somebody else has published to the topic.
const ATTEMPTS_MAX: usize = 8;

/// A bound of the bytes that a topic may keep its idempotency keys in, beside the events.
const KEYS_BYTES: u64 = 2 << 20;

impl Collection {
    /// Opens the collection in the topic of this name, which it creates if there is none. Reads all of the topic, and
    /// sets its retention, so it blocks for the disk.
    ///
    /// # Errors
    /// When the topic cannot be created or read.
    pub fn open(
        hub: &Hub,
        name: TopicName,
        schema: Schema,
        options: CollectionOptions,
    ) -> Result<Self, OpenCollectionError> {
        let mut state = State::default();
        if let Some(topic) = hub.topic(&name) {
            // Before its retention changes, so that nothing is evicted unread.
            read_on(&topic, &mut state)?;
        }
        let window = window(&state, options);
        let topic = hub.ensure(name, topic_options(window, options))?;
        let (rules, state) = (Rules { schema, options }, RwLock::new(state));
        let turns = |places, waiting_per_client_max| {
            Turns::new(TurnLimits { places, waiting_per_client_max })
        };
        let changing = turns(1, usize::MAX);
        let finding = turns(options.finds_max, options.finds_waiting_per_client_max);
        Ok(Self(Arc::new(Inner { topic, rules, window, state, changing, finding })))
    }

    /// Returns its topic.
    #[must_use]
    pub fn topic(&self) -> &Arc<Topic> {
        &self.0.topic
    }

    /// Returns the options of its topic. Nobody may set other ones, which could evict records.
    #[must_use]
    pub fn topic_options(&self) -> TopicOptions {
        topic_options(self.0.window, self.0.rules.options)
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.current().len()
    }

    /// Returns true if there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the turn of a change, and carries it out to its end, whatever becomes of the caller then.
    async fn change(&self, wish: Wish, call: &Call) -> Result<Changed, ResourceError> {
        let turn = self.0.changing.take(waiter(call)).await?;
        let (inner, condition, key) = (Arc::clone(&self.0), call.condition.clone(), call.key);
        let changing = tokio::spawn(async move { inner.change(turn, wish, &condition, key).await });
        changing.await.unwrap_or(Err(ResourceError::Failed))
    }
}

fn waiter(call: &Call) -> Waiter {
    call.extensions.get().copied().unwrap_or_default()
}

/// Longer than any server runs.
const AGE_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Returns the events that the topic must retain: four times the records, so that it seldom publishes a record again, and
/// at least what it has now, in case the options allowed more before.
fn window(state: &State, options: CollectionOptions) -> Window {
    let extent = state.extent();
    let events = (options.records_max.max(state.len()) as u64).saturating_mul(4).max(64);
    let bytes = options.bytes_max.max(state.live()).saturating_mul(4);
    Window { events: events.max(extent.events), bytes: bytes.max(extent.bytes) }
}

fn topic_options(window: Window, options: CollectionOptions) -> TopicOptions {
    let bytes_max = window.bytes.saturating_add(KEYS_BYTES);
    let retention = Retention { events_max: window.events, bytes_max, age_max: AGE_MAX };
    TopicOptions { retention, keys: KeyWindow::default(), storage: options.storage }
}

/// Applies the events after the head of the state.
fn read_on(topic: &Topic, state: &mut State) -> Result<(), ReadError> {
    let now = UnixTime::now();
    let mut position = match state.head() {
        0 => topic.start(now, After::Earliest)?,
        offset => topic.info(now).head.at(offset),
    };
    loop {
        let page = topic.read(now, position, PageLimit::default())?;
        if let Some(gap) = &page.gap {
            tracing::warn!(topic = %topic.name(), missed = gap.missed, "events of a resource are missing, so records may be");
        }
        if page.events.is_empty() {
            state.skip_to(page.next.offset);
            return Ok(());
        }
        for event in &page.events {
            let change = RecordChange::parse(&event.data);
            if change.is_none() {
                tracing::warn!(topic = %topic.name(), offset = event.offset, "an event of a resource is no change");
            }
            state.apply(position.at(event.offset), cost(event.data.bytes().len()), change);
        }
        position = page.next;
    }
}

impl Inner {
    /// Carries out a change, whose turn lasts until then.
    async fn change(
        &self,
        _turn: Turn,
        wish: Wish,
        condition: &Condition,
        key: Option<IdempotencyKey>,
    ) -> Result<Changed, ResourceError> {
        let now = UnixTime::now();
        let request = key.map(|_| wish.to_bytes());
        let empty = Batch { key, request, ..Batch::new(Vec::new()) };
        match self.topic.publish_kept(now, &empty).await {
            Err(PublishError::Empty) => {} // there is no key, or it is a new one
            known => return self.repeated(now, wish, known?.last),
        }
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt(now, wish.clone(), condition, &empty).await {
                Err(Failure::HeadMoved) => self.catch_up()?,
                Err(Failure::Resource(error)) => return Err(error),
                Ok(record) => return Ok(Changed { record, is_replayed: false }),
            }
        }
        tracing::error!(topic = %self.topic.name(), "somebody else publishes to the topic of a resource");
        Err(ResourceError::Failed)
    }

    /// Returns what the change at a position, which has fulfilled this wish, has made of its record.
    fn repeated(&self, now: UnixTime, wish: Wish, at: Position) -> Result<Changed, ResourceError> {
        let is_removed = matches!(wish, Wish::Remove(_));
        let fields = match wish {
            Wish::Create(record) => with_new_id(record, at.offset)?,
            Wish::Update(id, record) => with_id(record, &id)?,
            Wish::Patch(..) | Wish::Remove(_) => self.changed_at(now, at)?,
        };
        let tag = (!is_removed).then(|| at.into());
        Ok(Changed { record: Record { fields, tag }, is_replayed: true })
    }

    fn changed_at(&self, now: UnixTime, at: Position) -> Result<Fields, ResourceError> {
        let limit = PageLimit { events_max: 1, ..PageLimit::default() };
        let page = self.topic.read(now, at.at(at.offset.saturating_sub(1)), limit);
        let page = page.map_err(|_| ResourceError::StorageFailed)?;
        let event = page.events.first().filter(|event| event.offset == at.offset);
        let change = event.and_then(|event| RecordChange::parse(&event.data));
        change.map(|change| change.record).ok_or(ResourceError::NoLongerRetained)
    }

    /// Plans a change, publishes it in a batch like the empty one, and applies it once it is kept.
    async fn attempt(
        &self,
        now: UnixTime,
        wish: Wish,
        condition: &Condition,
        empty: &Batch,
    ) -> Result<Record, Failure> {
        let (change, due) = {
            let state = self.read();
            // Checked before anything is published again for its sake.
            let change = self.rules.plan(&state, wish.clone(), condition, state.head() + 1)?;
            let due =
                state.due(cost(change.to_data().map_or(0, |data| data.bytes().len())), self.window);
            let next = state.head() + due.len() as u64 + 1;
            let change = if due.is_empty() {
                change
            } else {
                self.rules.plan(&state, wish, condition, next)?
            };
            (change, due)
        };
        if !due.is_empty() {
            self.publish(now, due, Batch::new(Vec::new())).await?;
        }
        let (fields, kind) = (change.record.clone(), change.kind.clone());
        let position = self.publish(now, vec![change], empty.clone()).await?;
        let tag = (kind != RecordChangeKind::Removed).then(|| position.into());
        Ok(Record { fields, tag })
    }

    /// Publishes changes in a batch like the empty one, and applies them once they are kept. Returns the position of the last one.
    async fn publish(
        &self,
        now: UnixTime,
        changes: Vec<RecordChange>,
        empty: Batch,
    ) -> Result<Position, Failure> {
        let head = self.topic.info(now).head.at(self.read().head());
        let batch = Batch { events: new_events(now, &changes)?, ..empty }.with_heads(vec![head]);
        let published = self.topic.publish_kept(now, &batch).await?;
        let mut state = self.write();
        for ((offset, event), change) in (published.first.offset..).zip(&batch.events).zip(changes)
        {
            state.apply(head.at(offset), cost(event.data.bytes().len()), Some(change));
        }
        Ok(published.last)
    }

    /// Looks at all records, or stops with `None` as soon as `goes_on` returns false between two steps.
    fn find(&self, query: &Query, goes_on: &impl Fn() -> bool) -> Option<Found> {
        let all: Vec<Arc<Stored>> = self.read().all().cloned().collect();
        let mut matching = Vec::new();
        for step in all.chunks(STEP_RECORDS) {
            if !goes_on() {
                return None;
            }
            let step = step.iter().map(|stored| &stored.fields);
            matching.extend(step.filter(|fields| query.filter.matches(fields)));
        }
        query.page_while(matching, goes_on)
    }

    /// Returns the records. If no change is under way, those of a change whose future ended before it was applied are
    /// among them: that of a cancelled run, whose tasks end with it.
    fn current(&self) -> RwLockReadGuard<'_, State> {
        let state = self.read();
        if self.topic.info(UnixTime::now()).head.offset == state.head() {
            return state;
        }
        drop(state);
        if let Some(_turn) = self.changing.try_take() {
            // The log has an error; the records are as they were.
            let _ = self.catch_up();
        }
        self.read()
    }

    fn catch_up(&self) -> Result<(), ResourceError> {
        read_on(&self.topic, &mut self.write()).map_err(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "cannot read the topic of a resource");
            ResourceError::StorageFailed
        })
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // No method panics while it holds the lock.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Failure {
    /// The topic has events that were not applied.
    HeadMoved,
    Resource(ResourceError),
}

impl From<ResourceError> for Failure {
    fn from(error: ResourceError) -> Self {
        Self::Resource(error)
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::HeadMoved { .. } => Self::HeadMoved,
            error => Self::Resource(error.into()),
        }
    }
}

fn new_events(now: UnixTime, changes: &[RecordChange]) -> Result<Vec<NewEvent>, ResourceError> {
    // A record with names and JSON values always has a JSON form.
    let event = |change: &RecordChange| {
        let data = change.to_data().map_err(|_| ResourceError::Failed)?;
        Ok(NewEvent { time: now, data })
    };
    changes.iter().map(event).collect()
}

/// The most bytes of records, as events, at which a find looks on the thread of its request. It looks at more of them
/// elsewhere, so that nobody waits.
const INLINE_BYTES_MAX: u64 = 64 << 10;

impl Resource for Collection {
    fn methods(&self) -> Methods {
        Methods::ALL
    }

    fn schema(&self) -> &Schema {
        &self.0.rules.schema
    }

    async fn find(&self, query: &Query, call: &Call) -> Result<Found, ResourceError> {
        if self.0.current().live() <= INLINE_BYTES_MAX {
            return self.0.find(query, &|| true).ok_or(ResourceError::Failed);
        }
        let turn = self.0.finding.take(waiter(call)).await?;
        let (inner, query) = (Arc::clone(&self.0), query.clone());
        let (answer, answered) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            // Closed when the future of this find is dropped.
            if let Some(found) = inner.find(&query, &|| !answer.is_closed()) {
                let _ = answer.send(found);
            }
        });
        answered.await.map_err(|_| ResourceError::Failed)
    }

    async fn get(&self, id: &str, _: &Call) -> Result<Record, ResourceError> {
        let unknown = || ResourceError::Unknown(id.chars().take(80).collect());
        self.0.current().get(id).map(|stored| stored.record()).ok_or_else(unknown)
    }

    async fn create(&self, record: Fields, call: &Call) -> Result<Changed, ResourceError> {
        self.change(Wish::Create(record), call).await
    }

    async fn update(
        &self,
        id: &str,
        record: Fields,
        call: &Call,
    ) -> Result<Changed, ResourceError> {
        self.change(Wish::Update(id.to_owned(), record), call).await
    }

    async fn patch(&self, id: &str, patch: Fields, call: &Call) -> Result<Changed, ResourceError> {
        self.change(Wish::Patch(id.to_owned(), patch), call).await
    }

    async fn remove(&self, id: &str, call: &Call) -> Result<Changed, ResourceError> {
        self.change(Wish::Remove(id.to_owned()), call).await
    }
}

#[cfg(test)]
mod tests;
