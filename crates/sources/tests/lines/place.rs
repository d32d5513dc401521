//! Files whose topic is on disk: each line is published once, whatever happens between two starts.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anemone_hub::{DataDir, DataOptions, Epoch, Hub, Retention, Storage, TopicOptions};
use anemone_sources::file::{FileOptions, Origin, run};
use anemone_testing::{Background, Topics};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

/// A followed file, and everything that was written to it.
struct Followed {
    directory: TempDir,
    from: Origin,
    running: Option<Running>,
}

struct Running {
    topics: Topics,
    hub: Hub,
    _task: Background<std::convert::Infallible>,
}

impl Followed {
    fn new(from: Origin) -> Self {
        Self { directory: tempdir().unwrap(), from, running: None }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn append(&self, name: &str, text: &str) {
        let file = OpenOptions::new().append(true).create(true).open(self.path(name));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn copy_and_truncate(&self, to: &str) {
        fs::copy(self.path("log"), self.path(to)).unwrap();
        self.truncate();
    }

    fn truncate(&self) {
        OpenOptions::new().write(true).open(self.path("log")).unwrap().set_len(0).unwrap();
    }

    /// Starts, and waits until the file is open, which has no new line.
    async fn begin(&mut self) {
        self.start();
        self.detail("is open, waiting").await;
    }

    fn start(&mut self) {
        // A program that another test starts has the lock, too, until it runs.
        let open = || DataDir::open(self.path("data"), DataOptions::default()).ok();
        let data = anemone_testing::wait_for("the data directory is in use", open);
        let hub = Hub::with_data(Epoch::from_bits(1), data).unwrap();
        let events = hub.ensure("lines".parse().unwrap(), Retention::default()).unwrap();
        let options = TopicOptions { storage: Storage::Memory, ..TopicOptions::default() };
        let status = hub.ensure("lines.status".parse().unwrap(), options).unwrap();
        let topics = Topics { events, status };
        let options = FileOptions {
            from: self.from,
            interval: Duration::from_millis(1),
            report_interval: Duration::from_millis(1),
            ..FileOptions::new(self.path("log"))
        };
        let (to, told) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
        let task = Background(tokio::spawn(run(options, to, told)));
        self.running = Some(Running { topics, hub, _task: task });
    }

    fn topics(&self) -> &Topics {
        &self.running.as_ref().unwrap().topics
    }

    async fn stop(&mut self) {
        let Running { hub, topics, _task } = self.running.take().unwrap();
        drop((topics, _task));
        hub.close().unwrap();
    }

    async fn detail(&self, part: &str) -> Value {
        self.topics().status(|status| status["detail"].as_str().unwrap().contains(part)).await
    }

    /// Returns the number of gaps reported so far.
    fn gaps(&self) -> u64 {
        let status = Arc::clone(&self.topics().status);
        let told = Topics { events: Arc::clone(&status), status }.all();
        told.iter().filter_map(|status| status["gaps"].as_u64()).max().unwrap_or(0)
    }

    /// All events, once this is the last.
    async fn until(&self, last: &Value) -> Vec<Value> {
        let mut events = Vec::new();
        while events.last() != Some(last) {
            events = self.topics().events(events.len() + 1).await;
        }
        events
    }

    /// All events, once there are as many as these.
    async fn expect(&self, expected: &[Value]) {
        assert_eq!(self.topics().events(expected.len()).await, expected);
    }
}

fn numbers(range: std::ops::RangeInclusive<u64>) -> (String, Vec<Value>) {
    (range.clone().map(|n| format!("{n}\n")).collect(), range.map(Value::from).collect())
}

type WhileDown = fn(&Followed);

/// The changes while the file is not followed, with lines 4 to 8, and a name for each.
const WHILE_DOWN: [(&str, WhileDown); 8] = [
    ("appended", |file| file.append("log", "4\n5\n6\n7\n8\n")),
    ("renamed", |file| {
        file.append("log", "4\n5\n");
        file.rename("log", "log.1");
        file.append("log", "6\n7\n8\n");
    }),
    ("renamed twice", |file| {
        file.append("log", "4\n");
        file.rename("log", "log.1");
        file.append("log", "5\n6\n");
        file.rename("log.1", "log.2");
        file.rename("log", "log.1");
        file.append("log", "7\n8\n");
    }),
    ("dated", |file| {
        file.append("log", "4\n");
        file.rename("log", "log-20261121");
        file.append("log", "5\n6\n");
        file.rename("log", "log-20261122");
        file.append("log", "7\n8\n");
    }),
    ("renamed and nothing new", |file| {
        file.append("log", "4\n5\n6\n7\n8\n");
        file.rename("log", "log.1");
        file.append("log", "");
    }),
    ("copied and truncated", |file| {
        file.append("log", "4\n5\n6\n");
        file.copy_and_truncate("log.1");
        file.append("log", "7\n8\n");
    }),
    ("copied and truncated, and longer than before", |file| {
        file.append("log", "4\n");
        file.copy_and_truncate("log.1");
        file.append("log", "5\n6\n7\n8\n");
    }),
    ("moved to another file system", |file| {
        file.append("log", "4\n5\n6\n7\n8\n");
        fs::copy(file.path("log"), file.path("new")).unwrap();
        file.rename("new", "log");
    }),
];

#[tokio::test]
async fn each_line_comes_once_whatever_was_done_while_nobody_followed() {
    for (name, while_down) in WHILE_DOWN {
        for from in [Origin::End, Origin::Start] {
            let mut file = Followed::new(from);
            file.append("log", "");
            file.begin().await;
            file.append("log", "1\n2\n3\n");
            file.expect(&numbers(1..=3).1).await;
            file.stop().await;
            while_down(&file);
            for _ in 0..2 {
                file.start();
                file.expect(&numbers(1..=8).1).await;
                file.stop().await;
            }
            file.append("log", "9\n");
            file.start();
            file.topics().events(9).await;
            assert_eq!(file.topics().all(), numbers(1..=9).1, "{name}, {from:?}");
        }
    }
}

/// The name of the rotated file of this rotation, of so many, from 1 on.
type RotatedName = fn(u64) -> String;

const ROTATED_NAMES: [(&str, RotatedName); 3] = [
    // Those that are there are renamed first.
    ("falling numbers", |_| "log.1".to_owned()),
    ("rising numbers", |rotation| format!("log.{rotation}")),
    ("dates", |rotation| format!("log-202611{rotation:02}")),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rotation {
    Rename,
    Copy,
}

impl Followed {
    fn rotate(&self, rotation: Rotation, to: &str, modified: SystemTime) {
        for number in (1..30).rev().filter(|_| self.path(to).exists()) {
            let (from, to) = (format!("log.{number}"), format!("log.{}", number + 1));
            if self.path(&from).exists() {
                self.rename(&from, &to);
            }
        }
        match rotation {
            Rotation::Rename => self.rename("log", to),
            Rotation::Copy => self.copy_and_truncate(to),
        }
        let file = OpenOptions::new().append(true).open(self.path(to)).unwrap();
        file.set_modified(modified).unwrap();
    }
}

#[tokio::test]
async fn each_line_comes_once_however_rotated_files_are_named() {
    let mut wrong = Vec::new();
    for (names, name) in ROTATED_NAMES {
        for (rotation, rotations) in [Rotation::Rename, Rotation::Copy]
            .into_iter()
            .flat_map(|how| [1, 2, 3, 20].map(|n| (how, n)))
        {
            let mut file = Followed::new(Origin::Start);
            file.append("log", "1\n2\n3\n");
            file.start();
            file.expect(&numbers(1..=3).1).await;
            file.stop().await;
            let start = SystemTime::now();
            for number in 1..=rotations {
                // At least as long as the part that was read, unlike copies of it.
                file.append("log", &format!("{:<9}\n", number + 3));
                file.rotate(rotation, &name(number), start + Duration::from_secs(number));
            }
            file.append("log", "\"last\"\n");
            file.start();
            let read = file.until(&json!("last")).await;
            let mut expected = numbers(1..=rotations + 3).1;
            expected.push(json!("last"));
            let gaps = file.gaps();
            if read != expected || (rotation == Rotation::Rename && gaps > 0) {
                wrong.push(format!("{rotations} of {rotation:?}, {names}: {gaps} gaps, {read:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_beginning_without_a_line_is_remembered_and_what_was_there_before_it_is_not_read() {
    let mut file = Followed::new(Origin::End);
    file.append("log", "old\nhal");
    file.begin().await;
    file.stop().await;
    file.append("log", "f\n1\n");
    file.start();
    file.expect(&[json!("half"), json!(1)]).await;
}

#[tokio::test]
async fn a_file_that_was_not_there_is_read_from_its_beginning_after_a_restart_too() {
    let mut file = Followed::new(Origin::End);
    file.start();
    file.topics().status(|status| status["state"] == "lost").await;
    file.stop().await;
    // Rotated before the source has looked at it.
    file.append("log", "1\n2\n");
    file.rename("log", "log.2");
    file.append("log", "3\n");
    file.rename("log", "log.1");
    file.append("log", "4\n");
    file.start();
    file.expect(&numbers(1..=4).1).await;
}

#[tokio::test]
async fn half_a_line_is_read_again_whole() {
    let mut file = Followed::new(Origin::Start);
    file.append("log", "1\n2\nha");
    file.start();
    file.expect(&numbers(1..=2).1).await;
    file.stop().await;
    file.append("log", "lf\n");
    file.start();
    file.expect(&[json!(1), json!(2), json!("half")]).await;
}

#[tokio::test]
async fn many_lines_in_many_batches_come_once_across_restarts_in_between() {
    let mut file = Followed::new(Origin::Start);
    let (text, expected) = numbers(1..=9000);
    file.append("log", &text);
    for _ in 0..5 {
        file.start();
        // In the middle of it, as a rule.
        file.topics().events(1).await;
        file.stop().await;
    }
    file.start();
    file.expect(&expected).await;
}

#[tokio::test]
async fn what_may_be_missing_is_told() {
    let cases: [(&str, WhileDown, &str); 3] = [
        ("deleted", |file| fs::remove_file(file.path("log")).unwrap(), "after byte 6"),
        ("truncated", |file| file.truncate(), "after byte 6"),
        (
            "compressed",
            |file| {
                file.append("log", "4\n");
                file.rename("log", "log.1.gz");
            },
            "after byte 6",
        ),
    ];
    for (name, while_down, part) in cases {
        let mut file = Followed::new(Origin::End);
        file.append("log", "");
        file.begin().await;
        file.append("log", "1\n2\n3\n");
        file.expect(&numbers(1..=3).1).await;
        file.stop().await;
        while_down(&file);
        file.append("log", "a longer line than those before it\n5\n");
        file.start();
        let told = file.detail(part).await;
        assert_eq!(told["gaps"], 1, "{name}: {told}");
        let line = json!("a longer line than those before it");
        file.expect(&[json!(1), json!(2), json!(3), line, json!(5)]).await;
    }
}

#[tokio::test]
async fn a_file_that_is_written_anew_and_longer_between_two_looks_gives_no_torn_line() {
    let mut file = Followed::new(Origin::Start);
    file.append("log", "1\n2\nbegun");
    file.start();
    file.expect(&numbers(1..=2).1).await;
    // In one go: no look sees it shorter.
    let anew = "another text, which is longer than what was there\n";
    let mut opened = OpenOptions::new().write(true).open(file.path("log")).unwrap();
    opened.write_all(anew.as_bytes()).unwrap();
    file.expect(&[json!(1), json!(2), json!(anew.trim_end())]).await;
    let told = file.topics().status(|status| status["gaps"] == 1).await;
    assert!(told["detail"].as_str().unwrap().contains("after byte 9"), "{told}");
}

#[tokio::test]
async fn a_copy_is_read_on_after_a_truncation_and_so_are_files_between_two_looks() {
    let mut file = Followed::new(Origin::Start);
    file.append("log", "1\n2\n");
    file.start();
    file.expect(&numbers(1..=2).1).await;
    let mut next = 3;
    for _ in 0..20 {
        for _ in 0..5 {
            file.append("log", &format!("{next}\n{}\n", next + 1));
            for number in
                (1..200).rev().filter(|number| file.path(&format!("log.{number}")).exists())
            {
                file.rename(&format!("log.{number}"), &format!("log.{}", number + 1));
            }
            if next % 4 == 3 {
                file.copy_and_truncate("log.1");
            } else {
                file.rename("log", "log.1");
            }
            file.append("log", &format!("{}\n", next + 2));
            next += 3;
        }
        file.expect(&numbers(1..=next - 1).1).await;
    }
}

type Put = fn(&Path);

#[tokio::test]
async fn what_takes_the_place_of_a_file_and_is_none_is_told() {
    let put: [(&str, Put); 3] = [
        ("a directory", |path| fs::create_dir(path).unwrap()),
        ("a fifo", crate::fifo),
        ("a loop", |path| std::os::unix::fs::symlink(path, path).unwrap()),
    ];
    for (name, put) in put {
        let mut file = Followed::new(Origin::Start);
        file.append("log", "1\n");
        file.start();
        file.expect(&numbers(1..=1).1).await;
        file.rename("log", "away");
        put(&file.path("log"));
        let lost = |status: &Value| {
            let detail = status["detail"].as_str().unwrap();
            status["state"] == "lost" && detail.starts_with("cannot read")
        };
        file.topics().status(lost).await;
        file.rename("log", &format!("{name} is away"));
        file.append("log", "2\n");
        file.expect(&numbers(1..=2).1).await;
    }
}
