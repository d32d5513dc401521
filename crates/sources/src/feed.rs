//! Publishes a stream of lines to a topic.
//!
//! Owns the way from lines to events. No line is lost: while the topic's disk is behind, full or broken, lines wait,
//! and nothing more is read from their source. The feed reports this waiting; the source reports all other states.

use std::borrow::Cow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{Batch, NewEvent, Note, PublishError, Topic, UnixTime};
use anemone_wire::TextFault;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::lines::{self, Line, Lines};
use crate::printable::printable_start;
use crate::status::{Status, chain, earliest, sleep_until};

/// The most lines that are published before other tasks run. They form one batch, and take some hundred microseconds.
const TURN_LINES: usize = 256;

/// The most characters of a bad line in a report.
const SHOWN_CHARS: usize = 60;

/// The first delay before a batch that the disk refused is tried again. It doubles up to the maximum.
const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// The time that the disk may take before the source counts as waiting.
const SLOW: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Feed {
    topic: Arc<Topic>,
    lines: Lines,
    line_bytes_max: usize,
    patience: Patience,
    /// True once a line was given up. All later lines are given up, too, so that the kept lines have no hole.
    is_over: bool,
    /// True if lines had to wait for the disk since the last call of [`Feed::take_waited`].
    has_waited: bool,
}

/// The time for which lines may wait for the disk. With a receiver, it is over once the receiver gets `true`; without
/// one, it is unlimited.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience(Option<watch::Receiver<bool>>);

impl Patience {
    /// Creates a patience that ends when `true` is sent.
    pub(crate) fn until(over: watch::Receiver<bool>) -> Self {
        Self(Some(over))
    }

    async fn exhausted(&mut self) {
        let told = match &mut self.0 {
            Some(over) => over.wait_for(|over| *over).await.is_ok(),
            None => false,
        };
        if !told {
            std::future::pending::<()>().await;
        }
    }
}

/// Does `work`, in which lines may wait for their topic's disk. When `stop` completes, sets `stopped`; from then on,
/// lines wait for `grace` at most.
pub(crate) async fn patiently(
    work: impl Future<Output = ()>,
    stop: Pin<&mut impl Future<Output = ()>>,
    stopped: &mut bool,
    (over, grace): &(watch::Sender<bool>, Duration),
) {
    let mut work = pin!(work);
    if !*stopped {
        tokio::select! {
            biased;
            () = &mut work => return,
            () = stop => *stopped = true,
        }
    }
    tokio::select! {
        biased;
        () = &mut work => return,
        () = sleep(*grace) => over.send_replace(true),
    };
    work.await;
}

enum PublishOutcome {
    Kept,
    Refused(PublishError),
    /// The time for which lines may wait is over.
    GivenUp,
}

impl Feed {
    pub(crate) fn new(topic: Arc<Topic>, line_bytes_max: usize) -> Self {
        let (lines, patience) = (Lines::new(line_bytes_max), Patience::default());
        Self { topic, lines, line_bytes_max, patience, is_over: false, has_waited: false }
    }

    /// Creates a feed for lines that end at CR, LF or CRLF.
    #[cfg(unix)]
    pub(crate) fn with_cr(topic: Arc<Topic>, line_bytes_max: usize) -> Self {
        Self { lines: Lines::with_cr(line_bytes_max), ..Self::new(topic, line_bytes_max) }
    }

    /// Returns true if lines had to wait for the disk since the last call.
    #[cfg(unix)]
    pub(crate) fn take_waited(&mut self) -> bool {
        std::mem::take(&mut self.has_waited)
    }

    pub(crate) fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Publishes the lines that end in these bytes as events with the time `at`. Waits until they are kept. Returns the
    /// number of kept events.
    pub(crate) async fn receive(
        &mut self,
        status: &mut Status,
        at: UnixTime,
        bytes: &[u8],
    ) -> usize {
        self.receive_noted(status, at, bytes, |_| None).await
    }

    /// Publishes as [`Feed::receive`] does. `note` gets the number of these bytes up to the end of a line, and returns
    /// the note for the lines up to there.
    pub(crate) async fn receive_noted(
        &mut self,
        status: &mut Status,
        at: UnixTime,
        mut bytes: &[u8],
        note: impl Fn(usize) -> Option<Note> + Sync,
    ) -> usize {
        let len = bytes.len();
        let mut count = 0;
        loop {
            let mut events = Vec::new();
            let mut lines = 0;
            while lines < TURN_LINES
                && let Some(line) = self.lines.next(&mut bytes)
            {
                let event = event(status, at, line, self.line_bytes_max);
                events.extend(event.map(|event| (event, len - bytes.len())));
                lines += 1;
            }
            count += self.keep(status, events, &note).await;
            // Bytes without a line take time too.
            tokio::task::yield_now().await;
            if lines < TURN_LINES {
                return count;
            }
        }
    }

    /// Ends the stream. Publishes the last line even without a line end.
    pub(crate) async fn finish(&mut self, status: &mut Status, at: UnixTime) -> usize {
        self.finish_noted(status, at, None).await
    }

    /// Ends the stream as [`Feed::finish`] does. `note` is kept with the last line.
    pub(crate) async fn finish_noted(
        &mut self,
        status: &mut Status,
        at: UnixTime,
        note: Option<Note>,
    ) -> usize {
        let Some(line) = self.lines.finish() else { return 0 };
        let events = event(status, at, line, self.line_bytes_max).map(|event| (event, 0));
        self.keep(status, events.into_iter().collect(), &|_| note.clone()).await
    }

    /// Discards a last line without a line end, since the stream was cut off. It counts as a bad line.
    pub(crate) fn drop_line(&mut self, status: &mut Status) {
        if let Some(Line::Whole(line) | Line::TooLong(line)) = self.lines.finish() {
            let shown = printable_start(&lines::text(line), SHOWN_CHARS);
            status.bad_line(format!("not published, the end of the line is missing: \"{shown}\""));
        }
    }

    /// Publishes these events in a row. Each comes with the offset of its line's end. Returns the number of kept
    /// events; the others count as bad lines.
    async fn keep(
        &mut self,
        status: &mut Status,
        events: Vec<(NewEvent, usize)>,
        note: &(impl Fn(usize) -> Option<Note> + Sync),
    ) -> usize {
        let Some((_, end)) = events.last() else { return 0 };
        let note_of_all = note(*end);
        let (events, ends): (Vec<_>, Vec<_>) = events.into_iter().unzip();
        let mut batch = Batch { note: note_of_all, ..Batch::new(events) };
        match self.keep_batch(status, &batch).await {
            // Together they exceed the topic's retention.
            PublishOutcome::Refused(PublishError::TooBig { .. }) if batch.events.len() > 1 => {
                let mut count = 0;
                for (event, end) in std::mem::take(&mut batch.events).into_iter().zip(ends) {
                    let one = Batch { note: note(end), ..Batch::from(event) };
                    let outcome = self.keep_batch(status, &one).await;
                    count += count_outcome(status, &one, &outcome);
                }
                count
            }
            outcome => count_outcome(status, &batch, &outcome),
        }
    }

    /// Publishes a batch. Tries again while the disk fails. Nothing of a refused batch is kept, so no event comes
    /// twice.
    async fn keep_batch(&mut self, status: &mut Status, batch: &Batch) -> PublishOutcome {
        let mut backoff = Backoff::new(RETRY_MIN, RETRY_MAX);
        loop {
            if self.is_over {
                return PublishOutcome::GivenUp;
            }
            let outcome = self.attempt(status, batch).await;
            let PublishOutcome::Refused(
                error @ (PublishError::StorageFull(_) | PublishError::StorageFailed(_)),
            ) = outcome
            else {
                status.resume();
                return outcome;
            };
            tracing::debug!(topic = %self.topic.name(), "trying again: {}", chain(&error));
            status.hold(format!("{error}; reading pauses until it is stored"));
            self.has_waited = true;
            tokio::select! {
                () = status.pause(backoff.next(fastrand::f64())) => {}
                () = self.patience.exhausted() => self.is_over = true,
            }
        }
    }

    async fn attempt(&mut self, status: &mut Status, batch: &Batch) -> PublishOutcome {
        let now = batch.events.first().map(|event| event.time).unwrap_or_default();
        let mut publishing = pin!(self.topic.publish_kept(now, batch));
        let mut slow_at = Some(Instant::now() + SLOW);
        loop {
            tokio::select! {
                biased;
                kept = &mut publishing => return kept.map_or_else(PublishOutcome::Refused, |_| PublishOutcome::Kept),
                () = self.patience.exhausted() => {
                    self.is_over = true;
                    return PublishOutcome::GivenUp;
                }
                () = sleep_until(earliest(slow_at, status.due())) => {}
            }
            if slow_at.is_some_and(|at| at <= Instant::now()) {
                slow_at = None;
                self.has_waited = true;
                status.hold("the disk is behind; reading pauses until it has caught up".to_owned());
            }
            status.report_due();
        }
    }
}

/// Counts the outcome of a batch in the status. Returns the number of kept events.
fn count_outcome(status: &mut Status, batch: &Batch, outcome: &PublishOutcome) -> usize {
    let why = match outcome {
        PublishOutcome::Kept => {
            batch.events.iter().for_each(|_| status.event());
            return batch.events.len();
        }
        PublishOutcome::Refused(error) => chain(error),
        PublishOutcome::GivenUp => "it could not be stored before the end".to_owned(),
    };
    for event in &batch.events {
        let shown = printable_start(event.data.as_str(), SHOWN_CHARS);
        status.bad_line(format!("not published, {why}: {shown}"));
    }
    0
}

/// Returns the event for a line; `None` for a line that cannot be published, which counts as a bad line.
fn event(
    status: &mut Status,
    time: UnixTime,
    line: Line<'_>,
    bytes_max: usize,
) -> Option<NewEvent> {
    let line = match line {
        Line::Whole(line) => line,
        Line::TooLong(start) => {
            let start = printable_start(&lines::text(start), SHOWN_CHARS);
            status.bad_line(format!("longer than {bytes_max} bytes, skipped: \"{start}\""));
            return None;
        }
    };
    let text = lines::text(line);
    let data = lines::data(&text);
    let shown = || printable_start(&text, SHOWN_CHARS);
    match lines::fault(line, &data) {
        Some(fault @ TextFault::Utf16) => {
            status.bad_line(format!("skipped, since {fault}: \"{}\"", shown()));
            return None;
        }
        Some(fault) => {
            status.bad_line(format!("published as text, since {fault}: \"{}\"", shown()))
        }
        None if matches!(text, Cow::Owned(_)) => {
            status.bad_line(format!("not UTF-8, published with U+FFFD: \"{}\"", shown()));
        }
        None => {}
    }
    Some(NewEvent { time, data })
}

#[cfg(test)]
mod tests;
