//! Devices that write lines of text.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anemone_sources::serial_lines::{SerialLinesOptions, run};
use anemone_testing::{Background, Topics};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::bench::Terminal;

/// A reader of the device at `path` that takes its first line, and reports as often as it can.
fn eager(path: impl Into<std::path::PathBuf>) -> SerialLinesOptions {
    SerialLinesOptions {
        quiet: Duration::ZERO,
        report_interval: Duration::from_millis(1),
        retry_min: Duration::from_millis(1),
        retry_max: Duration::from_millis(1),
        ..SerialLinesOptions::new(path)
    }
}

struct Reading {
    topics: Topics,
    _task: Background<Infallible>,
}

impl Reading {
    fn start(options: SerialLinesOptions) -> Self {
        let topics = Topics::new("attic");
        let (events, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
        Self { topics, _task: Background(tokio::spawn(run(options, events, status))) }
    }

    /// The first status with this in its sentence.
    async fn detail(&self, part: &str) -> Value {
        self.topics.status(|status| status["detail"].as_str().unwrap().contains(part)).await
    }
}

#[tokio::test]
async fn each_line_is_an_event_whatever_ends_it() {
    let terminal = Terminal::open();
    let reading = Reading::start(SerialLinesOptions { baud: 115_200, ..eager(&terminal.path) });
    reading.detail("is open, waiting for its first line").await;
    terminal.write(b"{\"celsius\":21.5}\r\n\xef\xbb\xbf{\"celsius\":21.6}\nready\r21.5 40\r");
    terminal.write(b"7\n");
    let expected = [
        json!({"celsius": 21.5}),
        json!({"celsius": 21.6}),
        json!("ready"),
        json!("21.5 40"),
        json!(7),
    ];
    assert_eq!(reading.topics.events(5).await, expected);
    let live = reading.topics.status(|status| status["state"] == "live").await;
    assert_eq!(live["detail"], format!("receiving from {}", terminal.path.display()));
}

#[tokio::test]
async fn a_line_whose_beginning_may_be_missing_is_not_published() {
    let terminal = Terminal::open();
    let quiet = anemone_testing::PATIENCE;
    let reading = Reading::start(SerialLinesOptions { quiet, ..eager(&terminal.path) });
    reading.detail("is open").await;
    terminal.write(b".5\r\n21.6\r\n");
    assert_eq!(reading.topics.events(1).await, [json!(21.6)]);
}

#[tokio::test]
async fn a_line_that_is_no_text_or_too_long_is_a_bad_line_and_those_around_it_come() {
    let terminal = Terminal::open();
    let reading = Reading::start(SerialLinesOptions { line_bytes_max: 8, ..eager(&terminal.path) });
    reading.detail("is open").await;
    terminal.write(b"1\n\xff\xf3\nNaN\n123456789\n2\n");
    let expected = [json!(1), json!("\u{fffd}\u{fffd}"), json!("NaN"), json!(2)];
    assert_eq!(reading.topics.events(4).await, expected);
    let told = reading.detail("longer than 8 bytes").await;
    assert_eq!(told["bad_lines"], 3);
}

#[tokio::test]
async fn a_device_that_goes_is_read_again_when_it_is_back_and_half_a_line_is_told() {
    let directory = tempdir().unwrap();
    let link = directory.path().join("attic");
    let plug = || {
        let terminal = Terminal::open();
        let new = directory.path().join("new");
        std::os::unix::fs::symlink(&terminal.path, &new).unwrap();
        std::fs::rename(&new, &link).unwrap();
        terminal
    };
    let reading = Reading::start(eager(&link));
    let lost = reading.topics.status(|status| status["state"] == "lost").await;
    let detail = lost["detail"].as_str().unwrap();
    assert!(detail.starts_with(&format!("no such device {}: ", link.display())), "{detail}");

    let first = plug();
    reading.detail("is open").await;
    first.write(b"1\n2.");
    reading.topics.events(1).await;
    drop(first);
    let gone = reading.detail("is gone").await;
    let second = plug();
    let since = |status: &Value| status["since"].as_f64();
    let is_back = |status: &Value| status["state"] == "opening" && since(status) > since(&gone);
    reading.topics.status(is_back).await;
    second.write(b"3\n");
    assert_eq!(reading.topics.events(2).await, [1, 3]);
    reading.topics.status(|status| status["bad_lines"] == 1).await;
}

#[tokio::test]
async fn a_device_that_says_nothing_and_settings_that_it_does_not_have_are_told() {
    let terminal = Terminal::open();
    let first_line_wait = Duration::from_millis(20);
    let reading = Reading::start(SerialLinesOptions { first_line_wait, ..eager(&terminal.path) });
    let told = reading.detail("in 20 ms").await;
    assert_eq!(told["detail"], format!("no line from {} in 20 ms", terminal.path.display()));

    // A pseudo-terminal has 8 bits and no parity, whatever it is set to.
    let terminal = Terminal::open();
    let framing = "7E1".parse().unwrap();
    let reading = Reading::start(SerialLinesOptions { framing, ..eager(&terminal.path) });
    let lost = reading.topics.status(|status| status["state"] == "lost").await;
    let expected = format!("{} does not support 7E1; retrying in", terminal.path.display());
    assert!(lost["detail"].as_str().unwrap().starts_with(&expected), "{lost}");
}
