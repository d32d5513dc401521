//! The Hodges-Lehmann estimate: the median of the means of all pairs (Walsh averages). It is found without making all
//! pairs.
//!
//! If the values are sorted, the means of one value with all later ones are sorted, too. So one walk over the values
//! divides all means at a bound. Two bounds close in on the median until few means are left between them. Only these
//! are made. That takes n log n steps instead of n squared.

/// The number of remaining means at which the search ends: they are all made.
const MEANS_MIN: usize = 64;

/// Returns the median of the means of all pairs. A pair may have the same value twice. Returns `None` if there are no
/// values. `sorted` is in ascending order.
pub(super) fn hodges_lehmann(sorted: &[f64]) -> Option<f64> {
    let pairs = sorted.len() * (sorted.len() + 1) / 2;
    let (lower, upper) = (pairs.checked_sub(1)? / 2, pairs / 2);
    let limit = MEANS_MIN.max(sorted.len());
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    // The means in question are greater than `low`, which is not smaller than `below` means, and not greater than `high`.
    let (mut low, mut below) = (key(first).saturating_sub(1), 0);
    let (mut high, mut within) = (key(last), pairs);
    let mut step = 0;
    while within - below > limit && high - low > 1 {
        // Two bounds at the places where even means would have them, close on both sides of the median, and then one that halves
        // all numbers that are left, so that it ends in any case.
        let aim = match step % 3 {
            0 => Some(lower.saturating_sub(limit / 4)),
            1 => Some(upper + limit / 4),
            _ => None,
        };
        let even = |aim: usize| {
            let share = aim.saturating_sub(below) as f64 / (within - below) as f64;
            let (low, high) = (number(low), number(high));
            key(low + (high - low) * share)
        };
        let bound = aim.map_or(low + (high - low) / 2, even).clamp(low + 1, high - 1);
        step += 1;
        let (count, greatest, smallest) = split(sorted, bound);
        if count <= lower {
            (low, below) = (smallest.saturating_sub(1).clamp(bound, high - 1), count);
        } else if count > upper {
            (high, within) = (greatest.clamp(low + 1, bound), count);
        } else {
            return Some((number(greatest) + number(smallest)) / 2.0);
        }
    }
    if high - low == 1 {
        // All of them are this number.
        return Some(number(high));
    }
    let mut means = means_within(sorted, number(low), number(high));
    let at = upper - below;
    if at >= means.len() {
        return None;
    }
    let (before, upper_mean, _) = means.select_nth_unstable_by(at, f64::total_cmp);
    let upper_mean = *upper_mean;
    let lower_mean = match lower == upper {
        true => upper_mean,
        false => before.iter().copied().max_by(f64::total_cmp)?,
    };
    Some((lower_mean + upper_mean) / 2.0)
}

fn mean(one: f64, other: f64) -> f64 {
    (one + other) / 2.0
}

fn is_beyond(mean: f64, bound: f64) -> bool {
    mean.total_cmp(&bound).is_gt()
}

/// Divides the means at the number with the key `bound`. Returns the number of means that are not greater, the key of
/// the greatest of them, and the key of the least of the other means.
fn split(sorted: &[f64], bound: u64) -> (usize, u64, u64) {
    let (mut count, mut greatest, mut smallest) = (0, 0, u64::MAX);
    let mut end = sorted.len();
    for (at, one) in sorted.iter().enumerate() {
        while end > at {
            let mean = key(mean(*one, sorted[end - 1]));
            if mean <= bound {
                greatest = greatest.max(mean);
                break;
            }
            end -= 1;
        }
        if let Some(other) = sorted.get(end.max(at)) {
            smallest = smallest.min(key(mean(*one, *other)));
        }
        if end <= at {
            break;
        }
        count += end - at;
    }
    (count, greatest, smallest)
}

/// Returns the means that are greater than `low` and not greater than `high`.
fn means_within(sorted: &[f64], low: f64, high: f64) -> Vec<f64> {
    let (mut begin, mut end, mut means) = (sorted.len(), sorted.len(), Vec::new());
    for (at, one) in sorted.iter().enumerate() {
        while end > at && is_beyond(mean(*one, sorted[end - 1]), high) {
            end -= 1;
        }
        while begin > at && is_beyond(mean(*one, sorted[begin - 1]), low) {
            begin -= 1;
        }
        if end <= at {
            break;
        }
        means.extend(sorted[begin.max(at).min(end)..end].iter().map(|other| mean(*one, *other)));
    }
    means
}

/// Returns the key of a number. Keys are in the order of `f64::total_cmp`.
fn key(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn number(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

#[cfg(test)]
mod tests {
    use super::super::{Random, median};
    use super::*;

    fn by_all_pairs(values: &[f64]) -> Option<f64> {
        let pairs = values.iter().enumerate();
        let means: Vec<_> = pairs
            .flat_map(|(at, one)| values[at..].iter().map(move |other| (one + other) / 2.0))
            .collect();
        median(&means)
    }

    fn sorted(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    #[test]
    fn it_is_the_median_of_all_pairs_to_the_last_bit() {
        let mut random = Random::new(5);
        let mut unit = || random.next() as f64 / u64::MAX as f64;
        for count in (0..40).chain([64, 100, 151, 300]) {
            for kind in 0..8 {
                let values = (0..count).map(|at| match kind {
                    0 => unit(),
                    1 => unit() - 0.5,
                    // Ties, and signs of nothing.
                    2 => (unit() * 3.0).floor() - 1.0,
                    3 => [-0.0, 0.0][usize::from(unit() < 0.5)],
                    // A few far away.
                    4 if at % 7 == 0 => unit() * 1e99,
                    4 => unit(),
                    5 => 10_f64.powf(unit() * 600.0 - 300.0) * [1.0, -1.0][at % 2],
                    6 => {
                        if at * 2 < count {
                            -1.0
                        } else {
                            1.0
                        }
                    }
                    _ => 7.25,
                });
                let values = sorted(values.collect());
                let found = hodges_lehmann(&values).map(f64::to_bits);
                let expected = by_all_pairs(&values).map(f64::to_bits);
                assert_eq!(found, expected, "{count} of kind {kind}: {values:?}");
            }
        }
    }

    #[test]
    fn it_makes_few_of_the_pairs_of_many() {
        let mut random = Random::new(5);
        let values = (0..10_000).map(|_| random.next() as f64 / u64::MAX as f64);
        let values = sorted(values.collect());
        // All pairs are 50 million, which take a minute in this build.
        let begun = std::time::Instant::now();
        let found = hodges_lehmann(&values).unwrap();
        assert!((found - 0.5).abs() < 0.02, "{found}");
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }

    #[test]
    fn what_is_no_number_ends_too() {
        for values in [vec![f64::NAN; 100], vec![f64::INFINITY; 100], vec![f64::NEG_INFINITY; 100]]
        {
            hodges_lehmann(&values);
        }
        let mixed: Vec<_> =
            (0..200).map(|at| [f64::NEG_INFINITY, 1.0, f64::INFINITY, f64::NAN][at % 4]).collect();
        hodges_lehmann(&sorted(mixed));
    }

    #[test]
    fn keys_have_the_order_of_numbers() {
        let numbers = [f64::NEG_INFINITY, -1e300, -1.0, -0.0, 0.0, 5e-324, 1.0, f64::INFINITY];
        assert!(numbers.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        assert!(numbers.iter().all(|of| number(key(*of)).to_bits() == of.to_bits()));
        assert_eq!(key(0.0) - key(-0.0), 1);
    }
}
