use std::sync::Arc;

use anemone_hub::{Data, Hub, PageLimit, Retention, Topic};
use anemone_wire::{After, Epoch, UnixTime};

use super::*;
use crate::SlowReader;
use crate::read::reader::Page;

const HEARTBEAT: Duration = Duration::from_secs(15);

/// A topic that keeps so many events, and a reply to one who begins after this offset.
struct Example {
    hub: Hub,
    topic: Arc<Topic>,
    reply: EndlessReply,
    now: Instant,
}

impl Example {
    fn new(events_max: u64, after: u64, slow: SlowReader) -> Self {
        let hub = Hub::new(Epoch::from_bits(9));
        let retention = Retention { events_max, ..Retention::default() };
        let topic = hub.create("wind".parse().unwrap(), retention).unwrap();
        (0..after).for_each(|_| publish(&topic));
        let limit = PageLimit { events_max: 2, ..PageLimit::default() };
        let reader = Reader::open(Arc::clone(&topic), After::Latest.into(), limit).unwrap();
        let now = Instant::now();
        let reply = EndlessReply::new(reader.when_slow(slow, slow), now);
        Self { hub, topic, reply, now }
    }

    /// The next thing, in words, so many seconds later.
    fn after(&mut self, seconds: u64) -> String {
        self.now += Duration::from_secs(seconds);
        let read = |reader: &mut Reader| reader.is_behind().then(|| reader.read()).transpose();
        in_words(self.reply.poll(self.now, HEARTBEAT, read))
    }
}

fn publish(topic: &Topic) {
    topic.publish(UnixTime::now(), Data::parse("7").unwrap()).unwrap();
}

fn in_words(told: EndlessPart<Page>) -> String {
    let item = |item: &Item<'_>| match item {
        Item::Begin(position) => format!("begin {position}"),
        Item::Quiet(position) => format!("quiet {position}"),
        Item::Gap(gap) => format!("gap {}", gap.resume),
        Item::Event { position, .. } => format!("event {position}"),
        Item::End(reason) => format!("end {}", reason.as_str()),
        Item::Skipped { .. } => "skipped".to_owned(),
    };
    match told {
        EndlessPart::Item(own) | EndlessPart::Ended(own) => item(&own),
        EndlessPart::Page(page) => {
            page.items().map(|own| item(&own)).collect::<Vec<_>>().join(", ")
        }
        EndlessPart::Nothing => "nothing".to_owned(),
        EndlessPart::Failed { notice, problem } => {
            format!("{}: {}", notice.as_ref().map(item).unwrap_or_default(), problem.kind().name())
        }
        EndlessPart::Over => "over".to_owned(),
    }
}

#[test]
fn it_begins_where_reading_does_and_goes_on_a_page_at_a_time() {
    let mut example = Example::new(100, 1, SlowReader::Gap);
    (0..3).for_each(|_| publish(&example.topic));
    let told = [(); 4].map(|()| example.after(0));
    assert_eq!(told, ["begin 9-1", "event 9-2, event 9-3", "event 9-4", "nothing"]);
}

#[test]
fn it_shows_that_it_is_alive_when_it_was_quiet_for_as_long_as_a_heartbeat() {
    let mut example = Example::new(100, 0, SlowReader::Gap);
    assert_eq!(example.after(0), "begin 9-0");
    assert_eq!(
        [14, 1, 14].map(|seconds| example.after(seconds)),
        ["nothing", "quiet 9-0", "nothing"]
    );
    publish(&example.topic);
    assert_eq!(example.after(0), "event 9-1");
    assert_eq!(example.after(14), "nothing", "a page is a sign of life, too");
    assert_eq!(example.reply.due(HEARTBEAT), example.now + Duration::from_secs(1));
    assert_eq!(example.after(1), "quiet 9-1");
}

#[test]
fn a_gap_comes_before_what_is_after_it() {
    let mut example = Example::new(2, 0, SlowReader::Gap);
    example.after(0);
    (0..5).for_each(|_| publish(&example.topic));
    assert_eq!(example.after(0), "gap 9-3, event 9-4, event 9-5");
}

#[test]
fn one_that_is_too_slow_is_told_so_last_where_its_topic_says_so() {
    let mut example = Example::new(2, 0, SlowReader::Close);
    example.after(0);
    (0..5).for_each(|_| publish(&example.topic));
    assert_eq!(example.after(0), "end too-slow: too-slow");
    assert_eq!((example.after(0), example.reply.is_over()), ("over".to_owned(), true));
}

#[test]
fn it_ends_with_its_topic() {
    let mut example = Example::new(100, 0, SlowReader::Gap);
    example.after(0);
    assert!(example.hub.delete(example.topic.name()).is_ok());
    assert_eq!([example.after(0), example.after(60)], ["end deleted: topic-deleted", "over"]);
}

#[test]
fn it_ends_after_the_last_event_of_a_run() {
    let mut example = Example::new(100, 0, SlowReader::Gap);
    example.after(0);
    (0..3).for_each(|_| publish(&example.topic));
    assert!(example.topic.end());
    let told = [(); 4].map(|()| example.after(0));
    assert_eq!(told, ["event 9-1, event 9-2", "event 9-3", "end ended", "over"]);
    assert!(example.reply.is_over());
}

#[test]
fn an_error_ends_it_without_a_notice() {
    let mut example = Example::new(100, 0, SlowReader::Gap);
    example.after(0);
    let failed = |_: &mut Reader| Err(Problem::new(crate::Kind::StorageFailed, "gone").into());
    let told = example.reply.poll::<Page>(example.now, HEARTBEAT, failed);
    assert_eq!([in_words(told), example.after(0)], [": storage-failed", "over"]);
}

#[test]
fn a_client_that_ends_its_side_is_told_what_there_is_and_no_more() {
    let mut example = Example::new(100, 0, SlowReader::Gap);
    example.after(0);
    (0..3).for_each(|_| publish(&example.topic));
    example.reply.finish();
    publish(&example.topic);
    assert!(example.reply.is_ending());
    let told = [(); 3].map(|()| example.after(60));
    assert_eq!(told, ["event 9-1, event 9-2", "event 9-3, event 9-4", "over"]);
    assert!(!example.reply.is_ending());
}

#[test]
fn a_server_that_stops_tells_nothing_more() {
    let mut example = Example::new(100, 0, SlowReader::Gap);
    example.after(0);
    publish(&example.topic);
    example.reply.end("server stopped");
    example.reply.finish();
    assert_eq!((example.after(60), example.reply.is_over()), ("over".to_owned(), true));
}
