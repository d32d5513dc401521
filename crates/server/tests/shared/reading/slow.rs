//! Slow readers among fast ones: they delay no other reader, and lose no event that is kept.

use std::num::NonZero;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anemone_hub::{Data, Retention};
use anemone_server::Options;
use anemone_testing::Fixture;
use anemone_testing::ways::{Follower, Reading, STREAMS, each_of};
use serde_json::json;

/// Events of 100 KB: more than one of them is never read at once.
pub(crate) fn publish_large(fixture: &Fixture, numbers: RangeInclusive<u64>) {
    let filling = "x".repeat(100_000);
    for number in numbers {
        let data = Data::json(&json!({ "n": number, "filling": filling })).unwrap();
        fixture.wind.publish(SystemTime::now().into(), data).unwrap();
    }
}

/// The slow ones do not read for as long as it takes, which on a busy machine is long.
pub(crate) fn patient(options: &mut Options) {
    let hour = Duration::from_secs(3600);
    let limits = &mut options.limits;
    limits.write_timeout = hour;
    for config in [&mut limits.websocket, &mut limits.multiplexed] {
        Arc::make_mut(config).idle_timeout = hour;
    }
}

fn follow(reader: &mut dyn Reading, to: u64) -> Follower {
    let mut follower = Follower::new(0);
    while follower.offset < to {
        follower.follow(reader.next());
    }
    follower
}

#[test]
fn fast_readers_do_not_wait_and_slow_ones_lose_nothing() {
    each_of(&STREAMS, |way| {
        let retention = Retention { bytes_max: 64 << 20, ..Retention::default() };
        let options = |options: &mut Options| {
            options.threads = NonZero::new(1);
            patient(options);
        };
        let fixture = Fixture::with(options, retention);
        let mut slow: Vec<_> = (0..2).map(|_| way.open(&fixture, "after=ya-0")).collect();
        let mut fast = way.open(&fixture, "after=ya-0");
        let mut follower = Follower::new(0);
        // 12 MB are more than the sockets hold.
        for number in 1..=120 {
            publish_large(&fixture, number..=number);
            while follower.offset < number {
                follower.follow(fast.next());
            }
        }
        for reader in &mut slow {
            assert_eq!(follow(&mut **reader, 120).events, 120);
        }
    });
}

#[test]
fn who_was_too_slow_for_what_is_kept_is_told_of_the_gap() {
    each_of(&STREAMS, |way| {
        let retention = Retention { events_max: 10, ..Retention::default() };
        let fixture = Fixture::with(patient, retention);
        let mut slow = way.open(&fixture, "after=ya-0");
        publish_large(&fixture, 1..=150);
        // In every case, its gaps and events are complete.
        let follower = follow(&mut *slow, 150);
        assert!((10..150).contains(&follower.events), "{follower:?}");
    });
}
