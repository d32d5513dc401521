//! Compares two runs of the same experiments. Finds the figures that have changed, and the size of each change.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use super::merge::other_conditions;
use super::pace::Pace;
use super::report::{PAIRS_MIN, Report, Series};
use crate::statistics::{Change, DOUBT, Estimate};

/// The greatest change for the worse that is allowed, in per cent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tolerance(f64);

impl FromStr for Tolerance {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
        match number {
            Ok(share) if (0.0..=1000.0).contains(&share) => Ok(Self(share)),
            _ => Err("expected a share in per cent, such as 5%"),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

/// The reason why a comparison with `--fail-on` fails.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Regression {
    /// Some figures are worse by more than is allowed.
    #[error("worse by more than {tolerance}: {figures}")]
    Worse {
        /// The change that was allowed.
        tolerance: String,
        /// The names of the worse figures. If there are many, only the first of them.
        figures: String,
    },
    /// One of the runs proves nothing.
    #[error("{run} is invalid, so its figures are not judged: {reason}")]
    Invalid {
        /// The name of the run, A or B.
        run: &'static str,
        /// The reason why it proves nothing.
        reason: String,
    },
    /// The runs have too few rounds for a verdict.
    #[error(
        "too few rounds to judge {figures} figures, of which one has only {rounds} rounds: repeat both runs with --rounds {needed}"
    )]
    TooFewRounds {
        /// The number of figures that both runs have.
        figures: usize,
        /// The number of rounds of the figure with the fewest rounds, among the figures that are not equal.
        rounds: usize,
        /// The number of rounds that would be enough.
        needed: usize,
    },
    /// B lacks figures or whole runs of A. The text names them.
    #[error("not measured in B: {0}")]
    Missing(String),
    /// Some runs of B were not compared, although A has runs of their experiments. Either no run of A has their
    /// conditions, or B has a newer run.
    #[error(
        "no run of A has the conditions of these runs of B: {0}: leave them out of B, or add runs under the same conditions to A"
    )]
    Unjudged(String),
}

/// The runs of A and B in pairs. A pair has two runs of one experiment.
#[derive(Debug)]
pub(crate) struct RunPairs<'a> {
    pub(crate) all: Vec<RunPair<'a>>,
    /// The runs without a partner, each with the name of its side.
    pub(crate) alone: Vec<(&'static str, &'a Report)>,
}

/// The two runs of an experiment.
#[derive(Debug)]
pub(crate) struct RunPair<'a> {
    pub(crate) reports: [&'a Report; 2],
    pub(crate) figures: Vec<Figure<'a>>,
    /// The figures that only one of the runs has, each with the name of that run.
    pub(crate) alone: Vec<(&'static str, &'a Series)>,
}

/// A figure that both runs have. It does not keep its 20,000 resamples, since there may be many figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure<'a> {
    pub(crate) series: &'a Series,
    other: &'a Series,
    pub(crate) medians: [f64; 2],
    /// The difference, with the interval for a single figure.
    pub(crate) difference: Estimate,
    /// The difference in per cent; `None` if the first median may be zero.
    pub(crate) per_cent: Option<Estimate>,
    rounds: usize,
}

/// The verdict on the change of a figure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ChangeKind {
    Equal,
    NotDistinguishable,
    Better,
    Worse,
    /// The medians differ, but there are too few rounds. With so few, equal runs would differ by chance too often.
    TooFewRounds,
}

impl<'a> Figure<'a> {
    fn of(series: &'a Series, other: &'a Series, change: Change) -> Self {
        let (difference, per_cent) = (change.difference(DOUBT), change.per_cent(DOUBT));
        let (medians, rounds) = (change.medians(), change.rounds());
        Self { series, other, medians, difference, per_cent, rounds }
    }

    /// Judges a difference by its interval.
    fn kind(&self, difference: Estimate) -> ChangeKind {
        match difference {
            of if of.low == 0.0 && of.high == 0.0 => ChangeKind::Equal,
            of if of.holds(0.0) => ChangeKind::NotDistinguishable,
            of if (of.value > 0.0) == self.series.is_more_better => ChangeKind::Better,
            _ => ChangeKind::Worse,
        }
    }

    /// Judges the change as if this were the only figure.
    pub(crate) fn judgement(&self) -> ChangeKind {
        match self.kind(self.difference) {
            ChangeKind::Equal => ChangeKind::Equal,
            _ if self.rounds < PAIRS_MIN => ChangeKind::TooFewRounds,
            kind => kind,
        }
    }

    /// Returns true if the figure is surely worse by more than is allowed. `doubt` is less than for a single figure, so
    /// the interval is wider. A figure that was zero may not become worse at all.
    fn is_beyond(&self, change: &Change, Tolerance(share): Tolerance, doubt: f64) -> bool {
        let is_surely_more = |per_cent: Estimate| match self.series.is_more_better {
            true => per_cent.high < -share,
            false => per_cent.low > share,
        };
        self.kind(change.difference(doubt)) == ChangeKind::Worse
            && change.per_cent(doubt).is_none_or(is_surely_more)
    }

    pub(crate) fn name(&self) -> String {
        name(self.series)
    }
}

pub(crate) fn name(series: &Series) -> String {
    format!("{} of {}, {}", series.quantity, series.contender, series.case)
}

pub(crate) fn run_name(run: &Report) -> String {
    let place = run.environment.sentences().join(" ");
    format!("{}, {}: {}", run.experiment, run.environment.when(), place.trim_end_matches('.'))
}

/// Pairs the experiments that both runs have.
///
/// # Errors
/// The runs have no experiment in common.
pub(crate) fn pairs<'a>(from: &'a [Report], to: &'a [Report]) -> anyhow::Result<RunPairs<'a>> {
    let partners = partners(from, to);
    let of_both = from.iter().zip(&partners).filter_map(|(one, to)| Some([one, (*to)?]));
    let found: Vec<_> = of_both.collect();
    let of_a = from.iter().zip(&partners).filter(|(_, to)| to.is_none());
    let is_alone = |other: &&Report| !partners.iter().flatten().any(|to| std::ptr::eq(*to, *other));
    let of_b = to.iter().filter(is_alone).map(|run| ("B", run));
    let alone = of_a.map(|(run, _)| ("A", run)).chain(of_b).collect();
    if found.is_empty() {
        let names = |reports: &[Report]| {
            let names: Vec<_> = reports.iter().map(|one| one.experiment.as_str()).collect();
            names.join(", ")
        };
        anyhow::bail!(
            "A has the experiment {}, and B has {}: only runs of the same experiment are compared",
            names(from),
            names(to)
        );
    }
    let of_a: Vec<_> = found
        .iter()
        .flat_map(|[from, to]| from.series.iter().map(|series| (series, same(to, series))))
        .collect();
    let samples =
        of_a.iter().map(|(of, to)| [of.values(), to.map_or_else(Vec::new, Series::values)]);
    let pace = Pace::working("comparing series", of_a.len());
    let figures = Change::of_all(
        samples,
        || pace.step(),
        |at, change| {
            let (series, other) = of_a[at];
            other.map(|other| Figure::of(series, other, change))
        },
    );
    pace.end();
    let mut figures = figures.into_iter().map(Option::flatten);
    let all = found.into_iter().map(|reports| pair(reports, figures.by_ref())).collect();
    Ok(RunPairs { all, alone })
}

/// Returns the partner in `to` for each run in `from`. It has the most similar conditions; among several such runs, it
/// is the newest. The version of the program does not matter. A run in `to` that has the same conditions as another run
/// in `from` is left to that one.
fn partners<'a>(from: &[Report], to: &'a [Report]) -> Vec<Option<&'a Report>> {
    let is_like = |one: &Report, other: &Report| {
        one.experiment == other.experiment && other_conditions(one, other).is_empty()
    };
    let is_free = |other: &&Report| !from.iter().any(|one| is_like(one, other));
    let free: Vec<_> = to.iter().filter(is_free).collect();
    let partner = |one: &Report| {
        let like = to.iter().filter(|other| is_like(one, other));
        let like = like.max_by_key(|other| other.environment.time);
        let same = free.iter().copied().filter(|other| one.experiment == other.experiment);
        like.or_else(|| {
            same.min_by_key(|other| {
                (other_conditions(one, other).len(), Reverse(other.environment.time))
            })
        })
    };
    from.iter().map(partner).collect()
}

/// Makes a pair. `figures` yields the figure for each series of A, or `None` if B lacks it.
fn pair<'a>(
    reports: [&'a Report; 2],
    figures: &mut impl Iterator<Item = Option<Figure<'a>>>,
) -> RunPair<'a> {
    let [from, to] = reports;
    let mut pair = RunPair { reports, figures: Vec::new(), alone: Vec::new() };
    for (series, figure) in from.series.iter().zip(figures) {
        match figure {
            Some(figure) => pair.figures.push(figure),
            None => pair.alone.push(("A", series)),
        }
    }
    let only = to.series.iter().filter(|series| same(from, series).is_none());
    pair.alone.extend(only.map(|series| ("B", series)));
    pair
}

/// Returns the series of the same figure in another run.
fn same<'a>(report: &'a Report, one: &Series) -> Option<&'a Series> {
    report.series.iter().find(|other| other.names() == one.names())
}

/// Judges all pairs. A comparison succeeds only if no figure is surely worse by more than the tolerance.
///
/// # Errors
/// A figure is worse or was not measured again, there are too few rounds, or a run is invalid or has no partner.
pub(crate) fn judge(runs: &RunPairs<'_>, tolerance: Tolerance) -> Result<(), Regression> {
    let pairs = &runs.all[..];
    for pair in pairs {
        for (run, report) in ["A", "B"].into_iter().zip(pair.reports) {
            let newest = report.newest_invalid.as_ref();
            let newest = newest.map(|reason| format!("its newest run is left out: {reason}"));
            let interrupted = report.is_interrupted.then(|| "it was interrupted".to_owned());
            if let Some(reason) = report.invalid.clone().or(newest).or(interrupted) {
                return Err(Regression::Invalid { run, reason });
            }
        }
    }
    let count = pairs.iter().map(|pair| pair.figures.len()).sum();
    let figures = pairs.iter().flat_map(|pair| &pair.figures);
    let changed = figures.filter(|figure| figure.judgement() != ChangeKind::Equal);
    let (rounds, needed) = (changed.map(|figure| figure.rounds).min(), rounds_needed(count));
    if let Some(rounds) = rounds.filter(|rounds| *rounds < needed) {
        return Err(Regression::TooFewRounds { figures: count, rounds, needed });
    }
    let worse = worse(pairs, tolerance, DOUBT / count as f64);
    if !worse.is_empty() {
        let (tolerance, figures) = (tolerance.to_string(), listed(&worse));
        return Err(Regression::Worse { tolerance, figures });
    }
    let alone = |side: &'static str| runs.alone.iter().filter(move |(run, _)| *run == side);
    let figures = pairs.iter().flat_map(|pair| &pair.alone).filter(|(run, _)| *run == "A");
    let missing = alone("A").map(|(_, run)| run_name(run));
    let missing: Vec<_> = missing.chain(figures.map(|(_, series)| name(series))).collect();
    if !missing.is_empty() {
        return Err(Regression::Missing(listed(&missing)));
    }
    // An experiment that A does not have is new, as a figure is.
    let is_new =
        |run: &Report| pairs.iter().all(|pair| pair.reports[1].experiment != run.experiment);
    let unjudged = alone("B").filter(|(_, run)| !is_new(run)).map(|(_, run)| run_name(run));
    let unjudged: Vec<_> = unjudged.collect();
    if unjudged.is_empty() { Ok(()) } else { Err(Regression::Unjudged(listed(&unjudged))) }
}

/// Joins names. If there are more than ten, only the first ten.
fn listed(names: &[String]) -> String {
    const NAMES_MAX: usize = 10;
    match names.split_at_checked(NAMES_MAX) {
        Some((first, more)) if !more.is_empty() => {
            format!("{}; and {} more", first.join("; "), more.len())
        }
        _ => names.join("; "),
    }
}

/// Returns the names of the figures that are surely worse by more than is allowed. `doubt` is the doubt
/// for each figure.
fn worse(pairs: &[RunPair<'_>], tolerance: Tolerance, doubt: f64) -> Vec<String> {
    let figures = pairs.iter().flat_map(|pair| &pair.figures);
    // With less doubt, intervals are wider.
    let worse: Vec<_> = figures.filter(|figure| figure.judgement() == ChangeKind::Worse).collect();
    let samples = worse.iter().map(|figure| [figure.series.values(), figure.other.values()]);
    let pace = Pace::working("judging series", worse.len());
    let is_beyond = Change::of_all(
        samples,
        || pace.step(),
        |at, change| worse[at].is_beyond(&change, tolerance, doubt),
    );
    pace.end();
    let beyond = worse.iter().zip(is_beyond).filter(|(_, is_beyond)| *is_beyond == Some(true));
    beyond.map(|(figure, _)| figure.name()).collect()
}

/// Returns the least number of rounds for a comparison of this many figures. With it, equals seem worse in less than
/// [`DOUBT`] of all comparisons. By chance, all n rounds lie on one side of n others in 1 of C(2n, n) orders. Even a
/// single report needs [`PAIRS_MIN`] rounds.
fn rounds_needed(figures: usize) -> usize {
    let (mut rounds, mut orders) = (1_usize, 2.0);
    while 2.0 / orders > DOUBT / figures.max(1) as f64 {
        orders *= (2 * (2 * rounds + 1)) as f64 / (rounds + 1) as f64;
        rounds += 1;
    }
    rounds.max(PAIRS_MIN)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lab::link::Link;
    use crate::lab::report::tests::{report, series};

    fn run(values: &[f64]) -> Report {
        Report { series: vec![series("TCP", values)], ..report() }
    }

    const BEFORE: [f64; 8] = [10.0, 10.1, 9.9, 10.0, 10.2, 9.8, 10.0, 10.1];

    fn judged(to: &Report, tolerance: &str) -> Result<(), Regression> {
        let (from, to) = ([run(&BEFORE)], [to.clone()]);
        judge(&pairs(&from, &to).unwrap(), tolerance.parse().unwrap())
    }

    #[test]
    fn only_what_is_surely_worse_by_more_fails() {
        let slower = run(&BEFORE.map(|value| value * 1.1));
        let error = judged(&slower, "5%").unwrap_err();
        assert_eq!(error.to_string(), "worse by more than 5 %: round trip of TCP, 20 B");
        assert_eq!(judged(&slower, "20"), Ok(()));
        assert_eq!(judged(&run(&BEFORE.map(|value| value / 2.0)), "0%"), Ok(()), "faster");
        let noise = [5.0, 20.0, 9.0, 12.0, 8.0, 30.0, 10.0, 11.0];
        assert_eq!(judged(&run(&noise), "5%"), Ok(()), "not distinguishable");
        let mut rate = slower;
        rate.series[0].is_more_better = true;
        let mut before = run(&BEFORE);
        before.series[0].is_more_better = true;
        let (rate, before) = ([rate], [before]);
        let tolerance: Tolerance = "5%".parse().unwrap();
        assert_eq!(judge(&pairs(&before, &rate).unwrap(), tolerance), Ok(()), "more calls");
        assert!(judge(&pairs(&rate, &before).unwrap(), tolerance).is_err(), "fewer calls");
    }

    #[test]
    fn what_may_be_worse_by_less_than_allowed_is_allowed() {
        let noisy = [10.0, 12.5, 10.1, 12.4, 10.2, 12.0, 10.3, 12.6];
        assert_eq!(judged(&run(&noisy), "5%"), Ok(()), "surely worse, and not surely by 5 %");
        assert!(judged(&run(&BEFORE.map(|value| value + 2.0)), "5%").is_err());
    }

    #[test]
    fn few_rounds_prove_nothing() {
        // C(2n, n) is 924 for 6, and 3,432 for 7.
        assert_eq!([1, 6, 22, 24].map(rounds_needed), [6, 6, 6, 7]);
        let judgement = |rounds: usize| {
            let (from, to) = ([run(&BEFORE[..rounds])], [run(&vec![20.0; rounds])]);
            pairs(&from, &to).unwrap().all[0].figures[0].judgement()
        };
        assert_eq!(
            [4, 5, 6].map(judgement),
            [ChangeKind::TooFewRounds, ChangeKind::TooFewRounds, ChangeKind::Worse]
        );
        let (from, to) = ([run(&BEFORE[..4])], [run(&[20.0; 4])]);
        let pairs = pairs(&from, &to).unwrap();
        let error = judge(&pairs, "5".parse().unwrap()).unwrap_err();
        assert!(error.to_string().ends_with("repeat both runs with --rounds 6"), "{error}");
    }

    #[test]
    fn a_figure_has_the_rounds_that_have_a_value() {
        let ten = |value: f64| {
            let mut rounds = vec![None; 10];
            rounds[..2].fill(Some(value));
            Report { series: vec![Series { rounds, ..series("TCP", &[]) }], ..report() }
        };
        let (from, to) = ([ten(1.0)], [ten(2.0)]);
        let pairs_of_two = pairs(&from, &to).unwrap();
        assert_eq!(pairs_of_two.all[0].figures[0].judgement(), ChangeKind::TooFewRounds);
        let few = Regression::TooFewRounds { figures: 1, rounds: 2, needed: 6 };
        assert_eq!(judge(&pairs_of_two, "5".parse().unwrap()), Err(few));
        // The bytes of a protocol are the same in each round.
        assert_eq!(judge(&pairs(&from, &from).unwrap(), "0".parse().unwrap()), Ok(()));
    }

    #[test]
    fn of_many_figures_the_first_are_named() {
        let of = |value: f64| {
            let one = |at: usize| Series { case: at.to_string(), ..series("TCP", &[value; 20]) };
            [Report { series: (0..30).map(one).collect(), ..report() }]
        };
        let (from, to) = (of(1.0), of(2.0));
        let error = judge(&pairs(&from, &to).unwrap(), "5%".parse().unwrap()).unwrap_err();
        let words = "round trip of TCP, 8; round trip of TCP, 9; and 20 more";
        assert!(error.to_string().ends_with(words), "{error}");
    }

    #[test]
    fn figures_of_the_same_name_are_told_apart_by_their_unit() {
        let of = |units: [&str; 2]| {
            let one = |unit: &str| Series { unit: unit.to_owned(), ..series("TCP", &BEFORE) };
            [Report { series: units.map(one).into(), ..report() }]
        };
        let (from, to) = (of(["ms", "B"]), of(["B", "ms"]));
        let pairs = pairs(&from, &to).unwrap();
        let units = pairs.all[0].figures.iter().map(|of| [&*of.series.unit, &*of.other.unit]);
        assert_eq!(units.collect::<Vec<_>>(), [["ms"; 2], ["B"; 2]]);
    }

    /// Returns a run of `program` over a link with this delay.
    fn made(time: u64, program: &str, delay_ms: u64, factor: f64) -> Report {
        let mut made = run(&BEFORE.map(|value| value * factor));
        made.environment.time = time;
        made.environment.program = program.to_owned();
        made.environment.link = Link::with_delay(Duration::from_millis(delay_ms));
        made
    }

    #[test]
    fn an_experiment_that_was_not_measured_again_fails() {
        let wind = Report { experiment: "wind".to_owned(), ..made(2, "v1", 0, 1.0) };
        let (both, one) = ([made(1, "v1", 0, 1.0), wind], [made(3, "v1", 0, 1.0)]);
        let lacking = pairs(&both, &one).unwrap();
        let [("A", alone)] = lacking.alone[..] else { panic!("{:?}", lacking.alone) };
        assert_eq!(alone.experiment, "wind");
        let error = judge(&lacking, "5%".parse().unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("not measured in B: wind, 1970-01-01"), "{error}");
        assert_eq!(judge(&pairs(&one, &both).unwrap(), "5%".parse().unwrap()), Ok(()), "it is new");
    }

    #[test]
    fn the_newest_version_is_compared_and_an_older_one_does_not_hide_it() {
        let from = [made(1, "v1", 0, 1.0)];
        let to = [made(2, "v1", 0, 1.0), made(3, "v2", 0, 3.0)];
        let compared = pairs(&from, &to).unwrap();
        assert_eq!(compared.all[0].reports[1].environment.program, "v2");
        let error = judge(&compared, "5%".parse().unwrap()).unwrap_err();
        assert!(matches!(error, Regression::Worse { .. }), "{error}");
        let error = judge(&compared, "500%".parse().unwrap()).unwrap_err().to_string();
        assert!(
            error.starts_with("no run of A has the conditions of these runs of B: echo, ")
                && error.contains(": v1; ")
        );
    }

    #[test]
    fn each_link_is_compared_with_the_same_one() {
        let from = [made(1, "v1", 0, 1.0), made(2, "v1", 20, 4.0)];
        let to = [made(3, "v2", 20, 4.0), made(4, "v2", 0, 1.0)];
        let compared = pairs(&from, &to).unwrap();
        for RunPair { reports: [of_a, of_b], .. } in &compared.all {
            assert_eq!(of_a.environment.link, of_b.environment.link);
        }
        assert_eq!((compared.all.len(), judge(&compared, "5%".parse().unwrap())), (2, Ok(())));
        // No run takes the place of one over another link.
        let error = judge(&pairs(&from, &to[1..]).unwrap(), "5%".parse().unwrap()).unwrap_err();
        assert!(matches!(error, Regression::Missing(_)), "{error}");
        // On another machine, that is all that differs.
        let mut other = to.clone();
        other.iter_mut().for_each(|run| run.environment.processor = "another".to_owned());
        for RunPair { reports: [of_a, of_b], .. } in &pairs(&from, &other).unwrap().all {
            assert_eq!(of_a.environment.link, of_b.environment.link);
        }
    }

    #[test]
    fn runs_that_prove_nothing_fail() {
        let invalid = Report { invalid: Some("0 of 10 came".to_owned()), ..run(&BEFORE) };
        let error = judged(&invalid, "5%").unwrap_err().to_string();
        assert!(error.starts_with("B is invalid") && error.ends_with("0 of 10 came"), "{error}");
        let left = Report { newest_invalid: Some("0 of 10 came".to_owned()), ..run(&BEFORE) };
        let error = judged(&left, "5%").unwrap_err().to_string();
        assert!(error.ends_with("its newest run is left out: 0 of 10 came"), "{error}");
        let interrupted = Report { is_interrupted: true, ..run(&BEFORE) };
        let error = judged(&interrupted, "5%").unwrap_err().to_string();
        assert!(error.ends_with("it was interrupted"), "{error}");
        let missing = judged(&report(), "5%").unwrap_err();
        assert_eq!(missing, Regression::Missing("round trip of TCP, 20 B".to_owned()));
    }

    #[test]
    fn other_experiments_are_refused() {
        let wind = Report { experiment: "wind".to_owned(), ..run(&BEFORE) };
        let error = pairs(&[run(&BEFORE)], &[wind]).unwrap_err().to_string();
        assert!(error.starts_with("A has the experiment echo, and B has wind"), "{error}");
    }

    #[test]
    fn a_tolerance_is_a_share() {
        for wrong in ["", "%", "-1%", "five", "NaN", "1e9"] {
            assert!(wrong.parse::<Tolerance>().is_err(), "{wrong}");
        }
        assert_eq!("2.5%".parse::<Tolerance>().unwrap().to_string(), "2.5 %");
    }
}
