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
