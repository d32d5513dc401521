//! The contract about keys: a batch is appended once, however often it comes.

use std::time::Duration;

use super::{Make, position};
use crate::keys::KEY_BYTES;
use crate::testing::{at, batch};
use crate::{
    Data, IdempotencyKey, KeyWindow, NewEvent, PageLimit, PublishError, Retention, TopicOptions,
};

pub(super) fn key(name: &str) -> IdempotencyKey {
    name.parse().unwrap()
}

pub(super) async fn a_key_that_was_seen_appends_nothing_and_gives_the_first_positions(make: Make) {
    let subject = make(TopicOptions::default());
    let topic = &subject.topic;
    let twice = batch(at(1), [1, 2]).with_key(key("a"));
    let (first, second) =
        (topic.append(at(1), &twice).unwrap(), topic.append(at(1), &twice).unwrap());
    let (second, first) = (second.await.unwrap(), first.await.unwrap());
    assert_eq!((first.first, first.last, first.repeated), (position(1), position(2), false));
    assert_eq!((second.first, second.last, second.repeated), (position(1), position(2), true));
    let other = batch(at(1), [3]).with_key(key("b"));
    assert_eq!(topic.publish_kept(at(1), &other).await.unwrap().first, position(3));
    let again = topic.publish_kept(at(1), &twice).await.unwrap();
    assert_eq!((again.first, again.repeated), (position(1), true));
    assert_eq!(subject.all(1, 100), [1, 2, 3]);
}

pub(super) async fn a_key_that_was_seen_is_refused_with_other_events(make: Make) {
    let subject = make(TopicOptions::default());
    let publish = |numbers: &[u64]| {
        subject.topic.append(at(2), &batch(at(1), numbers.iter().copied()).with_key(key("a")))
    };
    assert!(!subject.topic.knows(at(1), key("a")));
    publish(&[1, 2]).unwrap().await.unwrap();
    for other in [&[1][..], &[2, 1], &[12], &[1, 2, 3]] {
        assert_eq!(publish(other).unwrap_err(), PublishError::KeyReused);
    }
    assert!(publish(&[1, 2]).unwrap().await.unwrap().repeated);
    assert!(subject.topic.knows(at(1), key("a")) && !subject.topic.knows(at(1), key("b")));
    assert_eq!(subject.all(1, 100), [1, 2]);
}

pub(super) async fn a_key_of_a_request_is_compared_with_the_request_alone(make: Make) {
    let subject = make(TopicOptions::default());
    let publish = |numbers: &[u64], request: &'static str| {
        let batch = batch(at(1), numbers.iter().copied()).with_key(key("a"));
        subject.topic.append(at(1), &batch.with_request(request.into()))
    };
    assert_eq!(publish(&[], "x").unwrap_err(), PublishError::Empty);
    let first = publish(&[1, 2], "x").unwrap();
    for numbers in [&[1][..], &[]] {
        let again = publish(numbers, "x").unwrap().await.unwrap();
        assert_eq!((again.first, again.last, again.repeated), (position(1), position(2), true));
    }
    first.await.unwrap();
    for numbers in [&[1, 2][..], &[]] {
        assert_eq!(publish(numbers, "y").unwrap_err(), PublishError::KeyReused);
    }
    assert_eq!(subject.all(1, 100), [1, 2]);
}

pub(super) async fn a_key_outlives_its_events(make: Make) {
    let retention = Retention { events_max: 20, ..Retention::default() };
    let subject = make(retention.into());
    let first = batch(at(1), [1, 2]).with_key(key("a"));
    subject.topic.publish_kept(at(1), &first).await.unwrap();
    for chunk in 0..20 {
        subject.publish(2, chunk * 50..(chunk + 1) * 50).await;
    }
    let again = subject.topic.publish_kept(at(601), &first).await.unwrap();
    assert_eq!((again.first, again.last, again.repeated), (position(1), position(2), true));
    let other = batch(at(601), [3]).with_key(key("a"));
    let refused = subject.topic.publish_kept(at(601), &other).await;
    assert_eq!(refused, Err(PublishError::KeyReused));
    let anew = subject.topic.publish_kept(at(602), &other).await.unwrap();
    assert_eq!((anew.first, anew.repeated), (position(1003), false));
}

pub(super) async fn keys_count_in_the_bytes_and_leave_room_for_events(make: Make) {
    let bytes_max = 100 * KEY_BYTES;
    let subject = make(Retention { bytes_max, ..Retention::default() }.into());
    let mut bytes = 0;
    for number in 1..=1_000 {
        let one = batch(at(1), [number]).with_key(key(&number.to_string()));
        subject.topic.publish_kept(at(1), &one).await.unwrap();
        let info = subject.topic.info(at(1));
        assert!(info.bytes >= bytes.min(50 * KEY_BYTES), "{bytes} are {}", info.bytes);
        assert!(info.bytes <= bytes_max, "{} kept", info.bytes);
        assert!(info.first <= info.head.offset, "what was acknowledged is there");
        bytes += KEY_BYTES;
    }
    let known = (1..=1_000).filter(|number| subject.topic.knows(at(1), key(&number.to_string())));
    assert!(known.eq(951..=1_000), "half of the bytes are for keys");
    let large = Data::json(&"x".repeat(usize::try_from(bytes_max).unwrap() - 400)).unwrap();
    subject.topic.publish_kept(at(1), &NewEvent { time: at(1), data: large }.into()).await.unwrap();
    let page = subject.topic.read(at(1), position(1_000), PageLimit::default()).unwrap();
    assert_eq!(page.events.len(), 1, "keys make room for a large event");
    assert!(subject.topic.info(at(1)).bytes <= bytes_max);
}

pub(super) async fn with_less_room_keys_take_half_of_it_and_events_the_rest(make: Make) {
    const EVENTS: u64 = 1_000;
    for (keys_max, keys_left, bytes_max) in
        [(10_000, 500, 2 * 500 * KEY_BYTES), (10_000, 999, 2 * 999 * KEY_BYTES), (10, 10, 50_000)]
    {
        let subject = make(TopicOptions::default());
        let mut receipts = Vec::new();
        for number in 1..=EVENTS {
            let one = batch(at(1), [number]).with_key(key(&number.to_string()));
            receipts.push(subject.topic.append(at(1), &one).unwrap());
        }
        for receipt in receipts {
            receipt.await.unwrap();
        }
        let retention = Retention { bytes_max, ..Retention::default() };
        let keys = KeyWindow { keys_max, ..KeyWindow::default() };
        subject.topic.configure(TopicOptions { retention, keys, ..TopicOptions::default() });
        let info = subject.topic.info(at(1));
        // Another event takes up to 160 bytes.
        assert!(info.bytes + 160 > bytes_max, "{} of {bytes_max} kept", info.bytes);
        assert!(info.bytes <= bytes_max, "{} kept, at most {bytes_max} may be", info.bytes);
        assert_eq!(subject.all(1, 100), (info.first..=EVENTS).collect::<Vec<_>>());
        let known =
            (1..=EVENTS).filter(|number| subject.topic.knows(at(1), key(&number.to_string())));
        assert!(known.eq(EVENTS + 1 - keys_left..=EVENTS), "the newest keys are known");
    }
}

pub(super) async fn keys_are_forgotten_at_the_bounds_of_their_window(make: Make) {
    let keys = KeyWindow { keys_max: 2, age_max: Duration::from_secs(10) };
    let subject = make(TopicOptions { keys, ..TopicOptions::default() });
    let publish = async |seconds, name| {
        let batch = batch(at(seconds), [1]).with_key(key(name));
        subject.topic.publish_kept(at(seconds), &batch).await.unwrap().repeated
    };
    for name in ["a", "b"] {
        assert!(!publish(1, name).await);
        assert!(publish(1, name).await);
    }
    assert!(!publish(1, "c").await);
    assert!(!publish(1, "a").await, "the third key has driven the first out");
    assert!(publish(11, "c").await);
    assert!(!publish(12, "c").await, "it was older than 10 s");
}
