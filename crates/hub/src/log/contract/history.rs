//! Any history of batches, reads and time that passes.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::{Make, key, position};
use crate::testing::{at, batch, numbers};
use crate::{Batch, KeyWindow, PageLimit, PublishError, Retention, TopicOptions};

#[derive(Clone, Debug)]
pub(super) enum Step {
    Publish { events: u64, key: Option<u8> },
    Read { events_max: usize, bytes_max: u64 },
    Pass { seconds: u64 },
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let publish = (1_u64..40, proptest::option::of(0_u8..6));
    let step = prop_oneof![
        4 => publish.prop_map(|(events, key)| Step::Publish { events, key }),
        4 => (1_usize..60, 1_u64..400)
            .prop_map(|(events_max, bytes_max)| Step::Read { events_max, bytes_max }),
        1 => (0_u64..30).prop_map(|seconds| Step::Pass { seconds }),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A reader gets each event once, in order, whatever is published and read, or is told exactly how many
/// it does not get.
pub(super) fn any_history_is_told_without_silent_loss(
    make: Make,
    steps: Vec<Step>,
    retention: Retention,
) {
    let keys = KeyWindow { keys_max: 3, age_max: Duration::from_secs(20) };
    let subject = make(TopicOptions { retention, keys, ..TopicOptions::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut now, mut appended) = (0, 0);
    let mut sent = HashMap::new();
    let mut place = position(0);
    let mut expected = 1;
    for step in steps {
        match step {
            Step::Publish { events, key } => {
                // The numbers are the offsets.
                let mut batch = batch(at(now), appended + 1..=appended + events);
                batch.key = key.map(|key| self::key(&format!("{key}")));
                let publish =
                    |batch: &Batch| runtime.block_on(subject.topic.publish_kept(at(now), batch));
                match publish(&batch) {
                    Err(PublishError::KeyReused) => {
                        let again = publish(&sent[&key]).unwrap();
                        assert!(again.repeated && again.last.offset <= appended);
                    }
                    published => {
                        let published = published.unwrap();
                        assert_eq!(
                            (published.first.offset, published.repeated),
                            (appended + 1, false)
                        );
                        appended += events;
                        assert_eq!(published.last.offset, appended);
                        sent.insert(key, batch);
                    }
                }
            }
            Step::Read { events_max, bytes_max } => {
                let limit = PageLimit { events_max, bytes_max };
                let page = subject.topic.read(at(now), place, limit).unwrap();
                expected += page.gap.clone().map_or(0, |gap| gap.missed.unwrap());
                assert!(page.events.len() <= events_max);
                for (event, number) in page.events.iter().zip(numbers(&page)) {
                    assert_eq!((event.offset, number), (expected, expected));
                    expected += 1;
                }
                assert_eq!(page.next.offset + 1, expected);
                assert!(!page.events.is_empty() || page.next.offset == appended);
                place = page.next;
            }
            Step::Pass { seconds } => now += seconds,
        }
    }
}
