//! Results and progress together on a terminal: a result is printed above the bar, which is drawn again below it.
//!
//! To draw takes longer than to print. So results that come soon after others wait, and are printed together.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::bar::Bar;
use crate::output;

/// The shortest time between two prints, 15 a second.
const INTERVAL: Duration = Duration::from_millis(66);
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Standard output, and the bar.
pub(super) struct Screen {
    pub(super) bar: Bar,
    /// True if the bar is on the terminal of standard output.
    is_shared: bool,
    /// The results that are not printed yet.
    waiting: Vec<u8>,
    /// The earliest time of the next print.
    due_at: Option<Instant>,
}

impl Screen {
    pub(super) fn new(is_quiet: bool) -> Self {
        let bar = Bar::new(is_quiet);
        let is_shared = io::stdout().is_terminal() && !bar.is_hidden();
        Self { bar, is_shared, waiting: Vec::new(), due_at: None }
    }

    /// Prints a result, maybe later. Returns false once nobody reads the output.
    pub(super) fn print(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if !self.is_shared {
            return output::write(bytes);
        }
        self.waiting.extend_from_slice(bytes);
        let is_due = self.due_at.is_none_or(|due_at| due_at <= Instant::now());
        if is_due || self.waiting.len() >= WAITING_BYTES_MAX { self.flush() } else { Ok(true) }
    }

    /// Waits until the results that wait are to be printed; forever if none do. Cancel safe.
    pub(super) async fn due(&self) {
        match self.due_at.filter(|_| !self.waiting.is_empty()) {
            Some(due_at) => sleep_until(due_at).await,
            None => std::future::pending().await,
        }
    }

    /// Prints what waits. Returns false once nobody reads the output.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        if self.waiting.is_empty() {
            return Ok(true);
        }
        let printed = self.bar.suspend(|| output::write(&self.waiting));
        self.waiting.clear();
        // A terminal may be slow.
        self.due_at = Some(Instant::now() + INTERVAL);
        printed
    }

    /// Prints what waits, and then something else. Returns false once nobody reads the output.
    pub(super) fn after_all(&mut self, print: impl FnOnce()) -> io::Result<bool> {
        let is_read = self.flush()?;
        self.bar.suspend(print);
        Ok(is_read)
    }

    /// Prints what waits, and removes the bar. Returns false once nobody reads the output.
    pub(super) fn clear(&mut self) -> io::Result<bool> {
        let is_read = self.flush();
        self.bar.clear();
        is_read
    }
}
