//! Runs of the same experiment under the same conditions, put together.

use anyhow::{Context as _, ensure};

use super::bounds::{MERGED_ROUNDS_MAX, REPORTS_MAX, SERIES_MAX, VALUES_MAX};
use super::report::{Report, Series, compare};
use super::terminal::tell;
use crate::histogram::Histogram;

/// Puts together the runs that were made by the same program under the same conditions. Each run counts once, and one that is invalid
/// does not count beside others, which is told. Experiments stay in their order, and runs of one experiment stand together.
///
/// # Errors
/// More reports, series or rounds than can be evaluated in a time that people wait for.
pub(crate) fn merged(mut reports: Vec<Report>) -> anyhow::Result<Vec<Report>> {
    let count = reports.len();
    ensure!(count <= REPORTS_MAX, "{count} reports are more than {REPORTS_MAX}: give fewer files");
    reports.sort_by_key(|report| report.environment.time);
    let mut groups: Vec<Vec<Report>> = Vec::new();
    for report in reports {
        match groups.iter_mut().find(|group| are_alike(&group[0], &report)) {
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
    let mut all = Vec::new();
    let mut values = 0;
    for group in groups {
        let report = together(group)?;
        values += report.as_ref().map_or(0, |report| report.series.len() * report.rounds());
        ensure!(values <= VALUES_MAX, "{}", too_many_values(values));
        all.extend(report);
    }
    Ok(all)
}

fn too_many_values(values: usize) -> String {
    format!("{values} values, series times rounds, are more than {VALUES_MAX}: give fewer files")
}

/// Returns true if the figures of both may be put together.
fn are_alike(one: &Report, other: &Report) -> bool {
    one.experiment == other.experiment
        // The question of advise tells the stream that it is about.
        && one.question == other.question
        && one.quantity == other.quantity
        && one.environment.program == other.environment.program
        && one.environment.is_like(&other.environment)
}

/// Returns true if both are the same run.
fn is_same(one: &Report, other: &Report) -> bool {
    let key = |report: &Report| (report.environment.time, report.environment.seed);
    key(one) == key(other)
}

/// Puts runs together, of which the newest is the last.
fn together(mut runs: Vec<Report>) -> anyhow::Result<Option<Report>> {
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
    let count = runs.len();
    let Some(mut report) = runs.pop() else { return Ok(None) };
    for run in runs {
        fit(&report, &run).with_context(|| format!("the runs of {} together", run.experiment))?;
        add(&mut report, run);
    }
    if count > 1 {
        // The answer and what stands beside the publications are of that run alone.
        report.answer =
            format!("The newest of {count} runs: {} (The tables are of all.)", report.answer);
        report.environment.rounds = report.rounds();
        for row in &mut report.published {
            row.figure += ", newest run";
        }
        report.comparisons = compared(&report);
        let words = format!(
            "{count} runs under the same conditions: their {} rounds and their histograms together. What follows is of the newest run.",
            report.environment.rounds
        );
        report.method.insert(0, words);
    }
    if invalid > 0 && report.invalid.is_none() {
        report.method.insert(0, format!("Invalid runs that are left out: {invalid}."));
    }
    Ok(Some(report))
}

/// Checks that a report stays within its bounds when a run is added, in which each figure of either has as many rounds.
fn fit(report: &Report, run: &Report) -> anyhow::Result<()> {
    let new = |series: &&Series| !report.series.iter().any(|known| is_of(known, series));
    let series = report.series.len() + run.series.iter().filter(new).count();
    let rounds = report.rounds() + run.rounds();
    ensure!(series <= SERIES_MAX, "{series} series are more than {SERIES_MAX}: give fewer files");
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

/// Adds the rounds of an earlier run. A figure that one of both does not have has no value in those rounds.
fn add(report: &mut Report, run: Report) {
    let (own, more) = (report.rounds(), run.rounds());
    report.series.iter_mut().for_each(|series| series.rounds.resize(own, None));
    for mut series in run.series {
        series.rounds.resize(more, None);
        let known = report.series.iter_mut().find(|known| is_of(known, &series));
        match known {
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
        let known = report.comparisons.iter().any(|known| {
            (&known.case, &known.of, &known.to)
                == (&comparison.case, &comparison.of, &comparison.to)
        });
        if !known {
            report.comparisons.push(comparison);
        }
    }
}

fn is_of(one: &Series, other: &Series) -> bool {
    fn key(of: &Series) -> [&str; 4] {
        [&of.case, &of.contender, &of.quantity, &of.unit].map(String::as_str)
    }
    key(one) == key(other)
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
    let histograms = [&series.histogram, &other.histogram];
    let mut all = Histogram::default();
    for text in histograms.into_iter().flatten() {
        if let Ok(durations) = Histogram::decoded(text) {
            all.add(&durations);
        }
    }
    series.histogram = (all.len() > 0).then(|| all.encoded().ok()).flatten();
}

/// Compares what was compared in a run, with all rounds.
fn compared(report: &Report) -> Vec<super::report::Comparison> {
    let series = |case: &str, contender: &str| report.find(case, contender, &report.quantity);
    let again = report
        .comparisons
        .iter()
        .filter_map(|old| compare(series(&old.case, &old.of)?, series(&old.case, &old.to)?));
    again.collect()
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
        assert_eq!(report.comparisons[0].shift.median, 0.0, "of the rounds that both have");
        assert_eq!(report.environment.rounds, 5);
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
