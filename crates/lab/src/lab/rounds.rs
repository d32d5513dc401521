//! Measures in rounds. Each round measures every contender in every case once, in a random order.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::pace::Pace;
use super::probe::{Fault, FaultKind};
use super::report::{Quantity, Series};
use super::strain::{Moment, StrainMeter, Strained};
use crate::cpu::Busy;
use crate::histogram::Histogram;
use crate::tcp_info::Traffic;

/// A contender in a case.
#[derive(Clone, Debug)]
pub(crate) struct Cell<K> {
    pub(crate) case: String,
    /// The position of the case on the axis, if cases are numbers.
    pub(crate) x: Option<f64>,
    pub(crate) contender: String,
    /// The data with which the experiment measures this cell.
    pub(crate) key: K,
}

impl<K> Cell<K> {
    pub(crate) fn new(case: impl ToString, contender: impl ToString, key: K) -> Self {
        Self { case: case.to_string(), x: None, contender: contender.to_string(), key }
    }

    /// Sets the position of the case on the axis.
    pub(crate) fn at(self, x: f64) -> Self {
        Self { x: Some(x), ..self }
    }
}

/// The measurement of a cell in one round.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) figures: Vec<(Quantity, f64)>,
    /// The durations from which the first figure was computed.
    pub(crate) durations: Histogram,
    pub(crate) expected: u64,
    pub(crate) received: u64,
    pub(crate) faults: BTreeMap<FaultKind, u64>,
    pub(crate) traffic: Option<Traffic>,
    /// The strain. The experiment adds the delays of sends behind their plan; the rounds add everything else.
    pub(crate) strained: Strained,
    /// True if one thread makes the whole load. That thread may be too slow for the server.
    pub(crate) is_load: bool,
    /// The shares of the time in which the server, the generator and other processes were busy, if they were measured.
    pub(crate) busy: Option<Busy>,
    /// The last fault, in words.
    pub(crate) words: Option<String>,
}

impl Sample {
    /// Makes the sample for a server that is no longer asked.
    fn not_asked() -> Self {
        let faults = BTreeMap::from([(FaultKind::NotAsked, 1)]);
        Self { expected: 1, faults, ..Self::default() }
    }

    /// Returns true if the server did not answer. Its cell is then not asked again.
    fn is_silent(&self) -> bool {
        [FaultKind::Stalled, FaultKind::NotAsked].iter().any(|kind| self.faults.contains_key(kind))
    }

    /// Returns true if other processes used the machine too much during the sample.
    fn is_disturbed(&self) -> bool {
        self.busy.is_some_and(Busy::is_disturbed)
    }

    pub(crate) fn fault(&mut self, fault: &Fault) {
        *self.faults.entry(fault.kind()).or_default() += 1;
        self.words = Some(fault.to_string());
    }

    pub(crate) fn add_traffic(&mut self, traffic: Traffic) {
        *self.traffic.get_or_insert_default() += traffic;
    }
}

/// The most silent cells of a server that has not answered in any cell. After them, it is not asked any more.
pub(crate) const SILENCES_MAX: usize = 8;

/// Measures all cells in rounds, as [`try_interleaved`] does. A failure is a fault in a sample instead of an error.
pub(crate) fn interleaved<S: AsMut<Pace>, K>(
    session: &mut S,
    quantity: Quantity,
    cells: &[Cell<K>],
    mut measure: impl FnMut(&mut S, &Cell<K>) -> Sample,
) -> Vec<Series> {
    let Ok(series) = try_interleaved(session, quantity, cells, |session, cell| {
        Ok::<_, Infallible>(measure(session, cell))
    });
    series
}

/// Measures all cells in rounds. `quantity` is the first figure of each sample. Ctrl-C ends the rounds after the
/// current sample; the results so far are kept.
///
/// A cell is not asked again after its server was silent for longer than the patience. That first silence counts, even
/// in the warm-up, and later rounds have no value. If a server is silent in the first [`SILENCES_MAX`] cells, it is not
/// asked in the other cells.
///
/// # Errors
/// The first error of `measure`, which ends the rounds.
pub(crate) fn try_interleaved<S: AsMut<Pace>, K, E>(
    session: &mut S,
    quantity: Quantity,
    cells: &[Cell<K>],
    mut measure: impl FnMut(&mut S, &Cell<K>) -> Result<Sample, E>,
) -> Result<Vec<Series>, E> {
    let mut taken: Vec<_> = cells.iter().map(|_| CellSamples::default()).collect();
    let mut has_answered = false;
    let pace = session.as_mut();
    let (warm_up, all, retries) = (pace.warm_up, pace.warm_up + pace.rounds, pace.retries);
    let meter = if pace.watches_timers { StrainMeter::start() } else { StrainMeter::default() };
    pace.begin(all * cells.len());
    'rounds: for round in 0..all {
        let pace = session.as_mut();
        pace.round = round;
        let mut order: Vec<_> = (0..cells.len()).collect();
        pace.random.shuffle(&mut order);
        for at in order {
            if session.as_mut().cut_if_stopped() {
                break 'rounds;
            }
            let counts = round >= warm_up;
            let silences = taken.iter().filter(|taken| taken.silence.is_some()).count();
            if let Some(silence) = &mut taken[at].silence {
                let silence = std::mem::take(silence);
                taken[at].samples.extend(counts.then_some(silence));
            } else if !has_answered && silences >= SILENCES_MAX {
                taken[at].add(Sample::not_asked(), counts);
            } else {
                let sample = undisturbed(retries, || {
                    let begun = Moment::now();
                    let mut sample = measure(session, &cells[at])?;
                    sample.strained.add(&meter.since(begun));
                    Ok(sample)
                })?;
                has_answered |= sample.received > 0;
                if let Some(words) = &sample.words {
                    let Cell { case, contender, .. } = &cells[at];
                    session.as_mut().say(&format!("{case}, {contender}: {words}"));
                }
                taken[at].add(sample, counts);
            }
            session.as_mut().step();
        }
    }
    let cells = cells.iter().zip(taken);
    Ok(cells.flat_map(|(cell, taken)| series(quantity, cell, &taken.samples)).collect())
}

/// Takes a sample. Takes it again if it is disturbed, up to `retries` times. The last one counts.
fn undisturbed<E>(
    retries: usize,
    mut take: impl FnMut() -> Result<Sample, E>,
) -> Result<Sample, E> {
    let mut sample = take()?;
    for _ in 0..retries {
        if !sample.is_disturbed() {
            break;
        }
        sample = take()?;
    }
    Ok(sample)
}

#[derive(Debug, Default)]
struct CellSamples {
    /// The samples, one for each round that counts.
    samples: Vec<Sample>,
    /// The next sample of a cell that is not asked again. It has the silence if that was in the warm-up; otherwise it
    /// is empty.
    silence: Option<Sample>,
}

impl CellSamples {
    fn add(&mut self, mut sample: Sample, counts: bool) {
        if sample.received == sample.expected {
            // A connection that failed before anything was asked for counts as something that did not come.
            sample.expected += sample.faults.values().sum::<u64>();
        }
        let is_silent = sample.is_silent();
        if counts {
            self.samples.push(sample);
            self.silence = is_silent.then(Sample::default);
        } else if is_silent {
            // It is told with the first round, which has no value.
            sample.figures.clear();
            self.silence = Some(sample);
        }
    }
}

/// Makes a series for each quantity of the samples. `first` gets a series even if no sample has it.
pub(crate) fn series<K>(first: Quantity, cell: &Cell<K>, samples: &[Sample]) -> Vec<Series> {
    let mut quantities = vec![first];
    for (quantity, _) in samples.iter().flat_map(|sample| &sample.figures) {
        if !quantities.contains(quantity) {
            quantities.push(*quantity);
        }
    }
    let mut durations = Histogram::default();
    let (mut faults, mut traffic) = (BTreeMap::new(), None::<Traffic>);
    let mut strained = Strained::default();
    for sample in samples {
        strained.add(&sample.strained);
        durations.add(&sample.durations);
        for (kind, count) in &sample.faults {
            *faults.entry(*kind).or_default() += count;
        }
        if let Some(more) = sample.traffic {
            *traffic.get_or_insert_default() += more;
        }
    }
    let busy: Vec<_> = samples.iter().filter_map(|sample| sample.busy).collect();
    let is_load = samples.iter().any(|sample| sample.is_load);
    let mut all = Vec::new();
    for (at, quantity) in quantities.iter().enumerate() {
        let value = |sample: &Sample| {
            let found = sample.figures.iter().find(|(of, _)| of == quantity);
            found.map(|(_, value)| *value)
        };
        all.push(Series {
            case: cell.case.clone(),
            x: cell.x,
            contender: cell.contender.clone(),
            quantity: quantity.name.to_owned(),
            unit: quantity.unit.to_owned(),
            is_more_better: quantity.is_more_better,
            rounds: samples.iter().map(value).collect(),
            // The first figure is the summary of the durations.
            histogram: (at == 0 && durations.len() > 0).then(|| durations.encoded().ok()).flatten(),
            expected: samples.iter().map(|sample| sample.expected).sum(),
            received: samples.iter().map(|sample| sample.received).sum(),
            faults: faults.clone(),
            traffic,
            strain: strained.strain(is_load),
            busy: if at == 0 { busy.clone() } else { Vec::new() },
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const COST: Quantity = Quantity::less("cost", "µs");

    impl AsMut<Self> for Pace {
        fn as_mut(&mut self) -> &mut Self {
            self
        }
    }

    #[test]
    fn a_run_is_cut_only_if_a_sample_was_left_out() {
        let cells = [Cell::new("a", "one", ()), Cell::new("a", "other", ())];
        // Two contenders, in a round to warm up and in three others.
        for (stopped_in, is_cut) in [(8, false), (7, true), (1, true)] {
            let stop = Arc::new(AtomicBool::new(false));
            let mut pace = Pace::new(3, 1, Arc::clone(&stop), String::new());
            let mut samples = 0;
            let series = interleaved(&mut pace, COST, &cells, |_, _| {
                samples += 1;
                stop.store(samples == stopped_in, Ordering::Relaxed);
                Sample { figures: vec![(COST, 1.0)], ..Sample::default() }
            });
            let report = pace.report("echo", "How much?", COST, series, String::new());
            assert_eq!((samples, report.is_interrupted), (stopped_in, is_cut));
        }
    }

    #[test]
    fn a_disturbed_sample_is_taken_again_so_often_and_the_last_is_kept() {
        let taken = |retries, disturbed: u64| {
            let mut number = 0;
            let take = || {
                number += 1;
                let others = if number <= disturbed { 1.0 } else { 0.0 };
                let busy = Some(Busy { others, ..Busy::default() });
                Ok::<_, Infallible>(Sample { received: number, busy, ..Sample::default() })
            };
            let Ok(sample) = undisturbed(retries, take);
            sample.received
        };
        assert_eq!(taken(2, 0), 1);
        assert_eq!(taken(2, 1), 2);
        assert_eq!(taken(2, 9), 3);
        assert_eq!(taken(0, 9), 1);
    }
}
