//! Computes medians, their bootstrap intervals, and differences of pairs.
//!
//! The unit of replication is the round. Each round gives one value, and the result of a run is the median of these values.

mod random;
mod resamples;
mod walsh;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

pub(crate) use self::random::Random;
pub(crate) use self::resamples::in_parallel;
use self::resamples::{Draw, Ordered, medians, of_all};
use self::walsh::hodges_lehmann;

/// The number of resamples for a shift. It is less than for a median, since each costs more.
const SHIFT_RESAMPLES: usize = 2_000;
/// The share of all cases in which an interval does not contain the true value.
pub(crate) const DOUBT: f64 = 0.05;

/// An estimate of a median, a shift, or a difference of means. Its interval contains the true value with some
/// confidence.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Estimate {
    /// The estimate. In reports, its name has been `median` since their first version, whatever is estimated.
    #[serde(rename = "median")]
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Estimate {
    /// Returns the median of `values` with its interval, by bootstrap with expanded percentiles. Returns `None` if
    /// there are no values.
    pub(crate) fn of(values: &[f64], random: &mut Random) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        medians(&[[values]], random).pop().map(|medians| Self::within_resamples(values, medians))
    }

    /// Returns the estimates of many samples. Each is drawn with the seed 1. Calls `step` after each sample that has
    /// values.
    pub(crate) fn of_all(
        samples: impl IntoIterator<Item = Vec<f64>>,
        step: impl Fn() + Sync,
    ) -> Vec<Option<Self>> {
        let items: Vec<_> = samples.into_iter().map(|sample| [sample]).collect();
        of_all(&items, step, |at, medians| Self::within_resamples(&items[at][0], medians))
    }

    fn within_resamples(values: &[f64], medians: Vec<[f64; 1]>) -> Self {
        let mut medians = medians.into_flattened();
        medians.sort_unstable_by(f64::total_cmp);
        within(median(values).unwrap_or(f64::NAN), &medians, expanded(DOUBT, values.len()))
    }

    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Returns the shift of `of` against `to`, paired by round. It is the Hodges-Lehmann estimate of the differences: the
/// median of their pairwise means. Its interval is by bootstrap with expanded percentiles. Returns `None` if there are
/// no pairs.
pub(crate) fn shift(of: &[f64], to: &[f64], random: &mut Random) -> Option<Estimate> {
    let differences: Vec<_> = of.iter().zip(to).map(|(of, to)| of - to).collect();
    let ordered = Ordered::of(&differences);
    let middle = hodges_lehmann(&ordered.values)?;
    let (mut draw, mut drawn) = (Draw::of(differences.len()), Vec::new());
    let shifts = (0..SHIFT_RESAMPLES).filter_map(|_| {
        draw.renew(random);
        ordered.draw(&draw, &mut drawn);
        hodges_lehmann(&drawn)
    });
    let mut shifts: Vec<_> = shifts.collect();
    shifts.sort_unstable_by(f64::total_cmp);
    Some(within(middle, &shifts, expanded(DOUBT, differences.len())))
}

/// The change of a figure's median from one run to another. The runs have no rounds in common, so the rounds of each
/// are drawn separately.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    from: f64,
    to: f64,
    /// The number of rounds of the run that has fewer.
    rounds: usize,
    /// The differences between the medians of resamples, in ascending order.
    differences: Vec<f64>,
    /// The same differences in per cent of the first median; empty if that is zero in any resample.
    per_cent: Vec<f64>,
}

impl Change {
    /// Draws the rounds of both runs. Returns `None` if one of them has no rounds.
    #[cfg(test)]
    pub(crate) fn of(from: &[f64], to: &[f64]) -> Option<Self> {
        Self::of_all([[from.to_vec(), to.to_vec()]], || {}, |_, change| change).pop()?
    }

    /// Draws the rounds of both runs for many figures, each with the seed 1. Passes the index and the change of each
    /// figure to `of`, and returns its results. The result is `None` for a figure of which a run has no rounds. Calls
    /// `step` after each other figure.
    pub(crate) fn of_all<R: Send>(
        figures: impl IntoIterator<Item = [Vec<f64>; 2]>,
        step: impl Fn() + Sync,
        of: impl Fn(usize, Self) -> R + Sync,
    ) -> Vec<Option<R>> {
        let figures: Vec<_> = figures.into_iter().collect();
        of_all(&figures, step, |at, medians| of(at, Self::within_resamples(&figures[at], &medians)))
    }

    fn within_resamples(samples: &[Vec<f64>; 2], medians: &[[f64; 2]]) -> Self {
        let [from, to] = samples.each_ref().map(|values| median(values).unwrap_or(f64::NAN));
        let (differences, per_cent) =
            medians.iter().map(|[one, other]| (other - one, (other / one - 1.0) * 100.0)).unzip();
        let rounds = samples[0].len().min(samples[1].len());
        let mut change = Self { from, to, rounds, differences, per_cent };
        change.differences.sort_unstable_by(f64::total_cmp);
        change.per_cent.sort_unstable_by(f64::total_cmp);
        if !change.per_cent.iter().all(|value| value.is_finite()) {
            change.per_cent.clear();
        }
        change
    }

    /// Returns the number of rounds of the run that has fewer.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    pub(crate) fn medians(&self) -> [f64; 2] {
        [self.from, self.to]
    }

    /// Returns the difference. `doubt` is the share of all cases in which its interval does not contain the true value.
    pub(crate) fn difference(&self, doubt: f64) -> Estimate {
        within(self.to - self.from, &self.differences, expanded(doubt, self.rounds))
    }

    /// Returns the difference in per cent of the first median; `None` if that may be zero.
    pub(crate) fn per_cent(&self, doubt: f64) -> Option<Estimate> {
        let middle = (self.to / self.from - 1.0) * 100.0;
        (!self.per_cent.is_empty())
            .then(|| within(middle, &self.per_cent, expanded(doubt, self.rounds)))
    }
}

/// Returns the share of resamples that an interval must leave out. Such an interval misses the true value in `doubt` of
/// all cases.
///
/// Resamples of few values vary too little, so the interval of their percentiles would be too narrow. Student's
/// distribution corrects that (Hesterberg, What Teachers Should Know About the Bootstrap, 2015: expanded percentiles).
/// The widest interval is that of all resamples; four values or fewer reach it.
fn expanded(doubt: f64, count: usize) -> f64 {
    let freedom = count.saturating_sub(1).max(1) as f64;
    let (Ok(student), Ok(normal)) = (StudentsT::new(0.0, 1.0, freedom), Normal::new(0.0, 1.0))
    else {
        return doubt;
    };
    let reach = student.inverse_cdf(doubt / 2.0) * ((freedom + 1.0) / freedom).sqrt();
    2.0 * normal.cdf(reach)
}

/// Returns an estimate. Its interval leaves out half of `doubt` at each end of the resamples, which are in ascending
/// order.
fn within(value: f64, resamples: &[f64], doubt: f64) -> Estimate {
    let at = |share: f64| resamples[((resamples.len() - 1) as f64 * share).round() as usize];
    Estimate { value, low: at(doubt / 2.0), high: at(1.0 - doubt / 2.0) }
}

/// Returns the difference between the means of `of` and `to`, with the interval of Welch's test (unequal variances) at
/// this level of confidence. Returns `None` if one of them has fewer than two values.
pub(crate) fn welch(of: &[f64], to: &[f64], confidence: f64) -> Option<Estimate> {
    let ((mean, share), (to_mean, to_share)) = (mean_and_share(of)?, mean_and_share(to)?);
    let error = (share + to_share).sqrt();
    let middle = mean - to_mean;
    if error == 0.0 {
        return Some(Estimate { value: middle, low: middle, high: middle });
    }
    let freedom = (share + to_share).powi(2)
        / (share.powi(2) / (of.len() as f64 - 1.0) + to_share.powi(2) / (to.len() as f64 - 1.0));
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let reach = error * student.inverse_cdf(0.5 + confidence / 2.0);
    Some(Estimate { value: middle, low: middle - reach, high: middle + reach })
}

/// Returns the mean, and the variance of that mean.
fn mean_and_share(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() >= 2).then(|| (mean, squares / (count - 1.0) / count))
}

/// Returns the median: the middle value, or the mean of the two middle values. Returns `None` if there are no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    middle(&sorted)
}

/// Returns the median of values that are in ascending order.
fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn an_interval_of_few_values_leaves_out_less_of_its_resamples() {
        // Student's distribution with 9 degrees of freedom: 2.262, times the root of 10/9, is exceeded by 1.71 % of the normal
        // one on both sides.
        assert!((expanded(0.05, 10) - 0.0171).abs() < 1e-4, "{}", expanded(0.05, 10));
        assert!(expanded(0.05, 2) < 1e-6 && (expanded(0.05, 1000) - 0.05).abs() < 1e-3);
        assert!(expanded(0.05, 1).is_finite() && expanded(0.05, 0).is_finite());
    }

    #[test]
    fn equal_values_leave_no_doubt() {
        let estimate = Estimate::of(&[1.5; 10], &mut Random::new(1));
        assert_eq!(estimate, Some(Estimate { value: 1.5, low: 1.5, high: 1.5 }));
    }

    #[test]
    fn an_estimate_is_written_and_read_as_in_earlier_reports() {
        let (estimate, json) = (
            Estimate { value: 1.5, low: 1.0, high: 2.0 },
            r#"{"median":1.5,"low":1.0,"high":2.0}"#,
        );
        assert_eq!(serde_json::to_string(&estimate).unwrap(), json);
        assert_eq!(serde_json::from_str::<Estimate>(json).unwrap(), estimate);
    }

    #[test]
    fn the_interval_holds_the_median_nineteen_times_in_twenty() {
        // Medians of ten numbers from 0 to 1, whose true median is a half.
        let mut random = Random::new(7);
        let held = (0..400).filter(|_| {
            let values: Vec<f64> =
                (0..10).map(|_| random.next() as f64 / u64::MAX as f64).collect();
            Estimate::of(&values, &mut Random::new(1)).is_some_and(|estimate| estimate.holds(0.5))
        });
        let held = held.count();
        assert!((366..=394).contains(&held), "{held} of 400");
    }

    /// Returns a random number with nearly the normal distribution: the sum of twelve uniform numbers.
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.next() as f64 / u64::MAX as f64).sum::<f64>() - 6.0
    }

    #[test]
    fn equal_contenders_differ_once_in_twenty_times() {
        let mut random = Random::new(11);
        let mut contain = [0, 0];
        for _ in 0..400 {
            let [of, to] = [0, 1].map(|_| (0..10).map(|_| normal(&mut random)).collect::<Vec<_>>());
            contain[0] += usize::from(shift(&of, &to, &mut Random::new(1)).unwrap().holds(0.0));
            contain[1] += usize::from(welch(&of, &to, 0.95).unwrap().holds(0.0));
        }
        // 380 are expected, and in 99 of 100 cases 368 to 391.
        assert!(contain.iter().all(|held| (368..=391).contains(held)), "{contain:?} of 400");
    }

    #[test]
    fn a_known_difference_is_found() {
        let mut random = Random::new(3);
        let to: Vec<f64> = (0..10).map(|_| 40.0 + 0.3 * normal(&mut random)).collect();
        let of: Vec<f64> = to.iter().map(|ms| ms + 1.0 + 0.3 * normal(&mut random)).collect();
        for found in [shift(&of, &to, &mut random), welch(&of, &to, 0.99)] {
            let found = found.unwrap();
            assert!(found.holds(1.0) && !found.holds(0.0), "{found:?}");
        }
    }

    #[test]
    fn runs_are_compared_without_their_rounds_being_pairs() {
        let mut random = Random::new(9);
        let mut run = |middle: f64| -> Vec<f64> {
            (0..12).map(|_| middle + 0.1 * normal(&mut random)).collect()
        };
        let mut apart = 0;
        for _ in 0..100 {
            let (from, to) = (run(10.0), run(10.0));
            let change = Change::of(&from, &to).unwrap();
            apart += usize::from(!change.difference(DOUBT).holds(0.0));
        }
        assert!(apart <= 12, "{apart} of 100 equal runs seem different");
        let change = Change::of(&run(10.0), &run(11.0)).unwrap();
        assert!(change.difference(DOUBT / 50.0).low > 0.5, "{change:?}");
        let per_cent = change.per_cent(DOUBT).unwrap();
        assert!(per_cent.holds(10.0), "{per_cent:?}");
        assert!(per_cent.high <= change.per_cent(DOUBT / 50.0).unwrap().high);
        let from_nothing = Change::of(&[0.0, 0.0], &[1.0, 1.0]).unwrap();
        assert_eq!(from_nothing.per_cent(DOUBT), None);
        assert_eq!(from_nothing.difference(DOUBT).low, 1.0);
        assert!(Change::of(&[], &[1.0]).is_none());
    }

    #[test]
    fn welch_is_that_of_a_table() {
        let found = welch(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 2.0, 2.0, 2.0, 2.0], 0.95).unwrap();
        // One sample without variance: the interval of Student with 4 degrees of freedom, t = 2.776.
        let reach = 2.776 * (2.5_f64 / 5.0).sqrt();
        assert!((found.value - 1.0).abs() < 1e-9 && (found.high - 1.0 - reach).abs() < 1e-3);
        assert_eq!(welch(&[1.0], &[2.0, 3.0], 0.95), None);
        assert_eq!(shift(&[], &[], &mut random()), None);
    }

    fn random() -> Random {
        Random::new(1)
    }

    #[test]
    fn a_shuffle_keeps_every_item_and_reaches_every_order() {
        let mut random = Random::new(1);
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let mut items = [1, 2, 3];
            random.shuffle(&mut items);
            orders.insert(items);
            items.sort_unstable();
            assert_eq!(items, [1, 2, 3]);
        }
        assert_eq!(orders.len(), 6);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        assert_eq!(Random::new(5).bytes(21), Random::new(5).bytes(21));
        assert_ne!(Random::new(5).bytes(21), Random::new(6).bytes(21));
        assert_eq!(Random::new(5).bytes(21).len(), 21);
    }
}
