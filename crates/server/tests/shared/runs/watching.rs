//! Watchers of runs in every way of reading.

use std::thread;

use anemone_hub::UnixTime;
use anemone_testing::ways::{ALL, Kind, POLL, Told, Way, each, is_cut};
use anemone_testing::{Fixture, seed, wait_until};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::runs::driven::{Driven, number, rest};

#[test]
fn every_way_of_reading_gets_the_same_events_in_the_same_order() {
    let fixture = &Fixture::start();
    let run = &Driven::start(fixture);
    let read = thread::scope(|scope| {
        let watchers = ALL.map(|way| {
            let mut reader = run.open(fixture, way, "");
            let read = move || {
                let events = rest(&mut *reader);
                if way.kind != Kind::Polling {
                    assert_eq!(reader.next(), way.ended(), "{}", way.name);
                }
                events
            };
            (way.name, scope.spawn(read))
        });
        run.partials(1..=50);
        run.progress(0.5);
        run.partials(51..=100);
        run.done(&json!({ "sum": 5050 }));
        watchers.map(|(name, read)| (name, read.join().unwrap()))
    });
    let late = ALL.map(|way| (way.name, rest(&mut *run.open(fixture, way, ""))));
    let expected = &read[0].1;
    assert_eq!(expected.first(), Some(&json!({ "state": "running" })));
    assert_eq!(expected.last(), Some(&json!({ "state": "done", "result": { "sum": 5050 } })));
    assert!(expected.iter().filter_map(number).eq(1..=100));
    for (name, events) in read.iter().chain(&late) {
        assert_eq!(events, expected, "{name}");
    }
}

/// The number of times that each watcher connects again. There are nine ways of watching.
const RECONNECTS: u64 = 120;
/// The least number of these after a cut in the middle: 300 in all.
const CUTS_MIN: u64 = 34;

/// Watches a run over connections that break anywhere, and returns its events.
fn watch_cut_off(way: &Way, seed: u64) -> (Vec<Value>, u64) {
    let fixture = Fixture::start();
    let run = Driven::start(&fixture);
    let epoch = run.run.topic().info(UnixTime::now()).head.epoch;
    let mut random = Rng::with_seed(seed);
    let (mut events, mut cuts, mut published) = (Vec::new(), 0, 0);
    for _ in 0..RECONNECTS {
        let burst = random.u64(..5);
        run.partials(published + 1..=published + burst);
        published += burst;
        // In the middle of a message, of the head of a reply, and between two polls.
        let most = [60, 300, 1_000][random.usize(..3)];
        let wire = way.connect(&fixture).cut_after(random.usize(..most));
        let query = format!("after={epoch}-{}", events.len());
        let read = way.read_path(wire, &run.path(), &query).and_then(|mut reader| {
            while events.iter().filter_map(number).next_back().unwrap_or_default() < published {
                if let Told::Event { data, .. } = reader.read()? {
                    events.push(data);
                }
            }
            Ok(())
        });
        if let Err(error) = read {
            assert!(is_cut(&error), "{error}");
            cuts += 1;
        }
    }
    run.done(&json!(published));
    let query = format!("after={epoch}-{}", events.len());
    events.extend(rest(&mut *run.open(&fixture, way, &query)));
    assert_eq!(events.last(), Some(&json!({ "state": "done", "result": published })));
    assert!(events.iter().filter_map(number).eq(1..=published), "{}", way.name);
    let whole = rest(&mut *run.open(&fixture, &POLL, ""));
    assert_eq!(events, whole, "{}", way.name);
    (events, cuts)
}

#[test]
fn a_watcher_that_is_cut_off_again_and_again_misses_nothing() {
    let seed = seed();
    each(|way| {
        let (events, cuts) = watch_cut_off(way, seed);
        println!("{}: {RECONNECTS} reconnects, {cuts} cuts, {} events", way.name, events.len());
        assert!(cuts >= CUTS_MIN, "{cuts}");
    });
}

#[test]
fn with_the_latest_alone_everything_skipped_is_counted_and_the_last_event_is_read() {
    each(|way| {
        let fixture = Fixture::start();
        let run = Driven::start(&fixture);
        let mut reader = run.open(&fixture, way, "mode=latest");
        run.partials(1..=500);
        run.done(&Value::Null);
        let (mut last, mut count) = (Value::Null, 0);
        loop {
            match reader.next() {
                Told::Event { data, .. } => (last, count) = (data, count + 1),
                Told::Skipped(skipped) => count += skipped,
                Told::Ended => break,
                Told::Position(_) => {}
                other => panic!("{}: {other:?}", way.name),
            }
        }
        assert_eq!(last["state"], "done", "{}", way.name);
        // A plain WebSocket says nothing about skipped events.
        if way.kind != Kind::Plain {
            assert_eq!(count, run.run.topic().info(UnixTime::now()).head.offset, "{}", way.name);
        }
    });
}

#[test]
fn a_run_that_has_lost_its_beginning_begins_with_a_gap() {
    let fixture = Fixture::with_limits(|limits| limits.run_events_max = 10);
    let run = Driven::start(&fixture);
    run.partials(1..=100);
    run.done(&Value::Null);
    wait_until("the end of the run", || run.run.has_ended());
    each(|way| {
        let mut reader = run.open(&fixture, way, "");
        let gap = loop {
            match reader.next() {
                Told::Gap(gap) => break gap,
                Told::Position(_) => {}
                other => panic!("{}: {other:?}", way.name),
            }
        };
        assert_eq!(
            (&gap["reason"], &gap["missed"]),
            (&json!("retention"), &json!(92)),
            "{}",
            way.name
        );
        assert_eq!(rest(&mut *reader).len(), 10, "{}", way.name);
    });
}
