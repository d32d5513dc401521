//! The contract about topics that share bytes: the ones that hold most evict, and the others keep what they have.

use std::time::Duration;

use tempfile::TempDir;

use super::{DataDir, DataOptions, EPOCH, Hub, Topic, key};
use crate::testing::{at, batch, numbers};
use crate::{
    After, Batch, Data, NewEvent, PageLimit, PublishError, Retention, Storage, TopicOptions,
};

const KIB: u64 = 1 << 10;

/// A hub whose topics share a number of bytes: in memory, or in a directory.
struct Sharers {
    hub: Hub,
    _directory: Option<TempDir>,
}

impl Sharers {
    fn each(bytes_max: u64) -> [Self; 3] {
        let hub = Hub::new(EPOCH);
        hub.keep_in_memory(bytes_max);
        let on_disk = |memory_bytes_max| {
            let directory = TempDir::new().unwrap();
            let options = DataOptions { bytes_max, memory_bytes_max, ..DataOptions::default() };
            let data = DataDir::open(directory.path(), options).unwrap();
            Self { hub: Hub::with_data(EPOCH, data).unwrap(), _directory: Some(directory) }
        };
        [Self { hub, _directory: None }, on_disk(0), on_disk(1 << 20)]
    }

    fn topic(&self, name: &str) -> Sharer {
        self.topic_with(name, Retention::default())
    }

    fn topic_with(&self, name: &str, options: impl Into<TopicOptions>) -> Sharer {
        Sharer(self.hub.create(name.parse().unwrap(), options).unwrap())
    }
}

struct Sharer(std::sync::Arc<Topic>);

impl Sharer {
    /// Publishes events of about 1 KiB, a few in a batch.
    async fn publish(&self, seconds: u64, count: u64) {
        for _ in 0..count / 4 {
            let data = Data::json(&"x".repeat(900)).unwrap();
            let events = vec![NewEvent { time: at(seconds), data }; 4];
            self.0.publish_kept(at(seconds), &Batch::new(events)).await.unwrap();
        }
    }

    /// Reads everything and returns the number of events. What is missing is a gap at the beginning, and nothing else.
    fn read(&self, seconds: u64) -> u64 {
        let head = self.0.info(at(seconds)).head;
        let (mut place, mut count, mut missed) = (head.at(0), 0, 0);
        loop {
            let page = self.0.read(at(seconds), place, PageLimit::default()).unwrap();
            if let Some(gap) = &page.gap {
                assert_eq!(place.offset, 0, "a gap in the middle");
                missed = gap.missed.unwrap();
            }
            if page.events.is_empty() {
                assert_eq!(missed + count, head.offset);
                return count;
            }
            let offsets = page.events.iter().map(|event| event.offset);
            assert!(offsets.eq(missed + count + 1..=page.next.offset));
            count += page.events.len() as u64;
            place = page.next;
        }
    }

    fn bytes(&self, seconds: u64) -> u64 {
        self.0.start(at(seconds), After::Earliest).unwrap();
        self.0.info(at(seconds)).bytes
    }
}

#[tokio::test]
async fn without_limits_a_topic_keeps_all_that_fits_however_old() {
    for sharers in Sharers::each(64 << 20) {
        let topic = sharers.topic("wind");
        for chunk in 0..20 {
            let events = batch(at(chunk), chunk * 1000..(chunk + 1) * 1000);
            topic.0.publish_kept(at(chunk), &events).await.unwrap();
        }
        let later = 10 * 365 * 86_400;
        assert_eq!(topic.read(later), 20_000);
        let begin = topic.0.start(at(later), After::Earliest).unwrap();
        let page = topic.0.read(at(later), begin, PageLimit::default()).unwrap();
        assert_eq!(numbers(&page)[..3], [0, 1, 2]);
    }
}

#[tokio::test]
async fn a_topic_alone_keeps_as_much_as_there_is_and_not_a_byte_more() {
    for sharers in Sharers::each(200 * KIB) {
        let topic = sharers.topic("busy");
        for _ in 0..20 {
            topic.publish(1, 40).await;
            let (bytes, count) = (topic.bytes(1), topic.read(1));
            assert!(bytes <= 200 * KIB, "{bytes}");
            assert!(count >= 180 || count == topic.0.info(at(1)).head.offset, "{count}");
        }
    }
}

#[tokio::test]
async fn a_busy_topic_takes_nothing_from_quiet_ones() {
    for sharers in Sharers::each(400 * KIB) {
        let quiet = ["a", "b", "c"].map(|name| sharers.topic(name));
        for topic in &quiet {
            topic.publish(1, 60).await;
        }
        let busy = sharers.topic("busy");
        busy.publish(1, 2000).await;
        let bytes: u64 = quiet.iter().chain([&busy]).map(|topic| topic.bytes(1)).sum();
        assert!(bytes <= 400 * KIB, "{bytes}");
        assert!(quiet.iter().all(|topic| topic.read(1) == 60));
        assert!(busy.read(1) >= 180, "{} fill the rest", busy.read(1));
    }
}

#[tokio::test]
async fn busy_topics_come_to_hold_the_same_whoever_came_first() {
    for sharers in Sharers::each(400 * KIB) {
        let (first, second) = (sharers.topic("first"), sharers.topic("second"));
        first.publish(1, 1000).await;
        let all = first.read(1);
        second.publish(1, 1000).await;
        let (left, right) = (first.read(1), second.read(1));
        assert!(first.bytes(1) + second.bytes(1) <= 400 * KIB);
        assert!(left.abs_diff(right) <= 20, "{left} and {right} of {all}");
        first.publish(1, 1000).await;
        assert!(first.read(1).abs_diff(second.read(1)) <= 20);
    }
}

#[tokio::test]
async fn what_is_too_old_or_deleted_makes_room_for_others() {
    for sharers in Sharers::each(400 * KIB) {
        let age_max = Duration::from_secs(10);
        let aging = sharers.topic_with("aging", Retention { age_max, ..Retention::default() });
        let (deleted, busy) = (sharers.topic("deleted"), sharers.topic("busy"));
        aging.publish(1, 120).await;
        deleted.publish(1, 120).await;
        busy.publish(1, 1000).await;
        assert!((100..=200).contains(&busy.read(1)), "{}", busy.read(1));
        assert_eq!(aging.read(20), 0);
        sharers.hub.delete(deleted.0.name()).unwrap();
        drop(deleted);
        busy.publish(20, 1000).await;
        assert!(busy.read(20) >= 350, "{}", busy.read(20));
    }
}

#[tokio::test]
async fn a_topic_with_a_limit_in_bytes_shares_nothing() {
    for sharers in Sharers::each(100 * KIB) {
        let own = Retention { bytes_max: 300 * KIB, ..Retention::default() };
        let (own, busy) = (sharers.topic_with("own", own), sharers.topic("busy"));
        own.publish(1, 200).await;
        busy.publish(1, 1000).await;
        own.publish(1, 40).await;
        assert_eq!(own.read(1), 240);
        assert!(busy.bytes(1) <= 100 * KIB && busy.read(1) >= 80);
        assert_eq!(own.0.keeps().unwrap().to_string(), "at most 300 KiB");
        let shared = "what fits in 100 KiB shared by all topics";
        assert_eq!(busy.0.keeps().unwrap().to_string(), shared);
    }
}

#[tokio::test]
async fn a_limit_in_bytes_can_come_and_go() {
    for sharers in Sharers::each(100 * KIB) {
        let (topic, other) = (sharers.topic("wind"), sharers.topic("other"));
        topic.publish(1, 80).await;
        let own = Retention { bytes_max: 300 * KIB, ..Retention::default() };
        sharers.hub.ensure("wind".parse().unwrap(), own).unwrap();
        other.publish(1, 400).await;
        topic.publish(1, 80).await;
        assert_eq!(topic.read(1), 160);
        assert!(other.read(1) >= 80, "{}", other.read(1));
        sharers.hub.ensure("wind".parse().unwrap(), Retention::default()).unwrap();
        topic.publish(1, 40).await;
        assert!(topic.bytes(1) + other.bytes(1) <= 100 * KIB);
        assert!(topic.read(1) >= 40 && other.read(1) >= 40);
    }
}

#[tokio::test]
async fn a_batch_beyond_what_a_topic_can_have_is_refused_and_costs_nobody_anything() {
    for sharers in Sharers::each(100 * KIB) {
        let topics = ["a", "b", "c", "d"].map(|name| sharers.topic(name));
        for topic in &topics {
            topic.publish(1, 20).await;
        }
        let data = Data::json(&"x".repeat(40 << 10)).unwrap();
        let large = Batch::from(NewEvent { time: at(1), data });
        for _ in 0..2 {
            let refused = topics[0].0.publish_kept(at(1), &large).await;
            let Err(PublishError::TooBig { bytes, bytes_max }) = refused else {
                panic!("{refused:?}")
            };
            assert!(bytes > 40 * KIB && bytes_max >= 25 * KIB && bytes_max < bytes);
        }
        assert!(topics.iter().all(|topic| topic.read(1) == 20));
        sharers.hub.delete(topics[1].0.name()).unwrap();
        sharers.hub.delete(topics[2].0.name()).unwrap();
        topics[0].0.publish_kept(at(1), &large).await.unwrap();
        assert_eq!((topics[0].read(1), topics[3].read(1)), (21, 20));
    }
}

#[tokio::test]
async fn keys_outlive_events_that_others_have_displaced() {
    for sharers in Sharers::each(100 * KIB) {
        let (first, second) = (sharers.topic("first"), sharers.topic("second"));
        let keyed = |number: u64| batch(at(1), [number]).with_key(key(&format!("k{number}")));
        for number in 0..100 {
            first.0.publish_kept(at(1), &keyed(number)).await.unwrap();
        }
        first.publish(1, 200).await;
        second.publish(1, 200).await;
        assert!(first.read(1) < 100);
        for number in 0..100 {
            let again = first.0.publish_kept(at(1), &keyed(number)).await.unwrap();
            assert_eq!((again.repeated, again.first.offset), (true, number + 1));
        }
    }
}

#[tokio::test]
async fn a_small_topic_with_a_key_for_each_event_forgets_none_while_there_is_room() {
    for sharers in Sharers::each(1 << 20) {
        let topic = sharers.topic("wind");
        let keyed = |number: u64| batch(at(1), [number]).with_key(key(&format!("k{number}")));
        for number in 0..500 {
            topic.0.publish_kept(at(1), &keyed(number)).await.unwrap();
        }
        for number in 0..500 {
            assert!(topic.0.publish_kept(at(1), &keyed(number)).await.unwrap().repeated);
        }
        assert_eq!(topic.read(1), 500);
    }
}

#[tokio::test]
async fn topics_in_memory_share_apart_from_those_in_a_directory() {
    let directory = TempDir::new().unwrap();
    let options = DataOptions { bytes_max: 300 * KIB, ..DataOptions::default() };
    let hub = Hub::with_data(EPOCH, DataDir::open(directory.path(), options).unwrap()).unwrap();
    hub.keep_in_memory(100 * KIB);
    let sharers = Sharers { hub, _directory: Some(directory) };
    let options = TopicOptions { storage: Storage::Memory, ..TopicOptions::default() };
    let (memory, disk) = (sharers.topic_with("memory", options), sharers.topic("disk"));
    memory.publish(1, 1000).await;
    disk.publish(1, 1000).await;
    assert!(memory.bytes(1) <= 100 * KIB && memory.read(1) >= 80);
    assert!(disk.bytes(1) <= 300 * KIB && disk.read(1) >= 250);
    sharers.hub.keep_in_memory(50 * KIB);
    assert!(memory.bytes(1) <= 50 * KIB && memory.read(1) >= 40);
}

#[test]
fn topics_that_are_busy_on_many_threads_stay_within_what_they_share() {
    for sharers in Sharers::each(200 * KIB) {
        let names: Vec<_> = (0..6).map(|number| format!("t{number}")).collect();
        let topics: Vec<_> = names.iter().map(|name| sharers.topic(name)).collect();
        std::thread::scope(|scope| {
            for topic in &topics {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                scope.spawn(move || runtime.block_on(topic.publish(1, 400)));
            }
        });
        // A log that was told to evict by the last append may not have done so yet; reading does it.
        let bytes: u64 = topics.iter().map(|topic| topic.bytes(1)).sum();
        assert!(bytes <= 200 * KIB, "{bytes}");
        let counts: Vec<_> = topics.iter().map(|topic| topic.read(1)).collect();
        assert!(counts.iter().all(|count| *count >= 25), "{counts:?}");
    }
}
