//! The status of a source: events on a topic of its own, `NAME.status` beside `NAME`.
//!
//! Each change of [`State`] gives one event, at once. New bad lines, or another sentence for the same state, give one
//! more event, at a limited rate (by default at most once in 10 s):
//!
//! ```json
//! {"state":"live","detail":"receiving from /dev/ttyUSB0","since":1789000000123.456,"events":42,"bad_lines":1}
//! ```
//!
//! `detail` is a sentence for people, `since` the time of the last change of state in milliseconds since the Unix
//! epoch, and `events` and `bad_lines` count from the start of the source. A bad line is a line that could not be
//! published unchanged; most sources skip it. After bad lines, `detail` contains the newest one and its fault.
//!
//! The log has a warning when the state gets worse. It also has warnings about bad lines, at the same limited rate,
//! with the newest fault.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{Data, Topic, UnixTime};
use serde::Serialize;
use tokio::time::Instant;

/// The state of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// The device, program or file is being opened, or nothing has come from it yet.
    Opening,
    /// Valid messages are arriving.
    Live,
    /// The device is open, but no valid message has come for a while. Or a program has closed its output and still
    /// runs.
    Silent,
    /// The device, program or file is gone or cannot be opened. The source tries again.
    Lost,
    /// The last events cannot be kept, because the topic's disk is full, broken or behind. The source tries again,
    /// and reads nothing more until they are kept.
    Waiting,
    /// No more events will come. The input has ended, or a program is not started again.
    Ended,
}

/// One event of a status topic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The state of the source.
    pub state: State,
    /// A sentence for people that describes the state.
    pub detail: String,
    /// The time of the last change of state.
    pub since: UnixTime,
    /// The number of events published since the source started.
    pub events: u64,
    /// The number of bad lines since the source started.
    pub bad_lines: u64,
    /// The number of possible gaps since the source started. In the report after a gap, `detail` describes it.
    #[serde(skip_serializing_if = "is_zero")]
    pub gaps: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A notice that is due, for the topic or the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Notice {
    /// A report to publish, and the previous state if the state has changed.
    Report(Report, Option<State>),
    /// The number of bad lines to log, and the fault of the newest one.
    BadLines(u64, String),
}

/// Counts, and chooses the reports and their times. Pure: `now` is the time since the source started.
#[derive(Debug)]
struct Reporter {
    report: Report,
    interval: Duration,
    /// The earliest time of the next report without a change of state.
    next_at: Duration,
    /// True if something has not been reported yet.
    pending: bool,
    bad_lines_unreported: u64,
    newest_bad: String,
    /// The description of possible gaps, until they are reported.
    newest_gap: Option<String>,
    /// The last time at which [`Reporter::tell`] reported a new sentence at once.
    told_at: Option<Duration>,
}

impl Reporter {
    fn new(interval: Duration, detail: String, at: UnixTime) -> Self {
        let state = State::Opening;
        let report = Report { state, detail, since: at, events: 0, bad_lines: 0, gaps: 0 };
        Self {
            report,
            interval,
            next_at: interval,
            pending: false,
            bad_lines_unreported: 0,
            newest_bad: String::new(),
            newest_gap: None,
            told_at: None,
        }
    }

    /// Reports a change of state at once. Reports another sentence for the same state only when the next report is due.
    fn set(&mut self, now: Duration, at: UnixTime, state: State, detail: String) -> Option<Notice> {
        if self.report.state == state {
            self.pending |= self.report.detail != detail;
            self.report.detail = detail;
            return None;
        }
        let before = std::mem::replace(&mut self.report.state, state);
        self.report.detail = detail;
        self.report.since = at;
        self.next_at = now + self.interval;
        self.pending = self.bad_lines_unreported > 0;
        Some(Notice::Report(self.take_report(), Some(before)))
    }

    /// Works like [`Reporter::set`], but reports another sentence for the same state at once, too, though only once in
    /// an interval.
    fn tell(
        &mut self,
        now: Duration,
        at: UnixTime,
        state: State,
        detail: String,
    ) -> Option<Notice> {
        let is_news = self.report.state == state && self.report.detail != detail;
        let notice = self.set(now, at, state, detail);
        if !is_news || self.told_at.is_some_and(|told_at| now < told_at + self.interval) {
            return notice;
        }
        // At the start much changes within a moment.
        self.told_at = (state != State::Opening).then_some(now);
        self.next_at = now + self.interval;
        self.pending = self.bad_lines_unreported > 0;
        Some(Notice::Report(self.take_report(), None))
    }

    /// Returns the current report. Adds the description of a gap that was not reported yet.
    fn take_report(&mut self) -> Report {
        let mut report = self.report.clone();
        if let Some(gap) = self.newest_gap.take() {
            report.detail = format!("{}; {gap}", report.detail);
        }
        report
    }

    fn gap(&mut self, what: String) {
        self.report.gaps += 1;
        self.newest_gap = Some(what);
        self.pending = true;
    }

    fn bad_line(&mut self, fault: String) {
        self.report.bad_lines += 1;
        self.bad_lines_unreported += 1;
        self.newest_bad = fault;
        self.pending = true;
    }

    /// Returns the time at which to call [`Reporter::take_due`]; `None` if there is nothing to report.
    fn due(&self) -> Option<Duration> {
        self.pending.then_some(self.next_at)
    }

    fn take_due(&mut self, now: Duration) -> Vec<Notice> {
        if now < self.next_at {
            return Vec::new();
        }
        self.take(now)
    }

    /// Takes the notices about everything that was not reported yet, even if they are not due.
    fn take(&mut self, now: Duration) -> Vec<Notice> {
        if !std::mem::take(&mut self.pending) {
            return Vec::new();
        }
        self.next_at = now + self.interval;
        let mut report = self.take_report();
        let fault = std::mem::take(&mut self.newest_bad);
        // Some sentences have it already.
        if !report.detail.contains(&fault) {
            report.detail = format!("{}; the newest bad line: {fault}", report.detail);
        }
        let mut notices = vec![Notice::Report(report, None)];
        if self.bad_lines_unreported > 0 {
            notices.push(Notice::BadLines(std::mem::take(&mut self.bad_lines_unreported), fault));
        }
        notices
    }
}

/// Reports a source's status on its topic and in the log.
#[derive(Debug)]
pub(crate) struct Status {
    topic: Arc<Topic>,
    reporter: Reporter,
    /// The name of the source's topic, for lines of the log.
    source: String,
    started: Instant,
    /// The state and its sentence before the source had to wait.
    held: Option<(State, String)>,
    gaps_logged: u64,
}

impl Status {
    /// Creates the status of a source, and publishes the state `opening` with this sentence.
    pub(crate) fn open(
        topic: Arc<Topic>,
        source: String,
        interval: Duration,
        detail: String,
    ) -> Self {
        let at = wall_clock();
        let reporter = Reporter::new(interval, detail, at);
        let started = Instant::now();
        let mut status = Self { topic, reporter, source, started, held: None, gaps_logged: 0 };
        status.report(at, Notice::Report(status.reporter.report.clone(), None));
        status
    }

    pub(crate) fn state(&self) -> State {
        self.reporter.report.state
    }

    pub(crate) fn set(&mut self, state: State, detail: String) {
        let at = wall_clock();
        if let Some(notice) = self.reporter.set(self.started.elapsed(), at, state, detail) {
            self.report(at, notice);
        }
    }

    /// Sets the state like [`Status::set`]. Publishes and logs another sentence for the same state at once, though only
    /// once in an interval.
    pub(crate) fn tell(&mut self, state: State, detail: String) {
        let at = wall_clock();
        let notice = self.reporter.tell(self.started.elapsed(), at, state, detail);
        if let Some(Notice::Report(report, None)) = &notice {
            tracing::info!(topic = %self.source, "{}", report.detail);
        }
        notice.into_iter().for_each(|notice| self.report(at, notice));
    }

    /// Returns true if any line, good or bad, has come since the start of the source.
    pub(crate) fn has_lines(&self) -> bool {
        self.reporter.report.events > 0 || self.reporter.report.bad_lines > 0
    }

    /// Changes the sentence for the current state, and logs it as a warning.
    pub(crate) fn warn(&mut self, detail: String) {
        tracing::warn!(topic = %self.source, "{detail}");
        self.set(self.state(), detail);
    }

    /// Changes the state to waiting, since events cannot be kept. Remembers the state before.
    pub(crate) fn hold(&mut self, detail: String) {
        let Report { state, detail: before, .. } = &self.reporter.report;
        let before = (*state, before.clone());
        self.held.get_or_insert(before);
        self.set(State::Waiting, detail);
    }

    /// Returns to the state before the waiting, since the events are kept.
    pub(crate) fn resume(&mut self) {
        if let Some((state, detail)) = self.held.take() {
            self.set(state, detail);
        }
    }

    /// Reports the end of the source, and everything that was not reported yet.
    pub(crate) fn end(&mut self, detail: String) {
        self.set(State::Ended, detail);
        let notices = self.reporter.take(self.started.elapsed());
        self.report_all(notices);
    }

    pub(crate) fn event(&mut self) {
        self.reporter.report.events += 1;
    }

    pub(crate) fn bad_line(&mut self, fault: String) {
        self.reporter.bad_line(fault);
    }

    /// Reports that events may be missing before the next one.
    pub(crate) fn gap(&mut self, what: String) {
        self.reporter.gap(what);
        self.report_due();
    }

    /// Returns the time at which to call [`Status::report_due`].
    pub(crate) fn due(&self) -> Option<Instant> {
        Some(self.started + self.reporter.due()?)
    }

    pub(crate) fn report_due(&mut self) {
        let notices = self.reporter.take_due(self.started.elapsed());
        self.report_all(notices);
    }

    /// Waits, and makes the reports that become due meanwhile.
    pub(crate) async fn pause(&mut self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until {
            sleep_until(earliest(Some(until), self.due())).await;
            self.report_due();
        }
    }

    fn report_all(&mut self, notices: Vec<Notice>) {
        let at = wall_clock();
        notices.into_iter().for_each(|notice| self.report(at, notice));
    }

    fn report(&mut self, at: UnixTime, notice: Notice) {
        let source = &self.source;
        match notice {
            Notice::Report(report, before) => {
                let has_gap = report.gaps > std::mem::replace(&mut self.gaps_logged, report.gaps);
                match (before, report.state) {
                    _ if has_gap => tracing::warn!(topic = %source, "{}", report.detail),
                    (Some(_), State::Silent | State::Lost | State::Waiting) => {
                        tracing::warn!(topic = %source, "{}", report.detail);
                    }
                    (Some(_), State::Live | State::Opening | State::Ended) => {
                        tracing::info!(topic = %source, "{}", report.detail);
                    }
                    (None, _) => tracing::debug!(topic = %source, "{}", report.detail),
                }
                publish(&self.topic, at, &report);
            }
            Notice::BadLines(count, fault) => {
                tracing::warn!(topic = %source, count, "bad lines; the newest: {fault}");
            }
        }
    }
}

/// Formats an error and its causes in one line, for people who see nothing else of the error.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Publishes one value, and logs an error if that fails. The source continues: a value that is too big for the topic's
/// retention may be followed by a smaller one. Returns true if the value was published.
pub(crate) fn publish(topic: &Topic, at: UnixTime, value: &impl Serialize) -> bool {
    let published = Data::json(value)
        .map_err(|error| chain(&error))
        .and_then(|data| topic.publish(at, data).map_err(|error| chain(&error)));
    if let Err(error) = &published {
        tracing::error!(topic = %topic.name(), "event not published: {error}");
    }
    published.is_ok()
}

pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

pub(crate) fn earliest<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.into_iter().chain(b).min()
}

pub(crate) fn wall_clock() -> UnixTime {
    UnixTime::now()
}

/// Formats a duration, such as `250 ms` or `3 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        return format!("{} ms", duration.as_millis());
    }
    let tenths = (duration.as_secs_f64() * 10.0).round() / 10.0;
    format!("{tenths} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: UnixTime = UnixTime::from_micros(1_789_000_000_123_456);

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn reporter() -> Reporter {
        Reporter::new(secs(10), "opening".into(), AT)
    }

    #[test]
    fn a_change_of_state_is_told_at_once_and_the_same_state_is_not() {
        let mut reporter = reporter();
        let live = reporter.set(secs(1), AT, State::Live, "receiving".into());
        assert!(matches!(live, Some(Notice::Report(_, Some(State::Opening)))));
        assert_eq!(reporter.set(secs(2), AT, State::Live, "receiving".into()), None);
        assert_eq!(reporter.due(), None);
    }

    #[test]
    fn bad_lines_are_told_together_once_in_an_interval() {
        let mut reporter = reporter();
        for line in 0..3 {
            reporter.bad_line(format!("fault {line}"));
        }
        assert_eq!(reporter.due(), Some(secs(10)));
        assert_eq!(reporter.take_due(secs(9)), []);
        let notices = reporter.take_due(secs(10));
        let Notice::Report(report, None) = &notices[0] else { panic!("{notices:?}") };
        assert_eq!(
            (report.bad_lines, report.detail.as_str()),
            (3, "opening; the newest bad line: fault 2")
        );
        assert_eq!(notices[1], Notice::BadLines(3, "fault 2".into()));
        assert_eq!(reporter.due(), None);
        reporter.bad_line("again".into());
        assert_eq!(reporter.due(), Some(secs(20)));
    }

    #[test]
    fn bad_lines_are_still_told_when_the_state_changed_meanwhile() {
        let mut reporter = reporter();
        reporter.bad_line("fault".into());
        reporter.set(secs(3), AT, State::Live, "receiving".into());
        assert_eq!(reporter.due(), Some(secs(13)));
        assert_eq!(reporter.take_due(secs(13)).len(), 2);
    }

    #[test]
    fn what_may_be_missing_is_told_with_the_next_report_whatever_that_is_about() {
        let mut reporter = reporter();
        reporter.gap("some lines".into());
        reporter.gap("more lines".into());
        assert_eq!(reporter.due(), Some(secs(10)));
        let Some(Notice::Report(report, _)) = reporter.set(secs(1), AT, State::Live, "d".into())
        else {
            panic!("a change of state is told")
        };
        assert_eq!((report.detail.as_str(), report.gaps), ("d; more lines", 2));
        assert_eq!(reporter.due(), None);
        reporter.gap("again".into());
        let notices = reporter.take_due(secs(11));
        assert!(
            matches!(&notices[..], [Notice::Report(report, None)] if report.detail == "d; again")
        );
    }

    #[test]
    fn another_sentence_for_the_same_state_waits_for_its_time_and_keeps_since() {
        let mut reporter = reporter();
        reporter.set(secs(1), AT, State::Lost, "again in 1 s".into());
        let later = UnixTime::from_micros(AT.as_micros() + 9);
        assert_eq!(reporter.set(secs(2), later, State::Lost, "again in 2 s".into()), None);
        let notices = reporter.take_due(secs(11));
        let [Notice::Report(report, None)] = &notices[..] else { panic!("{notices:?}") };
        assert_eq!((report.detail.as_str(), report.since), ("again in 2 s", AT));
    }

    #[test]
    fn news_of_the_same_state_are_told_at_once_but_once_in_an_interval() {
        let mut reporter = reporter();
        assert!(reporter.tell(secs(0), AT, State::Opening, "waiting".into()).is_some());
        reporter.set(secs(1), AT, State::Live, "receiving".into());
        let told = |notice: Option<Notice>| match notice {
            Some(Notice::Report(report, None)) => report.detail,
            notice => format!("{notice:?}"),
        };
        let mut tell =
            |at, detail: &str| told(reporter.tell(secs(at), AT, State::Live, detail.into()));
        assert_eq!(tell(2, "a fault"), "a fault");
        assert_eq!(tell(3, "a fault"), "None");
        assert_eq!(tell(4, "receiving"), "None");
        assert_eq!(reporter.due(), Some(secs(12)));
        assert_eq!(reporter.take_due(secs(12)).len(), 1);
    }

    #[test]
    fn at_the_end_nothing_is_kept_back() {
        let mut reporter = reporter();
        reporter.bad_line("fault".into());
        reporter.set(secs(1), AT, State::Ended, "over".into());
        assert_eq!(reporter.take(secs(1)).len(), 2);
        assert_eq!(reporter.take(secs(1)), []);
    }

    #[test]
    fn a_report_is_written_as_documented() {
        let report = Report {
            state: State::Live,
            detail: "d".into(),
            since: AT,
            events: 2,
            bad_lines: 1,
            gaps: 0,
        };
        let json =
            r#"{"state":"live","detail":"d","since":1789000000123.456,"events":2,"bad_lines":1}"#;
        assert_eq!(serde_json::to_string(&report).unwrap(), json);
        let json = json.replace('}', r#","gaps":3}"#);
        assert_eq!(serde_json::to_string(&Report { gaps: 3, ..report }).unwrap(), json);
    }
}
