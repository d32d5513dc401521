//! Rounds: in each, every contender of every case is measured once, in an order of its own.

use std::collections::BTreeMap;

use super::probe::{Fault, FaultKind};
use super::report::{Quantity, Series};
use super::session::{SILENCES_MAX, Session};
use super::strain::{Moment, StrainMeter, Strained};
use crate::histogram::Histogram;
use crate::tcp_info::Traffic;

/// A contender in a case.
#[derive(Clone, Debug)]
pub(crate) struct Cell<K> {
    pub(crate) case: String,
    /// The place of the case on the axis, if cases are figures.
    pub(crate) x: Option<f64>,
    pub(crate) contender: String,
    /// What the experiment needs to know to measure it.
    pub(crate) key: K,
}

/// What one round gave.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) figures: Vec<(Quantity, f64)>,
    /// The single durations, of which the first figure is a summary.
    pub(crate) durations: Histogram,
    pub(crate) expected: u64,
    pub(crate) received: u64,
    pub(crate) faults: BTreeMap<FaultKind, u64>,
    pub(crate) traffic: Option<Traffic>,
    /// The delays of sends behind their plan; the rest is filled in by the rounds.
    pub(crate) strained: Strained,
    /// One thread makes all of the load, so it can be too slow for the server.
    pub(crate) is_load: bool,
    /// The words of the last fault, for people.
    pub(crate) words: Option<String>,
}

impl Sample {
    /// The sample of a server that is not asked any more.
    fn not_asked() -> Self {
        let faults = BTreeMap::from([(FaultKind::NotAsked, 1)]);
        Self { expected: 1, faults, ..Self::default() }
    }

    /// Returns true if the server has not answered, so that its cell is not asked again.
    fn is_silent(&self) -> bool {
        [FaultKind::Stalled, FaultKind::NotAsked].iter().any(|kind| self.faults.contains_key(kind))
    }

    /// Counts a fault.
    pub(crate) fn fault(&mut self, fault: &Fault) {
        *self.faults.entry(fault.kind()).or_default() += 1;
        self.words = Some(fault.to_string());
    }

    pub(crate) fn add_traffic(&mut self, traffic: Traffic) {
        *self.traffic.get_or_insert_default() += traffic;
    }
}

/// Rounds before those that count.
const WARM_UP: usize = 1;

/// Measures all cells in rounds. `quantity` is the first figure of each sample. Ctrl-C ends it after the sample that is begun; what was measured stays.
/// A cell whose server was silent for longer than the patience is not asked again: its first silence counts, also in the warm-up, and
/// the rounds after it have no value. A server that is silent in the first [`SILENCES_MAX`] cells is not asked in the others.
pub(crate) fn interleaved<K>(
    session: &mut Session,
    quantity: Quantity,
    cells: &[Cell<K>],
    mut measure: impl FnMut(&mut Session, &Cell<K>) -> Sample,
) -> Vec<Series> {
    let mut samples: Vec<Vec<Sample>> = cells.iter().map(|_| Vec::new()).collect();
    // The sample in which the server fell silent before the rounds that count.
    let mut silent: Vec<Option<Sample>> = cells.iter().map(|_| None).collect();
    let mut has_answered = false;
    let rounds = session.rounds();
    let meter = StrainMeter::start();
    session.begin((WARM_UP + rounds) * cells.len());
    'rounds: for round in 0..WARM_UP + rounds {
        let mut order: Vec<_> = (0..cells.len()).collect();
        session.random.shuffle(&mut order);
        for at in order {
            if session.is_stopped() {
                break 'rounds;
            }
            if let Some(silence) = &mut silent[at] {
                if round >= WARM_UP {
                    samples[at].push(std::mem::take(silence));
                }
                session.step();
                continue;
            }
            let is_given_up = !has_answered && silent.iter().flatten().count() >= SILENCES_MAX;
            let mut sample = match is_given_up {
                true => Sample::not_asked(),
                false => {
                    let begun = Moment::now();
                    let mut sample = measure(session, &cells[at]);
                    sample.strained.add(&meter.since(begun));
                    sample
                }
            };
            has_answered |= sample.received > 0;
            if sample.received == sample.expected {
                // A connection that failed before anything was asked for counts as something that did not come.
                sample.expected += sample.faults.values().sum::<u64>();
            }
            if let Some(words) = &sample.words {
                session.say(&format!("{}, {}: {words}", cells[at].case, cells[at].contender));
            }
            let is_silent = sample.is_silent();
            if round >= WARM_UP {
                samples[at].push(sample);
                silent[at] = is_silent.then(Sample::default);
            } else if is_silent {
                // It is told with the first round, which has no value.
                sample.figures.clear();
                silent[at] = Some(sample);
            }
            session.step();
        }
    }
    cells.iter().zip(samples).flat_map(|(cell, samples)| series(quantity, cell, &samples)).collect()
}

/// Makes a series of each figure, and one of the first also if there is none.
fn series<K>(first: Quantity, cell: &Cell<K>, samples: &[Sample]) -> Vec<Series> {
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
        });
    }
    all
}
