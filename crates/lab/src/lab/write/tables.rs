//! Makes the tables of a report. They are the same in every form of the report.

use std::collections::HashMap;

use crate::histogram::Counts;
use crate::lab::numbers::{count, figure};
use crate::lab::report::{Comparison, Published, Report, Series, ms, titled};
use crate::statistics::Estimate;

pub(crate) const NONE: &str = "–";

/// A table with a heading. The columns with a head have figures, except for the last one.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: String, head: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self { title, head: head.iter().map(|&text| text.to_owned()).collect(), rows }
    }

    /// Returns true for a column with figures. They are aligned to the right.
    pub(super) fn is_figures(&self, column: usize) -> bool {
        !self.head[column].is_empty() && column + 1 < self.head.len()
    }
}

/// Returns all tables: one for each measured quantity, then the comparisons, then the publications. `estimates` has one
/// entry for each series.
pub(super) fn tables(report: &Report, estimates: &[Option<Estimate>]) -> Vec<Table> {
    let mut quantities: Vec<(&str, &str)> = Vec::new();
    for series in &report.series {
        let quantity = (series.quantity.as_str(), series.unit.as_str());
        if !quantities.contains(&quantity) {
            quantities.push(quantity);
        }
    }
    let series: Vec<_> = report.series.iter().zip(estimates).collect();
    let mut tables: Vec<_> =
        quantities.iter().map(|(quantity, unit)| measured(&series, quantity, unit)).collect();
    if let Some(table) = modelled(report, &series) {
        tables.push(table);
    }
    if !report.comparisons.is_empty() {
        let head = ["", "", "shift [95 %]", "ratio [95 %]", "means, Welch [99 %]", ""];
        let rows = report.comparisons.iter().map(compared).collect();
        tables.push(Table::new(format!("{}, paired by round", report.quantity), &head, rows));
    }
    if !report.published.is_empty() {
        let rows = report.published.iter().map(published).collect();
        let head = ["", "published", "measured", ""];
        tables.push(Table::new("Beside the publications".to_owned(), &head, rows));
    }
    tables
}

/// A series with its estimate; `None` for a series without values.
type Estimated<'a> = (&'a Series, &'a Option<Estimate>);

fn measured(series: &[Estimated<'_>], quantity: &str, unit: &str) -> Table {
    let title = titled(quantity, unit);
    let is_own = |series: &Series| series.quantity == quantity && series.unit == unit;
    let series: Vec<_> = series.iter().filter(|(series, _)| is_own(series)).collect();
    let has_durations = series.iter().any(|(series, _)| series.histogram.is_some());
    let percentiles: &[_] = if has_durations { &["p50", "p99", "p99.9"] } else { &[] };
    let head = [&["", "", "median of the rounds [95 %]"], percentiles, &LAST].concat();
    Table::new(title, &head, series.into_iter().map(|one| row(*one, has_durations)).collect())
}

/// Returns as text the duration in milliseconds that this share of all durations does not exceed.
pub(crate) fn percentile(series: &Series, share: f64) -> String {
    let [text] = percentiles(series, [share]);
    text
}

fn percentiles<const N: usize>(series: &Series, shares: [f64; N]) -> [String; N] {
    let durations = series.histogram.as_deref().and_then(|text| Counts::decoded(text).ok());
    shares.map(|share| {
        // Of fewer durations, it would be the longest one.
        let enough = durations.as_ref().filter(|all| all.len() as f64 * (1.0 - share) >= 1.0);
        let time = enough.and_then(|durations| durations.percentile(share));
        time.map_or_else(|| NONE.to_owned(), |time| figure(ms(time)))
    })
}

/// Returns as text the received data as a share of the expected data.
pub(crate) fn reach(series: &Series) -> String {
    format!("{} / {}", count(series.received), count(series.expected))
}

fn row((series, estimate): Estimated<'_>, has_durations: bool) -> Vec<String> {
    let rounds = estimate.as_ref().map_or_else(|| NONE.to_owned(), interval);
    let mut cells = vec![series.case.clone(), series.contender.clone(), rounds];
    if has_durations {
        cells.extend(percentiles(series, [0.5, 0.99, 0.999]));
    }
    cells.extend(last(series));
    cells
}

/// The heads of the last columns: the received share, the delay and the CPU time of the client, and the faults.
const LAST: [&str; 4] = ["received / expected", "client late, ms (p99)", "client CPU, %", "faults"];

fn last(series: &Series) -> [String; 4] {
    let faults: Vec<_> = series.faults.iter().map(|(kind, count)| kind.counted(*count)).collect();
    let strain = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), figure);
    [
        reach(series),
        strain(series.strain.and_then(|strain| strain.late_ms_p99())),
        strain(series.strain.map(|strain| strain.busy.unwrap_or(strain.cpu) * 100.0)),
        faults.join(", "),
    ]
}

/// Returns a table with the values of theory and the measured medians; `None` without theory.
fn modelled(report: &Report, series: &[Estimated<'_>]) -> Option<Table> {
    // Of several, the first counts.
    let of_quantity = series.iter().rev().filter(|(one, _)| one.quantity == report.quantity);
    let estimates: HashMap<_, _> =
        of_quantity.map(|(one, estimate)| ((&one.case, &one.contender), *estimate)).collect();
    let rows = report.models.iter().filter_map(|model| {
        let measured = estimates.get(&(&model.case, &model.contender))?.as_ref()?.value;
        let more = figure(measured - model.value);
        let [case, contender] = [&model.case, &model.contender].map(Clone::clone);
        Some(vec![case, contender, figure(model.value), figure(measured), more, String::new()])
    });
    let rows: Vec<_> = rows.collect();
    let head = ["", "", "theory", "median of the rounds", "more than theory", ""];
    let title = format!("{}, by theory", report.quantity);
    (!rows.is_empty()).then(|| Table::new(title, &head, rows))
}

fn compared(comparison: &Comparison) -> Vec<String> {
    let show =
        |estimate: &Option<Estimate>| estimate.as_ref().map_or_else(|| NONE.to_owned(), interval);
    vec![
        comparison.case.clone(),
        format!("{} − {}", comparison.of, comparison.to),
        format!("{} {}", interval(&comparison.shift), comparison.unit).trim_end().to_owned(),
        show(&comparison.ratio),
        show(&comparison.welch),
        comparison.judgement().words().to_owned(),
    ]
}

fn published(row: &Published) -> Vec<String> {
    vec![row.figure.clone(), row.published.clone(), row.measured.clone(), row.words()]
}

/// Returns an estimate and its interval as text.
pub(crate) fn interval(Estimate { value, low, high }: &Estimate) -> String {
    format!("{} [{}, {}]", figure(*value), figure(*low), figure(*high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::compare;
    use crate::lab::report::tests::{report, series};

    #[test]
    fn each_series_has_one_row() {
        let of = |at: usize| {
            let unit = format!("unit {}", at % 10);
            Series { case: at.to_string(), unit, ..series("TCP", &[]) }
        };
        let report = Report { series: (0..50).map(of).collect(), ..report() };
        let tables = tables(&report, &[None; 50]);
        assert_eq!(tables.len(), 10);
        assert_eq!(tables.iter().map(|table| table.rows.len()).sum::<usize>(), 50);
    }

    #[test]
    fn too_few_rounds_have_words_of_their_own() {
        let row = |rounds: usize| {
            let [of, to] = [("poll", 1234.0), ("TCP", 2.0)]
                .map(|(name, value)| series(name, &vec![value; rounds]));
            compared(&compare(&of, &to).unwrap())
        };
        assert_eq!(row(5)[1..3], ["poll − TCP", "1,232 [1,232, 1,232] ms"]);
        assert_eq!([row(5), row(6)].map(|row| row[5].clone()), ["too few rounds", ""]);
    }

    #[test]
    fn a_row_has_the_figure_its_reach_and_its_faults() {
        let series = series("TCP", &[2.0, 2.0, 2.0]);
        let row = row((&series, &series.estimate()), true);
        assert_eq!(
            row.join(" | "),
            "20 B | TCP | 2.00 [2.00, 2.00] | – | – | – | 9 / 10 | 0.100 | 50.0 | nothing came in time: 1"
        );
    }
}
