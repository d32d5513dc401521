//! The result of an experiment: what was asked, every round as it was measured, and what that says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::link::Link;
use super::numbers::fixed;
use super::probe::FaultKind;
use super::strain::Strain;
pub(crate) use super::theory::ms;
use crate::histogram::Histogram;
use crate::statistics::{Estimate, Random, median, shift, welch};
use crate::tcp_info::Traffic;

/// The version of the JSON that reports are written in; it changes when an older reader would misunderstand it.
pub(crate) const VERSION: u32 = 1;
/// The published experiments compare means with this confidence.
const WELCH_CONFIDENCE: f64 = 0.99;

/// With fewer pairs, equals are all on one side of each other in more than one of twenty cases, so nothing is without doubt.
pub(crate) const PAIRS_MIN: usize = 6;
/// With less of what was expected, or of the rounds, a figure says nothing.
pub(crate) const REACH_MIN: f64 = 0.9;
/// The words for what has fewer pairs.
pub(crate) const TOO_FEW_ROUNDS: &str = "too few rounds";

/// The publications whose figures stand beside the measured ones.
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
    /// Of times, bytes and the like, less is better.
    pub(crate) const fn less(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, is_more_better: false }
    }

    /// Of rates and the like, more is better.
    pub(crate) const fn more(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, is_more_better: true }
    }
}

/// All about one experiment.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) version: u32,
    pub(crate) experiment: String,
    pub(crate) question: String,
    /// The answer in one sentence, as far as rounds that are added do not change it: see [`Report::full_answer`].
    pub(crate) answer: String,
    /// The reason why the answer must not be relied on, if there is one.
    pub(crate) invalid: Option<String>,
    /// It was ended before all was measured.
    #[serde(default)]
    pub(crate) is_interrupted: bool,
    pub(crate) environment: Environment,
    /// The figure that the plot and the comparisons are about.
    pub(crate) quantity: String,
    pub(crate) series: Vec<Series>,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) published: Vec<Published>,
    /// What theory says of the quantity, beside what was measured.
    #[serde(default)]
    pub(crate) models: Vec<Model>,
    /// The way in which it was measured, a sentence each.
    pub(crate) method: Vec<String>,
}

/// Where and how it was measured.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Environment {
    pub(crate) program: String,
    /// The end of the run, in milliseconds since the Unix epoch.
    pub(crate) time: u64,
    /// The time that the run took.
    #[serde(default)]
    pub(crate) duration_ms: u64,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) system: String,
    pub(crate) target: String,
    pub(crate) link: Link,
    /// Links were emulated by the kernel, and not by a relay.
    #[serde(default)]
    pub(crate) has_netem: bool,
    pub(crate) rounds: usize,
    pub(crate) seed: u64,
    pub(crate) is_quick: bool,
}

impl Environment {
    /// Returns true if both are the same place under the same conditions: nothing but the program and the time is another.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let conditions = |of: &Self| (of.cores, of.has_netem, of.is_quick);
        conditions(self) == conditions(other)
            && self.link == other.link
            && [&self.processor, &self.system, &self.target]
                == [&other.processor, &other.system, &other.target]
    }

    /// Returns it in words.
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

/// One figure of one contender in one case, a value for each round.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Series {
    pub(crate) case: String,
    /// The place of the case on the axis, if the cases are figures.
    pub(crate) x: Option<f64>,
    pub(crate) contender: String,
    pub(crate) quantity: String,
    pub(crate) unit: String,
    /// Of rates and the like, more is better; of times and bytes, less.
    #[serde(default)]
    pub(crate) is_more_better: bool,
    /// `None` for a round in which everything failed.
    pub(crate) rounds: Vec<Option<f64>>,
    /// All durations of all rounds, as an HDR histogram (V2, compressed) in Base64.
    pub(crate) histogram: Option<String>,
    pub(crate) expected: u64,
    pub(crate) received: u64,
    pub(crate) faults: BTreeMap<FaultKind, u64>,
    /// What the connections carried, in all rounds.
    pub(crate) traffic: Option<Traffic>,
    /// How hard it was for this machine to measure them.
    #[serde(default)]
    pub(crate) strain: Option<Strain>,
}

/// Two contenders of a case, paired by round.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Comparison {
    pub(crate) case: String,
    pub(crate) of: String,
    pub(crate) to: String,
    pub(crate) unit: String,
    /// The Hodges-Lehmann shift with its bootstrap interval of 95 %.
    pub(crate) shift: Estimate,
    /// The ratio of the medians in each round, with its bootstrap interval of 95 %.
    pub(crate) ratio: Option<Estimate>,
    /// The difference of the means, with the interval of Welch's test at 99 %, as the publications give it.
    pub(crate) welch: Option<Estimate>,
    /// The rounds that have a value of both.
    #[serde(default)]
    pub(crate) pairs: usize,
}

/// What the pairs of a comparison prove.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Judgement {
    Distinguishable,
    NotDistinguishable,
    /// There are fewer than [`PAIRS_MIN`] pairs, which prove nothing, however far apart both are.
    TooFewRounds,
}

/// The value that theory gives for a contender in a case.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Model {
    pub(crate) case: String,
    /// The place of the case on the axis, if the cases are figures.
    pub(crate) x: Option<f64>,
    pub(crate) contender: String,
    pub(crate) value: f64,
}

impl Model {
    pub(crate) fn new(case: &str, x: Option<f64>, contender: &str, value: f64) -> Self {
        Self { case: case.to_owned(), x, contender: contender.to_owned(), value }
    }
}

/// A published figure beside the one that was measured.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Published {
    pub(crate) figure: String,
    pub(crate) published: String,
    pub(crate) measured: String,
    pub(crate) verdict: Verdict,
    /// The reason of a difference, or why it cannot be tested here, or what the run lacks.
    pub(crate) because: String,
}

/// What a measurement says of a published figure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Replicates,
    Differs,
    NotTestableHere,
    /// The run that measured it proves nothing.
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
    /// Replicates if it is so, and differs otherwise.
    pub(crate) fn of(is_so: bool) -> Self {
        if is_so { Self::Replicates } else { Self::Differs }
    }
}

impl Series {
    /// Returns the values of the rounds that have one.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.rounds.iter().flatten().copied().collect()
    }

    pub(crate) fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.values(), &mut Random::new(1))
    }

    /// Returns the duration that this share of all does not exceed, if durations were recorded.
    pub(crate) fn percentile(&self, share: f64) -> Option<Duration> {
        Histogram::decoded(self.histogram.as_deref()?).ok()?.percentile(share)
    }

    /// Returns false if the server was not asked for any of it.
    pub(crate) fn is_asked(&self) -> bool {
        !self.faults.contains_key(&FaultKind::NotAsked)
    }

    /// Returns the share of what was expected that came; 1 if nothing was expected.
    pub(crate) fn reach(&self) -> f64 {
        if self.expected == 0 { 1.0 } else { self.received as f64 / self.expected as f64 }
    }
}

impl Comparison {
    /// Says whether the interval of the shift leaves no doubt that there is a difference.
    pub(crate) fn judgement(&self) -> Judgement {
        match self.pairs >= PAIRS_MIN {
            false => Judgement::TooFewRounds,
            true if self.shift.holds(0.0) => Judgement::NotDistinguishable,
            true => Judgement::Distinguishable,
        }
    }

    /// Returns true if there is a difference without doubt.
    pub(crate) fn is_distinguishable(&self) -> bool {
        self.judgement() == Judgement::Distinguishable
    }
}

impl Judgement {
    /// Returns the words of a table, which has none for a difference.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Distinguishable => "",
            Self::NotDistinguishable => "not distinguishable",
            Self::TooFewRounds => TOO_FEW_ROUNDS,
        }
    }
}

impl Report {
    /// Returns the series of this figure in a case.
    pub(crate) fn find(&self, case: &str, contender: &str, quantity: &str) -> Option<&Series> {
        self.series.iter().find(|series| {
            series.case == case && series.contender == contender && series.quantity == quantity
        })
    }

    /// Returns the median of the rounds of this figure.
    pub(crate) fn median(&self, case: &str, contender: &str, quantity: &str) -> Option<f64> {
        median(&self.find(case, contender, quantity)?.values())
    }

    /// Adds what follows from the rest: the answer if the contenders that it is about are missing, and the publications, without a
    /// verdict if the run proves nothing.
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

    /// Says that there is one contender, if so, and so nothing that the question is about.
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

    /// Returns true if a round has a value.
    pub(crate) fn has_values(&self) -> bool {
        self.series.iter().any(|series| series.rounds.iter().any(Option::is_some))
    }

    /// Returns the reason why no verdict on a published figure is possible, in the words of a table.
    fn lack(&self) -> Option<&'static str> {
        match self {
            of if of.invalid.is_some() => Some("invalid"),
            of if of.is_interrupted => Some("interrupted"),
            of => of.few_pairs().map(|_| TOO_FEW_ROUNDS),
        }
    }

    /// Returns the answer, and says so as long as no difference is sure.
    pub(crate) fn full_answer(&self) -> String {
        let Some(pairs) = self.few_pairs() else { return self.answer.clone() };
        let rounds = if pairs == 1 { "1 round".to_owned() } else { format!("{pairs} rounds") };
        format!(
            "{} With {rounds}, no difference is sure: measure at least {PAIRS_MIN} (--rounds {PAIRS_MIN}).",
            self.answer
        )
    }

    /// Returns the greatest number of pairs of a comparison, if all have too few rounds.
    fn few_pairs(&self) -> Option<usize> {
        // The bytes of a protocol are the same in each round, so that one is enough.
        let is_fixed = |one: &&Comparison| one.unit == "B" && one.shift.low == one.shift.high;
        let compared = self.comparisons.iter().filter(|one| !is_fixed(one));
        compared.map(|comparison| comparison.pairs).max().filter(|pairs| *pairs < PAIRS_MIN)
    }

    /// Returns the greatest number of rounds that a series has.
    pub(crate) fn rounds(&self) -> usize {
        self.series.iter().map(|series| series.rounds.len()).max().unwrap_or(0)
    }

    /// Compares each contender with `to` in each case, by the quantity of the report.
    pub(crate) fn compare_with(&mut self, to: &str) {
        let all = self.series.iter().filter(|series| series.quantity == self.quantity);
        let pairs = all
            .filter(|series| series.contender != to)
            .filter_map(|of| Some((of, self.find(&of.case, to, &self.quantity)?)));
        self.comparisons.extend(pairs.filter_map(|(of, to)| compare(of, to)).collect::<Vec<_>>());
    }
}

/// Compares two series of the same case in the rounds that have a value of both.
pub(crate) fn compare(of: &Series, to: &Series) -> Option<Comparison> {
    let pairs = of.rounds.iter().zip(&to.rounds).filter_map(|(of, to)| Some(((*of)?, (*to)?)));
    let (ofs, tos): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let mut random = Random::new(1);
    let ratios: Option<Vec<f64>> =
        ofs.iter().zip(&tos).map(|(of, to)| (*to != 0.0).then(|| of / to)).collect();
    Some(Comparison {
        case: of.case.clone(),
        of: of.contender.clone(),
        to: to.contender.clone(),
        unit: of.unit.clone(),
        shift: shift(&ofs, &tos, &mut random)?,
        ratio: ratios.and_then(|ratios| Estimate::of(&ratios, &mut random)),
        welch: welch(&ofs, &tos, WELCH_CONFIDENCE),
        pairs: ofs.len(),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn series(contender: &str, rounds: &[f64]) -> Series {
        Series {
            case: "20 B".to_owned(),
            x: Some(20.0),
            contender: contender.to_owned(),
            quantity: "round trip".to_owned(),
            unit: "ms".to_owned(),
            is_more_better: false,
            rounds: rounds.iter().copied().map(Some).collect(),
            histogram: None,
            expected: 10,
            received: 9,
            faults: BTreeMap::from([(FaultKind::Stalled, 1)]),
            traffic: None,
            strain: Some(Strain { lag_ms_p99: Some(0.1), cpu: 0.5, ..Strain::default() }),
        }
    }

    /// A report without series.
    pub(crate) fn report() -> Report {
        Report {
            version: VERSION,
            experiment: "echo".to_owned(),
            question: "How long?".to_owned(),
            answer: "Not long.".to_owned(),
            invalid: None,
            is_interrupted: false,
            environment: Environment {
                program: "anemone".to_owned(),
                time: 0,
                duration_ms: 0,
                processor: "a processor".to_owned(),
                cores: 2,
                system: "Linux".to_owned(),
                target: "a server".to_owned(),
                link: Link::default(),
                has_netem: false,
                rounds: 3,
                seed: 1,
                is_quick: false,
            },
            quantity: "round trip".to_owned(),
            series: Vec::new(),
            comparisons: Vec::new(),
            published: Vec::new(),
            models: Vec::new(),
            method: Vec::new(),
        }
    }

    pub(crate) fn published(verdict: Verdict) -> Published {
        Published {
            figure: "bytes".to_owned(),
            published: "1".to_owned(),
            measured: "2".to_owned(),
            verdict,
            because: "of Java".to_owned(),
        }
    }

    #[test]
    fn a_difference_needs_rounds_enough() {
        let compared = |rounds: usize| {
            let [of, to] = [2.0, 1.0].map(|value| vec![value; rounds]);
            compare(&series("a", &of), &series("b", &to)).unwrap()
        };
        assert_eq!(compared(6).judgement(), Judgement::Distinguishable);
        // Equals would be all on one side in one of sixteen cases.
        assert_eq!(compared(5).judgement(), Judgement::TooFewRounds);
        assert!(!compared(5).is_distinguishable());
        let equals = compare(&series("a", &[1.0; 6]), &series("b", &[1.0; 6])).unwrap();
        assert_eq!(equals.judgement(), Judgement::NotDistinguishable);
    }

    #[test]
    fn a_report_with_too_few_rounds_says_so_and_has_no_verdict() {
        let of = |rounds: usize, unit: &str| {
            let mut report = report();
            report.series =
                vec![series("a", &vec![2.0; rounds]), series("TCP", &vec![1.0; rounds])];
            report.series.iter_mut().for_each(|series| series.unit = unit.to_owned());
            report.compare_with("TCP");
            report.published = vec![published(Verdict::Differs)];
            report.complete();
            [report.full_answer(), report.published[0].words()]
        };
        let words =
            "Not long. With 4 rounds, no difference is sure: measure at least 6 (--rounds 6).";
        assert_eq!(of(4, "ms"), [words, "too few rounds"]);
        assert!(of(1, "ms")[0].contains("With 1 round, no"));
        let sure = ["Not long.", "differs, because of Java"];
        assert_eq!(of(6, "ms"), sure);
        assert_eq!(of(4, "B"), sure, "bytes are the same in each round");
    }

    #[test]
    fn one_contender_has_nothing_to_be_compared_with() {
        let answer = |contenders: &[&str]| {
            let series = contenders.iter().map(|of| series(of, &[1.0])).collect();
            let mut report = Report { answer: String::new(), series, ..report() };
            report.complete();
            report.answer
        };
        let words = "Only SSE was measured, so there is nothing to compare it with. Medians of the round trip: 20 B, SSE: 1.000 ms.";
        assert_eq!(answer(&["SSE"]), words);
        assert!(answer(&["SSE", "poll"]).starts_with("Medians of the round trip: "));
    }

    #[test]
    fn what_was_cut_has_no_verdict() {
        let verdicts = |mut report: Report| {
            report.published = [Verdict::Replicates, Verdict::Differs, Verdict::NotTestableHere]
                .map(published)
                .into();
            report.complete();
            report.published.iter().map(Published::words).collect::<Vec<_>>()
        };
        let untestable = "not testable here, because of Java";
        assert_eq!(verdicts(report()), ["replicates", "differs, because of Java", untestable]);
        let cut = Report { is_interrupted: true, ..report() };
        assert!(!cut.has_values());
        assert_eq!(verdicts(cut.clone()), ["interrupted", "interrupted", untestable]);
        let invalid = Report { invalid: Some("late".to_owned()), ..cut };
        assert_eq!(verdicts(invalid.clone())[0], "invalid");
        assert!(Report { series: vec![series("a", &[1.0])], ..invalid }.has_values());
    }

    #[test]
    fn the_page_has_the_same_bounds_and_words() {
        let page = include_str!("../../../../web/page/lab/report.js");
        for line in [
            format!("const VERSION = {VERSION};"),
            format!("const REACH_MIN = {REACH_MIN};"),
            format!("const PAIRS_MIN = {PAIRS_MIN};"),
            format!("const TOO_FEW = \"{TOO_FEW_ROUNDS} to be sure\";"),
        ] {
            assert!(page.contains(&line), "{line}");
        }
    }

    #[test]
    fn rounds_are_paired_where_both_have_a_value() {
        let (mut of, to) = (series("a", &[2.0, 9.0, 4.0]), series("b", &[1.0, 1.0, 2.0]));
        of.rounds[1] = None;
        let comparison = compare(&of, &to).unwrap();
        assert_eq!(comparison.ratio.unwrap().median, 2.0);
        assert_eq!(comparison.shift.median, 1.5);
        assert_eq!(comparison.pairs, 2);
        of.rounds = vec![None; 3];
        assert!(compare(&of, &to).is_none(), "nothing to compare");
        assert_eq!(of.reach(), 0.9);
    }
}
