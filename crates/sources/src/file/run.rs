//! The source itself: turns, and the time between them.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Topic;

use super::Options;
use super::follow::{Follower, Turn};
use crate::feed::Feed;
use crate::status::{State, Status, chain, seconds, wall_clock};

/// Most that is read in one turn. What it holds is published before more is read.
const READ_BYTES: usize = 64 << 10;

/// Publishes the lines of the file to `topic` as they come and how it is doing to `status` (by
/// convention the topic `NAME.status`). Never returns: a file that is not there may come.
///
/// Files are read on the runtime's blocking threads; the rest runs on the calling task. The runtime
/// has to have its time driver on.
///
/// # Cancel safety
/// Dropping the future closes the file, at the latest when a read that is under way has ended;
/// nothing half is published.
pub async fn run(options: Options, topic: Arc<Topic>, status: Arc<Topic>) -> Infallible {
    let interval = options.interval.max(Duration::from_millis(1));
    let mut source = Source::new(&options, topic, status, interval);
    let mut follower = Follower::new(options.path, options.from, options.line_bytes_max);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let turn;
        (follower, buffer, turn) = blocking(follower, buffer).await;
        source.take(&turn, &buffer).await;
        match turn {
            // Files of /proc always seem shorter than what was read of them.
            Turn::Idle | Turn::Truncated | Turn::Lost(_) => source.status.pause(interval).await,
            Turn::Opened | Turn::Read(_) | Turn::Rotated => {
                source.status.tell_due();
            }
        }
    }
}

async fn blocking(mut follower: Follower, mut buffer: Vec<u8>) -> (Follower, Vec<u8>, Turn) {
    let turn = tokio::task::spawn_blocking(move || {
        let turn = follower.turn(&mut buffer);
        (follower, buffer, turn)
    });
    match turn.await {
        Ok(turn) => turn,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is about to end.
            Err(_) => std::future::pending().await,
        },
    }
}

struct Source {
    /// The file, for people.
    path: String,
    /// How often it is looked for, for people.
    interval: String,
    status: Status,
    feed: Feed,
}

impl Source {
    fn new(options: &Options, topic: Arc<Topic>, status: Arc<Topic>, interval: Duration) -> Self {
        let path = options.path.display().to_string();
        let name = topic.name().to_string();
        let detail = format!("opening {path}");
        Self {
            status: Status::open(status, name, options.report_interval, detail),
            feed: Feed::new(topic, options.line_bytes_max),
            interval: seconds(interval),
            path,
        }
    }

    async fn take(&mut self, turn: &Turn, buffer: &[u8]) {
        match turn {
            Turn::Opened => self.is_open(),
            Turn::Read(len) => {
                let at = wall_clock();
                let events = self.feed.receive(&mut self.status, at, &buffer[..*len]).await;
                self.heard(events);
            }
            Turn::Idle if self.status.state() == State::Lost => self.is_open(),
            Turn::Idle => {}
            Turn::Truncated => self.ended("was truncated").await,
            Turn::Rotated => {
                self.ended("is another file now").await;
                if self.status.state() == State::Lost {
                    self.is_open();
                }
            }
            Turn::Lost(error) => self.lost(error),
        }
    }

    /// All that came so far is a whole; what comes next is another.
    async fn ended(&mut self, how: &str) {
        let events = self.feed.finish(&mut self.status, wall_clock()).await;
        self.heard(events);
        tracing::debug!("{} {how}, reading it from its beginning", self.path);
    }

    fn heard(&mut self, events: usize) {
        // What is still read of a file that is gone does not bring it back.
        if events > 0 && self.status.state() == State::Opening {
            self.status.set(State::Live, format!("following {}", self.path));
        }
    }

    fn is_open(&mut self) {
        let detail = format!("{} is open, waiting for its next line", self.path);
        self.status.set(State::Opening, detail);
    }

    fn lost(&mut self, error: &io::Error) {
        let detail = lost(&self.path, error);
        self.status.set(State::Lost, format!("{detail}; looking again every {}", self.interval));
    }
}

fn lost(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("no such file {path}: {}", chain(error)),
        io::ErrorKind::PermissionDenied => {
            format!("no permission to read {path}: {}", chain(error))
        }
        _ => format!("cannot read {path}: {}", chain(error)),
    }
}
