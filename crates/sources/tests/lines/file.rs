//! Files.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anemone_sources::file::{FileOptions, Origin, run};
use anemone_testing::{Background, Topics};
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::time::Instant;

use crate::fifo;

/// Looks and reports as often as it can.
fn eager(path: &Path) -> FileOptions {
    FileOptions {
        interval: Duration::from_millis(1),
        report_interval: Duration::from_millis(1),
        ..FileOptions::new(path)
    }
}

struct Following {
    topics: Topics,
    _task: Background<std::convert::Infallible>,
}

impl Following {
    fn start(options: FileOptions) -> Self {
        let topics = Topics::new("lines");
        let (events, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
        Self { topics, _task: Background(tokio::spawn(run(options, events, status))) }
    }

    async fn is_open(&self) {
        self.detail("is open, waiting").await;
    }

    /// The first status with this in its sentence.
    async fn detail(&self, part: &str) -> Value {
        self.topics.status(|status| status["detail"].as_str().unwrap().contains(part)).await
    }
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[tokio::test]
async fn from_the_end_only_what_is_new_is_published() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    append(&path, "old\n");
    let following = Following::start(eager(&path));
    following.is_open().await;
    append(&path, "{\"a\":1}\r\n5\nup 3 days\n");
    let expected = [json!({"a": 1}), json!(5), json!("up 3 days")];
    assert_eq!(following.topics.events(3).await, expected);
    let live = following.topics.status(|status| status["state"] == "live").await;
    assert_eq!(live["detail"], format!("following {}", path.display()));
}

#[tokio::test]
async fn from_the_end_a_line_that_was_begun_is_given_whole() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    append(&path, "old\nhal");
    let following = Following::start(eager(&path));
    following.is_open().await;
    append(&path, "f\nnew\n");
    assert_eq!(following.topics.events(2).await, ["half", "new"]);
}

#[tokio::test]
async fn from_the_end_in_a_line_that_is_too_long_it_stays_so() {
    for begun in ["old\n12345678", "12345678", "old\n123456789012345", "123456789012345"] {
        let directory = tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, begun);
        let following = Following::start(FileOptions { line_bytes_max: 8, ..eager(&path) });
        following.is_open().await;
        append(&path, "9\nnew\n");
        assert_eq!(following.topics.events(1).await, ["new"], "{begun:?}");
        following.topics.status(|status| status["bad_lines"] == 1).await;
    }
}

#[tokio::test]
async fn from_the_start_all_is_published_and_half_a_line_waits_for_its_end() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    append(&path, "1\n2\nha");
    let following = Following::start(FileOptions { from: Origin::Start, ..eager(&path) });
    assert_eq!(following.topics.events(2).await, [1, 2]);
    append(&path, "lf");
    append(&path, "\n");
    assert_eq!(following.topics.events(3).await[2], "half");
}

#[tokio::test]
async fn more_than_one_turn_can_read_is_published_in_order() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    let lines: Vec<_> = (0..5000).map(|n| format!("{n} {}", "x".repeat(100))).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let following = Following::start(FileOptions { from: Origin::Start, ..eager(&path) });
    assert_eq!(following.topics.events(5000).await, lines);
}

#[tokio::test]
async fn when_renamed_the_old_file_is_read_until_the_new_one_has_something() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    append(&path, "");
    let following = Following::start(eager(&path));
    following.is_open().await;
    append(&path, "1\n");
    following.topics.events(1).await;
    let old = directory.path().join("log.1");
    std::fs::rename(&path, &old).unwrap();
    append(&old, "2\n");
    following.topics.events(2).await;
    following.topics.status(|status| status["state"] == "lost").await;
    File::create(&path).unwrap();
    append(&old, "3\nunfinished");
    following.topics.events(3).await;
    append(&path, "4\n");
    assert_eq!(
        following.topics.events(5).await,
        [json!(1), json!(2), json!(3), json!("unfinished"), json!(4)]
    );
}

#[tokio::test]
async fn at_no_rotation_a_line_is_lost() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    let following = Following::start(FileOptions { from: Origin::Start, ..eager(&path) });
    let lines = |from: usize| (from..from + 100).map(|n| format!("{n}\n")).collect::<String>();
    let mut count = 0;
    append(&path, &lines(0));
    following.topics.events(100).await;
    for _ in 0..20 {
        append(&path, &lines(count + 100));
        std::fs::rename(&path, directory.path().join("log.1")).unwrap();
        append(&path, &lines(count + 200));
        count += 200;
        following.topics.events(count + 100).await;
    }
    assert_eq!(following.topics.all(), (0..count + 100).collect::<Vec<_>>());
}

#[tokio::test]
async fn when_copied_and_truncated_it_is_read_from_its_beginning() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    append(&path, "111\n222\n");
    let following = Following::start(FileOptions { from: Origin::Start, ..eager(&path) });
    following.topics.events(2).await;
    // Each time shorter, since otherwise it would look like a file that only grew.
    for (count, text) in [(3, "33\n"), (4, "4\n")] {
        OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        append(&path, text);
        following.topics.events(count).await;
    }
    assert_eq!(following.topics.all(), [111, 222, 33, 4]);
}

#[tokio::test]
async fn a_file_that_was_not_there_is_read_from_its_beginning_once_it_is() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    let following = Following::start(eager(&path));
    let lost = following.topics.status(|status| status["state"] == "lost").await;
    let detail = lost["detail"].as_str().unwrap();
    assert!(detail.starts_with(&format!("no such file {}: ", path.display())), "{lost}");
    assert!(detail.ends_with("; looking again every 1 ms"), "{lost}");
    append(&path, "first\n");
    assert_eq!(following.topics.events(1).await, ["first"]);
    following.topics.status(|status| status["state"] == "live").await;
}

#[tokio::test]
async fn a_file_that_was_deleted_is_read_from_its_beginning_once_it_is_back() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    append(&path, "");
    let following = Following::start(eager(&path));
    following.is_open().await;
    append(&path, "1\n");
    following.topics.events(1).await;
    std::fs::remove_file(&path).unwrap();
    let lost = following.topics.status(|status| status["state"] == "lost").await;
    append(&path, "2\n");
    assert_eq!(following.topics.events(2).await, [1, 2]);
    let since = |status: &Value| status["since"].as_f64();
    let back = |status: &Value| status["state"] == "live" && since(status) > since(&lost);
    following.topics.status(back).await;
}

#[tokio::test]
async fn a_link_is_followed_to_another_file() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    let link_to = |name: &str| {
        std::os::unix::fs::symlink(directory.path().join(name), directory.path().join("link"))
            .unwrap();
        std::fs::rename(directory.path().join("link"), &path).unwrap();
    };
    append(&directory.path().join("a"), "1\n");
    link_to("a");
    let following = Following::start(FileOptions { from: Origin::Start, ..eager(&path) });
    following.topics.events(1).await;
    append(&directory.path().join("b"), "2\n");
    link_to("b");
    assert_eq!(following.topics.events(2).await, [1, 2]);
}

#[tokio::test]
async fn what_is_no_file_is_refused_and_left_for_one() {
    let directory = tempdir().unwrap();
    for name in ["fifo", "directory"] {
        let path = directory.path().join(name);
        if name == "fifo" {
            fifo(&path)
        } else {
            std::fs::create_dir(&path).unwrap()
        }
        let following = Following::start(eager(&path));
        let lost = following.detail("not a regular file").await;
        assert_eq!(lost["state"], "lost");
        std::fs::rename(&path, directory.path().join("away")).unwrap();
        following.detail("no such file").await;
        append(&path, "1\n");
        assert_eq!(following.topics.events(1).await, [1]);
        let _ = std::fs::remove_file(directory.path().join("away"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_is_published_within_the_interval() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    let interval = Duration::from_millis(250);
    let following = Following::start(FileOptions { interval, ..FileOptions::new(&path) });
    following.topics.status(|status| status["state"] == "lost").await;
    for count in 1..4 {
        let before = Instant::now();
        append(&path, "1\n");
        following.topics.events(count).await;
        assert!(before.elapsed() <= Duration::from_millis(251), "{:?}", before.elapsed());
    }
}

impl Following {
    /// Returns the number of files and parts of files that were reported as missing.
    fn gaps(&self) -> u64 {
        let status = Arc::clone(&self.topics.status);
        let told = Topics { events: Arc::clone(&status), status }.all();
        told.iter().filter_map(|status| status["gaps"].as_u64()).max().unwrap_or(0)
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_is_there_for_a_moment_is_read_or_told_as_missing() {
    // With a file before it, and without.
    for first in ["0\n", ""] {
        let directory = tempdir().unwrap();
        let path = directory.path().join("log");
        let following = Following::start(FileOptions { from: Origin::Start, ..eager(&path) });
        following.topics.status(|status| status["state"] == "lost").await;
        if !first.is_empty() {
            append(&path, first);
            following.topics.events(1).await;
        }
        for number in 1..=50 {
            append(&path, &format!("{number}\n"));
            std::fs::remove_file(&path).unwrap();
        }
        append(&path, "\"last\"\n");
        let mut read = following.topics.events(1).await;
        while read.last() != Some(&json!("last")) {
            read = following.topics.events(read.len() + 1).await;
        }
        let expected = 1 + 50 + usize::from(!first.is_empty());
        if read.len() < expected {
            following.detail("too briefly to be opened").await;
        }
        let numbers: Vec<_> = read.iter().filter_map(Value::as_u64).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        assert_eq!(read.len() == expected, following.gaps() == 0, "{read:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_gets_any_other_name_at_once_is_read_in_its_turn() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    let following = Following::start(FileOptions { from: Origin::Start, ..eager(&path) });
    append(&path, "0\n");
    following.topics.events(1).await;
    for number in 1..=200 {
        std::fs::rename(&path, directory.path().join(format!("away-{number}"))).unwrap();
        append(&path, &format!("{number}\n"));
    }
    assert_eq!(following.topics.events(201).await, (0..=200).collect::<Vec<_>>());
    // Its own file, when it comes back, is nothing new.
    let away = directory.path().join("away");
    std::fs::rename(&path, &away).unwrap();
    std::fs::rename(&away, &path).unwrap();
    append(&path, "201\n");
    assert_eq!(following.topics.events(202).await[201], 201);
    assert_eq!(following.gaps(), 0);
}
