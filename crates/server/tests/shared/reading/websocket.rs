//! Plain WebSocket, and what its readers share.

use std::num::NonZero;

use anemone_hub::Retention;
use anemone_testing::{Fixture, Socket};

#[test]
fn a_plain_websocket_carries_data_and_nothing_else() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let mut socket = fixture.websocket("/topics/wind?after=earliest", &[], &[]);
    assert_eq!(socket.subprotocol, None);
    assert_eq!(socket.next(), r#"{"n":1}"#);
    assert_eq!(socket.next(), r#"{"n":2}"#);
    fixture.publish(3..=3);
    assert_eq!(socket.next(), r#"{"n":3}"#);
}

#[test]
fn the_events_subprotocol_adds_positions() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    let mut socket = fixture.websocket("/topics/wind", &["unknown", "anemone.events"], &[]);
    assert_eq!(socket.subprotocol.as_deref(), Some("anemone.events"));
    assert_eq!(socket.next(), r#"{"position":"ya-1"}"#, "a position before any event");
    fixture.publish(2..=2);
    let event = socket.json();
    assert_eq!((&event["position"], &event["data"]["n"]), (&"ya-2".into(), &2.into()));
    let mut resumed = fixture.websocket("/topics/wind?after=ya-1", &["anemone.events"], &[]);
    assert_eq!(resumed.json()["position"], "ya-1");
    assert_eq!(resumed.json(), event, "the same event at the same position");
}

#[test]
fn when_the_server_stops_a_websocket_is_told_so() {
    let mut fixture = Fixture::start();
    let mut socket = fixture.websocket("/topics/wind", &[], &[]);
    fixture.stop_while(move || {
        assert_eq!(socket.next(), "close 1001 the server is stopping");
        assert_eq!(socket.next(), "end of stream");
    });
}

fn one_thread(retention: Retention) -> Fixture {
    Fixture::with(|options| options.threads = NonZero::new(1), retention)
}

/// The numbers up to one that comes, and the skipped between them as negative ones.
fn numbers(socket: &mut Socket, last: u64) -> Vec<i64> {
    let mut numbers = Vec::new();
    while numbers.last() != Some(&(last as i64)) {
        let message = socket.json();
        let data = if message["data"].is_null() { &message } else { &message["data"] };
        match (data["n"].as_i64(), message["skipped"].as_i64()) {
            (Some(number), _) => numbers.push(number),
            (_, Some(skipped)) => numbers.push(-skipped),
            _ => assert!(!message["position"].is_null(), "{message}"),
        }
    }
    numbers
}

#[test]
fn readers_at_one_place_are_each_served_in_their_own_form() {
    let fixture = one_thread(Retention::default());
    let open = |query: &str, subprotocols: &[&str]| {
        (0..5)
            .map(|_| fixture.websocket(&format!("/topics/wind?{query}"), subprotocols, &[]))
            .collect::<Vec<_>>()
    };
    let mut all = open("", &[]);
    all.extend(open("after=ya-0", &["anemone.events"]));
    all.extend(open("limit=2", &[]));
    all.extend((0..5).map(|_| fixture.compressed("/topics/wind")));
    let mut latest = open("mode=latest", &[]);
    latest.extend(open("mode=latest&limit=3", &["anemone.events"]));
    for round in 0..20 {
        let (first, last) = (round * 7 + 1, round * 7 + 7);
        fixture.publish(first..=last);
        for socket in &mut all {
            assert_eq!(numbers(socket, last), (first as i64..=last as i64).collect::<Vec<_>>());
        }
        for socket in &mut latest {
            let numbers = numbers(socket, last);
            if socket.subprotocol.is_none() {
                let in_order = numbers.is_sorted() && numbers[0] >= first as i64;
                assert!(in_order, "data and nothing else: {numbers:?}");
                continue;
            }
            let counted: i64 = numbers.iter().map(|n| if *n < 0 { -n } else { 1 }).sum();
            assert_eq!(counted, 7, "{numbers:?}");
        }
    }
}

#[test]
fn readers_at_different_places_do_not_mix() {
    let fixture = one_thread(Retention::default());
    fixture.publish(1..=100);
    let mut sockets: Vec<_> = (0..=100)
        .map(|offset| {
            fixture.websocket(&format!("/topics/wind?after=ya-{offset}&limit=9"), &[], &[])
        })
        .collect();
    fixture.publish(101..=101);
    for (offset, socket) in sockets.iter_mut().enumerate() {
        assert_eq!(numbers(socket, 101), (offset as i64 + 1..=101).collect::<Vec<_>>());
    }
}

#[test]
fn readers_who_were_all_away_are_told_of_the_same_gap() {
    let fixture = one_thread(Retention { events_max: 3, ..Retention::default() });
    fixture.publish(1..=10);
    let mut sockets: Vec<_> =
        (0..5).map(|_| fixture.websocket("/topics/wind?after=ya-2", &[], &[])).collect();
    for socket in &mut sockets {
        assert_eq!(socket.next(), "close 4000 gap: retention, missed 5, resume ya-7");
    }
    let open = || fixture.websocket("/topics/wind?after=ya-2", &["anemone.events"], &[]);
    let mut sockets: Vec<_> = (0..5).map(|_| open()).collect();
    for socket in &mut sockets {
        assert_eq!(socket.json()["position"], "ya-2");
        assert_eq!(socket.json()["gap"]["missed"], 5);
        assert_eq!(numbers(socket, 10), [8, 9, 10]);
    }
}

#[test]
fn a_plain_websocket_is_closed_where_events_are_missing_and_goes_on_where_the_reason_says() {
    let fixture = one_thread(Retention { events_max: 3, ..Retention::default() });
    fixture.publish(1..=10);
    for (after, words) in [
        ("ya-2", "retention, missed 5, resume ya-7"),
        ("zz-7", "epoch, missed unknown, resume ya-7"),
    ] {
        let mut socket = fixture.websocket(&format!("/topics/wind?after={after}"), &[], &[]);
        assert_eq!(socket.next(), format!("close 4000 gap: {words}"));
        let (_, resume) = words.split_once("resume ").unwrap();
        let mut socket = fixture.websocket(&format!("/topics/wind?after={resume}"), &[], &[]);
        assert_eq!(numbers(&mut socket, 10), [8, 9, 10]);
        // A reader of only the newest event gets no gap for skipped events.
        let target = format!("/topics/wind?after={after}&mode=latest");
        assert_eq!(fixture.websocket(&target, &[], &[]).next(), r#"{"n":10}"#);
    }
    let mut socket = fixture.websocket("/topics/wind", &[], &[]);
    fixture.hub.delete(&"wind".parse().unwrap()).unwrap();
    assert_eq!(socket.next(), "close 4001 the topic was deleted");
}
