//! A followed file as a source: its turns, and the waits between them.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Topic;

use super::FileOptions;
use super::follow::{Follower, Missing, Opened, Turn};
use super::place::Place;
use super::watch::{Changes, Watches};
use crate::feed::Feed;
use crate::status::{State, Status, chain, seconds, wall_clock};

/// The most bytes that are read in one turn. Their lines are published before more is read.
const READ_BYTES: usize = 64 << 10;

/// The shortest time between two checks of a file without new bytes. If a writer writes many small pieces, their lines
/// are published together.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(10);

/// Publishes the lines of the file to `topic` as they come, and reports its state to `status` (by convention the topic
/// `NAME.status`). Never returns, since a missing file may still appear.
///
/// Files are read on the runtime's blocking threads; the rest runs on the calling task. The runtime needs its time
/// and IO drivers.
///
/// # Cancel safety
/// Dropping the future closes the file, at the latest when the current read has ended. No batch is published in part.
pub async fn run(options: FileOptions, topic: Arc<Topic>, status: Arc<Topic>) -> Infallible {
    let interval = options.interval.max(Duration::from_millis(1));
    let place = topic.note().as_ref().and_then(Place::from_note);
    let (changes, watches) = match Changes::start(&options.path) {
        Ok((changes, watches)) => (Some(changes), watches),
        Err(error) => {
            let (path, every) = (options.path.display(), seconds(interval));
            tracing::debug!("{path}: cannot watch for changes, looking every {every}: {error}");
            (None, Watches::default())
        }
    };
    let mut source = FileSource::new(&options, topic, status, interval);
    let FileOptions { path, from, line_bytes_max, .. } = options;
    let mut follower = Follower::new(path, from, line_bytes_max, place, watches);
    let mut buffer = vec![0; Follower::buffer_bytes(READ_BYTES)];
    loop {
        let turn;
        (follower, buffer, turn) = blocking(follower, buffer).await;
        source.take(&turn, &follower, &buffer).await;
        match turn {
            // Files of /proc always report a length below their contents.
            Turn::Idle | Turn::Restarted(_) | Turn::Lost(_) => {
                let pause = source.status.pause(interval.min(LOOK_EVERY_MIN));
                tokio::select! {
                    () = pause => {}
                    // A file may be there only for a moment.
                    () = arrived(changes.as_ref()) => continue,
                }
                let rest = source.status.pause(interval.saturating_sub(LOOK_EVERY_MIN));
                tokio::select! {
                    () = rest => {}
                    () = changed(changes.as_ref()), if !matches!(turn, Turn::Restarted(_)) => {}
                }
            }
            Turn::Opened(_)
            | Turn::Read(_)
            | Turn::Missed(_)
            | Turn::Rotated(_)
            | Turn::Copied(_) => {
                source.status.report_due();
            }
        }
    }
}

async fn changed(changes: Option<&Changes>) {
    match changes {
        Some(changes) => changes.changed().await,
        None => std::future::pending().await,
    }
}

async fn arrived(changes: Option<&Changes>) {
    match changes {
        Some(changes) => changes.arrived().await,
        None => std::future::pending().await,
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

struct FileSource {
    path: String,
    /// The interval between checks, as text for messages.
    interval: String,
    topic: Arc<Topic>,
    status: Status,
    feed: Feed,
    /// The place after all bytes that were read so far.
    end: Option<Place>,
    was_open: bool,
}

impl FileSource {
    fn new(
        options: &FileOptions,
        topic: Arc<Topic>,
        status: Arc<Topic>,
        interval: Duration,
    ) -> Self {
        let path = options.path.display().to_string();
        let name = topic.name().to_string();
        let detail = format!("opening {path}");
        Self {
            status: Status::open(status, name, options.report_interval, detail),
            feed: Feed::new(Arc::clone(&topic), options.line_bytes_max),
            interval: seconds(interval),
            topic,
            path,
            end: None,
            was_open: false,
        }
    }

    async fn take(&mut self, turn: &Turn, follower: &Follower, buffer: &[u8]) {
        match turn {
            Turn::Opened(opened) => self.opened(opened, follower).await,
            Turn::Read(chunk) => {
                let at = wall_clock();
                // Events are stored together with the place after them: both or neither.
                let note = |len: usize| follower.place_after(chunk, len, buffer)?.to_note();
                let bytes = &buffer[chunk.range.clone()];
                let events = self.feed.receive_noted(&mut self.status, at, bytes, note).await;
                self.on_events(events);
                self.end = follower.place();
            }
            Turn::Idle if self.status.state() == State::Lost => self.is_open(),
            Turn::Idle => {}
            Turn::Missed(gap) => self.missing(Some(gap)),
            // The line that was begun continues in the copy.
            Turn::Copied(gap) => self.missing(Some(gap)),
            Turn::Restarted(None) => self.end_stream().await,
            Turn::Restarted(gap) => {
                // Only a part of its last line was read.
                self.feed.drop_line(&mut self.status);
                self.missing(gap.as_ref());
                tracing::debug!("{} has changed, reading it from its beginning", self.path);
            }
            Turn::Rotated(gap) => {
                self.end_stream().await;
                self.missing(gap.as_ref());
                if self.status.state() == State::Lost {
                    self.is_open();
                }
                tracing::debug!("{} is a different file now, reading that", self.path);
            }
            Turn::Lost(error) => {
                if self.is_new() && error.kind() == io::ErrorKind::NotFound {
                    self.keep_first(follower).await;
                }
                self.on_lost(error);
            }
        }
    }

    /// Returns true if the file was neither opened nor reported as missing before.
    fn is_new(&self) -> bool {
        self.status.state() == State::Opening && !self.was_open
    }

    async fn opened(&mut self, opened: &Opened, follower: &Follower) {
        match opened {
            Opened::Anew => self.keep_first(follower).await,
            Opened::After(place, gap) => {
                tracing::info!("{}: resuming after byte {}", self.path, place.offset);
                self.missing(gap.as_ref());
            }
            Opened::Elsewhere(gap) => self.missing(Some(gap)),
        }
        self.was_open = true;
        self.is_open();
    }

    /// Stores the first place. If the source is started again before the first line, lines that were written meanwhile
    /// count as new.
    async fn keep_first(&mut self, follower: &Follower) {
        let Some(note) = follower.place().and_then(|place| place.to_note()) else { return };
        let topic = Arc::clone(&self.topic);
        let kept = tokio::task::spawn_blocking(move || topic.set_note(note)).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(
                "{}: the place where reading begins is not stored yet: {}",
                self.path,
                chain(&error)
            );
        }
    }

    /// Ends the stream of bytes. The next bytes belong to another one.
    async fn end_stream(&mut self) {
        let note = self.end.take().and_then(|place| place.to_note());
        let events = self.feed.finish_noted(&mut self.status, wall_clock(), note).await;
        self.on_events(events);
    }

    fn missing(&mut self, gap: Option<&Missing>) {
        if let Some(gap) = gap {
            self.status.gap(format!("{}: {gap} may be missing", self.path));
        }
    }

    fn on_events(&mut self, events: usize) {
        // Lines of a deleted file do not end the state `lost`.
        if events > 0 && self.status.state() == State::Opening {
            self.status.set(State::Live, format!("following {}", self.path));
        }
    }

    fn is_open(&mut self) {
        let detail = format!("{} is open, waiting for its next line", self.path);
        self.status.set(State::Opening, detail);
    }

    fn on_lost(&mut self, error: &io::Error) {
        let detail = loss_text(&self.path, error);
        self.status.set(State::Lost, format!("{detail}; looking again every {}", self.interval));
    }
}

fn loss_text(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("no such file {path}: {}", chain(error)),
        io::ErrorKind::PermissionDenied => {
            format!("no permission to read {path}: {}", chain(error))
        }
        _ => format!("cannot read {path}: {}", chain(error)),
    }
}
