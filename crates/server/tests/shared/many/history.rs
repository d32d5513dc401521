//! Every way has the same history, whatever happens to the connections.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;

const TOPICS: usize = 20;
const WRITERS: u64 = 4;
const EVENTS: u64 = 40;
/// The most items before a connection is cut.
const ITEMS_MAX: usize = 60;
const RECONNECTS: usize = 300;

fn name(number: usize) -> String {
    format!("t{number}")
}

#[test]
fn all_ways_have_all_events_once_and_in_order_through_hundreds_of_cuts() {
    let fixture = Fixture::start();
    (0..TOPICS).for_each(|number| create(&fixture.hub, &name(number)));
    let cuts = AtomicUsize::new(0);
    let expected = (EVENTS * WRITERS) as usize;
    std::thread::scope(|scope| {
        let (fixture, cuts) = (&fixture, &cuts);
        let read = |way| {
            // All but the last two by a pattern.
            let query = "topic=t0&topic=t1&topic=t*&after=earliest";
            let mut random = fastrand::Rng::with_seed(way as u64);
            let mut follower = Follower::new(fixture, way, query);
            let (mut history, mut left) = (History::new(), ITEMS_MAX);
            while history.values().map(Vec::len).sum::<usize>() < TOPICS * expected {
                if let Some(item) = follower.next() {
                    note(&mut history, &item);
                }
                left -= 1;
                let is_between = follower.page.is_empty();
                if left == 0 || (is_between && random.u8(..40) == 0) {
                    if is_between {
                        follower.cut();
                        cuts.fetch_add(1, Ordering::Relaxed);
                    }
                    left = random.usize(1..ITEMS_MAX);
                }
            }
            history
        };
        let readers: Vec<_> = WAYS.map(|way| (way, scope.spawn(move || read(way)))).into();
        let write = |writer| {
            for number in 0..EVENTS {
                for topic in 0..TOPICS {
                    publish(&fixture.hub, &name(topic), &json!([writer, number]));
                }
                std::thread::yield_now();
            }
        };
        (0..WRITERS).for_each(|writer| drop(scope.spawn(move || write(writer))));
        for (way, reader) in readers {
            let history = reader.join().unwrap();
            for topic in 0..TOPICS {
                let page =
                    fixture.get(&format!("/topics/{}?after=earliest", name(topic)), &[]).json();
                let truth = page["events"].as_array().unwrap().iter();
                let truth: Vec<_> = truth
                    .map(|event| (event["offset"].as_u64().unwrap(), event["data"].clone()))
                    .collect();
                assert_eq!(truth.len(), expected);
                assert!(history[&name(topic)] == truth, "{way:?} of {}", name(topic));
            }
        }
    });
    let cuts = cuts.into_inner();
    assert!(cuts >= RECONNECTS, "{cuts} reconnects");
}

#[test]
fn each_item_has_its_topic_and_its_form() {
    let fixture = Fixture::start();
    create(&fixture.hub, "a");
    for way in WAYS {
        let mut follower = Follower::new(&fixture, way, "topic=a&topic=wind");
        follower.open();
        if follower.stream.is_some() {
            while follower.token.is_none() {
                assert_eq!(follower.next(), None);
            }
        }
        follower.page.clear();
        let position = publish(&fixture.hub, "a", &json!({"n": 1}));
        let event = follower.item();
        let time = event["time"].clone();
        let expected = json!({"topic":"a","position":position,"time":time,"data":{"n":1}});
        assert_eq!((event, time.is_number()), (expected, true), "{way:?}");
        let token = follower.token.unwrap();
        assert!(token.starts_with("$topics:ya-2,a:"), "{token}");
        assert!(token.ends_with(",wind:0"), "{token}");
    }
    let readers = || fixture.get("/topics/a/readers", &[]).json()["count"].clone();
    anemone_testing::wait_until("the end of the readers", || readers() == 0);
    let mut follower = Follower::new(&fixture, Way::Sse, "topic=a&topic=wind");
    follower.open();
    anemone_testing::wait_until("the reader", || readers() == 1);
    let list = fixture.get("/topics", &[]).json();
    assert_eq!(list["topics"][0]["readers"], 1, "{list}");
    assert_eq!(fixture.get("/topics/$topics/readers", &[]).json()["count"], 0);
}

#[test]
fn a_busy_topic_does_not_hold_up_a_quiet_one() {
    let fixture = Fixture::start();
    ["busy", "quiet"].into_iter().for_each(|name| create(&fixture.hub, name));
    (0..5_000).for_each(|number| drop(publish(&fixture.hub, "busy", &json!(number))));
    publish(&fixture.hub, "quiet", &json!("here"));
    for (way, most) in [(Way::Ndjson, 1_000), (Way::Poll, 50)] {
        let mut follower = Follower::new(&fixture, way, "topic=busy&topic=quiet&after=earliest");
        let mut before = 0;
        while follower.item()["topic"] != "quiet" {
            before += 1;
        }
        assert!(before <= most, "{before} events of the busy topic by {way:?}");
    }
    let newest = fixture.get("/topics?topic=*&mode=latest&after=earliest", &[]).json();
    let skipped = json!({"topic":"busy","skipped":4_999});
    assert_eq!(newest["notices"], json!([skipped]), "{newest}");
    assert_eq!(newest["events"].as_array().unwrap().len(), 2);
    let newest = fixture.get("/topics?topic=*", &[]).json();
    assert_eq!(newest["events"][0]["data"], 4_999, "by time: {newest}");
    assert_eq!(newest["events"][1]["data"], "here");
}
