use std::sync::Arc;

use anemone_hub::{Data, Epoch, Hub, Retention, Topic, UnixTime};
use anemone_ws::Memory;

use super::*;

/// The topics that were chosen are all there are.
struct Nothing;

impl Joining for Nothing {
    fn is_chosen(&self, _: &str) -> bool {
        false
    }

    fn names(&self) -> Result<Vec<TopicName>, Problem> {
        Ok(Vec::new())
    }

    fn open(&self, _: &TopicName) -> Result<Option<Reader>, Problem> {
        Ok(None)
    }
}

fn publish(topic: &Topic, times: usize) {
    for _ in 0..times {
        topic.publish(UnixTime::now(), Data::parse("7").unwrap()).unwrap();
    }
}

/// Returns the events and notices of a turn.
fn turn(many: &mut ManyReader, events_max: usize) -> Vec<String> {
    let page = PageLimit { events_max, ..PageLimit::default() };
    let mut told = Vec::new();
    let mut emit = |item: &TopicItem<'_>, _: &Token, _: bool| {
        told.push(match item {
            TopicItem::Of { topic, item: Item::Event { position, .. } } => {
                format!("{topic} {position}")
            }
            TopicItem::Of { topic, item: Item::Gap(gap) } => format!("{topic} gap {}", gap.resume),
            other => format!("{other:?}"),
        });
    };
    many.turn(TurnLimit { page, has_tokens: false }, &mut emit).unwrap();
    told
}

#[test]
fn each_topic_begins_with_its_first_event_though_that_is_dropped_before_it_is_told() {
    let hub = Hub::new(Epoch::from_bits(9));
    let retention = Retention { events_max: 3, ..Retention::default() };
    let limit = PageLimit::default();
    let topics = ["a", "b"].map(|name| hub.create(name.parse().unwrap(), retention).unwrap());
    let index = Reader::open(Arc::clone(hub.index()), After::Latest.into(), limit).unwrap();
    let seen = index.position();
    let held = Memory::default().reservation();
    let mut many = ManyReader::new((index, false, seen), Box::new(Nothing), 4096, held);
    for topic in &topics {
        publish(topic, 5);
        let reader = Reader::open(Arc::clone(topic), After::Earliest.into(), limit).unwrap();
        many.add_topic(reader);
    }
    assert_eq!(many.token().to_string(), "$topics:9-2,a:2,b:2");
    topics.iter().for_each(|topic| publish(topic, 5));
    // One of them has to wait for its turn.
    assert_eq!(turn(&mut many, 1), ["a 9-3"]);
    assert_eq!(many.token().to_string(), "$topics:9-2,a:3,b:2");
    assert_eq!(turn(&mut many, 1), ["b 9-3"]);
    let rest = ["gap 9-7", "9-8", "9-9", "9-10"];
    let rest = ["a", "b"].map(|topic| rest.map(|told| format!("{topic} {told}"))).concat();
    let mut told = turn(&mut many, 100);
    told.sort_by_key(|told| told.starts_with('b'));
    assert_eq!(told, rest, "in whatever order their times give");
}
