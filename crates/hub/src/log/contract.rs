//! The contract of logs, tested the same for each: see [`Log`](super::Log).

mod history;
mod keys;
mod retention;
mod sharing;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use self::history::{any_history_is_told_without_silent_loss, steps};
use self::keys::*;
use self::retention::*;
use super::{DataDir, DataOptions, Fsync};
use crate::testing::{at, batch, numbers, offsets};
use crate::{
    After, Batch, Data, Epoch, GapReason, Hub, Lag, NewEvent, PageLimit, Position, PublishError,
    ReadError, Retention, Start, Topic, TopicOptions,
};

/// A log to test.
struct Subject {
    topic: Arc<Topic>,
    _hub: Hub,
    _directory: Option<TempDir>,
}

type Make = fn(TopicOptions) -> Subject;

const EPOCH: Epoch = Epoch::from_bits(9);

fn in_memory(options: TopicOptions) -> Subject {
    let hub = Hub::new(EPOCH);
    let topic = hub.create("wind".parse().unwrap(), options).unwrap();
    Subject { topic, _hub: hub, _directory: None }
}

fn on_disk_with(options: TopicOptions, data: DataOptions) -> Subject {
    let directory = TempDir::new().unwrap();
    let hub = Hub::with_data(EPOCH, DataDir::open(directory.path(), data).unwrap()).unwrap();
    let topic = hub.create("wind".parse().unwrap(), options).unwrap();
    Subject { topic, _hub: hub, _directory: Some(directory) }
}

/// Shares few bytes with another topic, which is busy, too.
fn in_little_memory(options: TopicOptions) -> Subject {
    let subject = in_memory(options);
    subject._hub.keep_in_memory(20_000);
    subject.beside_a_busy_one()
}

fn on_a_little_disk(options: TopicOptions) -> Subject {
    let data = DataOptions { bytes_max: 20_000, memory_bytes_max: 1000, ..DataOptions::default() };
    on_disk_with(options, data).beside_a_busy_one()
}

/// The newest in memory, most on disk in small segments.
fn on_disk(options: TopicOptions) -> Subject {
    let data = DataOptions {
        fsync: Fsync::Interval(Duration::from_millis(1)),
        segment_bytes_max: 4096,
        memory_bytes_max: 1000,
        ..DataOptions::default()
    };
    on_disk_with(options, data)
}

/// Nothing in memory, every batch flushed.
fn on_disk_alone(options: TopicOptions) -> Subject {
    let data = DataOptions { fsync: Fsync::Always, memory_bytes_max: 0, ..DataOptions::default() };
    on_disk_with(options, data)
}

/// All in memory, never flushed.
fn on_disk_cached(options: TopicOptions) -> Subject {
    let data =
        DataOptions { fsync: Fsync::Never, memory_bytes_max: u64::MAX, ..DataOptions::default() };
    on_disk_with(options, data)
}

fn position(offset: u64) -> Position {
    Position { epoch: EPOCH, offset }
}

fn events_max(events_max: usize) -> PageLimit {
    PageLimit { events_max, ..PageLimit::default() }
}

impl Subject {
    fn beside_a_busy_one(self) -> Self {
        let busy = self._hub.create("busy".parse().unwrap(), Retention::default()).unwrap();
        for number in 0..200 {
            busy.publish(at(0), Data::json(&number).unwrap()).unwrap();
        }
        self
    }

    async fn publish(&self, seconds: u64, numbers: impl IntoIterator<Item = u64>) -> (u64, u64) {
        let batch = batch(at(seconds), numbers);
        let published = self.topic.publish_kept(at(seconds), &batch).await.unwrap();
        assert!(!published.repeated);
        (published.first.offset, published.last.offset)
    }

    /// All numbers from the beginning, in pages of this many.
    fn all(&self, seconds: u64, page: usize) -> Vec<u64> {
        let mut place = self.topic.start(at(seconds), After::Earliest).unwrap();
        let mut all = Vec::new();
        loop {
            let page = self.topic.read(at(seconds), place, events_max(page)).unwrap();
            assert_eq!(page.gap, None);
            if page.events.is_empty() {
                return all;
            }
            all.extend(numbers(&page));
            place = page.next;
        }
    }
}

async fn batches_get_the_next_offsets_in_a_row(make: Make) {
    let subject = make(TopicOptions::default());
    assert_eq!(subject.publish(1, [1]).await, (1, 1));
    assert_eq!(subject.publish(2, [2, 3, 4]).await, (2, 4));
    let first = subject.topic.append(at(3), &batch(at(3), [5, 6])).unwrap();
    let second = subject.topic.append(at(3), &batch(at(3), [7])).unwrap();
    assert_eq!(second.await.unwrap().first, position(7));
    assert_eq!(first.await.unwrap().last, position(6));
    for page in [1, 2, 3, 100] {
        assert_eq!(subject.all(3, page), [1, 2, 3, 4, 5, 6, 7]);
    }
    let times = subject.topic.read(at(3), position(0), PageLimit::default()).unwrap();
    assert_eq!((times.events[0].time, times.events[6].time), (at(1), at(3)));
}

async fn what_is_acknowledged_is_seen_and_the_head_has_moved(make: Make) {
    let subject = make(TopicOptions::default());
    let mut head = subject.topic.head();
    for number in 1..200 {
        subject.publish(1, [number]).await;
        assert_eq!(subject.topic.info(at(1)).head, position(number));
        let page = subject.topic.read(at(1), position(number - 1), PageLimit::default()).unwrap();
        assert_eq!(numbers(&page), [number]);
        tokio::select! {
            biased;
            () = head.passed(position(number - 1)) => {}
            () = std::future::ready(()) => panic!("the head is behind at {number}"),
        }
    }
}

async fn what_is_published_without_waiting_comes_in_the_same_order(make: Make) {
    let subject = make(TopicOptions::default());
    for number in 1..=500 {
        let data = Data::json(&number).unwrap();
        assert_eq!(subject.topic.publish(at(1), data), Ok(position(number)));
    }
    subject.topic.head().passed(position(499)).await;
    assert_eq!(subject.all(1, 33), (1..=500).collect::<Vec<_>>());
}

async fn a_page_is_bounded_by_events_and_by_bytes(make: Make) {
    let subject = make(TopicOptions::default());
    let text = Data::json(&"x".repeat(98)).unwrap();
    let event = NewEvent { time: at(0), data: text };
    let events = Batch::new(vec![event; 300]);
    subject.topic.publish_kept(at(0), &events).await.unwrap();
    let read = |after, events_max, bytes_max| {
        let limit = PageLimit { events_max, bytes_max };
        subject.topic.read(at(0), position(after), limit).unwrap().events.len()
    };
    for after in [0, 1, 200, 290] {
        assert_eq!(read(after, 4, 1 << 20), 4);
        assert_eq!(read(after, 100, 300), 3);
        assert_eq!(read(after, 100, 299), 2);
        assert_eq!(read(after, 100, 1), 1, "an event larger than a page is still delivered");
        assert_eq!(read(after, 0, 1 << 20), 0);
    }
    assert_eq!(read(0, 1000, 1 << 20), 300, "a page goes on through all segments and memory");
}

async fn the_lag_of_a_reader_is_what_it_has_to_read(make: Make) {
    let subject = make(TopicOptions::default());
    let lag = |position| subject.topic.lag(at(1), position);
    assert_eq!(lag(position(0)), Lag::default());
    let text = Data::json(&"x".repeat(998)).unwrap();
    let events = Batch::new(vec![NewEvent { time: at(0), data: text }; 100]);
    subject.topic.publish_kept(at(0), &events).await.unwrap();
    let elsewhere = Position { epoch: Epoch::from_bits(1), offset: 99 };
    for (place, events) in [
        (position(0), 100),
        (position(1), 99),
        (position(50), 50),
        (position(99), 1),
        (position(100), 0),
        (elsewhere, 100),
    ] {
        let Lag { events: lag_events, bytes } = lag(place);
        assert_eq!(lag_events, events);
        let least = events * 1000;
        assert!((least..=least + 64 * 1024).contains(&bytes), "{place}: {bytes}");
        assert!(events > 0 || bytes == 0, "who has read everything has nothing left: {bytes}");
    }
}

async fn a_batch_is_appended_where_it_is_expected_or_not_at_all(make: Make) {
    let subject = make(TopicOptions::default());
    let append = |number: u64, heads: &[u64]| {
        let heads = heads.iter().map(|offset| position(*offset)).collect();
        subject.topic.append(at(1), &batch(at(1), [number]).with_heads(heads))
    };
    let first = append(1, &[0]).unwrap();
    // Also while the first is on its way.
    let moved = PublishError::HeadMoved { head: position(1) };
    for heads in [&[0][..], &[2], &[], &[0, 7]] {
        assert_eq!(append(9, heads).unwrap_err(), moved);
    }
    let second = append(2, &[7, 1]).unwrap();
    first.await.unwrap();
    second.await.unwrap();
    let stranger = Position { epoch: Epoch::from_bits(8), offset: 2 };
    let other = batch(at(1), [9]).with_heads(vec![stranger]);
    assert!(subject.topic.append(at(1), &other).is_err());
    let third = batch(at(1), [3]).with_key(key("a")).with_heads(vec![position(2)]);
    assert!(!subject.topic.publish_kept(at(1), &third).await.unwrap().repeated);
    assert!(subject.topic.publish_kept(at(1), &third).await.unwrap().repeated, "a retry");
    assert_eq!(subject.all(1, 100), [1, 2, 3]);
}

async fn what_cannot_be_kept_leaves_no_trace(make: Make) {
    let retention = Retention { bytes_max: 4000, ..Retention::default() };
    let subject = make(retention.into());
    subject.publish(1, [1]).await;
    let data = Data::json(&"x".repeat(5000)).unwrap();
    let large = Batch::from(NewEvent { time: at(2), data }).with_key(key("large"));
    for _ in 0..2 {
        let error = subject.topic.append(at(2), &large).unwrap_err();
        assert!(matches!(error, PublishError::TooBig { bytes_max: 4000, .. }));
    }
    let empty = subject.topic.append(at(2), &Batch::new(vec![]).with_key(key("none")));
    assert_eq!(empty.unwrap_err(), PublishError::Empty);
    assert_eq!(subject.publish(2, [2]).await, (2, 2));
    assert_eq!(subject.all(2, 100), [1, 2]);
}

async fn a_position_beyond_the_head_is_an_error(make: Make) {
    let subject = make(TopicOptions::default());
    subject.publish(1, [1, 2]).await;
    for offset in [3, u64::MAX - 1, u64::MAX] {
        let ahead = ReadError::Ahead { position: position(offset), head: position(2) };
        let read = subject.topic.read(at(1), position(offset), PageLimit::default());
        assert_eq!(read, Err(ahead));
    }
}

async fn a_position_of_another_epoch_is_a_gap(make: Make) {
    let subject = make(TopicOptions::default());
    subject.publish(1, [1, 2]).await;
    let stranger = Position { epoch: Epoch::from_bits(8), offset: 77 };
    let page = subject.topic.read(at(1), stranger, PageLimit::default()).unwrap();
    let gap = page.gap.clone().unwrap();
    assert_eq!((gap.reason, gap.missed, gap.resume), (GapReason::Epoch, None, position(0)));
    assert_eq!(numbers(&page), [1, 2]);
}

async fn reading_begins_so_many_events_back_or_at_the_oldest_kept(make: Make) {
    let retention = Retention { events_max: 5, ..Retention::default() };
    let subject = make(retention.into());
    let begin = |count| {
        let after = After::Last(NonZeroU64::new(count).unwrap());
        subject.topic.start(at(9), after).unwrap().offset
    };
    assert_eq!((begin(1), begin(9)), (0, 0), "of nothing");
    subject.publish(1, 1..=3).await;
    assert_eq!((begin(1), begin(2), begin(3), begin(9)), (2, 1, 0, 0));
    subject.publish(2, 4..=9).await;
    assert_eq!((begin(1), begin(5), begin(6), begin(u64::MAX)), (8, 4, 4, 4));
}

async fn reading_begins_with_the_oldest_event_since_a_time_wherever_it_is(make: Make) {
    // More than a few strides of the index, and a clock that goes back again and again; of the latest time there is one.
    const EVENTS: u64 = 400;
    let second = |number: u64| if number == 250 { 100_000 } else { number / 3 + number * 37 % 101 };
    for keep in [EVENTS, 230, 120] {
        let retention = Retention { events_max: keep, ..Retention::default() };
        let subject = make(retention.into());
        let since = |time| subject.topic.start(at(0), Start::Since(time)).map(|begin| begin.offset);
        assert_eq!(since(at(0)), Ok(0), "of nothing");
        for from in (1..=EVENTS).step_by(20) {
            let event = |number| {
                let data = Data::json(&format!("{number:01000}")).unwrap();
                NewEvent { time: at(second(number)), data }
            };
            let batch = Batch::new((from..from + 20).map(event).collect());
            subject.topic.publish_kept(at(0), &batch).await.unwrap();
        }
        for wanted in (0..240).chain([99_999, 100_000, 100_001]) {
            let mut kept = EVENTS - keep + 1..=EVENTS;
            let expected = kept.find(|number| second(*number) >= wanted).map_or(EVENTS, |o| o - 1);
            assert_eq!(since(at(wanted)), Ok(expected), "since {wanted} of {keep}");
        }
    }
}

async fn a_deleted_topic_says_so(make: Make) {
    let subject = make(TopicOptions::default());
    subject.publish(1, [1]).await;
    let mut head = subject.topic.head();
    subject._hub.delete(subject.topic.name()).unwrap();
    head.passed(position(1)).await;
    let read = subject.topic.read(at(1), position(0), PageLimit::default());
    assert_eq!(read, Err(ReadError::Deleted));
    let published = subject.topic.publish_kept(at(1), &batch(at(1), [2])).await;
    assert_eq!(published, Err(PublishError::Deleted));
}

async fn readers_beside_publishers_see_each_event_once_in_order(make: Make) {
    const PUBLISHERS: u64 = 3;
    const EACH: u64 = 400;
    let subject = make(TopicOptions::default());
    let topic = &subject.topic;
    let read_all = |page: usize| {
        let mut place = topic.start(at(1), After::Earliest).unwrap();
        let mut seen = Vec::new();
        while seen.len() < usize::try_from(PUBLISHERS * EACH).unwrap() {
            let page = topic.read(at(1), place, events_max(page)).unwrap();
            assert_eq!(page.gap, None);
            assert!(offsets(&page).into_iter().eq(place.offset + 1..=page.next.offset));
            seen.extend(numbers(&page));
            place = page.next;
            std::thread::yield_now();
        }
        for publisher in 0..PUBLISHERS {
            let own = seen.iter().filter(|number| **number / EACH == publisher);
            assert!(own.copied().eq(publisher * EACH..(publisher + 1) * EACH));
        }
    };
    std::thread::scope(|scope| {
        for publisher in 0..PUBLISHERS {
            scope.spawn(move || {
                for number in publisher * EACH..(publisher + 1) * EACH {
                    topic.publish(at(1), Data::json(&number).unwrap()).unwrap();
                }
            });
        }
        scope.spawn(|| read_all(1000));
        scope.spawn(|| read_all(3));
    });
}

async fn the_newest_note_is_that_of_a_batch_that_is_kept_or_one_without_a_batch(make: Make) {
    let subject = make(TopicOptions::default());
    let newest = || subject.topic.note().map(|note| note.as_str().to_owned());
    assert_eq!(newest(), None);
    subject.topic.set_note("begun".parse().unwrap()).unwrap();
    assert_eq!(newest().as_deref(), Some("begun"));
    subject.publish(1, [1]).await;
    assert_eq!(newest().as_deref(), Some("begun"));
    for number in 2..5 {
        let note = format!("after {number}").parse().unwrap();
        let batch = batch(at(1), [number]).with_note(note);
        subject.topic.publish_kept(at(1), &batch).await.unwrap();
        assert_eq!(newest(), Some(format!("after {number}")));
    }
    subject.topic.set_note("again".parse().unwrap()).unwrap();
    let refused = Batch::new(Vec::new()).with_note("refused".parse().unwrap());
    assert_eq!(subject.topic.append(at(1), &refused).err(), Some(PublishError::Empty));
    subject.publish(1, 5..900).await;
    assert_eq!(newest().as_deref(), Some("again"));
}

macro_rules! contract {
    ($($log:ident: $($test:ident)*;)*) => { $(
        mod $log {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(super::$log).await;
                }
            )*

            proptest::proptest! {
                #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
                #[test]
                fn any_history_is_told_without_silent_loss(
                    steps in super::steps(),
                    events_max in 1_u64..200, bytes_max in 7_000_u64..20_000, seconds in 5_u64..60,
                ) {
                    let age_max = std::time::Duration::from_secs(seconds);
                    let retention = crate::Retention { events_max, bytes_max, age_max };
                    super::any_history_is_told_without_silent_loss(super::$log, steps, retention);
                }
            }
        }
    )* };
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
    #[test]
    fn any_history_is_told_where_bytes_are_shared(steps in steps(), seconds in 5_u64..60) {
        let retention = Retention { age_max: Duration::from_secs(seconds), ..Retention::default() };
        for make in [in_little_memory, on_a_little_disk] {
            any_history_is_told_without_silent_loss(make, steps.clone(), retention);
        }
    }
}

macro_rules! for_each_log {
    ($($tests:tt)*) => {
        contract! {
            in_memory: $($tests)*;
            on_disk: $($tests)*;
            on_disk_alone: $($tests)*;
            on_disk_cached: $($tests)*;
        }
    };
}

for_each_log! {
    batches_get_the_next_offsets_in_a_row
    what_is_acknowledged_is_seen_and_the_head_has_moved
    what_is_published_without_waiting_comes_in_the_same_order
    a_page_is_bounded_by_events_and_by_bytes
    the_lag_of_a_reader_is_what_it_has_to_read
    a_key_that_was_seen_appends_nothing_and_gives_the_first_positions
    a_key_that_was_seen_is_refused_with_other_events
    a_key_of_a_request_is_compared_with_the_request_alone
    a_batch_is_appended_where_it_is_expected_or_not_at_all
    a_key_outlives_its_events
    keys_count_in_the_bytes_and_leave_room_for_events
    with_less_room_keys_take_half_of_it_and_events_the_rest
    keys_are_forgotten_at_the_bounds_of_their_window
    what_cannot_be_kept_leaves_no_trace
    a_position_beyond_the_head_is_an_error
    a_position_of_another_epoch_is_a_gap
    count_bound_keeps_what_it_says
    byte_bound_keeps_what_it_says
    age_bound_drops_what_is_too_old_when_read
    reading_begins_so_many_events_back_or_at_the_oldest_kept
    reading_begins_with_the_oldest_event_since_a_time_wherever_it_is
    a_deleted_topic_says_so
    the_newest_note_is_that_of_a_batch_that_is_kept_or_one_without_a_batch
    readers_beside_publishers_see_each_event_once_in_order
}
