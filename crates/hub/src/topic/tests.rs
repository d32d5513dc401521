use std::time::Duration;

use proptest::prelude::*;

use super::*;

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
