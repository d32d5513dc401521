//! The first line of a source, and the words for one that does not come.
//!
//! A program whose output is no terminal mostly holds it back until it has some kilobytes: that looks like a source that
//! does not work, and nothing else would say why.

use std::time::Duration;

use tokio::time::Instant;

use crate::status::{State, Status, seconds};

/// The time without a line after which that is told. Default: 10 s, in which whoever tries something out still looks.
pub(crate) const WAIT_DEFAULT: Duration = Duration::from_secs(10);

/// Told once for a source, however often it is started.
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

    /// Lines could come from now on.
    pub(crate) fn expect(&mut self) {
        self.due = (!self.is_told).then(|| Instant::now() + self.wait);
    }

    /// None can come any more.
    pub(crate) fn give_up(&mut self) {
        self.due = None;
    }

    /// The time at which [`FirstLine::tell_due`] may have something to tell.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Tells that nothing has come of `from` yet, if so.
    pub(crate) fn tell_due(&mut self, status: &mut Status, from: &str) {
        if self.due.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.due = None;
        if status.state() == State::Opening && !status.has_lines() {
            self.is_told = true;
            status.warn(format!(
                "no line from {from} in {}: if it should have written one, it may be buffering its output \
                 (python3 -u, stdbuf -oL, grep --line-buffered)",
                seconds(self.wait)
            ));
        }
    }
}
