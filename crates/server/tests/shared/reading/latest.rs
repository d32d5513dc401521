//! `mode=latest`: a reader that is behind gets the newest event, and the number of skipped ones.

use anemone_hub::Retention;
use anemone_testing::Fixture;
use anemone_testing::ways::{Follower, Kind, STREAMS, Told, each, each_of};
use serde_json::json;

#[test]
fn who_is_behind_gets_the_newest_and_the_count_of_the_others() {
    let fixture = Fixture::start();
    fixture.publish(1..=10);
    each(|way| {
        for (after, skipped) in [(0, 9), (5, 4), (8, 1), (9, 0)] {
            let mut reader = way.open(&fixture, &format!("mode=latest&after=ya-{after}"));
            if way.kind != Kind::Plain {
                assert_eq!(reader.next(), Told::Position(format!("ya-{after}")));
            }
            if skipped > 0 {
                assert_eq!(reader.next(), Told::Skipped(skipped), "after {after}");
            }
            assert!(matches!(reader.next(), Told::Event { data, .. } if data["n"] == 10));
        }
    });
}

#[test]
fn who_keeps_up_gets_every_event_and_no_notices() {
    each(|way| {
        let fixture = Fixture::start();
        let mut reader = way.open(&fixture, "mode=latest&after=ya-0");
        let mut follower = Follower::new(0);
        for number in 1..=20 {
            fixture.publish(number..=number);
            while follower.offset < number {
                follower.follow(reader.next());
            }
        }
        assert_eq!((follower.events, follower.skipped_in_all), (20, 0));
    });
}

#[test]
fn a_gap_counts_first_and_what_is_kept_and_passed_over_is_skipped() {
    let retention = Retention { events_max: 4, ..Retention::default() };
    let fixture = Fixture::with(|_| {}, retention);
    fixture.publish(1..=10);
    each(|way| {
        for (after, gap) in [
            (
                "ya-2",
                json!({ "reason": "retention", "after": "ya-2", "missed": 4, "resume": "ya-6" }),
            ),
            (
                "zz-7",
                json!({ "reason": "epoch", "after": "zz-7", "missed": null, "resume": "ya-6" }),
            ),
        ] {
            let mut reader = way.open(&fixture, &format!("mode=latest&after={after}"));
            if way.kind == Kind::Plain {
                // Gets no gap for skipped events; the numbers show them.
                assert!(matches!(reader.next(), Told::Skipped(_)));
            } else {
                assert_eq!(reader.next(), Told::Position(after.to_owned()));
                assert_eq!(reader.next(), Told::Gap(gap));
                assert_eq!(reader.next(), Told::Skipped(3));
            }
            assert!(matches!(reader.next(), Told::Event { data, .. } if data["n"] == 10));
        }
    });
}

#[test]
fn without_a_position_it_begins_where_every_reader_does() {
    let fixture = Fixture::start();
    fixture.publish(1..=3);
    let page = fixture.get("/topics/wind?mode=latest", &[]);
    assert_eq!((page.numbers(), page.next()), (vec![3], "ya-3".to_owned()));
    assert!(page.json()["skipped"].is_null());
    let page = fixture.get("/topics/wind?mode=latest&after=earliest", &[]);
    assert_eq!((page.numbers(), &page.json()["skipped"]), (vec![3], &json!(2)));
    let page = fixture.get("/topics/wind?mode=latest&after=latest", &[]);
    assert_eq!((page.numbers(), page.next()), (vec![], "ya-3".to_owned()));
    each_of(&STREAMS, |way| {
        let mut reader = way.open(&fixture, "mode=latest");
        if way.kind != Kind::Plain {
            assert_eq!(reader.next(), Told::Position("ya-3".to_owned()));
        }
    });
}

#[test]
fn who_does_not_read_for_a_while_is_not_given_what_is_old() {
    each_of(&STREAMS, |way| {
        let retention = Retention { bytes_max: 64 << 20, ..Retention::default() };
        let fixture = Fixture::with(crate::reading::slow::patient, retention);
        let mut reader = way.open(&fixture, "mode=latest&after=ya-0");
        // More than the sockets hold.
        let count = 150;
        crate::reading::slow::publish_large(&fixture, 1..=count);
        let mut follower = Follower::new(0);
        while follower.offset < count {
            follower.follow(reader.next());
        }
        assert!(follower.skipped_in_all > 0, "{follower:?}");
        assert_eq!(follower.events + follower.skipped_in_all, count);
    });
}
