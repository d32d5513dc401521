//! Makes the bootstrap resamples of many samples, on all processors. Samples of the same length share their draws.

use std::cmp::Reverse;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{array, thread};

use super::random::Random;

/// The number of resamples for one interval.
pub(super) const RESAMPLES: usize = 10_000;
/// The most samples that share draws. With so many, drawing takes little of the time, and the medians need only some
/// MiB.
const SHARED_MAX: usize = 64;

/// A draw with replacement, as large as its sample. For each index, it has the number of times that it was drawn.
pub(super) struct Draw(Vec<usize>);

impl Draw {
    pub(super) fn of(len: usize) -> Self {
        Self(vec![0; len])
    }

    pub(super) fn renew(&mut self, random: &mut Random) {
        self.0.fill(0);
        let len = self.0.len();
        for _ in 0..len {
            self.0[random.below(len)] += 1;
        }
    }
}

/// The values of a sample in ascending order, for drawing from them.
pub(super) struct Ordered {
    pub(super) values: Vec<f64>,
    places: Vec<usize>,
}

impl Ordered {
    pub(super) fn of(sample: &[f64]) -> Self {
        let mut places: Vec<usize> = (0..sample.len()).collect();
        places.sort_by(|one, other| sample[*one].total_cmp(&sample[*other]));
        Self { values: places.iter().map(|at| sample[*at]).collect(), places }
    }

    /// Returns the median of a draw. The draw must not be empty.
    fn median(&self, Draw(counts): &Draw) -> f64 {
        const STRIDE: usize = 8;
        let (below_lower, below_upper) = ((counts.len() - 1) / 2, counts.len() / 2);
        let (mut at, mut before) = (0, 0);
        for places in self.places.chunks_exact(STRIDE) {
            let drawn: usize = places.iter().map(|place| counts[*place]).sum();
            if before + drawn > below_lower {
                break;
            }
            (at, before) = (at + STRIDE, before + drawn);
        }
        let mut lower = None;
        for (value, place) in self.values[at..].iter().zip(&self.places[at..]) {
            before += counts[*place];
            if before > below_lower {
                let lower = *lower.get_or_insert(*value);
                if before > below_upper {
                    return (lower + *value) / 2.0;
                }
            }
        }
        f64::NAN
    }

    /// Puts the drawn values into `drawn` in ascending order.
    pub(super) fn draw(&self, Draw(counts): &Draw, drawn: &mut Vec<f64>) {
        // Nearly all are drawn a few times, which takes no jump that cannot be foreseen.
        const FEW: usize = 4;
        drawn.resize(self.values.len() + FEW, 0.0);
        let mut len = 0;
        for (value, place) in self.values.iter().zip(&self.places) {
            let count = counts[*place];
            drawn[len..len + FEW].fill(*value);
            if count > FEW {
                drawn[len..len + count].fill(*value);
            }
            len += count;
        }
        drawn.truncate(len);
    }
}

/// Returns the medians of [`RESAMPLES`] resamples of each item. The samples of all items must have the same lengths.
/// Those of one item are drawn one after the other.
pub(super) fn medians<const N: usize>(
    items: &[[&[f64]; N]],
    random: &mut Random,
) -> Vec<Vec<[f64; N]>> {
    let Some(first) = items.first() else { return Vec::new() };
    let mut draws = first.map(|sample| Draw::of(sample.len()));
    let ordered: Vec<_> = items.iter().map(|samples| samples.map(Ordered::of)).collect();
    let mut medians = vec![Vec::with_capacity(RESAMPLES); items.len()];
    for _ in 0..RESAMPLES {
        draws.iter_mut().for_each(|draw| draw.renew(random));
        for (samples, medians) in ordered.iter().zip(&mut medians) {
            medians.push(array::from_fn(|at| samples[at].median(&draws[at])));
        }
    }
    medians
}

/// Computes the [`medians`] of each item. Passes them and the index of the item to `of`, and returns its results. The
/// result is `None` for an item with an empty sample. The medians of an item do not depend on other items. Calls `step`
/// after each item without an empty sample.
pub(super) fn of_all<const N: usize, R: Send>(
    items: &[[Vec<f64>; N]],
    step: impl Fn() + Sync,
    of: impl Fn(usize, Vec<[f64; N]>) -> R + Sync,
) -> Vec<Option<R>> {
    let lengths: Vec<_> = items.iter().map(|item| item.each_ref().map(Vec::len)).collect();
    let done = in_parallel(&batches(&lengths, threads()), |batch| {
        let samples = batch.iter().map(|at| items[*at].each_ref().map(Vec::as_slice));
        let medians = medians(&samples.collect::<Vec<_>>(), &mut Random::new(1));
        let mut done = Vec::with_capacity(batch.len());
        for (at, medians) in batch.iter().zip(medians) {
            done.push((*at, of(*at, medians)));
            step();
        }
        done
    });
    let mut all: Vec<_> = items.iter().map(|_| None).collect();
    done.into_iter().flatten().for_each(|(at, of)| all[at] = Some(of));
    all
}

/// Returns batches of items that can share their draws, since their samples have the same lengths. Items with an empty
/// sample are left out. No batch is larger than the share of one thread, and the largest batches come first.
fn batches<const N: usize>(lengths: &[[usize; N]], threads: usize) -> Vec<Vec<usize>> {
    let mut places: Vec<_> = (0..lengths.len()).filter(|at| !lengths[*at].contains(&0)).collect();
    places.sort_by_key(|at| lengths[*at]);
    let numbers = |at: usize| lengths[at].iter().sum::<usize>();
    let all: usize = places.iter().map(|at| numbers(*at)).sum();
    let same = places.chunk_by(|one, other| lengths[*one] == lengths[*other]);
    let batches =
        same.flat_map(|same| same.chunks(all.div_ceil(threads * numbers(same[0])).min(SHARED_MAX)));
    let mut batches: Vec<_> = batches.map(<[_]>::to_vec).collect();
    batches.sort_by_key(|batch| Reverse(batch.len() * numbers(batch[0])));
    batches
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Calls `work` for each item, on all processors. Returns the results in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads().min(items.len());
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, work(item)));
        }
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.flat_map(|done| done.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, of)| of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::median;
    use super::*;

    /// Returns the medians of a sample whose draws are not shared.
    fn alone(sample: &[f64], random: &mut Random) -> Vec<f64> {
        let mut drawn: Vec<_> = sample.iter().map(|_| sample[random.below(sample.len())]).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        drawn
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|of| of.to_bits()).collect()
    }

    #[test]
    fn a_draw_has_the_values_that_were_drawn_in_their_order() {
        let values = [3.0, -0.0, 1.0, 0.0, 3.0, -2.0];
        let (mut random, mut same) = (Random::new(4), Random::new(4));
        let (ordered, mut draw, mut drawn) = (Ordered::of(&values), Draw::of(6), Vec::new());
        for _ in 0..1000 {
            draw.renew(&mut random);
            ordered.draw(&draw, &mut drawn);
            assert_eq!(bits(&drawn), bits(&alone(&values, &mut same)));
        }
    }

    #[test]
    fn samples_that_share_their_draws_have_the_medians_that_each_has_alone() {
        let mut random = Random::new(5);
        let mut sample = |len: usize| -> Vec<f64> {
            (0..len).map(|_| random.below(9) as f64 - 4.0 + random.below(2) as f64 * 1e-3).collect()
        };
        let lengths = [[1, 3], [7, 2], [20, 21], [7, 2], [0, 5], [20, 21], [20, 20]];
        let items = lengths.map(|lengths| lengths.map(&mut sample));
        let steps = AtomicUsize::new(0);
        let step = || {
            steps.fetch_add(1, Ordering::Relaxed);
        };
        let all = of_all(&items, step, |_, medians| medians);
        assert_eq!(steps.load(Ordering::Relaxed), 6);
        for (item, found) in items.iter().zip(all) {
            let Some(found) = found else {
                assert!(item[0].is_empty());
                continue;
            };
            assert_eq!(found.len(), RESAMPLES);
            let mut random = Random::new(1);
            for medians in found {
                let alone = item.each_ref().map(|one| median(&alone(one, &mut random)).unwrap());
                assert_eq!(bits(&medians), bits(&alone));
            }
        }
    }

    #[test]
    fn each_thread_has_a_batch_and_the_longest_are_first() {
        let lengths = [vec![[10]; 60], vec![[1000]; 60]].concat();
        let batches = batches(&lengths, 2);
        let found: Vec<_> = batches.iter().map(|batch| (batch.len(), lengths[batch[0]])).collect();
        assert_eq!(found, [(31, [1000]), (29, [1000]), (60, [10])]);
    }

    #[test]
    fn as_many_series_as_may_be_are_drawn_a_few_times() {
        // The bounds of what is read.
        const SERIES_MAX: usize = 1000;
        const ROUNDS_MAX: usize = 1000;
        let numbers = |lengths: Vec<[usize; 1]>| -> usize {
            let batches = batches(&lengths, 4);
            assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), lengths.len());
            batches.iter().map(|batch| RESAMPLES * lengths[batch[0]][0]).sum()
        };
        let each = RESAMPLES * SERIES_MAX * ROUNDS_MAX;
        let shared = numbers(vec![[ROUNDS_MAX]; SERIES_MAX]);
        assert!(shared <= each / 60, "{shared} numbers, and {each} if each series has its own");
        // The same of two reports.
        let of_two = (1..=SERIES_MAX).chain(1..=SERIES_MAX).map(|len| [len]).collect();
        assert!(numbers(of_two) <= each / 2 + each / 1000);
    }
}
