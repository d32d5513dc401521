//! The hub: the topics of one server, by name.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::awaited::{Awaited, Epochs};
use crate::index::Index;
use crate::log::{DataDir, SharedBytes, batch_bytes};
use crate::{
    Batch, CreateError, DeleteError, Epoch, OpenError, PublishError, Storage, StorageError, Topic,
    TopicName, TopicOptions,
};

/// All topics of a server. Cheap to clone; clones share the topics.
///
/// With a data directory, creating and deleting a topic blocks for the disk: on a runtime, use its blocking threads.
/// Looking up topics never waits for that.
///
/// ```
/// use anemone_hub::{CreateError, Epoch, Hub, Retention};
///
/// let hub = Hub::new(Epoch::random()?);
/// let wind = hub.create("wind".parse()?, Retention { events_max: 1000, ..Retention::default() })?;
/// assert!(hub.topic(wind.name()).is_some());
///
/// // `create` refuses a name that is in use; `ensure` returns the topic.
/// let again = hub.create("wind".parse()?, Retention::default());
/// assert!(matches!(again, Err(CreateError::Exists(_))));
/// assert_eq!(hub.ensure("wind".parse()?, Retention::default())?.name(), wind.name());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The epochs of topics in memory.
    epochs: Epochs,
    /// The data directory, and the epochs of its topics.
    data: Option<(DataDir, Epochs)>,
    /// The bytes that topics in memory share.
    memory: Arc<SharedBytes>,
    topics: RwLock<BTreeMap<TopicName, Arc<Topic>>>,
    awaited: Arc<Awaited>,
    index: Index,
    deleted: Mutex<VecDeque<(TopicName, Epoch)>>,
    /// Held while a topic is created or deleted.
    changing: Mutex<()>,
}

impl Hub {
    /// Creates a hub without topics that stores all of them in memory. `epoch` is [`Epoch::random`], once per start
    /// of the server; it tells positions in these topics from positions of earlier starts.
    #[must_use]
    pub fn new(epoch: Epoch) -> Self {
        Self::of(epoch, None, BTreeMap::new())
    }

    /// Creates a hub with the topics of a data directory, which also stores new ones. `epoch` is [`Epoch::random`],
    /// once per start; it is for new topics, and for those that may have lost events that readers have seen. Blocks
    /// for the disk, since all stored events are read once.
    ///
    /// # Errors
    /// [`OpenError::InUse`] when another hub has the topics of `data`, [`OpenError::Format`] when another version
    /// wrote one, [`OpenError::Storage`] when one cannot be read.
    pub fn with_data(epoch: Epoch, data: DataDir) -> Result<Self, OpenError> {
        /// Makes a different epoch from the hub's.
        const IN_MEMORY: u64 = 0x5555_5555_5555;
        let (found, coming) = data.recover(epoch)?;
        let found = found.into_iter().map(|found| {
            let topic = Topic::of(found.name.clone(), found.epoch, found.log, found.progress);
            (found.name, Arc::new(topic))
        });
        let topics = found.collect();
        // A topic in memory is new at each start; with an earlier epoch it would seem to continue.
        let in_memory = Epoch::from_bits(epoch.bits() ^ IN_MEMORY);
        Ok(Self::of(in_memory, Some((data, Epochs::new(coming))), topics))
    }

    fn of(
        epoch: Epoch,
        data: Option<(DataDir, Epochs)>,
        topics: BTreeMap<TopicName, Arc<Topic>>,
    ) -> Self {
        let (epochs, topics) = (Epochs::new(epoch), RwLock::new(topics));
        let index = Index::new(epoch, Self::INDEX_EVENTS_MAX);
        let memory = SharedBytes::new(Self::MEMORY_BYTES_MAX);
        let (awaited, deleted, changing) = Default::default();
        Self(Arc::new(Inner { epochs, data, memory, topics, awaited, index, deleted, changing }))
    }

    /// The bytes that topics in memory share, unless [`keep_in_memory`](Self::keep_in_memory) says another number:
    /// 256 MiB.
    pub const MEMORY_BYTES_MAX: u64 = SharedBytes::IN_MEMORY_MAX;

    /// Sets the bytes that topics in memory share, if they have no limit in bytes: see
    /// [`Retention::bytes_max`](crate::Retention::bytes_max). Those in a data directory share
    /// [`DataOptions::bytes_max`](crate::DataOptions::bytes_max).
    pub fn keep_in_memory(&self, bytes_max: u64) {
        self.0.memory.set_bytes_max(bytes_max);
    }

    /// Returns the directory that stores its topics, if there is one.
    #[must_use]
    pub fn data(&self) -> Option<&DataDir> {
        self.0.data.as_ref().map(|(data, _)| data)
    }

    /// Creates an empty topic. A [`Retention`](crate::Retention) alone is converted to options.
    ///
    /// # Errors
    /// [`CreateError::Exists`] when there is a topic of this name, which [`Hub::ensure`] would return;
    /// [`CreateError::Storage`] when it cannot be stored; [`CreateError::Closed`] when the data directory is closed.
    pub fn create(
        &self,
        name: TopicName,
        options: impl Into<TopicOptions>,
    ) -> Result<Arc<Topic>, CreateError> {
        let _changing = self.0.changing();
        if self.topic(&name).is_some() {
            return Err(CreateError::Exists(name));
        }
        self.0.create(name, options.into())
    }

    /// Checks that a topic which is created now with these options could take a batch, so that none is created for events
    /// that it must refuse. Others may take the room meanwhile.
    ///
    /// # Errors
    /// [`PublishError::TooBig`] when the batch exceeds what the topic could hold.
    pub fn check_first(
        &self,
        options: impl Into<TopicOptions>,
        batch: &Batch,
    ) -> Result<(), PublishError> {
        let TopicOptions { retention, storage, .. } = options.into();
        match self.data() {
            Some(data) if storage == Storage::Data => data.check_first(retention, batch),
            _ => self.0.memory.check_another(retention, batch_bytes(batch)),
        }
    }

    /// Returns the topic of this name after setting these options, and creates it if there is none. An existing topic
    /// keeps its storage. If its options cannot be saved, [`Topic::health`] reports it, and saving is tried again
    /// before the next event is written.
    ///
    /// # Errors
    /// As [`Hub::create`], except [`CreateError::Exists`].
    pub fn ensure(
        &self,
        name: TopicName,
        options: impl Into<TopicOptions>,
    ) -> Result<Arc<Topic>, CreateError> {
        let (options, _changing) = (options.into(), self.0.changing());
        let Some(topic) = self.topic(&name) else { return self.0.create(name, options) };
        topic.configure(options);
        Ok(topic)
    }

    /// Deletes a topic with its contents. Waiting readers wake up and get
    /// [`ReadError::Deleted`](crate::ReadError::Deleted). A later topic of the same name has another epoch.
    ///
    /// # Errors
    /// [`DeleteError::Unknown`] when there is no topic of this name, [`DeleteError::Storage`] when it cannot be
    /// removed.
    pub fn delete(&self, name: &TopicName) -> Result<(), DeleteError> {
        let _changing = self.0.changing();
        let topic = self.topic(name).ok_or_else(|| DeleteError::Unknown(name.clone()))?;
        topic.delete().map_err(|error| DeleteError::Storage { name: name.clone(), error })?;
        self.0.epochs.deleted(name);
        self.0.data.iter().for_each(|(_, epochs)| epochs.deleted(name));
        self.0.write().remove(name);
        self.0.index.deleted(name);
        let mut deleted = self.0.deleted();
        deleted.push_back((name.clone(), topic.epoch()));
        if deleted.len() > Self::DELETED_MAX {
            deleted.pop_front();
        }
        Ok(())
    }

    /// The number of deletions that are [remembered](Self::was_deleted); each takes a name and an epoch.
    pub const DELETED_MAX: usize = 1_000;

    /// Returns true if a topic of this name and epoch is among the last [`DELETED_MAX`](Self::DELETED_MAX) that were
    /// deleted since the hub was created. If there is no new topic of this name, this tells a reader of the old one
    /// from a new reader.
    #[must_use]
    pub fn was_deleted(&self, name: &TopicName, epoch: Epoch) -> bool {
        self.0.deleted().iter().any(|(own, of)| *of == epoch && own == name)
    }

    /// Returns the topic of this name.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Option<Arc<Topic>> {
        self.0.read().get(name).cloned()
    }

    /// Returns the topic of this name, or else an **awaited** one: it has an epoch and no event, and becomes the
    /// topic when that is created. Positions in it stay valid. Nothing is stored for it, and it is not among the
    /// [topics](Self::topics). It disappears with its last holder, unless it was created.
    ///
    /// `storage` is its future storage. With a data directory its position outlives the hub, as long as no topic was
    /// deleted and the machine did not restart.
    ///
    /// `admit` is called if there is no awaited topic of this name yet. Its result is dropped when the topic is
    /// created or disappears, so that the caller can count awaited topics. It must not use the hub.
    ///
    /// # Errors
    /// Those of `admit`.
    pub fn await_topic<G: Send + Sync + 'static, E>(
        &self,
        name: &TopicName,
        storage: Storage,
        admit: impl FnOnce() -> Result<G, E>,
    ) -> Result<Arc<Topic>, E> {
        let (epochs, awaited) = (self.0.epochs(storage), &self.0.awaited);
        let mut locked = awaited.lock();
        // A created topic is added under the same lock.
        if let Some(topic) = self.topic(name).or_else(|| locked.get(name)) {
            return Ok(topic);
        }
        Ok(locked.insert(awaited, (name.clone(), epochs.of(name)), admit()?))
    }

    /// Returns the topic of this name, or else one that nobody else gets, for a caller that looks once and does not
    /// wait. Its position is valid all the same.
    #[must_use]
    pub fn topic_or_none_yet(&self, name: &TopicName, storage: Storage) -> Arc<Topic> {
        let locked = self.0.awaited.lock();
        let topic = self.topic(name).or_else(|| locked.get(name));
        drop(locked);
        topic.unwrap_or_else(|| {
            Arc::new(Topic::awaited(name.clone(), self.0.epochs(storage).of(name), None))
        })
    }

    /// Returns all topics in the order of their names.
    #[must_use]
    pub fn topics(&self) -> Vec<Arc<Topic>> {
        self.0.read().values().cloned().collect()
    }

    /// Returns at most `topics_max` topics whose names begin with `prefix`, in the order of their names: the first
    /// ones, or those after a name, which need not be a topic's. Does not look at the others.
    #[must_use]
    pub fn topics_after(
        &self,
        prefix: &str,
        after: Option<&TopicName>,
        topics_max: usize,
    ) -> Vec<Arc<Topic>> {
        let from = match after.map(TopicName::as_str).filter(|after| *after >= prefix) {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(prefix),
        };
        let topics = self.0.read();
        let page = topics.range::<str, _>((from, Bound::Unbounded));
        let page = page.take_while(|(name, _)| name.as_str().starts_with(prefix)).take(topics_max);
        page.map(|(_, topic)| Arc::clone(topic)).collect()
    }

    /// The number of events that the [index](Self::index) keeps, unless [`keep_index`](Self::keep_index) says another.
    pub const INDEX_EVENTS_MAX: u64 = 10_000;

    /// Returns the index: a topic in memory whose events are `{"created":NAME}` and `{"deleted":NAME}`, in the order in
    /// which that happened. It is not among the [topics](Self::topics), and nothing deletes it. An event is there after
    /// its change: who takes the position of the index first, and then the topics, misses nothing by reading on from
    /// that position.
    #[must_use]
    pub fn index(&self) -> &Arc<Topic> {
        self.0.index.topic()
    }

    /// Sets the number of events that the index keeps.
    pub fn keep_index(&self, events_max: u64) {
        self.0.index.keep(events_max);
    }

    /// Closes the data directory, if there is one: see [`DataDir::close`].
    ///
    /// # Errors
    /// When not everything could be flushed.
    pub fn close(&self) -> Result<(), StorageError> {
        self.data().map_or(Ok(()), DataDir::close)
    }
}

impl Inner {
    /// Creates a topic, while `changing` is held and there is none of this name.
    fn create(&self, name: TopicName, options: TopicOptions) -> Result<Arc<Topic>, CreateError> {
        let topic = {
            let mut awaited = self.awaited.lock();
            let begin = (name.clone(), self.epochs(options.storage).of(&name));
            awaited.get(&name).unwrap_or_else(|| awaited.insert(&self.awaited, begin, ()))
        };
        match &self.data {
            Some((data, _)) if options.storage == Storage::Data => {
                if data.is_closed() {
                    return Err(CreateError::Closed);
                }
                topic
                    .create_in(data, options)
                    .map_err(|error| CreateError::Storage { name: name.clone(), error })?;
            }
            _ => topic.create_in_memory(options, &self.memory),
        }
        let mut awaited = self.awaited.lock();
        awaited.remove(&name);
        self.write().insert(name, Arc::clone(&topic));
        drop(awaited);
        drop(topic.take_held());
        self.index.created(topic.name());
        Ok(topic)
    }

    fn epochs(&self, storage: Storage) -> &Epochs {
        match (storage, &self.data) {
            (Storage::Data, Some((_, epochs))) => epochs,
            _ => &self.epochs,
        }
    }

    fn deleted(&self) -> std::sync::MutexGuard<'_, VecDeque<(TopicName, Epoch)>> {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changing(&self) -> std::sync::MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<TopicName, Arc<Topic>>> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<TopicName, Arc<Topic>>> {
        self.topics.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{After, Data, PageLimit, PublishError, ReadError, Retention, Start, UnixTime};

    fn hub() -> Hub {
        Hub::new(Epoch::from_bits(1))
    }

    fn wind() -> TopicName {
        "wind".parse().unwrap()
    }

    #[test]
    fn a_name_is_taken_once() {
        let hub = hub();
        hub.create(wind(), Retention::default()).unwrap();
        let again = hub.create(wind(), Retention::default()).unwrap_err();
        assert_eq!(again, CreateError::Exists(wind()));
        assert_eq!(hub.topic(&wind()).map(|topic| topic.name().clone()), Some(wind()));
        assert!(hub.topic(&"other".parse().unwrap()).is_none());
    }

    #[test]
    fn topics_come_in_pages_after_any_name() {
        let hub = hub();
        for name in ["c", "a", "e", "B"] {
            hub.create(name.parse().unwrap(), Retention::default()).unwrap();
        }
        let page = |after: Option<&str>, topics_max| {
            let after: Option<TopicName> = after.map(|name| name.parse().unwrap());
            let page = hub.topics_after("", after.as_ref(), topics_max);
            page.iter().map(|topic| topic.name().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(page(None, 9), ["B", "a", "c", "e"]);
        assert_eq!(page(None, 2), ["B", "a"]);
        assert_eq!(page(Some("a"), 2), ["c", "e"]);
        assert_eq!(page(Some("b"), 1), ["c"], "no topic has this name");
        assert_eq!(page(Some("e"), 9), [""; 0]);
    }

    #[test]
    fn topics_come_by_the_beginning_of_their_names() {
        let hub = hub();
        for name in ["ab", "a", "b", "a.b", "aa"] {
            hub.create(name.parse().unwrap(), Retention::default()).unwrap();
        }
        for (prefix, after, topics_max, expected) in [
            ("a", None, 9, &["a", "a.b", "aa", "ab"][..]),
            ("a", Some("a.b"), 1, &["aa"]),
            ("aa", Some("a"), 9, &["aa"]),
            ("a", Some("ab"), 9, &[]),
            ("b", Some("A"), 9, &["b"]),
            ("c", None, 9, &[]),
        ] {
            let after: Option<TopicName> = after.map(|name: &str| name.parse().unwrap());
            let page = hub.topics_after(prefix, after.as_ref(), topics_max);
            let names: Vec<_> = page.iter().map(|topic| topic.name().as_str()).collect();
            assert_eq!(names, expected, "{prefix} after {after:?}");
        }
    }

    /// The events of the index.
    fn told(hub: &Hub) -> Vec<String> {
        let now = UnixTime::now();
        let begin = hub.index().start(now, After::Earliest).unwrap();
        let page = hub.index().read(now, begin, PageLimit::default()).unwrap();
        page.events.iter().map(|event| event.data.as_str().to_owned()).collect()
    }

    #[test]
    fn the_index_tells_what_is_created_and_deleted_in_order_and_is_no_topic_itself() {
        let hub = hub();
        hub.await_topic(&wind(), Storage::Data, || Ok::<_, ()>(())).unwrap();
        assert_eq!(told(&hub), [""; 0], "an awaited topic is not created");
        hub.ensure(wind(), Retention::default()).unwrap();
        hub.ensure(wind(), Retention::default()).unwrap();
        hub.create("a".parse().unwrap(), Retention::default()).unwrap();
        hub.create(wind(), Retention::default()).unwrap_err();
        hub.delete(&wind()).unwrap();
        hub.delete(&wind()).unwrap_err();
        let expected = [r#"{"created":"wind"}"#, r#"{"created":"a"}"#, r#"{"deleted":"wind"}"#];
        assert_eq!(told(&hub), expected);
        hub.keep_index(2);
        assert_eq!(told(&hub), expected[1..]);
        assert_eq!(hub.topics().len(), 1);
        assert!(TopicName::INDEX.parse::<TopicName>().is_err(), "no topic can have its name");
        assert_eq!(
            hub.delete(hub.index().name()),
            Err(DeleteError::Unknown(hub.index().name().clone()))
        );
    }

    #[test]
    fn the_index_keeps_as_many_events_as_it_may_of_the_longest_names() {
        let hub = hub();
        hub.keep_index(50);
        let name: TopicName = "n".repeat(TopicName::BYTES_MAX).parse().unwrap();
        for _ in 0..40 {
            hub.create(name.clone(), Retention::default()).unwrap();
            hub.delete(&name).unwrap();
        }
        assert_eq!(told(&hub).len(), 50);
        let info = hub.index().info(UnixTime::now());
        assert_eq!((info.events(), info.first), (50, 31));
        assert!(info.bytes <= 50 * 320, "{}", info.bytes);
    }

    #[test]
    fn ensure_takes_the_topic_there_is_with_other_options() {
        let (hub, now) = (hub(), UnixTime::default());
        let topic = hub.ensure(wind(), Retention::default()).unwrap();
        for number in 0..5 {
            topic.publish(now, Data::json(&number).unwrap()).unwrap();
        }
        let retention = Retention { events_max: 2, ..Retention::default() };
        let same = hub.ensure(wind(), retention).unwrap();
        assert_eq!(same.info(now).first, 4);
    }

    #[tokio::test]
    async fn a_deleted_topic_ends_for_those_who_have_it_and_its_positions_are_no_others() {
        let (hub, now) = (hub(), UnixTime::default());
        let topic = hub.create(wind(), Retention::default()).unwrap();
        let seen = topic.publish(now, Data::json(&1).unwrap()).unwrap();
        let mut head = topic.head();
        let delete = async { hub.delete(&wind()).unwrap() };
        tokio::join!(head.passed(seen), delete);
        assert_eq!(topic.read(now, seen, PageLimit::default()), Err(ReadError::Deleted));
        assert_eq!(topic.start(now, After::Latest), Err(ReadError::Deleted));
        let data = Data::json(&2).unwrap();
        assert_eq!(topic.publish(now, data), Err(PublishError::Deleted));
        assert_eq!(hub.delete(&wind()), Err(DeleteError::Unknown(wind())));

        assert!(hub.was_deleted(&wind(), seen.epoch));
        assert!(!hub.was_deleted(&"other".parse().unwrap(), seen.epoch));
        let next = hub.create(wind(), Retention::default()).unwrap();
        assert!(!hub.was_deleted(&wind(), next.epoch()));
        next.publish(now, Data::json(&3).unwrap()).unwrap();
        let page = next.read(now, seen, PageLimit::default()).unwrap();
        assert!(page.gap.is_some(), "a position of the topic before is of another epoch");
    }

    #[test]
    fn as_many_deletions_are_known_as_may_be() {
        let hub = hub();
        let epoch = hub.create(wind(), Retention::default()).unwrap().epoch();
        hub.delete(&wind()).unwrap();
        for other in 0..Hub::DELETED_MAX {
            assert!(hub.was_deleted(&wind(), epoch), "{other}");
            let name: TopicName = format!("a{other}").parse().unwrap();
            hub.create(name.clone(), Retention::default()).unwrap();
            hub.delete(&name).unwrap();
        }
        assert!(!hub.was_deleted(&wind(), epoch));
    }

    #[tokio::test]
    async fn a_topic_that_is_awaited_becomes_the_one_that_is_created() {
        let (hub, now, admitted) = (hub(), UnixTime::default(), Arc::new(()));
        let admit = || Ok::<_, ()>(Arc::clone(&admitted));
        let awaited = hub.await_topic(&wind(), Storage::Data, admit).unwrap();
        assert!(!awaited.is_created() && hub.topic(&wind()).is_none() && hub.topics().is_empty());
        let begin = awaited.start(now, After::Latest).unwrap();
        assert_eq!((begin.offset, awaited.info(now).first), (0, 1));
        let asked = [After::Earliest, After::Position(begin)].map(Start::from);
        for after in asked.into_iter().chain([Start::Newest, Start::Since(now)]) {
            assert_eq!(awaited.start(now, after), Ok(begin), "{after:?}");
        }
        let page = awaited.read(now, begin, PageLimit::default()).unwrap();
        assert_eq!((page.gap.clone(), page.events.len(), page.next), (None, 0, begin));
        assert_eq!(awaited.publish(now, Data::json(&1).unwrap()), Err(PublishError::Awaited));
        assert_eq!(hub.delete(&wind()), Err(DeleteError::Unknown(wind())));

        let same = hub
            .await_topic(&wind(), Storage::Data, || Err::<(), _>("nobody is asked again"))
            .unwrap();
        assert!(Arc::ptr_eq(&awaited, &same));
        let mut head = awaited.head();
        let created = hub.create(wind(), Retention::default()).unwrap();
        assert!(Arc::ptr_eq(&awaited, &created) && created.is_created());
        assert_eq!(Arc::strong_count(&admitted), 1, "the admission is given back");
        let seen = created.publish(now, Data::json(&1).unwrap()).unwrap();
        head.passed(begin).await;
        assert_eq!(seen.epoch, begin.epoch);
        assert_eq!(hub.0.awaited.lock().len(), 0);
        let admit = || Err::<(), _>("it is there");
        assert!(Arc::ptr_eq(&hub.await_topic(&wind(), Storage::Data, admit).unwrap(), &created));
    }

    #[test]
    fn a_topic_that_nobody_awaits_any_more_is_gone_and_its_position_stays_good() {
        let (hub, now, admitted) = (hub(), UnixTime::default(), Arc::new(()));
        let admit = || Ok::<_, ()>(Arc::clone(&admitted));
        let awaited = hub.await_topic(&wind(), Storage::Data, admit).unwrap();
        let begin = awaited.start(now, After::Latest).unwrap();
        drop(awaited);
        assert_eq!((Arc::strong_count(&admitted), hub.0.awaited.lock().len()), (1, 0));
        let glimpse = hub.topic_or_none_yet(&wind(), Storage::Data);
        assert_eq!(glimpse.start(now, After::Latest), Ok(begin));
        assert_eq!(hub.0.awaited.lock().len(), 0);
        let refused = hub.await_topic(&wind(), Storage::Data, || Err::<(), _>("too many"));
        assert_eq!(refused.unwrap_err(), "too many");
        assert_eq!(hub.0.awaited.lock().len(), 0);
        let created = hub.create(wind(), Retention::default()).unwrap();
        created.publish(now, Data::json(&1).unwrap()).unwrap();
        let page = created.read(now, begin, PageLimit::default()).unwrap();
        assert_eq!((page.gap.clone(), page.events.len()), (None, 1));
        hub.delete(&wind()).unwrap();
        let again = hub.topic_or_none_yet(&wind(), Storage::Data);
        assert_ne!(again.start(now, After::Latest).unwrap().epoch, begin.epoch);
    }

    /// Readers come and go while the topic is created and deleted, again and again: each reader has every event of the topic
    /// that it awaited, whoever came first.
    #[test]
    fn readers_who_come_with_the_first_event_miss_nothing() {
        const ROUNDS: u64 = 300;
        const READERS: usize = 4;
        let (hub, now) = (hub(), UnixTime::default());
        for round in 0..ROUNDS {
            let both = std::sync::Barrier::new(READERS + 1);
            std::thread::scope(|scope| {
                let read = || {
                    both.wait();
                    let topic =
                        hub.await_topic(&wind(), Storage::Data, || Ok::<_, ()>(())).unwrap();
                    let begin = topic.start(now, After::Earliest).unwrap();
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    runtime.block_on(topic.head().passed(begin));
                    let page = topic.read(now, begin, PageLimit::default()).unwrap();
                    assert_eq!((page.gap.clone(), page.events[0].offset), (None, 1));
                    assert_eq!(page.events[0].data.as_str(), round.to_string());
                };
                let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
                both.wait();
                let created = hub.create(wind(), Retention::default()).unwrap();
                created.publish(now, Data::json(&round).unwrap()).unwrap();
                readers.into_iter().for_each(|reader| reader.join().unwrap());
            });
            hub.delete(&wind()).unwrap();
        }
        assert_eq!(hub.0.awaited.lock().len(), 0);
    }
}
