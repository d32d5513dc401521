//! Topics that are created, deleted, and too slow to read, while they are read with others.

use anemone_server::{PublishRight, SlowReader, TopicRule, TopicRules};
use anemone_testing::wait_for;
use serde_json::json;

use super::*;

const ROUNDS: u64 = 12;

#[test]
fn a_topic_joins_with_its_first_event_leaves_when_deleted_and_comes_back() {
    for way in WAYS {
        let fixture = Fixture::start();
        let mut follower = Follower::new(&fixture, way, "topic=wind&topic=c*");
        follower.open();
        while follower.token.is_none() {
            follower.next();
        }
        let mut random = fastrand::Rng::with_seed(way as u64);
        for round in 0..ROUNDS {
            let name = format!("c{}", round % 3);
            create(&fixture.hub, &name);
            create(&fixture.hub, &format!("other{round}"));
            publish(&fixture.hub, &name, &json!([round, 1]));
            publish(&fixture.hub, &name, &json!([round, 2]));
            for number in [1, 2] {
                let event = follower.item();
                assert_eq!(
                    (&event["topic"], &event["data"]),
                    (&json!(name), &json!([round, number])),
                    "{way:?}"
                );
                if random.bool() && follower.page.is_empty() {
                    follower.cut();
                }
            }
            fixture.hub.delete(&name.parse().unwrap()).unwrap();
            let end = follower.item();
            assert_eq!(end, json!({"topic":name,"end":{"reason":"deleted"}}), "{way:?}");
            assert!(!follower.token.as_ref().unwrap().contains(&name));
            if random.bool() {
                follower.cut();
            }
        }
        // What was created and deleted while nobody was there is told.
        follower.cut();
        create(&fixture.hub, "c9");
        fixture.hub.delete(&"c9".parse().unwrap()).unwrap();
        fixture.publish(1..=1);
        let both = [follower.item(), follower.item()];
        assert!(both.contains(&json!({"topic":"c9","end":{"reason":"deleted"}})), "{both:?}");
        assert!(both.iter().any(|item| item["topic"] == "wind"), "{both:?}");
    }
}

#[test]
fn a_named_topic_comes_back_too_and_an_awaited_one_comes() {
    let rule =
        TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("s-*".parse().unwrap()) };
    let rules = TopicRules::new([rule]).unwrap();
    let fixture = Fixture::with(|options| options.topics = rules, Retention::default());
    create(&fixture.hub, "a");
    let mut follower = Follower::new(&fixture, Way::Sse, "topic=a&topic=s-1");
    follower.open();
    assert_eq!(follower.next(), None);
    fixture.hub.delete(&"a".parse().unwrap()).unwrap();
    assert_eq!(follower.item()["end"]["reason"], "deleted");
    follower.cut();
    follower.open();
    assert_eq!(follower.next(), None);
    create(&fixture.hub, "a");
    publish(&fixture.hub, "a", &json!("back"));
    assert_eq!(follower.item()["data"], "back");
    create(&fixture.hub, "s-1");
    publish(&fixture.hub, "s-1", &json!("first"));
    let first = follower.item();
    assert_eq!((&first["topic"], &first["data"]), (&json!("s-1"), &json!("first")));
    fixture.get("/topics?topic=wind&topic=nothing", &[]).problem(404, "unknown-topic");
}

#[test]
fn each_topic_treats_slow_readers_as_it_does_alone() {
    let retention = Retention { events_max: 5, ..Retention::default() };
    let rules =
        [("strict", SlowReader::Close), ("kind", SlowReader::Gap)].map(|(name, slow_reader)| {
            TopicRule { retention, slow_reader, ..TopicRule::new(name.parse().unwrap()) }
        });
    let fixture = Fixture::with(
        |options| options.topics = TopicRules::new(rules).unwrap(),
        Retention::default(),
    );
    let mut follower = Follower::new(&fixture, Way::Poll, "topic=strict&topic=kind&topic=wind");
    follower.open();
    for number in 0..20 {
        for name in ["strict", "kind"] {
            publish(&fixture.hub, name, &json!(number));
        }
    }
    let mut items = Vec::new();
    while items.len() < 7 {
        items.extend(follower.next());
    }
    let gap = items.iter().find(|item| item["topic"] == "kind").unwrap();
    assert_eq!(gap["gap"]["missed"], 15, "{items:?}");
    let end = items.iter().find(|item| item["topic"] == "strict").unwrap();
    assert_eq!(end["end"]["reason"], "too-slow", "{items:?}");
    assert_eq!(end["end"]["gap"]["missed"], 15);
    assert!(follower.token.as_ref().unwrap().contains("strict:15~"), "{:?}", follower.token);
    let next = wait_for("the strict one", || follower.next());
    assert_eq!((&next["topic"], &next["data"]), (&json!("strict"), &json!(15)), "{next}");
}

#[test]
fn what_quiet_topics_leave_of_a_page_goes_to_busy_ones() {
    let fixture = Fixture::start();
    let names: Vec<String> = (0..60).map(|number| format!("q{number:02}")).collect();
    for name in names.iter().map(String::as_str).chain(["busy", "busier"]) {
        create(&fixture.hub, name);
        publish(&fixture.hub, name, &json!(0));
    }
    let page = |token: &str, limit: usize| {
        let target = format!("/topics?topic=q*&topic=bus*&limit={limit}&after={token}");
        let page = fixture.get(&target, &[]).json();
        let count = |topic: &str| {
            page["events"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|event| event["topic"] == topic)
                .count()
        };
        let counts = ["busy", "busier", "q07", "q08"].map(count);
        (
            page["events"].as_array().unwrap().len(),
            counts,
            page["next"].as_str().unwrap().to_owned(),
        )
    };
    let (none, _, mut token) = page("latest", 500);
    assert_eq!(none, 0);
    for number in 1..=600 {
        publish(&fixture.hub, "busy", &json!(number));
    }
    assert_eq!(page(&token, 500).0, 500, "topics without news take nothing");
    for number in 1..=300 {
        publish(&fixture.hub, "busier", &json!(number));
    }
    for name in &names[..10] {
        publish(&fixture.hub, name, &json!(1));
    }
    // A turn is in the order of time, so the quiet ones, which came last, are in the last page.
    let mut total = [0; 4];
    let mut pages = Vec::new();
    while total.iter().sum::<usize>() < 902 {
        let (events, counts, next) = page(&token, 500);
        assert!(events > 0, "{pages:?}");
        total = [0, 1, 2, 3].map(|topic| total[topic] + counts[topic]);
        pages.push(events);
        token = next;
    }
    assert_eq!(total, [600, 300, 1, 1]);
    assert_eq!(pages, [500, 410]);
}

#[test]
fn other_topics_of_the_index_do_not_pace_a_page() {
    let fixture = Fixture::start();
    let fetch =
        |after: &str| fixture.get(&format!("/topics?topic=c*&limit=1&after={after}"), &[]).json();
    let token = fetch("latest")["next"].as_str().unwrap().to_owned();
    for number in 0..200 {
        create(&fixture.hub, &format!("other{number}"));
    }
    create(&fixture.hub, "c1");
    publish(&fixture.hub, "c1", &json!(1));
    let page = fetch(&token);
    assert_eq!(page["events"][0]["topic"], "c1", "{page}");
    assert_eq!(page["next"], "$topics:ya-202,c1:1", "all of the index is behind it");
}

#[test]
fn a_deletion_is_told_however_often_the_stream_is_cut_before() {
    for way in [Way::Sse, Way::Ndjson, Way::Frame] {
        let fixture = Fixture::start();
        let mut follower = Follower::new(&fixture, way, "topic=wind&topic=c*");
        for name in ["c1", "c2", "c3"] {
            create(&fixture.hub, name);
            publish(&fixture.hub, name, &json!(1));
        }
        follower.open();
        while follower.token.as_ref().is_none_or(|token| !token.contains("c3")) {
            follower.next();
        }
        follower.cut();
        let delete = |name: &str| fixture.hub.delete(&name.parse().unwrap()).unwrap();
        ["c1", "c2", "c3"].into_iter().for_each(delete);
        // These are known from the index alone.
        for name in ["c4", "c5"] {
            create(&fixture.hub, name);
            delete(name);
        }
        let mut told = std::collections::BTreeSet::new();
        while told.len() < 5 {
            // One more at each connection.
            follower.open();
            let item = follower.item();
            assert_eq!(item["end"]["reason"], "deleted", "{way:?}: {item}");
            let mut is_new = told.insert(item["topic"].as_str().unwrap().to_owned());
            while !is_new {
                is_new = told.insert(follower.item()["topic"].as_str().unwrap().to_owned());
            }
            follower.cut();
            // Only the beginning is heard.
            follower.open();
            assert_eq!(follower.next(), None);
            follower.cut();
        }
    }
}

#[test]
fn a_long_token_takes_no_more_bytes_than_the_events() {
    let fixture = Fixture::start();
    let names: Vec<String> = (0..100).map(|number| format!("q{number:02}")).collect();
    for name in &names {
        create(&fixture.hub, name);
    }
    let mut follower = Follower::new(&fixture, Way::Sse, "topic=q*");
    follower.open();
    assert_eq!(follower.next(), None);
    let token_bytes = follower.token.as_ref().unwrap().len();
    assert!(token_bytes > 500, "{token_bytes}");
    for number in 0..5 {
        for name in &names {
            publish(&fixture.hub, name, &json!(number));
        }
    }
    let (mut events, mut event_bytes, mut tokens) = (0, 0, 0);
    let mut token = follower.token.clone();
    let last = loop {
        let item = follower.next_item();
        if follower.token != token {
            (token, tokens) = (follower.token.clone(), tokens + 1);
        }
        let Some(item) = item else {
            // An id alone, which follows the last event of a turn.
            match events {
                500 => break follower.token.clone().unwrap(),
                _ => continue,
            }
        };
        events += 1;
        event_bytes += item.to_string().len() + 20;
    };
    assert!(tokens * token_bytes <= event_bytes + 8 * token_bytes, "{tokens} for {event_bytes}");
    let next = fixture.get(&format!("/topics?topic=q*&after={last}"), &[]).json();
    assert_eq!(next["events"], json!([]), "the last token is after the last event");
}
