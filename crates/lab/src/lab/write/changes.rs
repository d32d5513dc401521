//! What has changed between two runs, as Markdown.

use std::fmt::Write as _;

use super::markdown::rendered;
use super::tables::{NONE, Table, interval};
use crate::lab::compare::{Figure, Kind, Pair, name};
use crate::report::figure;
use crate::statistics::DOUBT;

/// Returns the figures of an experiment in two runs.
pub(crate) fn changes(pair: &Pair<'_>) -> String {
    let [from, to] = pair.reports;
    let mut text = format!("## {}: B against A\n", from.experiment);
    for (run, report) in [("A", from), ("B", to)] {
        let _ = write!(text, "\n- {run}: {}", report.environment.sentences().join(" "));
        if let Some(reason) = &report.invalid {
            let _ = write!(text, " **Invalid: {reason}.**");
        }
    }
    text.push('\n');
    if !from.environment.is_like(&to.environment) {
        text += "\n**The runs were made under other conditions, so the conditions may be what has changed.**\n";
    }
    let head = ["", "", "", "A", "B", "B - A [95 %]", "in per cent [95 %]", ""];
    let rows = pair.figures.iter().map(row).collect();
    text += &rendered(&Table::new("Medians of the rounds".to_owned(), &head, rows));
    let count = |kind| pair.figures.iter().filter(|one| one.kind(DOUBT) == kind).count();
    let _ = writeln!(
        text,
        "\n{} figures: {} better, {} worse, {} not distinguishable, {} equal. Of figures that have not changed, one in twenty seems to \
         have.",
        pair.figures.len(),
        count(Kind::Better),
        count(Kind::Worse),
        count(Kind::NotDistinguishable),
        count(Kind::Equal)
    );
    for (run, series) in &pair.alone {
        let _ = writeln!(text, "Only {run} has values: {}.", name(series));
    }
    text
}

fn row(one: &Figure<'_>) -> Vec<String> {
    let series = one.series;
    let [from, to] = one.change.medians();
    let unit = if series.unit.is_empty() { String::new() } else { format!(", {}", series.unit) };
    let verdict = match one.kind(DOUBT) {
        Kind::Equal => "equal",
        Kind::NotDistinguishable => "not distinguishable",
        Kind::Better => "better",
        Kind::Worse => "worse",
    };
    vec![
        series.case.clone(),
        series.contender.clone(),
        format!("{}{unit}", series.quantity),
        figure(from),
        figure(to),
        interval(&one.change.difference(DOUBT)),
        one.change.per_cent(DOUBT).as_ref().map_or_else(|| NONE.to_owned(), interval),
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
        let from = Report { series: vec![series("TCP", &[1.0, 1.0, 1.0])], ..report() };
        let mut to = Report { series: vec![series("TCP", &[1.5, 1.5, 1.5])], ..report() };
        let text = |from: &Report, to: &Report| {
            let (from, to) = ([from.clone()], [to.clone()]);
            changes(&pairs(&from, &to).unwrap()[0])
        };
        let told = text(&from, &to);
        let row = "| 20 B | TCP | round trip, ms | 1.00 | 1.50 | 0.500 [0.500, 0.500] | 50.0 [50.0, 50.0] | worse |";
        assert!(told.contains(row) && !told.contains("other conditions"), "{told}");
        assert!(told.contains("1 figures: 0 better, 1 worse"), "{told}");
        to.environment.link = Link::with_delay(std::time::Duration::from_millis(1));
        assert!(text(&from, &to).contains("other conditions"));
    }
}
