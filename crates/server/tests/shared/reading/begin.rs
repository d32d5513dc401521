//! The beginning of reading: so many events back, or with those since a time.

use std::time::{Duration, SystemTime};

use anemone_hub::{Data, Retention, UnixTime};
use anemone_testing::Fixture;
use anemone_testing::multiplexed::{Carrier, Client};
use anemone_testing::ways::{Follower, Kind, POLL, Told, Way, each};
use serde_json::json;

/// The epoch that fixtures begin.
fn at(offset: u64) -> Told {
    Told::Position(format!("ya-{offset}"))
}

fn publish_at(fixture: &Fixture, time: UnixTime, number: u64) {
    let topic = fixture.hub.topic(&"wind".parse().unwrap()).unwrap();
    topic.publish(time, Data::json(&json!({ "n": number })).unwrap()).unwrap();
}

/// Starts a server that keeps old events.
fn old() -> Fixture {
    let retention = Retention { age_max: Duration::MAX, ..Retention::default() };
    Fixture::with(|_| {}, retention)
}

/// Asserts that a reader begins after `begin`, and that `count` events follow.
fn begins(way: &Way, fixture: &Fixture, query: &str, begin: u64, count: u64) {
    let mut reader = way.open(fixture, query);
    let mut follower = Follower::new(begin);
    if way.kind == Kind::Streaming {
        assert_eq!(reader.next(), at(begin), "{query}");
    }
    while follower.events < count {
        follower.follow(reader.next());
    }
    if count == 0 && way.kind == Kind::Polling {
        assert_eq!(reader.next(), at(begin), "{query}");
    }
}

#[test]
fn the_last_events_are_as_many_as_asked_for_or_as_there_are() {
    let retention = Retention { events_max: 20, ..Retention::default() };
    let fixture = Fixture::with(|_| {}, retention);
    each(|way| begins(way, &fixture, "after=-3", 0, 0));
    fixture.publish(1..=50);
    each(|way| {
        for (query, begin) in [
            ("after=-1", 49),
            ("after=-10", 40),
            ("after=-10&limit=3", 40),
            ("after=-20", 30),
            ("after=-21", 30),
            ("after=-999999999999999999", 30),
        ] {
            begins(way, &fixture, query, begin, 50 - begin);
        }
    });
    let page = fixture.get("/topics/wind?after=-10&limit=3", &[]);
    assert_eq!((page.numbers(), page.next()), (vec![41, 42, 43], "ya-43".to_owned()));
    let newest = fixture.get("/topics/wind?after=-10&mode=latest", &[]);
    assert_eq!((newest.numbers(), &newest.json()["skipped"]), (vec![50], &json!(9)));
}

#[test]
fn events_since_a_time_are_told_however_the_time_is_written() {
    let fixture = old();
    each(|way| begins(way, &fixture, "since=10m", 0, 0));
    // 2026-09-10T00:26:40Z and every second after that; the clock goes back before the seventh.
    let second = |second: u64| UnixTime::from_micros((1_789_000_000 + second) * 1_000_000);
    for number in 1..=10 {
        publish_at(&fixture, second(if number == 7 { 2 } else { number }), number);
    }
    each(|way| {
        for (since, begin) in [
            ("1789000000000", 0),
            ("1789000004000", 3),
            ("1789000004000.001", 4),
            ("1789000007000", 7),
            ("1789000010000.0", 9),
            ("1789000010000.001", 10),
            ("2026-09-10T00:26:44Z", 3),
            ("2026-09-10t00:26:44.5z", 4),
            ("2026-09-10T02:26:44%2B02:00", 3),
            ("2026-09-10T02:26:44+02:00", 3),
            ("2026-09-09T22:26:44-02:00", 3),
            ("2026-09-10%2000:26:44.000000000Z", 3),
            ("1969-12-31T23:59:59Z", 0),
            ("9999-12-31T23:59:59Z", 10),
            ("999999999999999d", 0),
            ("0s", 10),
        ] {
            begins(way, &fixture, &format!("since={since}"), begin, 10 - begin);
        }
    });
}

#[test]
fn how_long_ago_is_by_the_clock_of_the_server() {
    let fixture = old();
    for (number, ago) in [(1, 100_000), (2, 7_000), (3, 3_000)] {
        let time = SystemTime::now() - Duration::from_secs(ago);
        publish_at(&fixture, time.into(), number);
    }
    each(|way| {
        for (since, begin) in [
            ("2d", 0),
            ("1d", 1),
            ("2h", 1),
            ("119m", 1),
            ("1h", 2),
            ("5000s", 2),
            ("5000000ms", 2),
            ("10m", 3),
        ] {
            begins(way, &fixture, &format!("since={since}"), begin, 3 - begin);
        }
    });
}

#[test]
fn who_resumes_goes_on_where_it_was_whatever_the_url_says() {
    let fixture = Fixture::start();
    fixture.publish(1..=5);
    for query in ["since=10m", "after=-5", "after=earliest"] {
        let target = format!("/topics/wind?{query}");
        let reply = fixture.get(&target, &[("Last-Event-ID", "ya-3")]);
        assert_eq!(reply.numbers(), [4, 5], "{query}");
    }
    let last = fixture.get("/topics/wind?since=10m", &[("Last-Event-ID", "-2")]);
    assert_eq!(last.numbers(), [4, 5]);
}

#[test]
fn an_id_in_the_query_resumes_on_every_transport() {
    let fixture = Fixture::start();
    fixture.publish(1..=5);
    each(|way| {
        for query in [
            "lastEventId=ya-3",
            "after=-5&lastEventId=ya-3",
            "since=10m&evs_preamble=2056&evs_last_event_id=ya-3",
            "lastEventId=ya-1&lastEventId=ya-3",
            "lastEventId=&after=ya-3",
        ] {
            begins(way, &fixture, query, 3, 2);
        }
    });
    for (query, id) in
        [("after=ya-3", ""), ("after=-5&lastEventId=ya-3", ""), ("lastEventId=ya-1", "ya-3")]
    {
        let reply = fixture.get(&format!("/topics/wind?{query}"), &[("Last-Event-ID", id)]);
        assert_eq!(reply.numbers(), [4, 5], "{query}");
    }
    let wrong = fixture.get("/topics/wind?lastEventId=nonsense", &[]).problem(400, "bad-parameter");
    assert!(wrong.contains("Last-Event-ID"), "{wrong}");
}

#[test]
fn a_page_since_a_time_is_another_one_a_moment_later() {
    let fixture = Fixture::start();
    fixture.publish(1..=5);
    let reply = fixture.get("/topics/wind?since=10m", &[("If-None-Match", "*")]);
    assert_eq!((reply.status, reply.numbers()), (200, vec![1, 2, 3, 4, 5]));
    assert_eq!((reply.field("etag"), reply.field("cache-control")), (None, Some("no-store")));
    let reply = fixture.get("/topics/wind?after=-3", &[]);
    assert_eq!(reply.field("etag"), Some("\"1.ya-5\""));
}

#[test]
fn what_is_no_place_to_begin_is_told_so_in_these_words() {
    let fixture = Fixture::start();
    let after = |text: &str| {
        format!(
            "after must be a position, earliest, latest or -N for the last N events: {text:?} is not a \
             position: expected EPOCH-OFFSET, such as \"4zq81x-42\""
        )
    };
    let since = |text: &str| {
        format!(
            "since is {text:?}: must be an age, such as 10m or 2h (ms, s, m, h, d), or a time, such as \
             2026-11-22T10:00:00Z or 1789000000123 (milliseconds since 1970)"
        )
    };
    let long = "7".repeat(100);
    each(|way| {
        let refusal = |query: &str| {
            let target = format!("/topics/wind?{query}{}", way.query);
            way.problem(&fixture, &target, 400, "bad-parameter")
        };
        for text in ["-0", "-01", "-", "--1", "-1~", "-1000000000000000000", "-5m"] {
            assert_eq!(refusal(&format!("after={text}")), after(text));
        }
        for text in [
            "",
            "10",
            "1789000000",
            "10 m",
            "-10m",
            "1.5h",
            "1h30m",
            "10M",
            "m",
            "yesterday",
            "2026-11-22",
            "2026-11-22T10:00Z",
            "2026-11-22T10:00:00",
            "2026-13-22T10:00:00Z",
            "2026-11-22T10:00:00+1:00",
            "1789000000123.4567",
            "1789000000123.",
            "+1789000000123",
            "18446744073709551616",
            "1000000000000000d",
        ] {
            let query = format!("since={}", text.replace('+', "%2B").replace(' ', "%20"));
            assert_eq!(refusal(&query), since(text));
        }
        assert_eq!(refusal(&format!("since={long}")), since(&long[..40]));
        assert_eq!(refusal("since=1h&since=1h"), "since is given twice");
        for query in ["since=1h&after=-3", "after=latest&since=1h"] {
            let detail = "since and after both say where to begin: give only one of them";
            assert_eq!(refusal(query), detail);
        }
        assert_eq!(
            refusal("sinse=1h"),
            "sinse is not a parameter: a topic takes after, since, limit, wait, mode and frame"
        );
    });
}

#[test]
fn every_way_that_tells_more_than_data_tells_the_time() {
    let fixture = old();
    publish_at(&fixture, UnixTime::from_micros(1_789_000_000_123_456), 1);
    publish_at(&fixture, UnixTime::from_micros(1_789_000_001_000_000), 2);
    let mut stream = fixture.events("/topics/wind?after=earliest", &[]);
    assert_eq!(stream.block().unwrap(), "retry: 1000\nid: ya-0\n");
    for (position, time, number) in [("ya-1", "1789000000123.456", 1), ("ya-2", "1789000001000", 2)]
    {
        let block = format!("id: {position}\ntime: {time}\ndata: {{\"n\":{number}}}\n");
        assert_eq!(stream.block().unwrap(), block);
    }
    for carrier in [Carrier::WebSocket, Carrier::Tcp] {
        let mut client = Client::open(carrier, &fixture);
        client.send("GET r /topics/wind?after=earliest");
        for expected in [
            "100 r ya-0",
            "206 r ya-1 1789000000123.456\n{\"n\":1}",
            "206 r ya-2 1789000001000\n{\"n\":2}",
        ] {
            assert_eq!(client.message().unwrap(), expected);
        }
    }
    let page = fixture.get("/topics/wind?after=earliest", POLL.fields).json();
    assert_eq!(page["events"][0]["time"], json!(1_789_000_000_123.456));
}
