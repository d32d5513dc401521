//! Creates as many topics as one pattern may have. Runs alone in its process, because it measures what they take.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::SystemTime;

use anemone_hub::{Data, Retention};
use anemone_server::{PublishRight, TopicRule, TopicRules};
use anemone_testing::multiplexed::{Carrier, Client};
use anemone_testing::ways::{ALL, Follower, each};
use anemone_testing::{Fixture, resident_bytes};
use serde_json::json;

/// A pattern's default limit.
const TOPICS: usize = 10_000;
/// The number of requests before the answers are read.
const BATCH: usize = 500;
/// The number of topics that are read in each way.
const SAMPLE: usize = 50;
const TOPIC_BYTES_MAX: u64 = 4 << 10;

fn name(number: usize) -> String {
    format!("t-{number:05}")
}

#[test]
fn ten_thousand_topics_are_made_listed_and_read() {
    let rule =
        TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("t-*".parse().unwrap()) };
    let fixture = Fixture::with(
        |options| options.topics = TopicRules::new([rule]).unwrap(),
        Retention::default(),
    );
    let before = resident_bytes();
    let mut client = Client::open(Carrier::Tcp, &fixture);
    let numbers: Vec<usize> = (0..TOPICS).collect();
    for batch in numbers.chunks(BATCH) {
        let posts: Vec<String> = batch
            .iter()
            .map(|number| format!("POST {number} /topics/{}\n{{\"n\":1}}", name(*number)))
            .collect();
        client.send_all(&posts);
        for _ in batch {
            let reply = client.next();
            assert_eq!((reply.status, reply.position.as_deref()), (201, Some("ya-1")), "{reply:?}");
        }
    }
    let refused = client.ask("POST more /topics/t-more\n{}");
    refused.problem(507, "more", "too-many-topics");
    let each_takes = resident_bytes().saturating_sub(before) / TOPICS as u64;
    println!("{TOPICS} topics of one event: {each_takes} bytes each");
    assert!(each_takes < TOPIC_BYTES_MAX, "{each_takes} bytes");

    let mut listed = Vec::new();
    let mut target = "/topics".to_owned();
    loop {
        let list = fixture.get(&target, &[]).json();
        let page = list["topics"].as_array().unwrap();
        assert!(page.len() <= 1_000, "{} topics in one answer", page.len());
        listed.extend(page.iter().cloned());
        let Some(next) = list["next"].as_str() else { break };
        target = format!("/topics?after={next}");
    }
    let mut names: Vec<&str> = listed.iter().map(|topic| topic["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    let expected: Vec<String> = numbers.iter().map(|number| name(*number)).collect();
    assert_eq!(names[..TOPICS], expected);
    assert_eq!(names[TOPICS..], ["wind"]);
    assert!(listed.iter().all(|topic| topic["name"] == "wind" || topic["next"] == "ya-1"));

    // Each way of reading has topics of its own.
    each(|way| {
        let index = ALL.iter().position(|other| other.name == way.name).unwrap();
        for number in (index..TOPICS).step_by(TOPICS / SAMPLE) {
            let name = name(number);
            let mut reader = way.read(way.connect(&fixture), &name, "after=ya-0").unwrap();
            let topic = fixture.hub.topic(&name.parse().unwrap()).unwrap();
            let data = Data::json(&json!({ "n": 2 })).unwrap();
            topic.publish(SystemTime::now().into(), data).unwrap();
            let mut follower = Follower::new(0);
            while follower.events < 2 {
                follower.follow(reader.next());
            }
        }
    });
}
