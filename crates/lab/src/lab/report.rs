//! The report of an experiment: the question, the values of all rounds, and the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::link::Link;
use super::numbers::{date, fixed};
use super::probe::FaultKind;
use super::strain::Strain;
pub(crate) use super::theory::ms;
use crate::cpu::Busy;
use crate::histogram::Histogram;
use crate::statistics::{Estimate, Random, median, shift, welch};
use crate::tcp_info::Traffic;

/// The version of the JSON of reports. It changes if an older reader would misunderstand a report.
pub(crate) const VERSION: u32 = 1;
/// The confidence with which the published experiments compare means.
const WELCH_CONFIDENCE: f64 = 0.99;

/// The least number of pairs for a sure difference. With fewer, all pairs of equals lie on the same side in more than
/// one of twenty cases.
pub(crate) const PAIRS_MIN: usize = 6;
/// The least share of the expected data, and the least share of the rounds, with which a figure is valid.
pub(crate) const REACH_MIN: f64 = 0.9;
/// The verdict on a comparison with too few pairs.
pub(crate) const TOO_FEW_ROUNDS: &str = "too few rounds";

/// The publications with whose figures the measured ones are compared.
const PUBLICATIONS: [(char, &str); 5] = [
    ('A', "Skvorc and others, a WebSocket beside a TCP socket, MIPRO 2014"),
    ('B', "Pimentel and Nickerson, live wind in a browser, IEEE Internet Computing 2012"),
    ('C', "Herok, larger and larger data over HTTP and WebSocket"),
    ('D', "Gómez, Tayebi and Casado, computations that show their progress, 2020"),
    ('E', "Luecke, one service over REST and WebSocket (Feathers), 2018"),
];

/// A figure that is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) is_more_better: bool,
}

impl Quantity {
    /// Creates a quantity for which less is better, such as a time.
    pub(crate) const fn less(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, is_more_better: false }
    }

    /// Creates a quantity for which more is better, such as a rate.
    pub(crate) const fn more(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, is_more_better: true }
    }

    /// Returns the head of a table's column with this quantity.
    pub(crate) fn title(self) -> String {
        titled(self.name, self.unit)
    }
}

/// Returns the head of a table's column: the quantity, with its unit if it has one.
pub(crate) fn titled(quantity: &str, unit: &str) -> String {
    if unit.is_empty() { quantity.to_owned() } else { format!("{quantity}, {unit}") }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    /// The file from which the report was read; empty for a new report.
    #[serde(skip)]
    pub(crate) file: PathBuf,
    pub(crate) version: u32,
    pub(crate) experiment: String,
    pub(crate) question: String,
    /// The answer in one sentence. The note about too few rounds is not part of it: see [`Report::full_answer`].
    pub(crate) answer: String,
    /// The reason why the answer is not reliable; `None` if it is reliable.
    pub(crate) invalid: Option<String>,
    /// The reason why the newest of the merged runs was left out as invalid; `None` if it was not.
    #[serde(skip)]
    pub(crate) newest_invalid: Option<String>,
    /// True if the run ended before everything was measured.
    #[serde(default)]
    pub(crate) is_interrupted: bool,
    pub(crate) environment: Environment,
    /// The quantity that the plot and the comparisons show.
    pub(crate) quantity: String,
    pub(crate) series: Vec<Series>,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) published: Vec<Published>,
    /// The values of that quantity according to theory.
    #[serde(default)]
    pub(crate) models: Vec<Model>,
    /// The sentences about the method.
    pub(crate) method: Vec<String>,
}

/// The conditions of a run: the machine, the server and the time.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Environment {
    pub(crate) program: String,
    /// The time at which the run ended, in milliseconds since the Unix epoch.
    pub(crate) time: u64,
    /// The duration of the run.
    #[serde(default)]
    pub(crate) duration_ms: u64,
    /// The number and the beginning of merged runs; `None` for a single run. All other fields are those of the newest
    /// run.
    #[serde(skip)]
    pub(crate) runs: Option<Runs>,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) system: String,
    pub(crate) target: String,
    pub(crate) link: Link,
    /// True if the kernel emulated the links; false if relays did.
    #[serde(default)]
    pub(crate) has_netem: bool,
    pub(crate) rounds: usize,
    pub(crate) seed: u64,
    pub(crate) is_quick: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) count: usize,
    /// The time at which the first run began, in milliseconds since the Unix epoch.
    pub(crate) begun: u64,
}

impl Environment {
    /// Returns true if both runs have the same conditions. The version of the program and the time may differ.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.differences(other).is_empty()
    }

    /// Returns the conditions that differ, in words.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let all = [
            ("the processor", self.processor != other.processor),
            ("the number of cores", self.cores != other.cores),
            ("the system", self.system != other.system),
            ("the target", self.target != other.target),
            ("the link", self.link != other.link),
            ("--netem", self.has_netem != other.has_netem),
            ("--quick", self.is_quick != other.is_quick),
        ];
        all.into_iter().filter(|(_, is_other)| *is_other).map(|(what, _)| what).collect()
    }

    /// Returns the time at which the run began, in milliseconds since the Unix epoch.
    pub(crate) fn begun(&self) -> u64 {
        self.time.saturating_sub(self.duration_ms)
    }

    /// Returns the time of the run, or of all merged runs, in words.
    pub(crate) fn when(&self) -> String {
        let begun = self.runs.map_or(self.begun(), |runs| runs.begun);
        let times = format!("{} to {} UTC", date(begun), date(self.time));
        match self.runs {
            Some(runs) => format!("{} runs, {times}", runs.count),
            None => times,
        }
    }

    pub(crate) fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![format!(
            "{}; {}, cores: {}, {}; target: {}; link: {}; seed {}.",
            self.program,
            self.processor,
            self.cores,
            self.system,
            self.target,
            self.link,
            self.seed
        )];
        if self.is_quick {
            sentences.push("A quick run: a first look, and no result to quote.".to_owned());
        }
        sentences
    }
}

/// One figure of a contender in a case, with a value for each round.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Series {
    pub(crate) case: String,
    /// The position of the case on the axis, if cases are numbers.
    pub(crate) x: Option<f64>,
    pub(crate) contender: String,
    pub(crate) quantity: String,
    pub(crate) unit: String,
    /// True if more is better, as for rates; false for times and bytes.
    #[serde(default)]
    pub(crate) is_more_better: bool,
    /// The value of each round; `None` for a round in which everything failed.
    pub(crate) rounds: Vec<Option<f64>>,
    /// The durations of all rounds, as an HDR histogram (V2, compressed) in Base64.
    pub(crate) histogram: Option<String>,
    pub(crate) expected: u64,
    pub(crate) received: u64,
    pub(crate) faults: BTreeMap<FaultKind, u64>,
    pub(crate) traffic: Option<Traffic>,
    /// The strain on this machine during the measurement.
    #[serde(default)]
    pub(crate) strain: Option<Strain>,
    /// The shares of the time in which the server, the generator and other processes were busy. There is one entry for
    /// each round that has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) busy: Vec<Busy>,
}

/// A comparison of two contenders in a case, paired by round.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Comparison {
    pub(crate) case: String,
    pub(crate) of: String,
    pub(crate) to: String,
    pub(crate) unit: String,
    /// The Hodges-Lehmann shift with its bootstrap interval of 95 %.
    pub(crate) shift: Estimate,
    /// The median of the rounds' ratios, with its bootstrap interval of 95 %.
    pub(crate) ratio: Option<Estimate>,
    /// The difference of the means with the interval of Welch's test at 99 %, as in the publications.
    pub(crate) welch: Option<Estimate>,
    /// The number of rounds in which both contenders have a value.
    #[serde(default)]
    pub(crate) pairs: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Judgement {
    Distinguishable,
    NotDistinguishable,
    /// There are fewer than [`PAIRS_MIN`] pairs. They prove nothing, however large the difference is.
    TooFewRounds,
}

/// The value for a contender in a case according to theory.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Model {
    pub(crate) case: String,
    /// The position of the case on the axis, if cases are numbers.
    pub(crate) x: Option<f64>,
    pub(crate) contender: String,
    pub(crate) value: f64,
}

impl Model {
    pub(crate) fn new(case: &str, x: Option<f64>, contender: &str, value: f64) -> Self {
        Self { case: case.to_owned(), x, contender: contender.to_owned(), value }
    }
}

/// A published figure, and the measured one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Published {
    pub(crate) figure: String,
    pub(crate) published: String,
    pub(crate) measured: String,
    pub(crate) verdict: Verdict,
    /// The reason for the verdict: why the figures differ, why the figure cannot be measured here, or what the run
    /// lacks.
    pub(crate) because: String,
}

/// The verdict on a published figure after a measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Replicates,
    Differs,
    NotTestableHere,
    /// There is no verdict, since the run proves nothing.
    Undecided,
}

impl Published {
    /// Returns the verdict in the words of a table.
    pub(crate) fn words(&self) -> String {
        let words = match self.verdict {
            Verdict::Undecided => return self.because.clone(),
            Verdict::Replicates => return "replicates".to_owned(),
            Verdict::Differs => "differs",
            Verdict::NotTestableHere => "not testable here",
        };
        match self.because.is_empty() {
            true => words.to_owned(),
            false => format!("{words}, because {}", self.because),
        }
    }
}

impl Verdict {
    /// Returns [`Verdict::Replicates`] for true, and [`Verdict::Differs`] for false.
    pub(crate) fn of(is_so: bool) -> Self {
        if is_so { Self::Replicates } else { Self::Differs }
    }
}

impl Series {
    /// Returns the names that identify the series within its report.
    pub(crate) fn names(&self) -> [&str; 4] {
        [&self.case, &self.contender, &self.quantity, &self.unit]
    }

    /// Returns the values of the rounds that have a value.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.rounds.iter().flatten().copied().collect()
    }

    pub(crate) fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.values(), &mut Random::new(1))
    }

    /// Returns the duration that this share of all durations does not exceed; `None` if there are no durations.
    pub(crate) fn percentile(&self, share: f64) -> Option<Duration> {
        Histogram::decoded(self.histogram.as_deref()?).ok()?.percentile(share)
    }

    /// Returns false if the server was never asked, since it had been silent.
    pub(crate) fn is_asked(&self) -> bool {
        !self.faults.contains_key(&FaultKind::NotAsked)
    }

    /// Returns the amount of received data, as a share of the expected amount. Returns 1 if nothing was expected.
    pub(crate) fn reach(&self) -> f64 {
        if self.expected == 0 { 1.0 } else { self.received as f64 / self.expected as f64 }
    }
}

impl Comparison {
    /// Judges by the interval of the shift if the difference is sure.
    pub(crate) fn judgement(&self) -> Judgement {
        match self.pairs >= PAIRS_MIN {
            false => Judgement::TooFewRounds,
            true if self.shift.holds(0.0) => Judgement::NotDistinguishable,
            true => Judgement::Distinguishable,
        }
    }

    /// Returns true if the difference is sure.
    pub(crate) fn is_distinguishable(&self) -> bool {
        self.judgement() == Judgement::Distinguishable
    }
}

impl Judgement {
    /// Returns the words for a table; empty for a sure difference.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Distinguishable => "",
            Self::NotDistinguishable => "not distinguishable",
            Self::TooFewRounds => TOO_FEW_ROUNDS,
        }
    }
}

impl Report {
    /// Returns the series of a contender in a case with this quantity.
    pub(crate) fn find(&self, case: &str, contender: &str, quantity: &str) -> Option<&Series> {
        self.series.iter().find(|series| {
            series.case == case && series.contender == contender && series.quantity == quantity
        })
    }

    /// Returns the cases of a quantity without repetitions.
    pub(crate) fn cases(&self, quantity: &str) -> Vec<&str> {
        cases(self.series.iter().filter(|series| series.quantity == quantity))
    }

    /// Returns the median of the rounds of such a series.
    pub(crate) fn median(&self, case: &str, contender: &str, quantity: &str) -> Option<f64> {
        median(&self.find(case, contender, quantity)?.values())
    }

    /// Completes the report: adds an answer if there is none, and names the publications in the method. Takes back the
    /// verdicts on published figures if the run proves nothing.
    pub(crate) fn complete(&mut self) {
        if self.answer.is_empty() {
            let of = |series: &&Series| series.quantity == self.quantity;
            let medians = self.series.iter().filter(of).filter_map(|series| {
                let median = median(&series.values())?;
                let median = fixed(median, 3);
                Some(format!("{}, {}: {median} {}", series.case, series.contender, series.unit))
            });
            let medians: Vec<_> = medians.collect();
            self.answer = match medians.is_empty() {
                true => "Nothing could be measured.".to_owned(),
                false => format!(
                    "{}Medians of the {}: {}.",
                    self.of_one(),
                    self.quantity,
                    medians.join("; ")
                ),
            };
        }
        if let Some(lack) = self.lack() {
            for row in &mut self.published {
                if matches!(row.verdict, Verdict::Replicates | Verdict::Differs) {
                    (row.verdict, row.because) = (Verdict::Undecided, lack.to_owned());
                }
            }
        }
        let is_named = |letter: char| {
            let marks = [
                format!("({letter})"),
                format!("({letter}1)"),
                format!("({letter}2)"),
                format!("({letter}3)"),
                format!(", {letter})"),
            ];
            self.published
                .iter()
                .any(|row| marks.iter().any(|mark| row.figure.contains(mark.as_str())))
        };
        let named = PUBLICATIONS.iter().filter(|(letter, _)| is_named(*letter));
        let named: Vec<_> = named.map(|(letter, name)| format!("({letter}) {name}")).collect();
        if !named.is_empty() {
            self.method.push(format!("The publication: {}.", named.join("; ")));
        }
    }

    /// Returns the sentence that only one contender was measured; empty if that is not so.
    fn of_one(&self) -> String {
        let all = self.series.iter().filter(|series| series.quantity == self.quantity);
        let contenders: BTreeSet<_> = all.map(|series| &series.contender).collect();
        match contenders.first() {
            Some(one) if contenders.len() == 1 => {
                format!("Only {one} was measured, so there is nothing to compare it with. ")
            }
            _ => String::new(),
        }
    }

    /// Returns true if any round has a value.
    pub(crate) fn has_values(&self) -> bool {
        self.series.iter().any(|series| series.rounds.iter().any(Option::is_some))
    }

    /// Returns the reason why there is no verdict on published figures, in words for a table; `None` if there may be
    /// one.
    fn lack(&self) -> Option<&'static str> {
        self.flaw().or_else(|| self.few_pairs().map(|_| TOO_FEW_ROUNDS))
    }

    /// Returns the word for a run that is invalid or interrupted, and so proves nothing; `None` for any other run.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        match self {
            of if of.invalid.is_some() => Some("invalid"),
            of if of.is_interrupted => Some("interrupted"),
            _ => None,
        }
    }

    /// Returns the answer. Adds a note if there are too few rounds for a sure difference.
    pub(crate) fn full_answer(&self) -> String {
        let Some(pairs) = self.few_pairs() else { return self.answer.clone() };
        let rounds = if pairs == 1 { "1 round".to_owned() } else { format!("{pairs} rounds") };
        format!(
            "{} With {rounds}, no difference is sure: measure at least {PAIRS_MIN} (--rounds {PAIRS_MIN}).",
            self.answer
        )
    }

    /// Returns the greatest number of pairs in a comparison, if all comparisons have too few pairs.
    fn few_pairs(&self) -> Option<usize> {
        // The bytes of a protocol are the same in each round, so that one is enough.
        let is_fixed = |one: &&Comparison| one.unit == "B" && one.shift.low == one.shift.high;
        let compared = self.comparisons.iter().filter(|one| !is_fixed(one));
        compared.map(|comparison| comparison.pairs).max().filter(|pairs| *pairs < PAIRS_MIN)
    }

    /// Returns the greatest number of rounds of a series.
    pub(crate) fn rounds(&self) -> usize {
        self.series.iter().map(|series| series.rounds.len()).max().unwrap_or(0)
    }

    /// Compares each contender with `to`, in each case and in the report's quantity.
    pub(crate) fn compare_with(&mut self, to: &str) {
        let all = self.series.iter().filter(|series| series.quantity == self.quantity);
        let pairs = all
            .filter(|series| series.contender != to)
            .filter_map(|of| Some((of, self.find(&of.case, to, &self.quantity)?)));
        self.comparisons.extend(pairs.filter_map(|(of, to)| compare(of, to)).collect::<Vec<_>>());
    }
}

/// Returns the estimate of each series. Calls `step` after each series that has values.
pub(crate) fn estimates<'a>(
    series: impl IntoIterator<Item = &'a Series>,
    step: impl Fn() + Sync,
) -> Vec<Option<Estimate>> {
    Estimate::of_all(series.into_iter().map(Series::values), step)
}

/// Returns the cases of these series without repetitions.
pub(crate) fn cases<'a>(series: impl IntoIterator<Item = &'a Series>) -> Vec<&'a str> {
    let mut cases: Vec<&str> = Vec::new();
    for series in series {
        if !cases.contains(&series.case.as_str()) {
            cases.push(&series.case);
        }
    }
    cases
}

/// Compares two series of the same case in the rounds in which both have a value.
pub(crate) fn compare(of: &Series, to: &Series) -> Option<Comparison> {
    let (ofs, tos): (Vec<f64>, Vec<f64>) = pairs(of, to).unzip();
    Some(Comparison {
        case: of.case.clone(),
        of: of.contender.clone(),
        to: to.contender.clone(),
        unit: of.unit.clone(),
        shift: shift(&ofs, &tos, &mut Random::new(1))?,
        ratio: ratio(of, to),
        welch: welch(&ofs, &tos, WELCH_CONFIDENCE),
        pairs: ofs.len(),
    })
}

/// Returns the median of the rounds' ratios of two series; `None` if a value of `to` is zero.
pub(crate) fn ratio(of: &Series, to: &Series) -> Option<Estimate> {
    let ratios = pairs(of, to).map(|(of, to)| (to != 0.0).then(|| of / to));
    Estimate::of(&ratios.collect::<Option<Vec<_>>>()?, &mut Random::new(1))
}

/// Returns the pairs of values from the rounds in which both series have one.
fn pairs(of: &Series, to: &Series) -> impl Iterator<Item = (f64, f64)> {
    of.rounds.iter().zip(&to.rounds).filter_map(|(of, to)| Some(((*of)?, (*to)?)))
}

#[cfg(test)]
pub(crate) mod tests;
