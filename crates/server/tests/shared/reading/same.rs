//! Reading is the same whichever way a topic is read.

use std::num::NonZero;
use std::sync::Barrier;
use std::thread;
use std::time::SystemTime;

use anemone_hub::{Data, Retention, TopicName};
use anemone_testing::Fixture;
use anemone_testing::ways::{ALL, EVENTS, Follower, Kind, Reading, STREAMS, Told, each};
use serde_json::json;

#[test]
fn an_empty_topic_gives_a_position_to_go_on_from() {
    let fixture = Fixture::start();
    each(|way| {
        for query in ["", "after=latest", "after=earliest", "mode=latest"] {
            let mut reader = way.open(&fixture, query);
            if way.kind != Kind::Plain {
                assert_eq!(reader.next(), Told::Position("ya-0".to_owned()), "{query:?}");
            }
        }
    });
}

#[test]
fn events_come_in_order_from_wherever_one_begins() {
    let fixture = Fixture::start();
    fixture.publish(1..=50);
    each(|way| {
        for (query, begin, count) in [
            ("after=earliest", 0, 50),
            ("after=earliest&limit=1", 0, 50),
            ("after=ya-0", 0, 50),
            ("after=ya-17&limit=7", 17, 33),
            ("after=ya-49", 49, 1),
        ] {
            let mut reader = way.open(&fixture, query);
            let mut follower = Follower::new(begin);
            while follower.events < count {
                follower.follow(reader.next());
            }
        }
    });
}

#[test]
fn what_comes_later_is_read_by_all_at_the_same_positions() {
    let fixture = Fixture::start();
    fixture.publish(1..=3);
    let opened = Barrier::new(ALL.len() + 1);
    let published = Barrier::new(ALL.len() + 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            opened.wait();
            fixture.publish(4..=103);
            published.wait();
        });
        each(|way| {
            let mut reader = way.open(&fixture, "after=latest");
            let mut follower = Follower::new(3);
            if way.kind != Kind::Plain {
                follower.follow(reader.next());
            }
            opened.wait();
            published.wait();
            while follower.events < 100 {
                follower.follow(reader.next());
            }
        });
    });
}

#[test]
fn what_is_no_longer_kept_is_told_before_anything_else() {
    let retention = Retention { events_max: 2, ..Retention::default() };
    let fixture = Fixture::with(|_| {}, retention);
    fixture.publish(1..=5);
    let gap = json!({ "reason": "retention", "after": "ya-1", "missed": 2, "resume": "ya-3" });
    each(|way| {
        let mut reader = way.open(&fixture, "after=ya-1");
        assert_eq!(first_notice(&mut *reader, "ya-1"), Told::Gap(gap.clone()));
        let mut follower = Follower::new(3);
        follower.follow(reader.next());
        follower.follow(reader.next());
    });
}

#[test]
fn a_position_of_another_epoch_is_a_gap_of_unknown_length() {
    let fixture = Fixture::start();
    let gap = |resume: &str| {
        Told::Gap(json!({ "reason": "epoch", "after": "zz-7", "missed": null, "resume": resume }))
    };
    // Sent at once, even if there is nothing else to send.
    each(|way| {
        assert_eq!(first_notice(&mut *way.open(&fixture, "after=zz-7"), "zz-7"), gap("ya-0"));
    });
    fixture.publish(1..=2);
    each(|way| {
        let mut reader = way.open(&fixture, "after=zz-7");
        assert_eq!(first_notice(&mut *reader, "zz-7"), gap("ya-0"));
        let mut follower = Follower::new(0);
        follower.follow(reader.next());
        follower.follow(reader.next());
    });
}

/// Returns the first notice, after the requested position if that is repeated.
fn first_notice(reader: &mut dyn Reading, position: &str) -> Told {
    match reader.next() {
        Told::Position(begin) => {
            assert_eq!(begin, position);
            reader.next()
        }
        told => told,
    }
}

#[test]
fn when_the_server_stops_every_stream_ends() {
    let mut fixture = Fixture::start();
    fixture.publish(1..=1);
    let mut readers: Vec<_> = STREAMS
        .into_iter()
        .map(|way| {
            let mut reader = way.open(&fixture, "after=ya-0");
            let mut follower = Follower::new(0);
            while follower.events < 1 {
                follower.follow(reader.next());
            }
            (way, reader)
        })
        .collect();
    fixture.stop_while(move || {
        for (way, reader) in &mut readers {
            assert_eq!(reader.next(), way.stopped(), "{}", way.name);
        }
    });
}

#[test]
fn when_a_topic_is_deleted_its_streams_say_so_and_end() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let readers = STREAMS.into_iter().flat_map(|way| {
        ["after=ya-0", "after=ya-0&mode=latest"].map(|query| {
            let mut reader = way.open(&fixture, query);
            let mut follower = Follower::new(0);
            while follower.offset < 2 {
                follower.follow(reader.next());
            }
            (way, reader)
        })
    });
    let readers: Vec<_> = readers.collect();
    fixture.hub.delete(&"wind".parse().unwrap()).unwrap();
    for (way, mut reader) in readers {
        assert_eq!(reader.next(), Told::Deleted, "{}", way.name);
        assert_eq!(reader.next(), way.deleted(), "{}", way.name);
    }
    each(|way| {
        let target = format!("/topics/wind?after=ya-2{}", way.query);
        way.problem(&fixture, &target, 404, "unknown-topic");
    });
}

#[test]
fn one_of_the_same_name_is_another_topic() {
    let fixture = Fixture::with(|options| options.threads = NonZero::new(1), Retention::default());
    fixture.publish(1..=2);
    // Its reader does not read, and so is still there when the next topic is.
    let mut before = EVENTS.open(&fixture, "after=ya-0");
    let name: TopicName = "wind".parse().unwrap();
    fixture.hub.delete(&name).unwrap();
    let wind = fixture.hub.create(name, Retention::default()).unwrap();
    each(|way| {
        let mut reader = way.open(&fixture, "after=earliest");
        if way.kind != Kind::Plain {
            reader.next();
        }
    });
    let data = Data::json(&json!({ "n": 1 })).unwrap();
    wind.publish(SystemTime::now().into(), data).unwrap();
    each(|way| {
        let mut reader = way.open(&fixture, "after=earliest");
        let event = loop {
            match reader.next() {
                Told::Position(_) => {}
                told => break told,
            }
        };
        assert!(matches!(event, Told::Event { data, .. } if data["n"] == 1));
    });
    while !matches!(before.next(), Told::End(_)) {}
}
