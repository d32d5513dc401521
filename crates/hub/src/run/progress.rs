//! The progress of a run: which reports become events. Pure.

use std::time::{Duration, Instant};

use super::estimate::Estimate;

/// The shortest time between two reports that become events: 10 of them a second.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

const TEXT_CHARS_MAX: usize = 200;

/// The newest report, and whether it is an event already.
#[derive(Debug)]
pub(crate) struct RunProgress {
    estimate: Estimate,
    /// `None` before the first report.
    value: Option<f64>,
    /// The latest words.
    text: Option<String>,
    /// True if the latest words were not told.
    has_text: bool,
    told_at: Option<Instant>,
    is_untold: bool,
}

/// A report that becomes an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Report<'a> {
    pub(crate) value: f64,
    pub(crate) text: Option<&'a str>,
    pub(crate) left: Option<Duration>,
}

impl RunProgress {
    /// Begins when the work does.
    pub(crate) fn new(now: Instant) -> Self {
        let estimate = Estimate::new(now);
        Self { estimate, value: None, text: None, has_text: false, told_at: None, is_untold: false }
    }

    /// Takes a report. The value is clamped to 0 to 1; one that is not a number leaves it as it is. Of a text, the
    /// first 200 characters count. Without a text, the earlier one stays in the state.
    pub(crate) fn report(&mut self, now: Instant, value: f64, text: Option<&str>) {
        let before = self.value.unwrap_or_default();
        let value = if value.is_nan() { before } else { value.clamp(0.0, 1.0) };
        self.estimate.report(now, value);
        self.value = Some(value);
        if let Some(text) = text {
            self.text = Some(text.chars().take(TEXT_CHARS_MAX).collect());
            self.has_text = true;
        }
        self.is_untold = true;
    }

    /// Returns the newest report, if it is no event yet and may become one now.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Report<'_>> {
        let is_early = |told_at| now.saturating_duration_since(told_at) < INTERVAL;
        if self.told_at.is_some_and(is_early) { None } else { self.rest(now) }
    }

    /// Returns the newest report, if it is no event yet: nothing follows, and the last one is always kept.
    pub(crate) fn rest(&mut self, now: Instant) -> Option<Report<'_>> {
        if !std::mem::take(&mut self.is_untold) {
            return None;
        }
        self.told_at = Some(now);
        let has_text = std::mem::take(&mut self.has_text);
        let text = self.text.as_deref().filter(|_| has_text);
        Some(Report { value: self.value?, text, left: self.estimate.left(now) })
    }

    /// Drops a report that is no event yet. Its words are told with the next one, unless that has its own.
    pub(crate) fn drop_untold(&mut self) {
        self.is_untold = false;
    }

    /// Returns true if a report waits to become an event.
    pub(crate) fn is_untold(&self) -> bool {
        self.is_untold
    }

    pub(crate) fn value(&self) -> Option<f64> {
        self.value
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        self.value.and_then(|_| self.estimate.left(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn ten_reports_a_second_become_events_and_the_newest_is_never_lost() {
        let begun = Instant::now();
        let mut progress = RunProgress::new(begun);
        let mut told = Vec::new();
        for milli in 0..1_000_u64 {
            let now = begun + millis(milli);
            progress.report(now, milli as f64 / 1_000.0, None);
            told.extend(progress.due(now).map(|report| report.value));
        }
        assert_eq!(told, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]);
        assert_eq!(progress.value(), Some(0.999));
        assert!(progress.is_untold());
        assert_eq!(progress.rest(begun + millis(1_000)).unwrap().value, 0.999);
        assert_eq!(progress.rest(begun + millis(2_000)), None);
    }

    #[test]
    fn a_withheld_report_becomes_an_event_later_with_its_words() {
        let begun = Instant::now();
        let mut progress = RunProgress::new(begun);
        progress.report(begun, 0.1, Some("first"));
        assert_eq!(progress.due(begun).unwrap().text, Some("first"));
        progress.report(begun + millis(10), 0.2, Some("second"));
        progress.report(begun + millis(20), 0.3, None);
        assert_eq!(progress.due(begun + millis(99)), None);
        let report = progress.due(begun + millis(100)).unwrap();
        assert_eq!((report.value, report.text), (0.3, Some("second")));
        progress.report(begun + millis(500), 0.4, None);
        assert_eq!(progress.due(begun + millis(500)).unwrap().text, None);
        assert_eq!(progress.text(), Some("second"));
    }

    #[test]
    fn a_dropped_report_is_no_event_but_its_words_come_with_the_next() {
        let begun = Instant::now();
        let mut progress = RunProgress::new(begun);
        progress.report(begun, 0.1, None);
        assert_eq!(progress.due(begun).unwrap().text, None);
        progress.report(begun + millis(10), 0.2, Some("second"));
        progress.drop_untold();
        assert_eq!(progress.due(begun + millis(500)), None);
        assert_eq!(progress.rest(begun + millis(500)), None);
        assert_eq!((progress.value(), progress.text()), (Some(0.2), Some("second")));
        progress.report(begun + millis(600), 0.3, None);
        let report = progress.due(begun + millis(600)).unwrap();
        assert_eq!((report.value, report.text), (0.3, Some("second")));
    }

    #[test]
    fn values_are_clamped_and_words_are_cut() {
        let begun = Instant::now();
        let mut progress = RunProgress::new(begun);
        let cases = [(-1.0, 0.0), (7.0, 1.0), (f64::NAN, 1.0), (f64::INFINITY, 1.0), (0.5, 0.5)];
        for (value, clamped) in cases {
            progress.report(begun, value, Some(&"é".repeat(500)));
            assert_eq!(progress.value(), Some(clamped), "{value}");
        }
        assert_eq!(progress.text().unwrap().chars().count(), 200);
    }
}
