//! Logs the standard error of programs line by line, at a limited rate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::field::display;

use super::allowance::Allowance;
use crate::lines::{self, Line, Lines};
use crate::printable::printable_start;

/// The longest line of standard error that is kept for the log, in bytes.
const LOG_LINE_BYTES_MAX: usize = 4000;
const LOG_LINE_CHARS_MAX: usize = 1000;

/// The name of a program in the log.
#[derive(Clone, Debug)]
pub(super) enum LoggedAs {
    /// The topic, for a program that is a source.
    Topic(String),
    /// The path of the service, for a program that does the work of a run.
    Service(String),
}

/// A limit on the logged lines. All programs with the same name share it.
#[derive(Debug)]
pub(super) struct LogLimit {
    name: LoggedAs,
    started: Instant,
    allowance: Mutex<Allowance>,
}

impl LogLimit {
    /// Creates a limit of this many lines in each interval.
    pub(super) fn new(name: LoggedAs, lines_max: u32, interval: Duration) -> Arc<Self> {
        let allowance = Mutex::new(Allowance::new(lines_max, interval));
        Arc::new(Self { name, started: Instant::now(), allowance })
    }

    fn allowance(&self) -> MutexGuard<'_, Allowance> {
        self.allowance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the topic and the service for a line of the log. One of them is `None`.
    fn names(&self) -> [Option<&str>; 2] {
        match &self.name {
            LoggedAs::Topic(topic) => [Some(topic), None],
            LoggedAs::Service(path) => [None, Some(path)],
        }
    }

    /// Returns true if the line is within the limit, so that it was logged.
    fn log(&self, line: Line<'_>) -> bool {
        self.report_refused();
        if !self.allowance().take(self.started.elapsed()) {
            return false;
        }
        let text = match line {
            Line::Whole(line) => printable_start(&lines::text(line), LOG_LINE_CHARS_MAX),
            Line::TooLong(start) => printable_start(&lines::text(start), LOG_LINE_CHARS_MAX) + "…",
        };
        let [topic, service] = self.names().map(|name| name.map(display));
        tracing::info!(topic, service, "standard error: {text}");
        true
    }

    pub(super) fn warn(&self, what: &str) {
        self.report_refused();
        if self.allowance().take(self.started.elapsed()) {
            let [topic, service] = self.names().map(|name| name.map(display));
            tracing::warn!(topic, service, "{what}");
        }
    }

    fn report_refused(&self) {
        if let Some(count) = self.allowance().take_refused(self.started.elapsed()) {
            let [topic, service] = self.names().map(|name| name.map(display));
            tracing::warn!(topic, service, count, "more lines of standard error, not logged");
        }
    }
}

/// The standard error of one program, on its way to the log.
pub(super) struct ErrorLog {
    lines: Lines,
    limit: Arc<LogLimit>,
    /// The beginning of the last line that was not empty.
    last: Vec<u8>,
    /// True after a CR. The next text then replaces the line, unless LF follows first.
    is_returned: bool,
    /// True if a line was logged since the last call of [`ErrorLog::begin`].
    has_logged: bool,
}

/// The most characters of the last line when it explains a failure, and the bytes that they need.
const LAST_CHARS_MAX: usize = 200;
const LAST_BYTES_MAX: usize = 4 * (LAST_CHARS_MAX + 1);

impl ErrorLog {
    pub(super) fn new(limit: Arc<LogLimit>) -> Self {
        Self {
            lines: Lines::new(LOG_LINE_BYTES_MAX),
            limit,
            last: Vec::new(),
            is_returned: false,
            has_logged: false,
        }
    }

    /// Begins with another run of the program.
    pub(super) fn begin(&mut self) {
        self.has_logged = false;
    }

    pub(super) fn has_logged(&self) -> bool {
        self.has_logged
    }

    /// Returns the time at which to call [`ErrorLog::report_refused`].
    pub(super) fn due(&self) -> Option<Instant> {
        Some(self.limit.started + self.limit.allowance().due()?)
    }

    /// Takes more bytes. A CR begins a line anew, as in a progress bar, and only the text after the last CR is kept.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            // An empty text replaces nothing: `\r\r` is like `\r`.
            let len = text.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
            let shown = text[..len].rsplit(|byte| *byte == b'\r').next().unwrap_or_default();
            if len > 0 && (self.is_returned || shown.len() < len) {
                self.lines.restart();
            }
            self.take(shown);
            self.take(&line[text.len()..]);
            let was_returned = self.is_returned && len == 0;
            self.is_returned = text.len() == line.len() && (was_returned || len < text.len());
        }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(line) = self.lines.next(&mut bytes) {
            keep(&mut self.last, &line);
            self.has_logged |= self.limit.log(line);
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(line) = self.lines.finish() {
            keep(&mut self.last, &line);
            self.has_logged |= self.limit.log(line);
        }
    }

    /// Returns the last line that was not empty, cut to 200 characters and safe for a terminal.
    pub(super) fn last(&self) -> Option<String> {
        let text = lines::text(&self.last);
        (!text.is_empty()).then(|| printable_start(&text, LAST_CHARS_MAX))
    }

    pub(super) fn report_refused(&self) {
        self.limit.report_refused();
    }
}

fn keep(last: &mut Vec<u8>, line: &Line<'_>) {
    let (Line::Whole(line) | Line::TooLong(line)) = line;
    let line = line.trim_ascii();
    if !line.is_empty() {
        last.clear();
        last.extend_from_slice(&line[..line.len().min(LAST_BYTES_MAX)]);
    }
}

#[cfg(test)]
mod tests {
    use anemone_testing::Log;

    use super::*;

    #[test]
    fn a_line_that_begins_anew_is_told_once_as_it_was_last() {
        let log = Log::keep();
        let limit = LogLimit::new(LoggedAs::Topic("a".to_owned()), 9, Duration::from_secs(3600));
        let mut errors = ErrorLog::new(limit);
        let bar: String = (0..1_000).map(|n| format!("{n} of 1000 |#####|\r")).collect();
        let written = format!("one\r\n{bar}1000 of 1000\r\n{bar}it is broken");
        written.as_bytes().chunks(7).for_each(|bytes| errors.receive(bytes));
        errors.finish();
        let texts = ["one", "1000 of 1000", "it is broken"];
        assert_eq!(log.lines(), texts.map(|text| format!("INFO standard error: {text} topic=a")));
        assert_eq!(errors.last().as_deref(), Some("it is broken"));
    }

    #[test]
    fn programs_under_one_name_share_its_limit() {
        let log = Log::keep();
        let name = LoggedAs::Service("/work".to_owned());
        let limit = LogLimit::new(name, 2, Duration::from_secs(3600));
        let mut errors = [0, 1].map(|_| ErrorLog::new(Arc::clone(&limit)));
        errors[0].receive(b"a\x1b[1m\n");
        errors[1].receive(b"b");
        errors[1].finish();
        errors[0].receive(b"c\n");
        limit.warn("no more either");
        let expected = [
            "INFO standard error: a\\u001b[1m service=/work",
            "INFO standard error: b service=/work",
        ];
        assert_eq!(log.lines(), expected);
        assert!(errors.iter().all(|errors| errors.due().is_some()));
    }
}
