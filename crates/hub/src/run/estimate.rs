//! The estimate of the time that a run still needs. Pure.

use std::time::{Duration, Instant};

/// The time after which a report counts half: recent speed counts more, and one slow or fast step does not count much.
const HALF_LIFE: Duration = Duration::from_secs(30);

/// The longest time left that is told; beyond a year, nothing is known.
const LEFT_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Extrapolates progress by its *exponentially weighted mean speed*.
///
/// Each report has gained `dp` in a time `dt`. Both sums forget alike, `D = D·2^(-dt/30s) + dp` and
/// `T = T·2^(-dt/30s) + dt`. The speed is `D/T`, and `left = (1 - p)·T/D`. So the first reports give the plain
/// `elapsed·(1 - p)/p`, and a constant speed gives an exact estimate. Until the next report, the estimate counts down.
/// Once it has run down, it was wrong, and nothing is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    progress: f64,
    at: Instant,
    gained: f64,
    seconds: f64,
}

impl Estimate {
    /// Begins at no progress.
    pub(crate) fn new(now: Instant) -> Self {
        Self { progress: 0.0, at: now, gained: 0.0, seconds: 0.0 }
    }

    /// Takes a report: a progress from 0 to 1. After a step back, it begins anew from there. A time before the last
    /// report counts as the same.
    pub(crate) fn report(&mut self, now: Instant, progress: f64) {
        let seconds = now.saturating_duration_since(self.at).as_secs_f64();
        let now = self.at.max(now);
        if progress < self.progress {
            *self = Self { progress, at: now, gained: 0.0, seconds: 0.0 };
            return;
        }
        let kept = (-seconds / HALF_LIFE.as_secs_f64()).exp2();
        self.gained = self.gained * kept + (progress - self.progress);
        self.seconds = self.seconds * kept + seconds;
        (self.progress, self.at) = (progress, now);
    }

    /// Returns the time left; `None` while there is no speed, if it has run down, or if it is more than a year.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        if self.progress >= 1.0 {
            return Some(Duration::ZERO);
        }
        let seconds = (1.0 - self.progress) * self.seconds / self.gained;
        // Neither without a gain nor without a time is there a speed.
        let is_known = self.gained > 0.0 && self.seconds > 0.0;
        let left = is_known.then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()?;
        let left = left.checked_sub(now.saturating_duration_since(self.at))?;
        (left <= LEFT_MAX).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn left(estimate: &Estimate, now: Instant) -> Option<f64> {
        estimate.left(now).map(|left| (left.as_secs_f64() * 1e6).round() / 1e6)
    }

    #[test]
    fn a_constant_speed_is_extrapolated_exactly_and_counts_down() {
        let begun = Instant::now();
        let mut estimate = Estimate::new(begun);
        assert_eq!(left(&estimate, begun + seconds(5.0)), None);
        for step in 1..=50 {
            let now = begun + seconds(f64::from(step) * 2.0);
            estimate.report(now, f64::from(step) / 100.0);
            assert_eq!(left(&estimate, now), Some(f64::from(100 - step) * 2.0));
        }
        assert_eq!(left(&estimate, begun + seconds(130.0)), Some(70.0));
        assert_eq!(left(&estimate, begun + seconds(200.0)), Some(0.0));
        assert_eq!(left(&estimate, begun + seconds(201.0)), None, "it has run down");
    }

    #[test]
    fn a_new_speed_counts_more_with_time() {
        let begun = Instant::now();
        let mut estimate = Estimate::new(begun);
        estimate.report(begun + seconds(100.0), 0.5);
        for step in 1..=20 {
            estimate.report(
                begun + seconds(100.0 + 10.0 * f64::from(step)),
                0.5 + 0.01 * f64::from(step),
            );
        }
        // Ten times slower for 200 s: 300 s are left, of which the first speed would take 60 s.
        let left = left(&estimate, begun + seconds(300.0)).unwrap();
        assert!((200.0..300.0).contains(&left), "{left}");
    }

    #[test]
    fn a_step_back_begins_anew_and_the_end_leaves_nothing() {
        let begun = Instant::now();
        let mut estimate = Estimate::new(begun);
        estimate.report(begun + seconds(10.0), 0.9);
        estimate.report(begun + seconds(20.0), 0.1);
        assert_eq!(left(&estimate, begun + seconds(20.0)), None);
        estimate.report(begun + seconds(21.0), 0.2);
        assert_eq!(left(&estimate, begun + seconds(21.0)), Some(8.0));
        estimate.report(begun + seconds(21.0), 1.0);
        assert_eq!(left(&estimate, begun + seconds(22.0)), Some(0.0));
    }

    proptest! {
        #[test]
        fn any_reports_give_a_time_within_bounds_or_none(
            reports in prop::collection::vec((0.0..1e5_f64, 0.0..=1.0_f64), 0..50),
            back in 0.0..100.0_f64,
        ) {
            let mut now = Instant::now() + seconds(1_000.0);
            let mut estimate = Estimate::new(now);
            for (later, progress) in reports {
                now += seconds(later);
                estimate.report(now, progress);
                // Clocks of several threads may be read in another order.
                estimate.report(now - seconds(back), progress);
                for at in [now - seconds(back), now, now + seconds(later)] {
                    prop_assert!(estimate.left(at).is_none_or(|left| left <= LEFT_MAX));
                }
            }
        }
    }
}
