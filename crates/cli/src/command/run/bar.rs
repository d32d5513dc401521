//! The progress of a run, below its output on a terminal. Elsewhere nothing is drawn.

use std::time::Duration;

use anemone_client::{RunChange, RunProgress, RunState};
use anemone_sources::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The steps of a whole bar.
const STEPS: u64 = 1000;

/// The most times that it is drawn in a second.
const HZ: u8 = 15;

pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(is_quiet: bool) -> Self {
        let target = if is_quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(HZ)
        };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        Self(bar.with_style(style("{wide_msg}")))
    }

    /// Returns true if nothing is drawn.
    pub(super) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    pub(super) fn progress(&self, progress: &RunProgress) {
        if let Some(done) = progress.done {
            self.0.set_style(style("{bar:30} {percent:>3}% {wide_msg}"));
            self.0.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
        }
        self.0.set_message(words(progress));
    }

    pub(super) fn state(&self, change: &RunChange) {
        self.0.set_message(match (change.state, change.place) {
            (RunState::Queued, Some(0)) => "queued, next".to_owned(),
            (RunState::Queued, Some(1)) => "queued, after 1 run".to_owned(),
            (RunState::Queued, Some(place)) => format!("queued, after {place} runs"),
            (state, _) => state.to_string(),
        });
    }

    /// Removes the bar while something else is printed.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// The templates here are valid.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Returns the text of a run and the time left. The text comes from the server, and may be anything.
fn words(progress: &RunProgress) -> String {
    let text = progress.text.as_deref().map(printable).unwrap_or_default();
    match progress.left {
        Some(left) if text.is_empty() => format!("{} left", time(left)),
        Some(left) => format!("{text}, {} left", time(left)),
        None => text.into_owned(),
    }
}

/// Returns a time in its two largest units.
fn time(left: Duration) -> String {
    let seconds = left.as_secs_f64().round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_in_words_that_a_terminal_does_not_obey() {
        let progress = |text: Option<&str>, left| RunProgress {
            done: Some(0.5),
            text: text.map(str::to_owned),
            left: Some(Duration::from_secs_f64(left)),
        };
        assert_eq!(words(&progress(Some("a\u{1b}[2J\nb"), 12.3)), "a\\u001b[2J\\nb, 12 s left");
        assert_eq!(words(&progress(None, 83.0)), "1 min 23 s left");
        assert_eq!(words(&progress(None, 7265.0)), "2 h 1 min left");
        assert_eq!(words(&RunProgress::default()), "");
    }
}
