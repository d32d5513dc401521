//! Readers: many on one connection, each with its own position.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use anemone_hub::{Data, Retention, Topic};
use anemone_testing::multiplexed::{BOTH, Client};

use crate::multiplexed::{start, started, with_limits};

/// Returns the numbers that each request received, until there are that many.
fn numbers(client: &mut Client, count: usize) -> HashMap<String, Vec<u64>> {
    let mut numbers: HashMap<String, Vec<u64>> = HashMap::new();
    for _ in 0..count {
        let reply = client.next();
        numbers.entry(reply.id.clone()).or_default().push(reply.number());
    }
    numbers
}

#[test]
fn a_reader_is_told_where_it_begins_and_then_every_event() {
    let fixture = started();
    for carrier in BOTH {
        let begin = fixture.publish(1..=1);
        let mut client = Client::open(carrier, &fixture);
        client.ask("GET 8 /topics/wind").is_line(100, "8", &begin);
        let next = fixture.publish(2..=2);
        let event = client.next();
        assert_eq!((event.status, &*event.id, event.position.as_ref()), (206, "8", Some(&next)));
        assert_eq!(event.payload, r#"{"n":2}"#);
    }
}

#[test]
fn readers_of_one_connection_each_have_their_own_position_and_order() {
    for carrier in BOTH {
        let fixture = started();
        let rain = fixture.hub.create("rain".parse().unwrap(), Retention::default()).unwrap();
        fixture.publish(1..=5);
        let mut client = Client::open(carrier, &fixture);
        let readers = [
            ("all", "wind?after=earliest", "ya-0"),
            ("some", "wind?after=ya-3&limit=2", "ya-3"),
            ("new", "wind", "ya-5"),
            ("rain", "rain", "ya-0"),
        ];
        let requests = readers.map(|(id, target, _)| format!("GET {id} /topics/{target}"));
        client.send_all(&requests);
        for (id, _, begin) in readers {
            client.next().is_line(100, id, begin);
        }
        let told = numbers(&mut client, 7);
        assert_eq!((&told["all"][..], &told["some"][..]), (&[1, 2, 3, 4, 5][..], &[4, 5][..]));
        publish(&rain, 100);
        assert_eq!(numbers(&mut client, 1)["rain"], [100]);
        fixture.publish(6..=8);
        let told = numbers(&mut client, 9);
        for id in ["all", "some", "new"] {
            assert_eq!(told[id], [6, 7, 8], "{id}");
        }
    }
}

fn publish(topic: &Topic, number: u64) {
    let data = Data::json(&serde_json::json!({ "n": number })).unwrap();
    topic.publish(SystemTime::now().into(), data).unwrap();
}

#[test]
fn nothing_is_lost_or_told_twice_over_reconnects() {
    let fixture = started();
    for carrier in BOTH {
        let mut position = fixture.publish(0..=0);
        let mut seen = Vec::new();
        for round in 0..20 {
            let mut client = Client::open(carrier, &fixture);
            client
                .ask(&format!("GET r /topics/wind?after={position}"))
                .is_line(100, "r", &position);
            fixture.publish(round * 10 + 1..=round * 10 + 10);
            for _ in 0..1 + round % 12 {
                if seen.len() as u64 == round * 10 + 10 {
                    break;
                }
                let reply = client.next();
                seen.push(reply.number());
                position = reply.position.unwrap();
            }
        }
        let mut client = Client::open(carrier, &fixture);
        client.ask(&format!("GET r /topics/wind?after={position}"));
        while seen.len() < 200 {
            seen.push(client.next().number());
        }
        assert_eq!(seen, (1..=200).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_missing_is_told_before_anything_else() {
    let retention = Retention { events_max: 2, ..Retention::default() };
    let fixture = start(|_| {}, retention);
    fixture.publish(1..=5);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.ask("GET r /topics/wind?after=ya-1").is_line(100, "r", "ya-1");
        let gap = client.next();
        assert_eq!((gap.status, gap.position.as_deref()), (110, Some("ya-3")));
        let expected = serde_json::json!({ "gap": {
            "reason": "retention", "after": "ya-1", "missed": 2, "resume": "ya-3"
        } });
        assert_eq!(gap.json(), expected);
        assert_eq!(numbers(&mut client, 2)["r"], [4, 5]);
        client.ask("GET e /topics/wind?after=zz-7").is_line(100, "e", "zz-7");
        let gap = client.next();
        assert_eq!((gap.status, &gap.json()["gap"]["reason"]), (110, &"epoch".into()));
        assert_eq!(numbers(&mut client, 2)["e"], [4, 5]);
    }
}

#[test]
fn a_reader_of_the_latest_is_told_what_it_skips() {
    let fixture = started();
    fixture.publish(1..=5);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.ask("GET r /topics/wind?after=ya-1&mode=latest").is_line(100, "r", "ya-1");
        let notice = client.next();
        assert_eq!((notice.status, notice.position.as_deref()), (110, Some("ya-4")));
        assert_eq!(notice.payload, r#"{"skipped":3}"#);
        assert_eq!(client.next().number(), 5);
    }
}

#[test]
fn a_cancelled_reader_is_told_nothing_more_and_others_go_on() {
    let fixture = started();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for id in ["a", "b", "c"] {
            assert_eq!(client.ask(&format!("GET {id} /topics/wind")).status, 100);
        }
        client.ask("CANCEL b").is_line(204, "b", "");
        fixture.publish(1..=2);
        let told = numbers(&mut client, 4);
        assert_eq!(
            (&told["a"][..], &told["c"][..], told.get("b")),
            (&[1, 2][..], &[1, 2][..], None)
        );
        client.ask("CANCEL a").is_line(204, "a", "");
        client.ask("CANCEL c").is_line(204, "c", "");
        fixture.publish(3..=3);
        assert_eq!(client.ask("GET c /clock").status, 200);
    }
}

#[test]
fn a_reader_of_a_deleted_topic_is_told_and_has_its_final_status() {
    for carrier in BOTH {
        let fixture = started();
        fixture.publish(1..=1);
        let mut client = Client::open(carrier, &fixture);
        client.ask("GET a /topics/wind").is_line(100, "a", "ya-1");
        client.ask("GET b /topics/wind").is_line(100, "b", "ya-1");
        fixture.hub.delete(&"wind".parse().unwrap()).unwrap();
        let mut ended = Vec::new();
        for _ in 0..2 {
            let notice = client.next();
            assert_eq!((notice.status, notice.position.as_deref()), (110, Some("ya-1")));
            assert_eq!(notice.payload, r#"{"end":{"reason":"deleted"}}"#);
            client.next().problem(410, &notice.id, "topic-deleted");
            ended.push(notice.id);
        }
        ended.sort();
        assert_eq!(ended, ["a", "b"]);
        client.ask("GET a /topics/wind").problem(404, "a", "unknown-topic");
    }
}

#[test]
fn a_quiet_reader_shows_that_it_is_alive_and_a_busy_one_need_not() {
    let fixture = with_limits(|limits| limits.heartbeat = Duration::from_millis(30));
    fixture.publish(1..=1);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let begun = Instant::now();
        client.ask("GET r /topics/wind?after=ya-0");
        assert_eq!(client.next().number(), 1);
        let position = client.next();
        assert_eq!((position.status, &*position.id, &*position.payload), (100, "r", ""));
        assert!(begun.elapsed() >= Duration::from_millis(26));
        assert_eq!(client.next(), position, "and again");
        client.send("CANCEL r");
        while client.next().status != 204 {}
    }
}

#[test]
fn a_thousand_readers_on_one_connection_are_all_told() {
    let fixture = started();
    let topics: Vec<_> = (0..10)
        .map(|n| {
            fixture.hub.create(format!("t{n}").parse().unwrap(), Retention::default()).unwrap()
        })
        .collect();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let requests: Vec<String> =
            (0..1000).map(|id| format!("GET {id} /topics/t{}?after=latest", id % 10)).collect();
        client.send_all(&requests);
        for _ in 0..1000 {
            assert_eq!(client.next().status, 100);
        }
        for number in 1..=3 {
            topics.iter().for_each(|topic| publish(topic, number));
        }
        let told = numbers(&mut client, 3000);
        assert_eq!(told.len(), 1000);
        assert!(told.values().all(|numbers| numbers == &[1, 2, 3]));
    }
}

#[test]
fn connections_read_the_same_topics_side_by_side() {
    let fixture = started();
    let mut clients: Vec<Client> = (0..20).map(|n| Client::open(BOTH[n % 2], &fixture)).collect();
    for client in &mut clients {
        assert_eq!(client.ask("GET r /topics/wind").status, 100);
        assert_eq!(client.ask("GET s /topics/wind").status, 100);
    }
    let gone = clients.split_off(10);
    drop(gone);
    fixture.publish(1..=3);
    for client in &mut clients {
        let told = numbers(client, 6);
        assert_eq!((&told["r"][..], &told["s"][..]), (&[1, 2, 3][..], &[1, 2, 3][..]));
    }
}
