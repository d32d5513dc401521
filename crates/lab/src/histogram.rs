//! Durations counted in classes, so that the percentiles of many samples can be computed together.

use std::time::Duration;

/// The number of classes for each doubling, as a power of two: durations are exact to 1 %.
const CLASSES_LOG2: u32 = 7;
const CLASSES: u64 = 1 << CLASSES_LOG2;

/// The number of durations in each class.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
}

impl Histogram {
    pub(crate) fn record(&mut self, time: Duration) {
        let class = class(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Returns the duration that this share of all does not exceed; `None` if there are none.
    pub(crate) fn percentile(&self, share: f64) -> Option<Duration> {
        let all: u64 = self.counts.iter().sum();
        let rank = ((all as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let class = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        class.map(|class| Duration::from_nanos(longest(class)))
    }
}

/// Short durations have one class each; from there on each doubling has the same number of classes.
fn class(ns: u64) -> usize {
    let doubling = ns.checked_ilog2().unwrap_or(0).saturating_sub(CLASSES_LOG2);
    (u64::from(doubling) * CLASSES + (ns >> doubling)) as usize
}

/// Returns the longest duration in a class.
fn longest(class: usize) -> u64 {
    let class = class as u64;
    let doubling = (class / CLASSES).saturating_sub(1);
    let from = class - doubling * CLASSES;
    ((from + 1) << doubling) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_as_wide_as_one_per_cent_of_its_times() {
        for ns in (0..2000).chain([12_345, 999_999, 1_000_000, 123_456_789, 60_000_000_000]) {
            let longest = longest(class(ns));
            assert!(ns <= longest && longest - ns <= ns / 100, "{ns} counts as {longest}");
        }
    }

    #[test]
    fn longer_times_never_have_an_earlier_class() {
        assert!((0..100_000_u64).is_sorted_by_key(class));
    }

    #[test]
    fn percentiles_are_those_of_all_that_was_put_together() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        assert_eq!(one.percentile(0.5), None);
        (1..=98).for_each(|us| one.record(Duration::from_nanos(us)));
        other.record(Duration::from_secs(1));
        other.record(Duration::from_secs(2));
        one.add(&other);
        let ns = |share| one.percentile(share).unwrap().as_nanos();
        assert_eq!((ns(0.0), ns(0.5), ns(0.98)), (1, 50, 98));
        assert!((1_000_000_000..1_010_000_000).contains(&ns(0.99)));
        assert!((2_000_000_000..2_020_000_000).contains(&ns(1.0)));
    }
}
