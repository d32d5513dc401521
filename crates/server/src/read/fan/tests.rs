use std::cell::Cell;
use std::future::pending;

use anemone_hub::{After, Data, Epoch, Hub, PageLimit, Position, Retention, UnixTime};
use anemone_wire::{Item, Mode};
use anemone_ws::proto::{Message, Sender};
use anemone_ws::reactor::{Handler, drive};
use anemone_ws::{Memory, Negotiated};
use tokio::io::duplex;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::*;

/// The encoding of all readers here.
static ENCODING: ItemEncoding = ItemEncoding::Messages(|item, out| {
    ENCODED.set(ENCODED.get() + 1);
    match item {
        Item::Event { data, .. } => out.push_str(data),
        Item::Skipped { count, .. } => out.push_str(&format!("-{count}")),
        _ => {}
    }
});

thread_local! {
    /// The number of items that were encoded.
    static ENCODED: Cell<u64> = const { Cell::new(0) };
}

/// A connection that hands its waker out, and counts how often it may send.
struct Woken {
    waker: Option<oneshot::Sender<SendWaker>>,
    count: Rc<Cell<u64>>,
}

impl Handler for Woken {
    fn on_open(&mut self, waker: SendWaker, _sender: &mut Sender) {
        self.waker.take().unwrap().send(waker).unwrap();
    }

    fn on_message(&mut self, _message: Message<'_>, _sender: &mut Sender) {}

    fn on_ready(&mut self, _sender: &mut Sender) {
        self.count.set(self.count.get() + 1);
    }
}

/// A reader, its place in the fan, and how often it was woken.
struct Member {
    reader: Reader,
    place: Subscription,
    woken: Rc<Cell<u64>>,
}

impl Member {
    async fn join(fan: &Fan, topic: &Arc<Topic>, after: u64, mode: Mode) -> Self {
        let (waker, woken) = (oneshot::channel(), Rc::<Cell<u64>>::default());
        let handler = Woken { waker: Some(waker.0), count: Rc::clone(&woken) };
        tokio::task::spawn_local(async move {
            let (_client, server) = duplex(1 << 16);
            drive(&Memory::default(), server, Negotiated::default(), handler, pending()).await;
        });
        let place = fan.subscribe(topic, waker.1.await.unwrap());
        let after = After::Position(position(after)).into();
        let reader = Reader::open(Arc::clone(topic), after, limit()).unwrap().in_mode(mode);
        Self { reader, place, woken }
    }

    /// The next page, as text, and whether this reader had it encoded.
    fn read(&mut self) -> (Option<String>, bool) {
        let before = ENCODED.get();
        let page = self.place.read(&mut self.reader, &ENCODING);
        let text = page.unwrap().map(|page| {
            let texts =
                page.encoded.messages().iter().map(|message| str::from_utf8(message.payload()));
            texts.map(Result::unwrap).collect::<Vec<_>>().join(" ")
        });
        (text, ENCODED.get() > before)
    }
}

fn position(offset: u64) -> Position {
    Position { epoch: Epoch::from_bits(9), offset }
}

/// Pages of three events.
fn limit() -> PageLimit {
    PageLimit { events_max: 3, ..PageLimit::default() }
}

fn topic() -> Arc<Topic> {
    topic_keeping(10_000)
}

fn topic_keeping(events_max: u64) -> Arc<Topic> {
    let hub = Hub::new(Epoch::from_bits(9));
    hub.create("wind".parse().unwrap(), Retention { events_max, ..Retention::default() }).unwrap()
}

fn publish(topic: &Topic, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        let now = UnixTime::from_micros(1_789_000_000_000_000);
        topic.publish(UnixTime::now().max(now), Data::json(&number).unwrap()).unwrap();
    }
}

fn told(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Lets every task that is ready run.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn readers_at_one_place_share_a_page_that_is_encoded_once() {
    LocalSet::new()
        .run_until(async {
            let (fan, topic) = (Fan::default(), topic());
            let mut members = Vec::new();
            for _ in 0..5 {
                members.push(Member::join(&fan, &topic, 0, Mode::All).await);
            }
            assert_eq!(members[0].read(), (None, false), "there is nothing yet");
            publish(&topic, 1..=2);
            let pages: Vec<_> = members.iter_mut().map(Member::read).collect();
            assert_eq!(pages[0], (told("1 2"), true));
            assert!(pages[1..].iter().all(|page| *page == (told("1 2"), false)), "{pages:?}");
            assert!(members.iter_mut().all(|member| member.read() == (None, false)));
            assert!(members.iter().all(|member| member.reader.position() == position(2)));
        })
        .await;
}

#[tokio::test]
async fn one_who_is_elsewhere_reads_for_itself_and_catches_up() {
    LocalSet::new()
        .run_until(async {
            let (fan, topic) = (Fan::default(), topic());
            publish(&topic, 1..=7);
            let mut first = Member::join(&fan, &topic, 4, Mode::All).await;
            let mut behind = Member::join(&fan, &topic, 0, Mode::All).await;
            assert_eq!(first.read(), (told("5 6 7"), true));
            assert_eq!(behind.read(), (told("1 2 3"), true));
            assert_eq!(behind.read(), (told("4 5 6"), true), "another page, though it overlaps");
            assert_eq!(behind.read(), (told("7"), true));
            publish(&topic, 8..=8);
            assert_eq!(behind.read(), (told("8"), true));
            assert_eq!(first.read(), (told("8"), false));
        })
        .await;
}

#[tokio::test]
async fn who_comes_late_to_a_page_is_woken_for_what_came_since() {
    LocalSet::new()
        .run_until(async {
            let (fan, topic) = (Fan::default(), topic());
            let mut prompt = Member::join(&fan, &topic, 0, Mode::All).await;
            let mut late = Member::join(&fan, &topic, 0, Mode::All).await;
            publish(&topic, 1..=1);
            assert_eq!(prompt.read(), (told("1"), true));
            publish(&topic, 2..=2);
            // Both were woken once for all that; the late one could not send then.
            settle().await;
            let woken = late.woken.get();
            assert_eq!(late.read(), (told("1"), false));
            settle().await;
            assert_eq!(late.woken.get(), woken + 1);
            assert_eq!(late.read(), (told("2"), true));
            settle().await;
            assert_eq!(late.woken.get(), woken + 1, "there is nothing left to wake it for");
        })
        .await;
}

#[tokio::test]
async fn the_newest_is_shared_only_while_it_is_the_newest() {
    LocalSet::new()
        .run_until(async {
            let (fan, topic) = (Fan::default(), topic());
            let mut members = Vec::new();
            for _ in 0..3 {
                members.push(Member::join(&fan, &topic, 0, Mode::Latest).await);
            }
            publish(&topic, 1..=4);
            assert_eq!(members[0].read(), (told("-3 4"), true));
            assert_eq!(members[1].read(), (told("-3 4"), false));
            publish(&topic, 5..=5);
            assert_eq!(members[2].read(), (told("-4 5"), true));
            assert_eq!(members[0].read(), (told("5"), true));
        })
        .await;
}

#[tokio::test]
async fn who_is_too_slow_does_not_get_the_page_of_one_who_begins_there() {
    use crate::SlowReader::{Close, Gap};
    LocalSet::new()
        .run_until(async {
            let (fan, topic) = (Fan::default(), topic_keeping(3));
            let mut slow = Member::join(&fan, &topic, 0, Mode::All).await;
            slow.reader = slow.reader.when_slow(Close, Close);
            publish(&topic, 1..=5);
            let mut new = Member::join(&fan, &topic, 0, Mode::All).await;
            new.reader = new.reader.when_slow(Gap, Close);
            assert_eq!(new.read(), (told("3 4 5"), true));
            let ended = slow.place.read(&mut slow.reader, &ENCODING);
            let Err(ReadEnd::Failed(problem)) = ended else { panic!("{ended:?}") };
            assert_eq!(problem.detail(), "too slow: 2 events after 9-0 are no longer retained");
            publish(&topic, 6..=9);
            let ended = new.place.read(&mut new.reader, &ENCODING);
            assert!(ended.is_err(), "it was reading by then");
        })
        .await;
}

#[tokio::test]
async fn a_mode_and_a_form_have_one_page_each_that_is_kept() {
    LocalSet::new()
        .run_until(async {
            let (fan, topic) = (Fan::default(), topic());
            let mut all = Member::join(&fan, &topic, 0, Mode::All).await;
            let mut latest = Member::join(&fan, &topic, 0, Mode::Latest).await;
            for number in 1..=20 {
                publish(&topic, number..=number);
                assert_eq!(all.read(), (told(&number.to_string()), true));
                assert_eq!(latest.read(), (told(&number.to_string()), true));
                assert_eq!(all.place.readers.pages.len(), 2);
            }
            drop(all);
            let readers = Rc::downgrade(&latest.place.readers);
            drop(latest);
            settle().await;
            assert_eq!(readers.strong_count(), 0, "they go with the last reader");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_page_is_kept_for_a_second() {
    LocalSet::new()
        .run_until(async {
            let (fan, topic) = (Fan::default(), topic());
            let mut first = Member::join(&fan, &topic, 0, Mode::All).await;
            let mut later = Member::join(&fan, &topic, 0, Mode::All).await;
            publish(&topic, 1..=2);
            settle().await;
            assert_eq!(first.read(), (told("1 2"), true));
            tokio::time::sleep(SHARED_FOR).await;
            assert_eq!(later.read(), (told("1 2"), true), "retention may have dropped them");
            // Nobody asks for more.
            tokio::time::sleep(2 * SHARED_FOR).await;
            assert_eq!(first.place.readers.pages.len(), 0);
        })
        .await;
}

#[tokio::test]
async fn a_topic_of_the_same_name_has_readers_of_its_own() {
    LocalSet::new()
        .run_until(async {
            let (fan, before, after) = (Fan::default(), topic(), topic());
            publish(&before, 1..=3);
            let mut old = Member::join(&fan, &before, 0, Mode::All).await;
            assert_eq!(old.read(), (told("1 2 3"), true));
            publish(&after, 9..=9);
            let mut new = Member::join(&fan, &after, 0, Mode::All).await;
            assert_eq!(new.read(), (told("9"), true));
        })
        .await;
}
