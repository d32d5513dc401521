use anemone_hub::{
    After, DataOptions, DiskFault, Epoch, FailingDisk, Hub, Retention, Storage, TopicOptions,
};
use anemone_testing::{PATIENCE, Topics, values};
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::status::{State, wall_clock};

/// A feed with a topic on a disk that can fail, and a status in memory.
struct Bench {
    _hub: Hub,
    disk: FailingDisk,
    topics: Topics,
    _folder: TempDir,
}

impl Bench {
    fn new(retention: Retention, queue_bytes_max: u64) -> (Self, Feed, Status) {
        let folder = tempfile::tempdir().unwrap();
        let disk = FailingDisk::default();
        let options = DataOptions { queue_bytes_max, ..DataOptions::default() };
        let data = disk.open(folder.path(), options).unwrap();
        let hub = Hub::with_data(Epoch::from_bits(1), data).unwrap();
        let events = hub.create("lines".parse().unwrap(), retention).unwrap();
        let options = TopicOptions { storage: Storage::Memory, ..TopicOptions::default() };
        let status = hub.create("lines.status".parse().unwrap(), options).unwrap();
        let feed = Feed::new(Arc::clone(&events), 1000);
        let mut reports =
            Status::open(Arc::clone(&status), "lines".to_owned(), PATIENCE, "opening".to_owned());
        reports.set(State::Live, "receiving".to_owned());
        (
            Self { _hub: hub, disk, topics: Topics { events, status }, _folder: folder },
            feed,
            reports,
        )
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.disk.set(None);
    }
}

fn numbers(range: std::ops::RangeInclusive<u64>) -> (Vec<u8>, Vec<Value>) {
    let text: String = range.clone().map(|number| format!("{number}\n")).collect();
    (text.into_bytes(), range.map(Value::from).collect())
}

#[tokio::test]
async fn lines_wait_for_a_disk_that_is_full_or_broken_and_all_come_once() {
    for (fault, detail) in [
        (DiskFault::Full, "there is no space to store the event"),
        (DiskFault::ReadOnly, "cannot store the event"),
    ] {
        let (bench, mut feed, mut status) = Bench::new(Retention::default(), 8 << 20);
        let (lines, expected) = numbers(1..=900);
        bench.disk.set(Some(fault));
        let mend = async {
            let told = bench.topics.status(|status| status["state"] == "waiting").await;
            let expected = format!("{detail}; reading pauses until it is stored");
            assert_eq!(told["detail"], expected);
            assert!(bench.topics.all().is_empty());
            bench.disk.set(None);
        };
        let (count, ()) = tokio::join!(feed.receive(&mut status, wall_clock(), &lines), mend);
        assert_eq!((count, bench.topics.all()), (900, expected));
        let last = values(&bench.topics.status).pop().unwrap();
        assert_eq!((&last["state"], &last["detail"]), (&"live".into(), &"receiving".into()));
        status.end("over".to_owned());
        let last = values(&bench.topics.status).pop().unwrap();
        assert_eq!((&last["events"], &last["bad_lines"]), (&900.into(), &0.into()));
    }
}

#[tokio::test]
async fn lines_that_are_not_what_they_were_meant_to_be_are_told_with_the_remedy() {
    let utf_16: Vec<u8> = "{\"a\":1}\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let nan = b"{\"t\": NaN}\n";
    for (bytes, published, bad_lines, remedy) in [
        (&nan[..], Some("{\"t\": NaN}"), 1, "allow_nan=False"),
        (b"Infinity\n", Some("Infinity"), 1, "allow_nan=False"),
        (&utf_16, None, 2, "iconv -f UTF-16"),
        (&[b"\xff\xfe", &utf_16[..]].concat(), None, 2, "iconv -f UTF-16"),
        (b"\"NaN\"\nName: NaN\n", Some("NaN"), 0, ""),
    ] {
        let (bench, mut feed, mut status) = Bench::new(Retention::default(), 8 << 20);
        feed.receive(&mut status, wall_clock(), bytes).await;
        feed.finish(&mut status, wall_clock()).await;
        status.end("over".to_owned());
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(bench.topics.all().first(), published.map(Value::from).as_ref(), "{text:?}");
        let told = values(&bench.topics.status).pop().unwrap();
        assert_eq!(told["bad_lines"], bad_lines, "{text:?}");
        assert!(told["detail"].as_str().unwrap().contains(remedy), "{told}");
    }
}

#[tokio::test]
async fn lines_wait_for_a_disk_that_is_behind() {
    let (bench, mut feed, mut status) = Bench::new(Retention::default(), 100);
    let (lines, expected) = numbers(1..=600);
    bench.disk.set(Some(DiskFault::Stalled));
    let mend = async {
        bench.topics.status(|status| status["state"] == "waiting").await;
        bench.disk.set(None);
    };
    let (count, ()) = tokio::join!(feed.receive(&mut status, wall_clock(), &lines), mend);
    assert_eq!((count, bench.topics.all()), (600, expected));
}

#[tokio::test]
async fn once_patience_is_over_lines_that_cannot_be_kept_are_counted() {
    let (bench, feed, mut status) = Bench::new(Retention::default(), 8 << 20);
    let (over, patience) = watch::channel(false);
    let mut feed = feed.with_patience(Patience::until(patience));
    bench.disk.set(Some(DiskFault::Full));
    let end = async {
        bench.topics.status(|status| status["state"] == "waiting").await;
        over.send_replace(true);
    };
    let (lines, _) = numbers(1..=600);
    let (count, ()) = tokio::join!(feed.receive(&mut status, wall_clock(), &lines), end);
    assert_eq!(count, 0);
    status.end("stopped".to_owned());
    let last = values(&bench.topics.status).pop().unwrap();
    assert_eq!((&last["events"], &last["bad_lines"]), (&0.into(), &600.into()));
}

#[tokio::test]
async fn after_lines_that_were_given_up_no_line_is_kept() {
    let (bench, feed, mut status) = Bench::new(Retention::default(), 8 << 20);
    let (over, patience) = watch::channel(false);
    let mut feed = feed.with_patience(Patience::until(patience));
    assert_eq!(feed.receive(&mut status, wall_clock(), b"1\n").await, 1);
    bench.disk.set(Some(DiskFault::Full));
    let end = async {
        bench.topics.status(|status| status["state"] == "waiting").await;
        over.send_replace(true);
    };
    let (count, ()) = tokio::join!(feed.receive(&mut status, wall_clock(), b"2\n"), end);
    assert_eq!(count, 0);
    bench.disk.set(None);
    assert_eq!(feed.receive(&mut status, wall_clock(), b"3\n").await, 0);
    assert_eq!(bench.topics.all(), [1]);
}

#[tokio::test]
async fn lines_that_together_are_more_than_is_kept_are_published_one_by_one() {
    let retention = Retention { bytes_max: 500, ..Retention::default() };
    let (bench, mut feed, mut status) = Bench::new(retention, 8 << 20);
    let lines = format!("1\n\"{}\"\n3\n{}", "x".repeat(600), "4\n".repeat(20));
    assert_eq!(feed.receive(&mut status, wall_clock(), lines.as_bytes()).await, 22);
    assert_eq!(feed.receive(&mut status, wall_clock(), b"last").await, 0);
    assert_eq!(feed.finish(&mut status, wall_clock()).await, 1);
    assert_eq!(bench.topics.events.start(wall_clock(), After::Latest).unwrap().offset, 23);
    // Those that retention keeps.
    let kept = bench.topics.all();
    assert_eq!((&kept[0], kept.last()), (&4.into(), Some(&"last".into())));
}
