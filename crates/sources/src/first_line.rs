//! The first line of a source, and a warning if it does not come.
//!
//! If the output of a program is not a terminal, most programs buffer some kilobytes. The source then seems broken, and
//! without the warning nothing would explain it.

use std::time::Duration;

use tokio::time::Instant;

use crate::status::{State, Status, seconds};

/// The time without a line before the warning. Default 10 s: somebody who tries the source out is still watching.
pub(crate) const WAIT_DEFAULT: Duration = Duration::from_secs(10);

/// The advice for a program whose first line does not come.
pub(crate) const MAY_BUFFER: &str = ": if it should have written one, it may be buffering its output (python3 -u, stdbuf \
                                     -oL, grep --line-buffered)";

/// A warning that the first line does not come. It comes once for a source, however often the source is started.
#[derive(Debug)]
pub(crate) struct FirstLine {
    wait: Duration,
    due: Option<Instant>,
    is_told: bool,
}

impl FirstLine {
    pub(crate) fn new(wait: Duration) -> Self {
        Self { wait, due: None, is_told: false }
    }

    /// Starts the timer, since lines can come now.
    pub(crate) fn expect(&mut self) {
        self.due = (!self.is_told).then(|| Instant::now() + self.wait);
    }

    /// Stops the timer, since no line can come any more.
    pub(crate) fn give_up(&mut self) {
        self.due = None;
    }

    /// Returns the time of the next [`FirstLine::report_due`].
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Warns that no line has come from `from` yet, and adds the advice. Does nothing before the time [`FirstLine::due`].
    pub(crate) fn report_due(&mut self, status: &mut Status, from: &str, advice: &str) {
        if self.due.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.due = None;
        if status.state() == State::Opening && !status.has_lines() {
            self.is_told = true;
            status.warn(format!("no line from {from} in {}{advice}", seconds(self.wait)));
        }
    }
}
