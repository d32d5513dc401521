//! Keys whose segments are gone.

use super::*;
use crate::{Batch, Data, KeyWindow, NewEvent};

/// Keeps few events and more keys.
fn keep_few(machine: &mut Machine, options: DataOptions) -> Running {
    let hub = machine.open(options);
    let retention = Retention { events_max: 20, ..Retention::default() };
    let keys = KeyWindow { keys_max: 150, ..KeyWindow::default() };
    let topic =
        hub.ensure(wind(), TopicOptions { retention, keys, ..TopicOptions::default() }).unwrap();
    Running { hub, topic }
}

/// Returns those of the keys 1 to `newest` that are known.
fn known(running: &Running, newest: u64) -> Vec<u64> {
    let knows = |number: &u64| running.topic.knows(at(1), format!("k{number}").parse().unwrap());
    (1..=newest).filter(knows).collect()
}

#[tokio::test]
async fn a_key_is_known_for_its_window_when_its_segment_is_gone_restart_or_not() {
    for options in [ALWAYS, LATER, options(Fsync::Never)] {
        let mut machine = Machine::new();
        let mut running = keep_few(&mut machine, options);
        let first = running.publish_with_key("k", 1).await.unwrap();
        for number in 2..=300 {
            running.publish([number]).await.unwrap();
        }
        assert!(!machine.segments()[0].ends_with("00000000000000000001.log"));
        for end in ["none", "kill", "close", "kill"] {
            match end {
                "kill" => machine = machine.killed(),
                "close" => running.hub.close().unwrap(),
                _ => {}
            }
            if end != "none" {
                running = keep_few(&mut machine, options);
            }
            let again = running.publish_with_key("k", 1).await.unwrap();
            assert_eq!((again.first, again.repeated), (first.first, true), "after {end}");
            let other = running.publish_with_key("k", 2).await;
            assert_eq!(other, Err(PublishError::KeyReused), "after {end}");
            assert_eq!(running.head().offset, 300);
        }
        let late = batch(at(602), [1]).with_key("k".parse().unwrap());
        let anew = running.topic.publish_kept(at(602), &late).await.unwrap();
        assert_eq!((anew.last.offset, anew.repeated), (301, false), "its window is over");
    }
}

#[tokio::test]
async fn the_age_of_a_key_counts_from_its_first_event_however_often_the_server_restarts() {
    for is_evicted in [false, true] {
        let mut machine = Machine::new();
        let mut running = keep_few(&mut machine, LATER);
        let batch_at = |seconds| batch(at(seconds), [1]).with_key("k".parse().unwrap());
        let publish = async |running: &Running, seconds| {
            let published = running.topic.publish_kept(at(seconds), &batch_at(seconds)).await;
            published.map(|published| (published.last.offset, published.repeated)).unwrap()
        };
        assert_eq!(publish(&running, 1).await, (1, false));
        for number in 2..=if is_evicted { 300 } else { 2 } {
            running.publish([number]).await.unwrap();
        }
        let head = running.head().offset;
        // A repeat gives it no more time, and neither does a restart.
        for seconds in [100, 200, 300, 400, 500, 600] {
            running.hub.close().unwrap();
            machine = machine.killed();
            running = keep_few(&mut machine, LATER);
            assert_eq!(publish(&running, seconds).await, (1, true), "at {seconds} s");
        }
        assert_eq!(publish(&running, 602).await, (head + 1, false), "evicted: {is_evicted}");
        machine = machine.killed();
        running = keep_few(&mut machine, LATER);
        assert_eq!(publish(&running, 1_202).await, (head + 1, true), "it has a new time");
        assert_eq!(publish(&running, 1_203).await, (head + 2, false));
    }
}

#[tokio::test]
async fn whenever_it_is_killed_the_same_keys_are_known() {
    let mut machine = Machine::new();
    let running = keep_few(&mut machine, LATER);
    let mut largest = 0;
    for number in 1..=1_000 {
        running.publish_with_key(&format!("k{number}"), number).await.unwrap();
        // Some segments stay for a while though their keys were carried on.
        machine.faults.set(|faults| faults.remove_fails = number % 300 > 200);
        let file = machine.topic_directory().join("keys");
        largest = largest.max(fs::metadata(file).map_or(0, |metadata| metadata.len()));
        if number % 23 == 0 {
            let found = keep_few(&mut machine.killed(), LATER);
            assert_eq!(known(&found, number), known(&running, number), "{number}");
        }
    }
    assert_eq!(known(&running, 1_000), (851..=1_000).collect::<Vec<_>>());
    assert!((52..=(2 * 150 + 2 * 64) * 52).contains(&largest), "{largest} bytes of keys");
}

#[tokio::test]
async fn a_crash_of_the_machine_costs_no_key_that_was_flushed() {
    let mut machine = Machine::new();
    let running = keep_few(&mut machine, ALWAYS);
    for number in 1..=400 {
        running.publish_with_key(&format!("k{number}"), number).await.unwrap();
    }
    let before = known(&running, 400);
    machine.faults.crash(&machine.topic_directory(), |_| 0);
    let found = keep_few(&mut machine.killed(), ALWAYS);
    assert_eq!(known(&found, 400), before);
}

#[tokio::test]
async fn a_segment_stays_while_its_keys_cannot_be_kept() {
    let mut machine = Machine::new();
    let running = keep_few(&mut machine, LATER);
    for number in 1..=64 {
        running.publish_with_key(&format!("k{number}"), number).await.unwrap();
    }
    // The file of keys can be opened no more.
    let file = machine.topic_directory().join("keys");
    fs::create_dir(&file).unwrap();
    for number in 65..=300 {
        running.publish([number]).await.unwrap();
    }
    // It is tried when the last batch is acknowledged.
    while running.topic.health().is_well() {
        tokio::task::yield_now().await;
    }
    let found = machine.killed();
    fs::remove_dir(found.topic_directory().join("keys")).unwrap();
    let mut found = found;
    assert_eq!(known(&keep_few(&mut found, LATER), 64).len(), 64);
    fs::remove_dir(&file).unwrap();
    for number in 301..=310 {
        running.publish([number]).await.unwrap();
    }
    running.hub.close().unwrap();
    assert!(machine.segments().len() <= 2);
    assert_eq!(known(&keep_few(&mut machine, LATER), 64).len(), 64);
}

#[tokio::test]
async fn what_is_damaged_of_the_keys_costs_no_other() {
    let mut machine = Machine::new();
    let running = keep_few(&mut machine, LATER);
    for number in 1..=300 {
        running.publish_with_key(&format!("k{number}"), number).await.unwrap();
    }
    running.hub.close().unwrap();
    let before = known(&running, 300);
    let file = machine.topic_directory().join("keys");
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() / 52 - 1;
    bytes[last * 52 + 7] ^= 1;
    bytes.extend_from_slice(&[7; 20]);
    fs::write(&file, bytes).unwrap();
    let found = keep_few(&mut machine, LATER);
    let after = known(&found, 300);
    assert_eq!(before.iter().filter(|number| !after.contains(number)).count(), 1);
    for number in 301..=600 {
        found.publish_with_key(&format!("k{number}"), number).await.unwrap();
    }
    assert_eq!(known(&keep_few(&mut machine.killed(), LATER), 600), known(&found, 600));
}

#[tokio::test]
async fn a_batch_that_is_not_kept_costs_no_key_of_one_that_is() {
    let mut machine = Machine::new();
    let running = keep_few(&mut machine, LATER);
    let retention = Retention { bytes_max: 100_000, ..Retention::default() };
    let keys = KeyWindow { keys_max: 150, ..KeyWindow::default() };
    let options = TopicOptions { retention, keys, ..TopicOptions::default() };
    running.hub.ensure(wind(), options).unwrap();
    for number in 1..=150 {
        running.publish_with_key(&format!("k{number}"), number).await.unwrap();
    }
    machine.faults.set(|faults| faults.room = Some(0));
    for number in 151..=200 {
        running.publish_with_key(&format!("k{number}"), number).await.unwrap_err();
    }
    // Kept, it would leave room for a few keys alone.
    let data = Data::json(&"x".repeat(99_000)).unwrap();
    let large = Batch::from(NewEvent { time: at(1), data });
    running.topic.publish_kept(at(1), &large).await.unwrap_err();
    assert_eq!(known(&running, 200), (1..=150).collect::<Vec<_>>());
    machine.faults.set(|faults| faults.room = None);
    let again = running.publish_with_key("k1", 1).await.unwrap();
    assert_eq!((again.last.offset, again.repeated), (1, true));
    let next = running.publish_with_key("k151", 151).await.unwrap();
    assert_eq!((next.last.offset, next.repeated), (151, false));
    assert_eq!(known(&running, 200), (2..=151).collect::<Vec<_>>());
}

fn keep_bytes(machine: &mut Machine, bytes_max: u64) -> Running {
    let hub = machine.open(LATER);
    let retention = Retention { bytes_max, ..Retention::default() };
    let topic = hub.ensure(wind(), retention).unwrap();
    Running { hub, topic }
}

#[tokio::test]
async fn a_restart_keeps_all_events_that_fit_beside_the_keys() {
    const EVENTS: u64 = 6_000;
    const LESS: u64 = 250 << 10;
    let event = |number: u64, data: &str| {
        let batch = Batch::from(NewEvent { time: at(1), data: Data::json(&data).unwrap() });
        batch.with_key(number.to_string().parse().unwrap())
    };
    for bytes_max in [16 << 20, LESS] {
        let mut machine = Machine::new();
        let Running { hub, topic } = keep_bytes(&mut machine, bytes_max);
        let append = |number| topic.append(at(1), &event(number, &"x".repeat(60))).unwrap();
        let receipts: Vec<_> = (1..=EVENTS).map(append).collect();
        for receipt in receipts {
            receipt.await.unwrap();
        }
        hub.close().unwrap();
        let Running { hub, topic } = keep_bytes(&mut machine, LESS);
        let info = topic.info(at(1));
        // Half of the bytes are for keys, and a record takes 126.
        assert_eq!(info.first, EVENTS + 1 - LESS / 2 / 126, "of {bytes_max} bytes");
        assert!((LESS - 126..=LESS).contains(&info.bytes), "{} bytes", info.bytes);
        topic.publish_kept(at(1), &event(0, &"x".repeat(200_000))).await.unwrap();
        hub.close().unwrap();
        let info = keep_bytes(&mut machine, LESS).topic.info(at(1));
        assert_eq!(info.head.offset, EVENTS + 1);
        assert!(info.first <= info.head.offset, "a batch that is larger than half is there");
    }
}
