use std::collections::BTreeSet;
use std::time::Duration;

use anemone_hub::{Data, Epoch, Hub, Retention, Topic, UnixTime};
use anemone_ws::Memory;

use super::*;

const LIMIT: PageLimit = PageLimit { events_max: 1_000, bytes_max: 64 << 10 };

/// No topic comes or goes here.
struct NoJoining;

impl Joining for NoJoining {
    fn is_chosen(&self, _name: &str) -> bool {
        false
    }

    fn names(&self) -> Result<Vec<TopicName>, Problem> {
        Ok(Vec::new())
    }

    fn open(&self, _name: &TopicName) -> Result<Option<Reader>, Problem> {
        Ok(None)
    }
}

/// Creates topics with so many events each of so many bytes, from this time on.
fn topics(
    hub: &Hub,
    names: impl IntoIterator<Item = String>,
    events: u64,
    bytes: usize,
    time: u64,
) {
    let retention =
        Retention { age_max: Duration::from_secs(u64::from(u32::MAX)), ..Retention::default() };
    for name in names {
        let topic = hub.create(name.parse().unwrap(), retention).unwrap();
        for number in 0..events {
            let data = Data::json(&"x".repeat(bytes - 2)).unwrap();
            topic.publish(UnixTime::from_micros(time + number), data).unwrap();
        }
    }
}

fn names(begin: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{begin}{number:03}"))
}

/// Opens a reader of all topics from their first events.
fn reader(hub: &Hub) -> ManyReader {
    let open = |topic: &Arc<Topic>| {
        Reader::open(Arc::clone(topic), After::Earliest.into(), LIMIT).unwrap()
    };
    let seen = hub.index().info(UnixTime::now()).head;
    let held = Memory::default().reservation();
    let index = (open(hub.index()), false, seen);
    let mut many = ManyReader::new(index, Box::new(NoJoining), 4_096, held);
    hub.topics().iter().for_each(|topic| many.add_topic(open(topic)));
    many
}

/// Returns the topics of the events that the next turn tells.
fn turn(many: &mut ManyReader, page: PageLimit) -> Vec<String> {
    let mut told = Vec::new();
    let limit = TurnLimit { page, has_tokens: true };
    many.turn(limit, &mut |item, _, _| {
        if let TopicItem::Of { topic, item: Item::Event { .. } } = item {
            told.push((*topic).to_owned());
        }
    })
    .unwrap();
    told
}

fn hub() -> Hub {
    Hub::new(Epoch::from_bits(9))
}

#[test]
fn a_quiet_topic_does_not_wait_for_busy_ones_however_long_their_events_are() {
    // The later figure is the number of turns in which all of them have had one.
    for (busy, events, bytes, turns) in
        [(2, 2_000, 80, 1), (12, 500, 100, 1), (2, 300, 1_000, 1), (3, 20, 40_000, 2)]
    {
        let hub = hub();
        topics(&hub, names("busy", busy), events, bytes, 1);
        topics(&hub, ["quiet".to_owned()], 1, 80, 1_000_000);
        let mut many = reader(&hub);
        let is_told = |_| turn(&mut many, LIMIT).contains(&"quiet".to_owned());
        assert!((0..turns).any(is_told), "{busy} topics with {events} events of {bytes} bytes");
    }
}

#[test]
fn a_turn_reads_no_more_events_than_fit() {
    let hub = hub();
    topics(&hub, names("t", 100), 2, 60_000, 1);
    let mut many = reader(&hub);
    for _ in 0..5 {
        let pages = many.pages(LIMIT, EVENT_BYTES).unwrap();
        assert_eq!(Size::of(pages.iter().map(|(_, page)| page), 0).bytes, 120_000);
        many.emit_pages(&pages, TurnLimit { page: LIMIT, has_tokens: false }, &mut |_, _, _| {});
    }
}

#[test]
fn topics_whose_events_fill_a_page_come_in_turns() {
    let hub = hub();
    topics(&hub, names("t", 10), 3, 60_000, 1);
    let mut many = reader(&hub);
    let mut told = Vec::new();
    (0..30).for_each(|_| told.extend(turn(&mut many, LIMIT)));
    assert_eq!(told.len(), 30);
    for round in told.chunks(10) {
        assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), 10, "{round:?}");
    }
    assert!(turn(&mut many, LIMIT).is_empty());
}

#[test]
fn those_that_told_nothing_come_before_those_that_have_more() {
    let hub = hub();
    topics(&hub, ["early".to_owned()], 3, 100, 1);
    topics(&hub, ["late".to_owned()], 3, 100, 10);
    for _ in 0..20 {
        let mut many = reader(&hub);
        assert_eq!(turn(&mut many, PageLimit { events_max: 1, ..LIMIT }), ["early"]);
        assert_eq!(many.ready.iter().map(TopicName::as_str).collect::<Vec<_>>(), ["late", "early"]);
    }
}

#[test]
fn polls_come_to_all_topics_though_the_first_fill_a_page() {
    let hub = hub();
    topics(&hub, names("t", 5), 1, 100, 1);
    let one = PageLimit { bytes_max: 1, ..LIMIT };
    let mut told = BTreeSet::new();
    // Each reader is that of a poll.
    let is_whole = (0..1_000).any(|_| {
        told.extend(turn(&mut reader(&hub), one));
        told.len() == 5
    });
    assert!(is_whole, "{told:?}");
}

#[test]
fn a_page_of_one_event_has_the_oldest() {
    let hub = hub();
    topics(&hub, names("new", 4), 3, 100, 10);
    topics(&hub, ["middle".to_owned()], 1, 100, 5);
    topics(&hub, names("newer", 4), 3, 100, 20);
    for _ in 0..20 {
        let told = turn(&mut reader(&hub), PageLimit { events_max: 1, ..LIMIT });
        assert_eq!(told, ["middle"]);
    }
}
