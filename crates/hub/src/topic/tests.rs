use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::log::Slice;
use crate::testing::batch;

const SECOND: u64 = 1_000_000;

fn at(seconds: u64) -> UnixTime {
    UnixTime::from_micros(1_789_000_000 * SECOND + seconds * SECOND)
}

fn topic(retention: Retention) -> Topic {
    Topic::new("wind".parse().unwrap(), Epoch::from_bits(9), retention)
}

fn with_events(count: u64, retention: Retention) -> Topic {
    let topic = topic(retention);
    for number in 1..=count {
        topic.publish(at(number), Data::json(&number).unwrap()).unwrap();
    }
    topic
}

fn position(offset: u64) -> Position {
    Position { epoch: Epoch::from_bits(9), offset }
}

fn offsets(page: &Page) -> Vec<u64> {
    page.events.iter().map(|event| event.offset).collect()
}

#[test]
fn an_empty_topic_hands_out_a_position() {
    let topic = topic(Retention::default());
    for after in [After::Earliest.into(), After::Latest.into(), Start::Newest] {
        let start = topic.start(at(0), after).unwrap();
        let page = topic.read(at(0), start, PageLimit::default()).unwrap();
        assert_eq!(
            page,
            Page { first: 1, gap: None, events: vec![], next: position(0), is_last: false }
        );
    }
}

#[test]
fn each_start_reads_what_its_word_says() {
    let topic = with_events(3, Retention::default());
    let read = |after: Start| {
        let start = topic.start(at(3), after).unwrap();
        offsets(&topic.read(at(3), start, PageLimit::default()).unwrap())
    };
    assert_eq!(read(After::Earliest.into()), [1, 2, 3]);
    assert_eq!(read(Start::Newest), [3]);
    assert_eq!(read(After::Latest.into()), [0; 0]);
    assert_eq!(read(After::Position(position(1)).into()), [2, 3]);
}

/// A log that gets so many events right after it has said where something is, so many times.
#[derive(Debug)]
struct Hurried {
    log: MemoryLog,
    events: u64,
    times: AtomicU64,
}

impl Hurried {
    fn then<T>(&self, said: T) -> T {
        let is_due = |times: u64| times.checked_sub(1);
        if self.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_due).is_ok() {
            let batch = batch(at(9), 0..self.events);
            drop(self.append(at(9), &batch, WhenFull::Refuse).unwrap());
        }
        said
    }
}

impl Log for Hurried {
    fn append(
        &self,
        now: UnixTime,
        batch: &Batch,
        full: WhenFull,
    ) -> Result<Receipt, PublishError> {
        self.log.append(now, batch, full)
    }

    fn read(&self, now: UnixTime, after: u64, limit: PageLimit) -> Result<Slice, StorageError> {
        self.log.read(now, after, limit)
    }

    fn data_bytes_after(&self, after: u64) -> u64 {
        self.log.data_bytes_after(after)
    }

    fn first(&self, now: UnixTime) -> u64 {
        self.then(self.log.first(now))
    }

    fn since(&self, now: UnixTime, time: UnixTime) -> Result<u64, StorageError> {
        self.then(self.log.since(now, time))
    }

    fn extent(&self, now: UnixTime) -> Extent {
        self.then(self.log.extent(now))
    }

    fn note(&self) -> Option<Note> {
        self.log.note()
    }

    fn set_note(&self, note: Note) -> Result<(), StorageError> {
        self.log.set_note(note)
    }

    fn knows(&self, now: UnixTime, key: IdempotencyKey) -> bool {
        self.log.knows(now, key)
    }

    fn configure(&self, options: TopicOptions) {
        self.log.configure(options);
    }

    fn delete(&self) -> Result<(), StorageError> {
        self.log.delete()
    }
}

/// A topic that keeps three events and has five. While a beginning is chosen, it gets three more, so many times.
fn hurried(times: u64) -> Topic {
    let retention = Retention { events_max: 3, ..Retention::default() };
    let epoch = Epoch::from_bits(9);
    let (progress, _) = watch::channel(Progress::default());
    let log = MemoryLog::new(epoch, retention.into(), progress.clone());
    let log = Hurried { log, events: 3, times: AtomicU64::new(times) };
    let topic = Topic::of("wind".parse().unwrap(), epoch, log, progress);
    drop(topic.append(at(1), &batch(at(1), 1..=5)).unwrap());
    topic
}

fn words() -> [Start; 4] {
    let last_two = After::Last(NonZeroU64::new(2).unwrap());
    [After::Earliest.into(), last_two.into(), Start::Newest, Start::Since(at(0))]
}

#[test]
fn who_begins_with_an_event_gets_it_though_it_is_dropped_while_reading_begins() {
    let two = PageLimit { events_max: 2, ..PageLimit::default() };
    let begin = |times, start| {
        let topic = hurried(times);
        let (begin, page) = topic.begin_reading(at(9), start, two).unwrap();
        let page = page.unwrap();
        let expected: Vec<_> = (begin.offset + 1..=page.next.offset).collect();
        assert_eq!((&page.gap, offsets(&page)), (&None, expected), "{start:?}");
        // A reader with a position is told what it has missed.
        for _ in 0..3 {
            topic.publish(at(9), Data::json(&0).unwrap()).unwrap();
        }
        let next = topic.read(at(9), page.next, PageLimit::default()).unwrap();
        let missed = topic.info(at(9)).first - page.next.offset - 1;
        assert_eq!(next.gap.map_or(0, |gap| gap.missed.unwrap()), missed, "{start:?}");
        begin.offset
    };
    let [earliest, last_two, newest, since] = words();
    // Of 3 to 5 at first, and three later each time.
    assert_eq!([0, 1, 2].map(|times| begin(times, earliest)), [2, 5, 8]);
    assert_eq!([0, 2, 4].map(|times| begin(times, last_two)), [3, 9, 15]);
    assert_eq!([0, 1, 2].map(|times| begin(times, newest)), [4, 7, 10]);
    assert_eq!([0, 1, 2].map(|times| begin(times, since)), [2, 5, 8]);
    for start in words() {
        assert!(begin(u64::MAX, start) > 20, "the oldest one is taken at last: {start:?}");
    }
}

#[test]
fn who_begins_where_no_event_is_or_at_a_position_begins_without_one() {
    let limit = PageLimit::default();
    let empty = topic(Retention::default());
    for start in words() {
        assert_eq!(empty.begin_reading(at(1), start, limit), Ok((position(0), None)));
    }
    let ended = with_events(3, Retention::default());
    assert!(ended.end());
    let since = Start::Since(at(99));
    assert_eq!(ended.begin_reading(at(99), since, limit), Ok((position(3), None)));
    let topic = hurried(0);
    assert_eq!(topic.begin_reading(at(1), After::Latest, limit), Ok((position(5), None)));
    for after in [After::Position(position(1)), After::Anew(position(1))] {
        assert_eq!(topic.begin_reading(at(1), after, limit), Ok((position(1), None)));
    }
    let gap = topic.read(at(1), position(1), limit).unwrap().gap.unwrap();
    assert_eq!((gap.missed, gap.resume), (Some(1), position(2)));
    topic.delete().unwrap();
    for start in words() {
        assert_eq!(topic.begin_reading(at(1), start, limit), Err(ReadError::Deleted));
    }
}

#[test]
fn count_bound_drops_the_oldest() {
    let topic = with_events(5, Retention { events_max: 2, ..Retention::default() });
    let page = topic.read(at(5), position(3), PageLimit::default()).unwrap();
    assert_eq!((page.first, offsets(&page), page.gap.clone()), (4, vec![4, 5], None));
}

#[test]
fn byte_bound_drops_the_oldest_and_refuses_what_can_never_fit() {
    let one = with_events(1, Retention::default()).info(at(1)).bytes;
    let topic = with_events(5, Retention { bytes_max: 3 * one, ..Retention::default() });
    assert_eq!(topic.info(at(5)).first, 3);
    assert_eq!(topic.info(at(5)).bytes, 3 * one);
    let large = Data::json(&"x".repeat(1000)).unwrap();
    let error = topic.publish(at(6), large).unwrap_err();
    assert!(matches!(error, PublishError::TooBig { bytes_max, .. } if bytes_max == 3 * one));
    assert_eq!(topic.info(at(6)).head, position(5), "a refused event leaves no trace");
}

#[test]
fn age_bound_drops_the_oldest_when_read() {
    let topic =
        with_events(5, Retention { age_max: Duration::from_secs(3), ..Retention::default() });
    assert_eq!(topic.info(at(6)).first, 3);
    let page = topic.read(at(60), position(5), PageLimit::default()).unwrap();
    assert_eq!((page.first, page.gap.clone(), page.next), (6, None, position(5)));
}

#[test]
fn a_position_older_than_the_log_is_a_gap_that_counts_what_is_missing() {
    let topic = with_events(5, Retention { events_max: 2, ..Retention::default() });
    let page = topic.read(at(5), position(1), PageLimit::default()).unwrap();
    let gap = Gap {
        reason: GapReason::Retention,
        after: position(1),
        missed: Some(2),
        resume: position(3),
    };
    assert_eq!((page.gap.clone(), offsets(&page)), (Some(gap), vec![4, 5]));
}

#[test]
fn a_position_of_another_epoch_is_a_gap_of_unknown_length() {
    let topic = with_events(2, Retention::default());
    let stranger = Position { epoch: Epoch::from_bits(8), offset: 77 };
    assert_eq!(topic.start(at(2), After::Position(stranger)), Ok(stranger));
    let page = topic.read(at(2), stranger, PageLimit::default()).unwrap();
    let gap = Gap { reason: GapReason::Epoch, after: stranger, missed: None, resume: position(0) };
    assert_eq!((page.gap.clone(), offsets(&page)), (Some(gap), vec![1, 2]));
}

#[test]
fn a_position_that_was_never_handed_out_is_an_error() {
    let topic = with_events(2, Retention::default());
    let ahead = ReadError::Ahead { position: position(3), head: position(2) };
    assert_eq!(topic.start(at(2), After::Position(position(3))), Err(ahead.clone()));
    assert_eq!(topic.read(at(2), position(3), PageLimit::default()), Err(ahead));
    let last = Position { offset: u64::MAX, ..position(0) };
    assert!(topic.read(at(2), last, PageLimit::default()).is_err());
}

#[test]
fn a_page_is_bounded_by_events_and_by_bytes() {
    let topic = topic(Retention::default());
    for _ in 0..10 {
        topic.publish(at(0), Data::json(&"x".repeat(98)).unwrap()).unwrap();
    }
    let read = |events_max, bytes_max| {
        topic.read(at(0), position(0), PageLimit { events_max, bytes_max }).unwrap().events.len()
    };
    assert_eq!(read(4, 1 << 20), 4);
    assert_eq!(read(100, 300), 3);
    assert_eq!(read(100, 299), 2);
    assert_eq!(read(100, 1), 1, "an event larger than a page is still delivered");
}

#[test]
fn names_that_would_need_escaping_are_refused() {
    for name in ["wind", "wind.status", "scratch-1", "A_b", &"x".repeat(128)] {
        assert!(name.parse::<TopicName>().is_ok(), "{name}");
    }
    for name in ["", ".", "..", "-a", "a b", "a/b", "é", "a%20", &"x".repeat(129)] {
        assert!(name.parse::<TopicName>().is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_watcher_learns_of_what_it_has_not_seen() {
    let topic = with_events(1, Retention::default());
    let mut head = topic.head();
    head.passed(position(0)).await;
    head.passed(Position { epoch: Epoch::from_bits(8), offset: 5 }).await;
    let wait = head.passed(position(1));
    let publish = async { topic.publish(at(2), Data::json(&2).unwrap()).unwrap() };
    let ((), published) = tokio::join!(wait, publish);
    assert_eq!(published, position(2));
}

proptest! {
    #[test]
    fn a_reader_that_goes_and_comes_sees_each_event_once_or_is_told_of_a_gap(
        steps in proptest::collection::vec((0_u64..4, 1_usize..4, any::<bool>()), 1..60),
        events_max in 1_u64..6,
    ) {
        let topic = topic(Retention { events_max, ..Retention::default() });
        let mut place = topic.start(at(0), After::Earliest).unwrap();
        let mut expected = 1;
        for (publish, page_events, read) in steps {
            for _ in 0..publish {
                topic.publish(at(0), Data::json(&0).unwrap()).unwrap();
            }
            if read {
                let limit = PageLimit { events_max: page_events, ..PageLimit::default() };
                let page = topic.read(at(0), place, limit).unwrap();
                expected += page.gap.clone().map_or(0, |gap| gap.missed.unwrap());
                for event in &page.events {
                    prop_assert_eq!(event.offset, expected);
                    expected += 1;
                }
                place = page.next;
            }
        }
    }
}

#[test]
fn an_ended_topic_gives_all_its_events_and_then_its_end() {
    let topic = with_events(3, Retention::default());
    assert!(topic.end() && !topic.end());
    let two = PageLimit { events_max: 2, ..PageLimit::default() };
    let page = topic.read(at(9), position(0), two).unwrap();
    assert_eq!((offsets(&page), page.is_last), (vec![1, 2], false));
    let page = topic.read(at(9), page.next, two).unwrap();
    assert_eq!((offsets(&page), page.is_last), (vec![3], true));
    assert_eq!(topic.read(at(9), page.next, two), Err(ReadError::Ended));
    assert_eq!(topic.start(at(9), After::Latest), Ok(page.next));
    let page = topic.read(at(9), Position { epoch: Epoch::from_bits(8), offset: 3 }, two).unwrap();
    assert!(page.gap.is_some(), "a position of another epoch gets its gap first");
    let ahead = topic.read(at(9), position(4), two);
    assert!(matches!(ahead, Err(ReadError::Ahead { .. })));
}

#[test]
fn only_a_reader_of_all_is_told_the_end_of_a_topic_that_is_deleted() {
    let topic = with_events(3, Retention::default());
    assert!(topic.end());
    // The log drops its events before the topic is said to be deleted.
    topic.log().delete().unwrap();
    for _ in 0..2 {
        let read = |offset| topic.read(at(9), position(offset), PageLimit::default());
        assert_eq!(read(2), Err(ReadError::Deleted));
        assert_eq!(read(3), Err(ReadError::Ended));
        topic.delete().unwrap();
    }
}

#[test]
fn an_ended_topic_takes_no_event_whatever_it_is() {
    let topic = topic(Retention::default());
    let last = || NewEvent { time: at(1), data: Data::json("over").unwrap() };
    assert!(topic.end_with(last()) && !topic.end_with(last()));
    assert_eq!(topic.publish(at(2), Data::json(&1).unwrap()), Err(PublishError::Ended));
    let batch = Batch::from(last()).with_key("a".parse().unwrap());
    assert_eq!(topic.append(at(2), &batch).unwrap_err(), PublishError::Ended);
    assert_eq!(topic.info(at(2)).head, position(1));
}

#[test]
fn the_last_event_is_kept_whatever_the_limits_are() {
    let topic = topic(Retention { bytes_max: 1_000, ..Retention::default() });
    topic.publish(at(1), Data::json(&"x".repeat(500)).unwrap()).unwrap();
    topic.publish(at(2), Data::json(&"y".repeat(500)).unwrap()).unwrap();
    assert_eq!(topic.info(at(2)).first, 2);
    topic.shrink_to(1);
    assert_eq!(topic.info(at(2)).first, 2, "the newest event is kept");
    topic.publish(at(3), Data::json(&1).unwrap()).unwrap();
    topic.shrink_to(200);
    assert_eq!(topic.info(at(3)).first, 3);
    let data = Data::json(&"z".repeat(5_000)).unwrap();
    assert!(topic.end_with(NewEvent { time: at(4), data }));
    let page = topic.read(at(99_999), position(3), PageLimit::default()).unwrap();
    assert_eq!((offsets(&page), page.is_last, page.gap), (vec![4], true, None));
}

#[test]
fn the_last_event_pushes_out_none_by_its_bytes() {
    let topic = topic(Retention { bytes_max: 1_000, events_max: 3, ..Retention::default() });
    topic.publish(at(1), Data::json(&"x".repeat(500)).unwrap()).unwrap();
    let data = Data::json(&"z".repeat(5_000)).unwrap();
    assert!(topic.end_with(NewEvent { time: at(2), data }));
    let info = topic.info(at(2));
    assert_eq!((info.first, info.head), (1, position(2)));
    assert!(info.bytes > 5_500);
}

#[tokio::test]
async fn the_end_wakes_those_who_wait_for_events() {
    let topic = with_events(3, Retention::default());
    let (mut passed, mut grown) = (topic.head(), topic.head());
    let ended = async {
        tokio::task::yield_now().await;
        topic.end();
    };
    tokio::join!(passed.passed(position(3)), grown.grown(), ended);
    passed.passed(position(3)).await;
}

#[test]
fn the_last_event_is_the_last_while_others_publish() {
    let last = Data::json("over").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for round in 0..2_000 {
        let topic = topic(Retention::default());
        let publish = || while topic.publish(at(1), Data::json(&1).unwrap()).is_ok() {};
        std::thread::scope(|scope| {
            scope.spawn(publish);
            scope.spawn(publish);
            // In some rounds, it ends before anything has come.
            if round % 20 > 0 {
                runtime.block_on(topic.head().passed(position(round % 20)));
            }
            assert!(topic.end_with(NewEvent { time: at(1), data: last.clone() }));
        });
        let page =
            topic.read(at(1), topic.start(at(1), Start::Newest).unwrap(), PageLimit::default());
        assert_eq!(page.unwrap().events[0].data, last, "round {round}");
    }
}
