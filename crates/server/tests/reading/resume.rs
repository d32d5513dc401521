//! Readers that are cut off again and again, while events are published.

use std::sync::mpsc;
use std::thread;

use crate::common::Fixture;
use crate::ways::{ALL, Follower, Told, Way, each};

/// How often each reader is cut off.
const RECONNECTS: u64 = 200;
/// Most events published between two of them.
const BURST_MAX: u64 = 12;

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn new(seed: usize) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ (seed as u64 + 1))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn seed(way: &Way) -> usize {
    ALL.iter().position(|other| other.name == way.name).unwrap()
}

/// Cuts a reader off and resumes it, while somebody else publishes; gives how far it came.
fn resumes(way: &'static Way, fixture: &Fixture, query: &str) -> (Follower, u64) {
    let mut random = Random::new(seed(way));
    let mut follower = Follower::new(0);
    let mut published = 0;
    thread::scope(|scope| {
        let (bursts, asked) = mpsc::channel::<std::ops::RangeInclusive<u64>>();
        scope.spawn(move || {
            for burst in asked {
                fixture.publish(burst);
            }
        });
        for _ in 0..RECONNECTS {
            let burst = random.below(BURST_MAX + 1);
            bursts.send(published + 1..=published + burst).unwrap();
            published += burst;
            let asked = format!("after={}&{query}", follower.position());
            if random.below(8) == 0 {
                way.knock(fixture, &asked);
                continue;
            }
            let mut reader = way.open(fixture, &asked);
            follower.reconnected();
            // What is published will come, so nobody waits in vain.
            let wanted = follower.offset + random.below(published - follower.offset + 1);
            while follower.offset < wanted {
                follower.follow(reader.next());
            }
        }
        drop(bursts);
        let mut reader = way.open(fixture, &format!("after={}&{query}", follower.position()));
        follower.reconnected();
        while follower.offset < published {
            follower.follow(reader.next());
        }
    });
    (follower, published)
}

#[test]
fn over_many_reconnects_nothing_is_lost_or_comes_twice() {
    each(|way| {
        let fixture = Fixture::start();
        let (follower, published) = resumes(way, &fixture, "mode=all");
        assert_eq!((follower.events, follower.skipped_in_all), (published, 0));
    });
}

#[test]
fn over_many_reconnects_pages_of_one_event_are_no_different() {
    each(|way| {
        let fixture = Fixture::start();
        let (follower, published) = resumes(way, &fixture, "limit=1");
        assert_eq!(follower.events, published);
    });
}

#[test]
fn over_many_reconnects_all_that_is_not_delivered_is_counted() {
    each(|way| {
        let fixture = Fixture::start();
        let (follower, published) = resumes(way, &fixture, "mode=latest");
        assert_eq!(follower.events + follower.skipped_in_all, published);
    });
}

#[test]
fn a_position_is_one_for_every_way_to_read() {
    let fixture = Fixture::start();
    let mut random = Random::new(7);
    let (mut follower, mut published) = (Follower::new(0), 0);
    for _ in 0..RECONNECTS {
        let burst = random.below(BURST_MAX + 1);
        fixture.publish(published + 1..=published + burst);
        published += burst;
        let way = ALL[random.below(ALL.len() as u64) as usize];
        let mut reader = way.open(&fixture, &format!("after={}", follower.position()));
        let wanted = follower.offset + random.below(published - follower.offset + 1);
        while follower.offset < wanted {
            follower.follow(reader.next());
        }
    }
    assert!(published > follower.events && follower.events > published / 2);
}

#[test]
fn a_reader_that_comes_back_too_late_is_told_and_goes_on() {
    each(|way| {
        let retention = anemone_hub::Retention { events_max: 5, ..Default::default() };
        let fixture = Fixture::with(|_| {}, retention);
        let mut follower = Follower::new(0);
        for round in 0..20 {
            fixture.publish(round * 9 + 1..=round * 9 + 9);
            let mut reader = way.open(&fixture, &format!("after={}", follower.position()));
            let mut gaps = 0;
            while follower.offset < round * 9 + 9 {
                let told = reader.next();
                gaps += u64::from(matches!(told, Told::Gap(_)));
                follower.follow(told);
            }
            assert_eq!((gaps, follower.events), (1, (round + 1) * 5));
        }
    });
}
