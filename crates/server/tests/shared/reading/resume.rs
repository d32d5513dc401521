//! Readers that are cut off again and again, anywhere, while events are published.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;

use anemone_testing::ways::{ALL, Follower, Kind, POLL, Told, Way, Wire, each, is_cut};
use anemone_testing::{Fixture, seed};
use fastrand::Rng;

/// Most events published between two reconnects.
const BURST_MAX: u64 = 6;

/// Returns the number of times that each reader is cut off.
fn reconnects() -> u64 {
    if std::env::var_os("TEST_SOAK").is_some() { 1000 } else { 300 }
}

/// A reader that is cut off and resumes.
#[derive(Debug)]
struct Resuming {
    follower: Follower,
    published: u64,
    /// The number of cuts before it had read everything: in a head, a line or a frame, or between two.
    cuts: u64,
}

/// Cuts a reader off and resumes it, many times, during publishing.
fn resumes(way: &'static Way, query: &str, seed: u64) -> Resuming {
    let (head, event) = lengths(way);
    let fixture = &Fixture::start();
    let mut random = Rng::with_seed(seed);
    let mut resuming = Resuming { follower: Follower::new(0), published: 0, cuts: 0 };
    thread::scope(|scope| {
        let (bursts, asked) = mpsc::channel::<std::ops::RangeInclusive<u64>>();
        scope.spawn(move || {
            for burst in asked {
                fixture.publish(burst);
            }
        });
        for _ in 0..reconnects() {
            let burst = random.u64(..BURST_MAX + 1);
            let first = resuming.published + 1;
            resuming.published += burst;
            let unread = resuming.published - resuming.follower.offset;
            let bytes = match random.u64(..4) {
                0 => random.u64(..head),
                _ => head + random.u64(..event * unread + 1),
            };
            let wire = way.connect(fixture).cut_after(bytes as usize);
            bursts.send(first..=resuming.published).unwrap();
            resuming.read(way, wire, query);
        }
        drop(bursts);
        resuming.read(way, way.connect(fixture), query);
    });
    let Resuming { follower, published, cuts } = &resuming;
    assert_eq!(follower.offset, *published);
    assert!(*cuts > reconnects() / 4, "{cuts}");
    println!("{}, {query}: {cuts} cuts, {published} events", way.name);
    resuming
}

/// The number of bytes before the events, and of those with each of them.
fn lengths(way: &Way) -> (u64, u64) {
    const EVENTS: u64 = 10;
    let fixture = Fixture::start();
    let wire = way.connect(&fixture);
    let count = wire.count();
    let mut reader = way.read(wire, "wind", "after=ya-0").unwrap();
    if way.kind != Kind::Plain {
        reader.next();
    }
    let head = count.load(Ordering::Relaxed) as u64;
    fixture.publish(1..=EVENTS);
    for _ in 0..EVENTS {
        reader.next();
    }
    (head, (count.load(Ordering::Relaxed) as u64 - head) / EVENTS)
}

impl Resuming {
    /// Reads on until the connection is cut off, or all is read that was published.
    fn read(&mut self, way: &Way, wire: Wire, query: &str) {
        self.follower.reconnected();
        let asked = format!("after={}&{query}", self.follower.position());
        let read = way.read(wire, "wind", &asked).and_then(|mut reader| {
            // Published events always arrive, so this ends.
            while self.follower.offset < self.published {
                self.follower.follow(reader.read()?);
            }
            Ok(())
        });
        if let Err(error) = read {
            assert!(is_cut(&error), "{error}");
            self.cuts += 1;
        }
    }
}

#[test]
fn over_hundreds_of_reconnects_nothing_is_lost_or_comes_twice() {
    let seed = seed();
    each(|way| {
        let Resuming { follower, published, .. } = resumes(way, "mode=all", seed);
        assert_eq!((follower.events, follower.skipped_in_all, follower.missed), (published, 0, 0));
    });
}

#[test]
fn over_hundreds_of_reconnects_pages_of_one_event_are_no_different() {
    let seed = seed();
    each(|way| {
        let Resuming { follower, published, .. } = resumes(way, "limit=1", seed);
        assert_eq!(follower.events, published);
    });
}

#[test]
fn over_hundreds_of_reconnects_all_that_is_not_delivered_is_counted() {
    let seed = seed();
    each(|way| {
        let Resuming { follower, published, .. } = resumes(way, "mode=latest", seed);
        assert_eq!(follower.events + follower.skipped_in_all, published);
    });
}

#[test]
fn a_position_is_one_for_every_way_to_read() {
    let fixture = Fixture::start();
    let mut random = Rng::with_seed(seed());
    let (mut follower, mut published) = (Follower::new(0), 0);
    for _ in 0..reconnects() {
        let burst = random.u64(..BURST_MAX + 1);
        fixture.publish(published + 1..=published + burst);
        published += burst;
        let way = ALL[random.u64(..ALL.len() as u64) as usize];
        let mut reader = way.open(&fixture, &format!("after={}", follower.position()));
        let wanted = follower.offset + random.u64(..published - follower.offset + 1);
        while follower.offset < wanted {
            follower.follow(reader.next());
        }
    }
    let mut reader = POLL.open(&fixture, &format!("after={}", follower.position()));
    while follower.offset < published {
        follower.follow(reader.next());
    }
    assert_eq!((follower.events, follower.missed), (published, 0));
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
