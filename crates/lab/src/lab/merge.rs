//! Merges runs of the same experiment under the same conditions.

use std::collections::{HashMap, HashSet};

use anyhow::{Context as _, ensure};

use super::bounds::{
    COMPARED_MAX, MERGED_ROUNDS_MAX, REPORTS_MAX, SERIES_MAX, SERIES_OF_ALL_MAX, VALUES_MAX,
};
use super::pace::Pace;
use super::report::{Comparison, Report, Runs, Series, compare};
use super::terminal::tell;
use crate::histogram::{Counts, Histogram};
use crate::statistics::in_parallel;

/// Merges the runs that the same program made under the same conditions. Each run counts once. An invalid run does not
/// count if there are valid ones. Tells the user about invalid runs, and about the conditions that keep runs apart.
/// Experiments keep their order, and runs of one experiment stand together.
///
/// # Errors
/// There are more reports, series or rounds than can be evaluated in a reasonable time.
pub(crate) fn merged(mut reports: Vec<Report>) -> anyhow::Result<Vec<Report>> {
    let count = reports.len();
    ensure!(count <= REPORTS_MAX, "{count} reports are more than {REPORTS_MAX}: give fewer files");
    reports.sort_by_key(|report| report.environment.time);
    let mut groups: Vec<Vec<Report>> = Vec::new();
    for report in reports {
        match groups.iter_mut().find(|group| differences(&group[0], &report).is_empty()) {
            Some(group) if group.iter().any(|one| is_same(one, &report)) => {}
            Some(group) => group.push(report),
            None => groups.push(vec![report]),
        }
    }
    let mut names: Vec<String> = Vec::new();
    for group in &groups {
        if !names.contains(&group[0].experiment) {
            names.push(group[0].experiment.clone());
        }
    }
    groups.sort_by_key(|group| names.iter().position(|name| *name == group[0].experiment));
    for same in groups.chunk_by(|one, other| one[0].experiment == other[0].experiment) {
        tell_apart(same);
    }
    let mut all: Vec<Report> = Vec::new();
    let (mut series, mut values, mut compared) = (0, 0, 0);
    for group in groups {
        let report = together(group)?;
        series += report.series.len();
        values += report.series.len() * report.rounds();
        if report.environment.runs.is_some() {
            compared += report.comparisons.len() * report.rounds();
        }
        ensure!(
            series <= SERIES_OF_ALL_MAX,
            "{series} series of all reports are more than {SERIES_OF_ALL_MAX}: give fewer files"
        );
        ensure!(values <= VALUES_MAX, "{}", too_many_values(values));
        ensure!(
            compared <= COMPARED_MAX,
            "{compared} values, comparisons of runs together times rounds, are more than {COMPARED_MAX}: give fewer files"
        );
        all.push(report);
    }
    compare_anew(&mut all);
    Ok(all)
}

/// Tells the user about the conditions that keep runs of the same experiment apart.
fn tell_apart(groups: &[Vec<Report>]) {
    let Some((first, others)) = groups.split_first() else { return };
    let mut all: Vec<&str> = Vec::new();
    for differing in others.iter().flat_map(|other| differences(&first[0], &other[0])) {
        if !all.contains(&differing) {
            all.push(differing);
        }
    }
    if !all.is_empty() {
        let (name, count) = (&first[0].experiment, groups.len());
        tell(&format!(
            "{name}: its runs are {count} reports, since these differ: {}",
            all.join(", ")
        ));
    }
}

fn too_many_values(values: usize) -> String {
    format!("{values} values, series times rounds, are more than {VALUES_MAX}: give fewer files")
}

/// Returns the differences between two runs, in words. If there are none, the runs may be merged.
fn differences(one: &Report, other: &Report) -> Vec<&'static str> {
    let all = [
        ("the experiment", one.experiment != other.experiment),
        ("the version of the program", one.environment.program != other.environment.program),
    ];
    let all = all.into_iter().filter(|(_, is_other)| *is_other).map(|(what, _)| what);
    all.chain(other_conditions(one, other)).collect()
}

/// Returns the conditions that differ between two runs of an experiment, in words. The version of the program is not
/// one of them.
pub(super) fn other_conditions(one: &Report, other: &Report) -> Vec<&'static str> {
    let all = [
        // That of advise tells the stream that it is about.
        ("the question", one.question != other.question),
        ("the quantity", one.quantity != other.quantity),
    ];
    let all = all.into_iter().filter(|(_, is_other)| *is_other).map(|(what, _)| what);
    all.chain(one.environment.differences(&other.environment)).collect()
}

/// Returns true if both reports are of the same run.
fn is_same(one: &Report, other: &Report) -> bool {
    let key = |report: &Report| (report.environment.time, report.environment.seed);
    key(one) == key(other)
}

/// Merges runs. There must be at least one, and the last one must be the newest.
#[expect(clippy::expect_used, reason = "what is left out leaves one")]
fn together(mut runs: Vec<Report>) -> anyhow::Result<Report> {
    let newest_invalid = runs.last().and_then(|run| run.invalid.clone());
    let invalid = runs.iter().filter(|run| run.invalid.is_some()).count();
    if invalid < runs.len() {
        for run in runs.extract_if(.., |run| run.invalid.is_some()) {
            let Report { file, experiment, invalid, .. } = run;
            let reason = invalid.unwrap_or_default();
            tell(&format!(
                "{}: its run of {experiment} is left out, since it is invalid: {reason}",
                file.display()
            ));
        }
    }
    let (count, begun) = (runs.len(), runs.iter().map(|run| run.environment.begun()).min());
    let newest = runs.pop().expect("a group has a run");
    let of_all = format!("the runs of {} together", newest.experiment);
    let mut sum = Sum::of(newest);
    for run in runs {
        sum.fit(&run).with_context(|| of_all.clone())?;
        sum.add(run);
    }
    let mut report = sum.whole().context(of_all)?;
    if count > 1 {
        // The answer and what stands beside the publications are of that run alone.
        report.answer =
            format!("The newest of {count} runs: {} (The tables are of all.)", report.answer);
        report.environment.rounds = report.rounds();
        report.environment.runs = begun.map(|begun| Runs { count, begun });
        for row in &mut report.published {
            row.figure += ", newest run";
        }
        let words = format!(
            "{}, under the same conditions: their {} rounds and their histograms together. What follows is of the newest run.",
            report.environment.when(),
            report.environment.rounds
        );
        report.method.insert(0, words);
    }
    if invalid > 0 && report.invalid.is_none() {
        report.method.insert(0, format!("Invalid runs that are left out: {invalid}."));
        report.newest_invalid = newest_invalid;
    }
    Ok(report)
}

/// The sum of several runs: the report of the newest, to which earlier runs are added.
struct Sum {
    report: Report,
    /// The index of each series, by the names that identify it.
    places: HashMap<[String; 4], usize>,
    /// The histograms of each series.
    histograms: Vec<Vec<String>>,
    compared: HashSet<[String; 3]>,
}

/// Returns the names that identify a series.
fn key(of: &Series) -> [String; 4] {
    of.names().map(str::to_owned)
}

fn sides(of: &Comparison) -> [String; 3] {
    [&of.case, &of.of, &of.to].map(String::clone)
}

impl Sum {
    fn of(mut report: Report) -> Self {
        let mut places = HashMap::new();
        for (at, series) in report.series.iter().enumerate() {
            places.entry(key(series)).or_insert(at);
        }
        let own = report.series.iter_mut().map(|series| series.histogram.take());
        let histograms = own.map(|own| own.into_iter().collect()).collect();
        let compared = report.comparisons.iter().map(sides).collect();
        Self { report, places, histograms, compared }
    }

    /// Checks that the report stays within the limits if this run is added. Each series will have the rounds of both.
    fn fit(&self, run: &Report) -> anyhow::Result<()> {
        let report = &self.report;
        let new = |series: &&Series| !self.places.contains_key(&key(series));
        let series = report.series.len() + run.series.iter().filter(new).count();
        let rounds = report.rounds() + run.rounds();
        ensure!(
            series <= SERIES_MAX,
            "{series} series are more than {SERIES_MAX}: give fewer files"
        );
        ensure!(
            rounds <= MERGED_ROUNDS_MAX,
            "{rounds} rounds are more than {MERGED_ROUNDS_MAX}: give fewer files"
        );
        ensure!(series * rounds <= VALUES_MAX, "{}", too_many_values(series * rounds));
        let comparisons = report.comparisons.len();
        ensure!(
            comparisons <= SERIES_MAX,
            "{comparisons} comparisons are more than {SERIES_MAX}: give fewer files"
        );
        Ok(())
    }

    /// Adds the rounds of an earlier run. If only one of the reports has a series, the rounds of the other have no
    /// value for it.
    fn add(&mut self, run: Report) {
        let Self { report, places, histograms, compared } = self;
        let (own, more) = (report.rounds(), run.rounds());
        report.series.iter_mut().for_each(|series| series.rounds.resize(own, None));
        for mut series in run.series {
            series.rounds.resize(more, None);
            let at = *places.entry(key(&series)).or_insert(report.series.len());
            if at == histograms.len() {
                histograms.push(Vec::new());
            }
            histograms[at].extend(series.histogram.take());
            match report.series.get_mut(at) {
                Some(known) => extend(known, series),
                None => {
                    let rounds = std::mem::take(&mut series.rounds);
                    series.rounds = [vec![None; own], rounds].concat();
                    report.series.push(series);
                }
            }
        }
        report.series.iter_mut().for_each(|series| series.rounds.resize(own + more, None));
        for comparison in run.comparisons {
            if compared.insert(sides(&comparison)) {
                report.comparisons.push(comparison);
            }
        }
    }

    /// Returns the report of all runs. Adds up the histograms of each series.
    fn whole(self) -> anyhow::Result<Report> {
        let Self { mut report, histograms, .. } = self;
        for (series, own) in report.series.iter_mut().zip(histograms) {
            series.histogram = match <[String; 1]>::try_from(own) {
                Ok([one]) => Some(one),
                Err(several) => in_one(&several).with_context(|| {
                    format!("the histogram of {} of {}", series.quantity, series.contender)
                })?,
            };
        }
        Ok(report)
    }
}

fn extend(series: &mut Series, other: Series) {
    series.rounds.extend(other.rounds);
    series.expected = series.expected.saturating_add(other.expected);
    series.received = series.received.saturating_add(other.received);
    for (kind, count) in other.faults {
        let all = series.faults.entry(kind).or_default();
        *all = all.saturating_add(count);
    }
    series.strain = match (series.strain, other.strain) {
        (Some(one), Some(other)) => Some(one.worse(other)),
        (one, other) => one.or(other),
    };
    series.busy.extend(other.busy);
    if let Some(traffic) = other.traffic {
        *series.traffic.get_or_insert_default() += traffic;
    }
}

fn in_one(histograms: &[String]) -> anyhow::Result<Option<String>> {
    let mut all = Histogram::default();
    for text in histograms {
        all.add_counts(&Counts::decoded(text)?);
    }
    // The cause says the same twice.
    let encoded = || all.encoded().ok().context("a count of all is greater than one may be");
    (all.len() > 0).then(encoded).transpose()
}

/// Makes the comparisons of merged runs again, with all rounds.
fn compare_anew(reports: &mut [Report]) {
    let are_several = |report: &Report| report.environment.runs.is_some();
    let old = reports.iter().filter(|report| are_several(report));
    let old: Vec<_> =
        old.flat_map(|report| report.comparisons.iter().map(move |one| (report, one))).collect();
    let pace = Pace::working("comparing all rounds", old.len());
    let anew = in_parallel(&old, |(report, old)| {
        let series = |contender: &str| report.find(&old.case, contender, &report.quantity);
        let anew = series(&old.of).zip(series(&old.to)).and_then(|(of, to)| compare(of, to));
        pace.step();
        anew
    });
    pace.end();
    let mut anew = anew.into_iter();
    for report in reports.iter_mut().filter(|report| are_several(report)) {
        report.comparisons = anew.by_ref().take(report.comparisons.len()).flatten().collect();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lab::link::Link;
    use crate::lab::report::Verdict;
    use crate::lab::report::tests::{published, report, series};

    fn run(time: u64, values: &[f64], micros: u64) -> Report {
        let mut durations = Histogram::default();
        durations.record(Duration::from_micros(micros));
        let mut report = report();
        report.environment.time = time;
        report.series =
            vec![series("WebSocket", values), series("TCP", &values[..values.len() - 1])];
        report.series[0].histogram = durations.encoded().ok();
        report.compare_with("TCP");
        report
    }

    #[test]
    fn rounds_and_histograms_are_put_together_and_percentiles_are_never_averaged() {
        let all = merged(vec![run(2, &[3.0, 4.0], 3000), run(1, &[1.0, 2.0, 3.0], 1000)]).unwrap();
        let [report] = &all[..] else { panic!("{all:?}") };
        let of = |contender| &report.find("20 B", contender, "round trip").unwrap().rounds;
        assert_eq!(*of("WebSocket"), [3.0, 4.0, 1.0, 2.0, 3.0].map(Some));
        assert_eq!(*of("TCP"), [Some(3.0), None, Some(1.0), Some(2.0), None]);
        let series = &report.series[0];
        assert_eq!((series.expected, series.received), (20, 18));
        let durations = Histogram::decoded(series.histogram.as_ref().unwrap()).unwrap();
        assert_eq!(durations.len(), 2);
        assert_eq!(report.comparisons.len(), 1);
        assert_eq!(report.comparisons[0].shift.value, 0.0, "of the rounds that both have");
        assert_eq!(report.environment.rounds, 5);
    }

    #[test]
    fn runs_that_are_put_together_have_the_times_of_the_first_and_the_last() {
        const DAY: u64 = 86_400_000;
        let of = |time: u64, duration_ms: u64, seed: u64| {
            let mut run = run(time, &[1.0, 2.0], 1);
            (run.environment.duration_ms, run.environment.seed) = (duration_ms, seed);
            run
        };
        let runs = vec![of(3 * DAY, 60_000, 1), of(DAY, 3_600_000, 2), of(2 * DAY, 60_000, 3)];
        let report = merged(runs).unwrap().remove(0);
        let when = "3 runs, 1970-01-01 23:00 to 1970-01-04 00:00 UTC";
        assert_eq!(report.environment.when(), when);
        assert!(
            report.method[0].starts_with(&format!("{when}, under the same conditions: their 6"))
        );
        let report = merged(vec![of(DAY, 3_600_000, 1)]).unwrap().remove(0);
        assert_eq!(report.environment.when(), "1970-01-01 23:00 to 1970-01-02 00:00 UTC");
        assert!(report.method.is_empty());
    }

    #[test]
    fn each_condition_that_is_another_keeps_runs_apart() {
        let one = run(1, &[1.0], 1);
        type Edit = fn(&mut Report);
        let edits: [(&str, Edit); 11] = [
            ("the experiment", |run| run.experiment += "."),
            ("the question", |run| run.question += "."),
            ("the quantity", |run| run.quantity += "."),
            ("the version of the program", |run| run.environment.program += "."),
            ("the processor", |run| run.environment.processor += "."),
            ("the number of cores", |run| run.environment.cores += 1),
            ("the system", |run| run.environment.system += "."),
            ("the target", |run| run.environment.target += "."),
            ("the link", |run| run.environment.link = Link::with_delay(Duration::from_millis(1))),
            ("--netem", |run| run.environment.has_netem = true),
            ("--quick", |run| run.environment.is_quick = true),
        ];
        for (what, edit) in edits {
            let mut other = run(2, &[1.0], 1);
            edit(&mut other);
            assert_eq!(differences(&one, &other), [what]);
            assert_eq!(merged(vec![one.clone(), other]).unwrap().len(), 2, "{what}");
        }
    }

    #[test]
    fn what_is_compared_anew_is_bounded() {
        let of = |time: u64, rounds: usize, pairs: usize| {
            let mut report = run(time, &vec![1.0; rounds], 1);
            let one = report.comparisons[0].clone();
            report
                .comparisons
                .extend((1..pairs).map(|at| Comparison { of: at.to_string(), ..one.clone() }));
            report
        };
        let two = |pairs| merged(vec![of(1, 500, pairs), of(2, 500, pairs)]);
        let error = format!("{:#}", two(501).unwrap_err());
        assert!(error.starts_with("501000 values, comparisons of runs together times"), "{error}");
        // One of them has series. A run by itself is not compared again.
        assert_eq!(two(500).unwrap()[0].comparisons.len(), 1);
        assert_eq!(merged(vec![of(1, 600, 900)]).unwrap()[0].comparisons.len(), 900);
    }

    #[test]
    fn short_runs_are_long_enough_together_and_what_one_alone_says_has_its_name() {
        let quick = |time, rounds: usize| {
            let mut report = report();
            report.environment.time = time;
            report.series = [("HTTP", 2.0), ("TCP", 1.0)]
                .map(|(name, value)| series(name, &vec![value; rounds]))
                .into();
            report.compare_with("TCP");
            report.published = vec![published(Verdict::Differs)];
            report.complete();
            report
        };
        let told = |runs: Vec<Report>| {
            let report = merged(runs).unwrap().remove(0);
            let row = &report.published[0];
            (report.full_answer(), format!("{}: {}", row.figure, row.words()), report.method)
        };
        let (answer, row, method) = told(vec![quick(1, 3), quick(2, 4)]);
        assert_eq!(answer, "The newest of 2 runs: Not long. (The tables are of all.)");
        assert_eq!(row, "bytes, newest run: too few rounds");
        assert!(method[0].contains("their 7 rounds"), "{method:?}");
        let (answer, ..) = told(vec![quick(1, 2), quick(2, 3)]);
        assert!(
            answer.ends_with(
                "of all.) With 5 rounds, no difference is sure: measure at least 6 (--rounds 6)."
            ),
            "{answer}"
        );
    }

    #[test]
    fn a_run_counts_once_and_other_conditions_stay_apart() {
        let mut far = run(3, &[9.0, 9.0], 9);
        far.environment.link = Link::with_delay(Duration::from_millis(1));
        let mut broken = run(4, &[0.0, 0.0], 1);
        broken.invalid = Some("0 of 10 came".to_owned());
        let wind = Report { experiment: "wind".to_owned(), ..run(2, &[1.0, 1.0], 1) };
        let one = run(1, &[1.0, 2.0], 1);
        let all = merged(vec![wind, broken, far, one.clone(), one]).unwrap();
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.experiment.as_str(), one.environment.rounds, one.rounds()))
            .collect();
        assert_eq!(told, [("echo", 3, 2), ("echo", 3, 2), ("wind", 3, 2)]);
        assert!(all[0].method.iter().any(|words| words == "Invalid runs that are left out: 1."));
        assert_eq!(all[0].newest_invalid.as_deref(), Some("0 of 10 came"));
        let mut older = run(1, &[0.0], 1);
        older.invalid = Some("0 of 10 came".to_owned());
        let all = merged(vec![older.clone(), run(2, &[1.0], 1)]).unwrap();
        assert_eq!(all[0].newest_invalid, None);
        assert_eq!(merged(vec![older]).unwrap()[0].newest_invalid, None, "nothing is left out");
    }

    #[test]
    fn counts_that_are_too_great_together_are_told() {
        let mut half = Histogram::default();
        half.record(Duration::from_micros(1));
        for _ in 0..62 {
            half.add(&half.clone());
        }
        let of = |time: u64| {
            let mut run = run(time, &[1.0], 1);
            run.series[0].histogram = Some(half.encoded().unwrap());
            run
        };
        assert!(merged(vec![of(1)]).is_ok());
        let error = format!("{:#}", merged(vec![of(1), of(2)]).unwrap_err());
        let words = "the runs of echo together: the histogram of round trip of WebSocket: a count of all is greater than one may be";
        assert_eq!(error, words);
    }

    #[test]
    fn runs_that_grow_beyond_all_bounds_are_refused_before_they_are_put_together() {
        let of = |time: u64, names: std::ops::Range<usize>, rounds: usize| {
            let mut report = report();
            report.environment.time = time;
            report.series = names.map(|at| series(&at.to_string(), &[])).collect();
            report.series[0].rounds = vec![None; rounds];
            report
        };
        let error = |reports| format!("{:#}", merged(reports).unwrap_err());
        let series = error(vec![of(1, 0..600, 1), of(2, 500..1100, 1)]);
        assert_eq!(
            series,
            "the runs of echo together: 1100 series are more than 1000: give fewer files"
        );
        let rounds = error((0..11).map(|at| of(at, 0..1, 1000)).collect());
        assert!(rounds.contains("11000 rounds are more than 10000"), "{rounds}");
        let values = error(vec![of(1, 0..1000, 600), of(2, 0..1000, 600)]);
        assert!(values.contains("1200000 values, series times rounds, are more"), "{values}");
        assert!(error((0..1001).map(|at| of(at, 0..1, 1)).collect()).starts_with("1001 reports"));
        assert_eq!(merged(vec![of(1, 0..500, 900), of(2, 0..500, 900)]).unwrap().len(), 1);
    }
}
