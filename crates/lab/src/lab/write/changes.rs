//! Writes the changes from one run to another as Markdown.

use std::fmt::Write as _;

use super::markdown::{plain, rendered};
use super::tables::{NONE, Table, interval};
use crate::lab::compare::{ChangeKind, Figure, RunPair, RunPairs, name, run_name};
use crate::lab::numbers::{count, figure};
use crate::lab::report::{TOO_FEW_ROUNDS, titled};

/// Returns a table with the figures of two runs of an experiment.
pub(crate) fn changes(pair: &RunPair<'_>) -> String {
    let [from, to] = pair.reports;
    let mut text = format!("## {}: B against A\n", plain(&from.experiment));
    for (run, report) in [("A", from), ("B", to)] {
        let (when, place) = (report.environment.when(), report.environment.sentences().join(" "));
        let _ = write!(text, "\n- {run}, {when}: {}", plain(&place));
        if let Some(reason) = &report.invalid {
            let _ = write!(text, " **Invalid: {}.**", plain(reason));
        }
    }
    text.push('\n');
    if !from.environment.is_like(&to.environment) {
        text += "\n**The runs were made under other conditions, so the conditions may be what has changed.**\n";
    }
    let [a, b] = [("A", from), ("B", to)].map(|(run, report)| match report {
        of if of.invalid.is_some() => format!("{run} (invalid)"),
        of if of.is_interrupted => format!("{run} (interrupted)"),
        _ => run.to_owned(),
    });
    let head = ["", "", "", &a, &b, "B − A [95 %]", "in per cent [95 %]", ""];
    let rows = pair.figures.iter().map(row).collect();
    text += &rendered(&Table::new("Medians of the rounds".to_owned(), &head, rows));
    let of = |kind| {
        let all = pair.figures.iter().filter(|one| one.judgement() == kind);
        count(all.count() as u64)
    };
    let few = match of(ChangeKind::TooFewRounds) {
        none if none == "0" => String::new(),
        few => format!(", {few} of {TOO_FEW_ROUNDS}"),
    };
    let _ = writeln!(
        text,
        "\n{} figures: {} better, {} worse, {} not distinguishable, {} equal{few}. Of figures that have not changed, one in twenty seems to \
         have, and more do if the machine was busier in one of both runs: the rounds of two runs differ also by its state. Repeat both before \
         you believe a change.",
        count(pair.figures.len() as u64),
        of(ChangeKind::Better),
        of(ChangeKind::Worse),
        of(ChangeKind::NotDistinguishable),
        of(ChangeKind::Equal)
    );
    for (run, series) in &pair.alone {
        let _ = writeln!(text, "Only {run} has values: {}.", plain(&name(series)));
    }
    text
}

/// Returns a list of the runs without a partner; empty if all have one.
pub(crate) fn alone(pairs: &RunPairs<'_>) -> String {
    let mut text = String::new();
    for (side, run) in &pairs.alone {
        let begin = if text.is_empty() { ALONE } else { "" };
        let _ = writeln!(text, "{begin}- {side}: {}.", plain(&run_name(run)));
    }
    text
}

const ALONE: &str = "## Not compared\n\nA run of A is compared with the newest one of B that was made as it was, by any version, or else under the least \
                     different conditions. These are compared with none:\n\n";

fn row(one: &Figure<'_>) -> Vec<String> {
    let series = one.series;
    let [from, to] = one.medians;
    let verdict = match one.judgement() {
        ChangeKind::Equal => "equal",
        ChangeKind::NotDistinguishable => "not distinguishable",
        ChangeKind::Better => "better",
        ChangeKind::Worse => "worse",
        ChangeKind::TooFewRounds => TOO_FEW_ROUNDS,
    };
    vec![
        series.case.clone(),
        series.contender.clone(),
        titled(&series.quantity, &series.unit),
        figure(from),
        figure(to),
        interval(&one.difference),
        one.per_cent.as_ref().map_or_else(|| NONE.to_owned(), interval),
        verdict.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::compare::pairs;
    use crate::lab::link::Link;
    use crate::lab::report::Report;
    use crate::lab::report::tests::{report, series};

    #[test]
    fn a_change_is_told_with_its_interval_and_its_conditions() {
        let from = Report { series: vec![series("TCP", &[1.0; 6])], ..report() };
        let mut to = Report { series: vec![series("TCP", &[1.5; 6])], ..report() };
        let text = |from: &Report, to: &Report| {
            let (from, to) = ([from.clone()], [to.clone()]);
            changes(&pairs(&from, &to).unwrap().all[0])
        };
        let told = text(&from, &to);
        let row = "| 20 B | TCP | round trip, ms | 1.00 | 1.50 | 0.500 [0.500, 0.500] | 50.0 [50.0, 50.0] | worse |";
        assert!(
            told.contains("\n- B, 1970-01-01 00:00 to 1970-01-01 00:00 UTC: anemone; a"),
            "{told}"
        );
        assert!(told.contains(row) && !told.contains("other conditions"), "{told}");
        assert!(told.contains("1 figures: 0 better, 1 worse"), "{told}");
        let few = Report { series: vec![series("TCP", &[1.5; 5])], ..to.clone() };
        let told = text(&from, &few);
        assert!(told.contains("| 50.0 [50.0, 50.0] | too few rounds |"), "{told}");
        assert!(told.contains("0 worse, 0 not distinguishable, 0 equal, 1 of too few"), "{told}");
        let cut = Report { is_interrupted: true, ..to.clone() };
        let invalid = Report { invalid: Some("late".to_owned()), ..cut.clone() };
        let told = text(&invalid, &cut);
        assert!(told.contains("| A (invalid) | B (interrupted) | B − A"), "{told}");
        to.environment.link = Link::with_delay(std::time::Duration::from_millis(1));
        assert!(text(&from, &to).contains("other conditions"));
    }

    #[test]
    fn runs_without_a_partner_are_named() {
        let echo = Report { series: vec![series("TCP", &[1.0; 6])], ..report() };
        let wind = Report { experiment: "wind".to_owned(), ..echo.clone() };
        let (both, one) = ([echo.clone(), wind], [echo]);
        let told = alone(&pairs(&both, &one).unwrap());
        assert!(told.starts_with("## Not compared\n") && told.lines().count() == 5, "{told}");
        assert!(told.contains("\n- A: wind, 1970-01-01 00:00 to "), "{told}");
        assert_eq!(alone(&pairs(&one, &one).unwrap()), "");
    }
}
