//! The bytes that a topic in memory reports are those that it takes from the machine, within 15 %. Those that a run
//! reports are at least what it takes.
//!
//! This test has a process of its own, since other tests would change the measurement.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::time::Duration;

use anemone_hub::run::{RunLimits, RunWork, Runs, StartRun};
use anemone_hub::{
    Batch, Data, Epoch, Hub, IdempotencyKey, NewEvent, Retention, Topic, TopicOptions, UnixTime,
};

const NOW: UnixTime = UnixTime::from_micros(1_789_000_000_000_000);

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find(|line| line.starts_with("Rss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn options(events_max: u64) -> TopicOptions {
    let age_max = Duration::from_secs(3600);
    let retention = Retention { events_max, bytes_max: 1 << 30, age_max };
    retention.into()
}

/// Runs it; returns the bytes by which the process has grown, and those that the topics report.
fn measured(topics: &[Arc<Topic>], publish: impl FnOnce()) -> (u64, u64) {
    let counted = || topics.iter().map(|topic| topic.info(NOW).bytes).sum::<u64>();
    let (resident_before, counted_before) = (resident_bytes(), counted());
    publish();
    (resident_bytes() - resident_before, counted() - counted_before)
}

/// Says how close the two are for one of `of` things, and whether that is close enough.
fn is_close(what: &str, (resident, counted): (u64, u64), of: u64) -> bool {
    println!("{what}: {} bytes taken, {} counted", resident / of, counted / of);
    (counted * 85..=counted * 115).contains(&(resident * 100))
}

#[test]
fn what_is_counted_is_what_is_taken() {
    let hub = Hub::new(Epoch::from_bits(7));
    let mut number = 0;
    let mut topics = |count: usize, options: TopicOptions| -> Vec<Arc<Topic>> {
        let mut create = || {
            number += 1;
            hub.create(format!("t{number}").parse().unwrap(), options).unwrap()
        };
        (0..count).map(|_| create()).collect()
    };
    let mut all_close = true;
    for (data_bytes, events) in [(1, 200_000), (100, 100_000), (10 << 10, 4_000)] {
        let text = format!("{:1$}", 7, data_bytes).replace(' ', "1");
        let topic = topics(1, options(events));
        let difference = measured(&topic, || {
            for _ in 0..events {
                topic[0].publish(NOW, Data::parse(&text).unwrap()).unwrap();
            }
        });
        all_close &= is_close(&format!("an event of {data_bytes} bytes"), difference, events);
    }
    // These have one event for each topic.
    let keyed = topics(20, options(1));
    let difference = measured(&keyed, || {
        for number in 0..10_000 {
            for topic in &keyed {
                let key: IdempotencyKey =
                    format!("8e03978e-40d5-43e8-bc93-{number:012}").parse().unwrap();
                let event = NewEvent { time: NOW, data: Data::parse("1").unwrap() };
                let batch = Batch::from(event).with_key(key);
                drop(topic.append(NOW, &batch).unwrap());
            }
        }
    });
    all_close &= is_close("a key", difference, 200_000);
    assert!(all_close, "see above");
    assert!(runs_are_counted(), "see above");
}

/// Says what an ended run takes, and whether that is at most what it counts for.
fn runs_are_counted() -> bool {
    let runs = Runs::new(RunLimits::default());
    let resident_before = resident_bytes();
    let service = || "/a/service/with/a/path".to_owned();
    for _ in 0..10_000 {
        let run = runs.start(StartRun::new(service(), RunWork::new(|_| Ok(None)))).unwrap().run;
        while !run.has_ended() {
            std::thread::yield_now();
        }
    }
    let (resident, counted) = (resident_bytes() - resident_before, runs.bytes());
    println!("a run: {} bytes taken, {} counted", resident / 10_000, counted / 10_000);
    resident <= counted
}
