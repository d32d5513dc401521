//! The state of a run. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use anemone_wire::RunState;

use super::events;
use super::failure::{Json, RunFailure, RunOutcome, Stopped};
use super::moment::Moment;
use super::place::QueuePlace;
use super::progress::RunProgress;
use crate::{Data, UnixTime};

#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) state: RunState,
    result: Option<Json>,
    problem: Option<Json>,
    pub(crate) event: Data,
    /// The reason that the work gets if it has not returned.
    pub(crate) reason: Stopped,
    /// The attachment whose end this is: it ends the run only if it is the newest.
    attachment: Option<u64>,
}

impl Ending {
    /// Returns the end for the outcome of the work. A result of more than `bytes_max` is a failure.
    pub(crate) fn of(outcome: RunOutcome, bytes_max: u64) -> Self {
        match outcome {
            Ok(None) => Self::done(None),
            Ok(Some(result)) if result.bytes().len() as u64 > bytes_max => {
                let bytes = result.bytes().len();
                let detail = format!("the result has {bytes} bytes, at most {bytes_max} are kept");
                Self::failed(&RunFailure::new(detail))
            }
            Ok(Some(result)) => Self::done(Json::of(&result)),
            Err(failure) => Self::failed(&failure),
        }
    }

    fn done(result: Option<Json>) -> Self {
        let event = events::done(result.as_ref());
        let (state, reason) = (RunState::Done, Stopped::Ended);
        Self { state, result, problem: None, event, reason, attachment: None }
    }

    pub(crate) fn failed(failure: &RunFailure) -> Self {
        let problem = failure.problem().clone();
        let event = events::failed(&problem);
        let (state, reason) = (RunState::Failed, Stopped::Ended);
        Self { state, result: None, problem: Some(problem), event, reason, attachment: None }
    }

    pub(crate) fn timed_out(limit: Duration) -> Self {
        let failed = Self::failed(&RunFailure::timed_out(limit));
        Self { reason: Stopped::TimedOut, ..failed }
    }

    pub(crate) fn cancelled() -> Self {
        let (state, reason) = (RunState::Cancelled, Stopped::Cancelled);
        let (result, problem, attachment) = (None, None, None);
        Self { state, result, problem, event: events::cancelled(), reason, attachment }
    }

    /// Returns the end of a run whose client has gone: a repeat of its start is to start another run.
    pub(crate) fn abandoned(attachment: u64) -> Self {
        Self { attachment: Some(attachment), ..Self::cancelled() }
    }
}

#[derive(Debug)]
pub(crate) struct RunFacts {
    pub(crate) state: RunState,
    pub(crate) created: UnixTime,
    pub(crate) started: Option<UnixTime>,
    pub(crate) ended: Option<UnixTime>,
    /// Its place, while it is queued.
    pub(crate) place: Option<QueuePlace>,
    /// `None` before the start.
    pub(crate) progress: Option<RunProgress>,
    pub(crate) result: Option<Json>,
    pub(crate) problem: Option<Json>,
    pub(crate) stopped: Option<Stopped>,
    /// True if it was cancelled because its client had gone.
    pub(crate) is_abandoned: bool,
    /// The number of its attachments; the newest one has this number.
    attachments: u64,
    stderr: VecDeque<u8>,
    /// True after a CR: what comes next replaces its line, unless it is LF.
    is_returned: bool,
}

/// The most bytes of standard error that are kept: the last ones.
const STDERR_BYTES_MAX: usize = 16 << 10;

impl RunFacts {
    pub(crate) fn new(created: UnixTime) -> Self {
        Self {
            state: RunState::Queued,
            created,
            started: None,
            ended: None,
            place: None,
            progress: None,
            result: None,
            problem: None,
            stopped: None,
            is_abandoned: false,
            attachments: 0,
            stderr: VecDeque::new(),
            is_returned: false,
        }
    }

    /// Moves it in the queue. Returns true if its place has changed.
    pub(crate) fn move_to(&mut self, place: QueuePlace) -> bool {
        if self.state != RunState::Queued {
            return false;
        }
        self.place.replace(place).is_none_or(|before| before.before != place.before)
    }

    /// Begins the work, if it has not ended. Returns true if it begins.
    pub(crate) fn begin(&mut self, now: Moment) -> bool {
        let begins = self.state == RunState::Queued;
        if begins {
            (self.state, self.place, self.started) = (RunState::Running, None, Some(now.time));
            self.progress = Some(RunProgress::new(now.instant));
        }
        begins
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.attachments > 0
    }

    /// Attaches it to a client, instead of an earlier one. Returns the number of the attachment.
    pub(crate) fn attach(&mut self) -> u64 {
        self.attachments += 1;
        self.attachments
    }

    /// Ends the run, once. Returns true if it has ended by this.
    pub(crate) fn end(&mut self, now: Moment, ending: &Ending) -> bool {
        let is_outdated = |attachment: u64| attachment != self.attachments;
        let ends = !self.state.is_end() && !ending.attachment.is_some_and(is_outdated);
        if ends {
            (self.state, self.place, self.ended) = (ending.state, None, Some(now.time));
            (self.result, self.problem) = (ending.result.clone(), ending.problem.clone());
            self.is_abandoned = ending.attachment.is_some();
            self.stopped = Some(ending.reason);
        }
        ends
    }

    /// Keeps the last bytes of standard error, which may also come after the end. A line that begins anew after a CR, as
    /// a progress bar does, replaces its earlier text.
    pub(crate) fn keep_stderr(&mut self, bytes: &[u8]) {
        if !self.is_returned && !bytes.contains(&b'\r') {
            return self.keep_last(bytes);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, end) = line.split_at(line.len() - usize::from(line.ends_with(b"\n")));
            // An empty text replaces nothing: `\r\r` is like `\r`.
            let len = text.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
            let shown = text[..len].rsplit(|byte| *byte == b'\r').next().unwrap_or_default();
            if len > 0 && (self.is_returned || shown.len() < len) {
                let line = self.stderr.iter().rposition(|byte| *byte == b'\n');
                self.stderr.truncate(line.map_or(0, |end| end + 1));
            }
            self.keep_last(shown);
            self.keep_last(end);
            let was_returned = self.is_returned && len == 0;
            self.is_returned = end.is_empty() && (was_returned || len < text.len());
        }
    }

    fn keep_last(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(STDERR_BYTES_MAX)..];
        let excess = (self.stderr.len() + bytes.len()).saturating_sub(STDERR_BYTES_MAX);
        self.stderr.drain(..excess);
        self.stderr.extend(bytes);
    }

    /// Returns the standard error as text, if there is any.
    pub(crate) fn stderr(&self) -> Option<String> {
        let bytes: Vec<u8> = self.stderr.iter().copied().collect();
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the bytes that it keeps beside the events.
    pub(crate) fn bytes(&self) -> u64 {
        let json = [&self.result, &self.problem].into_iter().flatten();
        let json: usize = json.map(|json| json.as_str().len()).sum();
        (json + self.stderr.capacity()) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn at(seconds: u64) -> Moment {
        let time = UnixTime::from_micros(seconds * 1_000_000);
        Moment { time, instant: Instant::now() }
    }

    fn place(before: usize) -> QueuePlace {
        QueuePlace { before, begun: 0 }
    }

    #[test]
    fn a_run_waits_begins_and_ends_once() {
        let mut facts = RunFacts::new(at(1).time);
        assert!(facts.move_to(place(2)) && !facts.move_to(place(2)) && facts.move_to(place(1)));
        assert!(facts.begin(at(2)) && !facts.begin(at(3)) && !facts.move_to(place(0)));
        assert_eq!((facts.state, facts.place), (RunState::Running, None));
        assert!(facts.end(at(4), &Ending::of(Ok(Some(Data::json(&1).unwrap())), 9)));
        assert!(!facts.end(at(5), &Ending::cancelled()));
        assert_eq!((facts.state, facts.stopped), (RunState::Done, Some(Stopped::Ended)));
        assert_eq!(facts.result.as_ref().map(Json::as_str), Some("1"));
        assert_eq!([facts.started, facts.ended], [Some(at(2).time), Some(at(4).time)]);
    }

    #[test]
    fn a_queued_run_can_end_and_never_begins_then() {
        let mut facts = RunFacts::new(at(1).time);
        facts.move_to(place(3));
        assert!(facts.end(at(2), &Ending::cancelled()) && !facts.begin(at(3)));
        assert_eq!((facts.state, facts.place, facts.started), (RunState::Cancelled, None, None));
    }

    #[test]
    fn a_result_that_is_too_big_is_a_failure() {
        let result = || Ok(Some(Data::json("1234567").unwrap()));
        assert_eq!(Ending::of(result(), 9).state, RunState::Done);
        let ending = Ending::of(result(), 8);
        assert_eq!(ending.state, RunState::Failed);
        assert!(ending.event.as_str().contains("the result has 9 bytes, at most 8 are kept"));
    }

    #[test]
    fn the_last_state_of_each_line_of_standard_error_is_kept_however_it_comes() {
        for (written, kept) in [
            ("a\r\nb\r\n", "a\nb\n"),
            ("start\n 10%|#\r 20%|##\r100%|###\nend\n", "start\n100%|###\nend\n"),
            ("10%\r20%\r", "20%"),
            ("10%\r\r20%\r\r\n", "20%\n"),
            ("\r\n\r", "\n"),
            ("\ra", "a"),
            ("a\rb\n\rc\r\r\nd\r\r\re\rf", "b\nc\nf"),
        ] {
            for len in 1..=written.len() {
                let mut facts = RunFacts::new(at(1).time);
                written.as_bytes().chunks(len).for_each(|bytes| facts.keep_stderr(bytes));
                assert_eq!(facts.stderr().as_deref(), Some(kept), "{written:?} by {len}");
            }
        }
        let mut facts = RunFacts::new(at(1).time);
        facts.keep_stderr(b"first\n");
        (0..100_000).for_each(|n| facts.keep_stderr(format!("{n} of 100000\r").as_bytes()));
        assert_eq!(facts.stderr().unwrap(), "first\n99999 of 100000", "a bar drops nothing else");
        // The beginning of a line that is too long was dropped.
        facts.keep_stderr(&[b'x'; 2 * STDERR_BYTES_MAX]);
        facts.keep_stderr(b"\rlast");
        assert_eq!(facts.stderr().unwrap(), "last");
    }

    #[test]
    fn the_last_of_standard_error_is_kept() {
        let mut facts = RunFacts::new(at(1).time);
        assert_eq!(facts.stderr(), None);
        facts.keep_stderr(b"begin");
        facts.keep_stderr(&[b'x'; STDERR_BYTES_MAX - 3]);
        let kept = facts.stderr().unwrap();
        assert!(kept.starts_with("ginx") && kept.len() == STDERR_BYTES_MAX);
        facts.keep_stderr(&[b'y'; 2 * STDERR_BYTES_MAX]);
        assert_eq!(facts.stderr().unwrap(), "y".repeat(STDERR_BYTES_MAX));
        assert!(facts.bytes() <= 2 * STDERR_BYTES_MAX as u64);
    }
}
