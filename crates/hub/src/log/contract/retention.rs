//! The contract about retention: a log keeps to the event, byte and second what its bounds allow.

use std::time::Duration;

use super::{Make, position};
use crate::testing::at;
use crate::{Data, PageLimit, Retention};

pub(super) async fn count_bound_keeps_what_it_says(make: Make) {
    for events_max in [1, 10, 1000] {
        let retention = Retention { events_max, ..Retention::default() };
        let subject = make(retention.into());
        for chunk in 0..30 {
            subject.publish(1, chunk * 70..(chunk + 1) * 70).await;
            let info = subject.topic.info(at(1));
            let kept = info.head.offset + 1 - info.first;
            assert_eq!(kept, events_max.min(info.head.offset));
            assert_eq!(subject.all(1, 100).len() as u64, kept);
            let gap = subject.topic.read(at(1), position(0), PageLimit::default()).unwrap().gap;
            assert_eq!(gap.and_then(|gap| gap.missed).unwrap_or(0), info.head.offset - kept);
            let bytes = subject.topic.lag(at(1), position(0)).bytes;
            assert_eq!(subject.topic.lag(at(1), position(info.first - 1)).bytes, bytes);
        }
    }
}

pub(super) async fn byte_bound_keeps_what_it_says(make: Make) {
    for bytes_max in [5_000, 100_000] {
        let retention = Retention { bytes_max, ..Retention::default() };
        let subject = make(retention.into());
        for number in 0..3_000 {
            subject.topic.publish(at(1), Data::json(&(1_000_000 + number)).unwrap()).unwrap();
        }
        subject.topic.head().passed(position(2_999)).await;
        let info = subject.topic.info(at(1));
        // Another event takes up to 159 bytes.
        assert!(info.bytes + 159 > bytes_max, "{} of {bytes_max} kept", info.bytes);
        assert!(info.bytes <= bytes_max, "{} kept, at most {bytes_max} may be", info.bytes);
    }
}

pub(super) async fn age_bound_drops_what_is_too_old_when_read(make: Make) {
    let retention = Retention { age_max: Duration::from_secs(80), ..Retention::default() };
    let subject = make(retention.into());
    for second in 1..=100 {
        subject.publish(second, [second]).await;
    }
    let first = subject.topic.info(at(100)).first;
    assert_eq!(first, 20);
    let gap = subject.topic.read(at(100), position(1), PageLimit::default()).unwrap().gap.unwrap();
    assert_eq!((gap.missed, gap.resume.offset), (Some(first - 2), first - 1));
    let page = subject.topic.read(at(181), position(100), PageLimit::default()).unwrap();
    assert_eq!((page.first, page.gap.clone(), page.next), (101, None, position(100)));
    let page = subject.topic.read(at(181), position(40), PageLimit::default()).unwrap();
    assert_eq!(page.gap.clone().map(|gap| gap.missed), Some(Some(60)));
    assert_eq!(subject.publish(181, [101]).await, (101, 101));
    assert_eq!(subject.all(181, 5), [101]);
}
