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

struct AllJoin(Hub);

impl Joining for AllJoin {
    fn is_chosen(&self, _name: &str) -> bool {
        true
    }

    fn names(&self) -> Result<Vec<TopicName>, Problem> {
        Ok(self.0.topics().iter().map(|topic| topic.name().clone()).collect())
    }

    fn open(&self, name: &TopicName) -> Result<Option<Reader>, Problem> {
        let open = |topic| Reader::open(topic, After::Earliest.into(), LIMIT);
        self.0.topic(name).map(open).transpose()
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

/// Opens a reader of the topics that are created from now on.
fn following(hub: &Hub) -> ManyReader {
    let seen = hub.index().info(UnixTime::now()).head;
    let index = Reader::open(Arc::clone(hub.index()), After::Latest.into(), LIMIT).unwrap();
    let held = Memory::default().reservation();
    ManyReader::new((index, false, seen), Box::new(AllJoin(hub.clone())), 4_096, held)
}

/// Returns the topics of the events that the next turns tell, until nothing is left to read, and the number of times that
/// the client was told which topics have joined.
fn turns(many: &mut ManyReader) -> (Vec<String>, usize) {
    let (mut told, mut joins) = (Vec::new(), 0);
    let limit = TurnLimit { page: LIMIT, has_tokens: false };
    loop {
        many.turn(limit, &mut |item, _, _| match item {
            TopicItem::Of { topic, item: Item::Event { .. } } => told.push((*topic).to_owned()),
            TopicItem::At => joins += 1,
            _ => {}
        })
        .unwrap();
        if many.is_idle() {
            return (told, joins);
        }
    }
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

#[tokio::test]
async fn a_quiet_topic_does_not_wait_for_busy_ones_however_long_their_events_are() {
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

#[tokio::test]
async fn a_turn_reads_no_more_events_than_fit() {
    let hub = hub();
    topics(&hub, names("t", 100), 2, 60_000, 1);
    let mut many = reader(&hub);
    for _ in 0..5 {
        let pages = many.pages(LIMIT, EVENT_BYTES).unwrap();
        assert_eq!(Size::of(pages.iter().map(|(_, page)| page), 0).bytes, 120_000);
        many.emit_pages(&pages, TurnLimit { page: LIMIT, has_tokens: false }, &mut |_, _, _| {});
    }
}

#[tokio::test]
async fn topics_whose_events_fill_a_page_come_in_turns() {
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

#[tokio::test]
async fn those_that_told_nothing_come_before_those_that_have_more() {
    let hub = hub();
    topics(&hub, ["early".to_owned()], 3, 100, 1);
    topics(&hub, ["late".to_owned()], 3, 100, 10);
    for _ in 0..20 {
        let mut many = reader(&hub);
        assert_eq!(turn(&mut many, PageLimit { events_max: 1, ..LIMIT }), ["early"]);
        assert_eq!(many.ready.iter().map(TopicName::as_str).collect::<Vec<_>>(), ["late", "early"]);
    }
}

#[tokio::test]
async fn polls_come_to_all_topics_though_the_first_fill_a_page() {
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

#[tokio::test]
async fn a_page_of_one_event_has_the_oldest() {
    let hub = hub();
    topics(&hub, names("new", 4), 3, 100, 10);
    topics(&hub, ["middle".to_owned()], 1, 100, 5);
    topics(&hub, names("newer", 4), 3, 100, 20);
    for _ in 0..20 {
        let told = turn(&mut reader(&hub), PageLimit { events_max: 1, ..LIMIT });
        assert_eq!(told, ["middle"]);
    }
}

#[tokio::test(start_paused = true)]
async fn topics_join_together_ten_times_a_second() {
    let hub = hub();
    let mut many = following(&hub);
    assert_eq!(turns(&mut many), (vec![], 0));
    // The first one after a while joins at once.
    topics(&hub, ["first".to_owned()], 1, 100, 1);
    let begun = Instant::now();
    many.ready().await;
    assert_eq!(
        (turns(&mut many), begun.elapsed()),
        ((vec!["first".to_owned()], 1), Duration::ZERO)
    );
    for round in 1..=5 {
        // Those that come within the next tenth of a second join with their first events, together.
        let mut created = Vec::new();
        for number in 0..40 {
            created.push(format!("r{round}-{number:03}"));
            topics(&hub, created.last().cloned(), 1, 100, 10 + number);
            tokio::time::advance(HEARING_INTERVAL / 50).await;
            assert!(many.ready().now_or_never().is_none(), "round {round}: after {number}");
        }
        many.ready().await;
        assert!(begun.elapsed() >= round * HEARING_INTERVAL);
        assert_eq!(turns(&mut many), (created, 1), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_has_joined_is_read_without_delay() {
    let hub = hub();
    let mut many = following(&hub);
    turns(&mut many);
    topics(&hub, ["a".to_owned()], 0, 100, 1);
    many.ready().await;
    assert_eq!(turns(&mut many), (vec![], 1));
    topics(&hub, ["b".to_owned()], 1, 100, 1);
    let data = Data::json(&1).unwrap();
    hub.topic(&"a".parse().unwrap()).unwrap().publish(UnixTime::from_micros(2), data).unwrap();
    let begun = Instant::now();
    many.ready().await;
    assert_eq!((turns(&mut many).0, begun.elapsed()), (vec!["a".to_owned()], Duration::ZERO));
}
