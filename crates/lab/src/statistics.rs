//! Medians, their bootstrap intervals, and the randomness of orders and payloads.
//!
//! The unit of replication is the round: each gives one value, and the result of a run is the median over its rounds.

/// Resamples of one interval.
const RESAMPLES: usize = 10_000;

/// A median, and the interval that holds it with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Estimate {
    /// The median of `values` with its percentile bootstrap interval; `None` without values.
    pub(crate) fn of(values: &[f64], random: &mut Random) -> Option<Self> {
        let median = median(values)?;
        let mut resample = vec![0.0; values.len()];
        let mut medians = Vec::with_capacity(RESAMPLES);
        for _ in 0..RESAMPLES {
            resample.fill_with(|| values[random.below(values.len())]);
            medians.extend(self::median(&resample));
        }
        medians.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| medians[((medians.len() - 1) as f64 * share).round() as usize];
        Some(Self { median, low: at(0.025), high: at(0.975) })
    }

    /// Returns true if `value` is within the interval.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The middle value, or the mean of the two in the middle; `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

/// SplitMix64: the same seed gives the same run.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `end` - 1 with nearly equal probabilities.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.next().to_ne_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
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
    fn equal_values_leave_no_doubt() {
        let estimate = Estimate::of(&[1.5; 10], &mut Random::new(1));
        assert_eq!(estimate, Some(Estimate { median: 1.5, low: 1.5, high: 1.5 }));
    }

    #[test]
    fn the_interval_holds_the_median_nineteen_times_in_twenty() {
        // Medians of ten numbers from 0 to 1, whose true median is a half.
        let mut random = Random::new(7);
        let held = (0..200).filter(|_| {
            let values: Vec<f64> =
                (0..10).map(|_| random.next() as f64 / u64::MAX as f64).collect();
            Estimate::of(&values, &mut Random::new(1)).is_some_and(|estimate| estimate.holds(0.5))
        });
        let held = held.count();
        assert!((180..=199).contains(&held), "{held} of 200");
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
