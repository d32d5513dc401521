//! Limits on reports from others: from other machines, browsers and topics.

use std::collections::HashSet;

use anyhow::{Context as _, ensure};

use super::report::{Report, Series};
use crate::histogram::Counts;

/// The most bytes of a file. The largest report with the most rounds that `--rounds` allows has some MiB.
pub(crate) const FILE_BYTES_MAX: u64 = 16 << 20;
/// The most bytes of all files of one command.
pub(crate) const FILES_BYTES_MAX: u64 = 64 << 20;
pub(crate) const REPORTS_MAX: usize = 1000;
/// The most entries of any list in a report. An experiment has far fewer.
pub(crate) const SERIES_MAX: usize = 1000;
/// The most rounds of a report. `--rounds` allows as many.
pub(crate) const ROUNDS_MAX: usize = 1000;
/// The most rounds of a series after runs are merged. An interval draws this many numbers ten thousand times.
pub(crate) const MERGED_ROUNDS_MAX: usize = 10_000;
/// The most series of all reports after runs are merged. Each series has an interval and a place in a plot.
pub(crate) const SERIES_OF_ALL_MAX: usize = 100_000;
/// The most values of all reports: the sum of series times rounds.
pub(crate) const VALUES_MAX: usize = 1_000_000;
/// The most values in the comparisons of merged runs, which are made again. A comparison costs as much as many series.
pub(crate) const COMPARED_MAX: usize = 500_000;
/// The most bytes of all histograms, uncompressed. The histograms of all experiments have a few MiB. A malicious file
/// can compress them to a hundredth.
pub(crate) const HISTOGRAM_BYTES_MAX: usize = 256 << 20;
/// The greatest figure. No measurement exceeds it, and sums and squares of such figures are finite.
pub(crate) const FIGURE_MAX: f64 = 1e100;

/// The amount of data that a command has read so far.
#[derive(Debug, Default)]
pub(crate) struct Amount {
    pub(crate) file_bytes: u64,
    pub(crate) histogram_bytes: usize,
}

/// Checks that the work to evaluate a report is limited, and that all its figures can be used in computations and
/// plots.
pub(crate) fn check(report: &Report, amount: &mut Amount) -> anyhow::Result<()> {
    let Report { series, comparisons, published, models, method, .. } = report;
    for (what, count) in [
        ("series", series.len()),
        ("comparisons", comparisons.len()),
        ("published figures", published.len()),
        ("values of theory", models.len()),
        ("sentences of method", method.len()),
    ] {
        ensure!(count <= SERIES_MAX, "it has {count} {what}, at most {SERIES_MAX} are read");
    }
    let mut known = HashSet::new();
    for series in series {
        ensure!(
            known.insert(series.names()),
            "it has {} of {}, {} twice",
            series.quantity,
            series.contender,
            series.case
        );
        check_series(series, amount)
            .with_context(|| format!("{} of {}", series.quantity, series.contender))?;
    }
    for model in models {
        figure(model.value).and_then(|()| model.x.map_or(Ok(()), figure))?;
    }
    Ok(())
}

fn check_series(series: &Series, amount: &mut Amount) -> anyhow::Result<()> {
    let count = series.rounds.len();
    ensure!(count <= ROUNDS_MAX, "it has {count} rounds, at most {ROUNDS_MAX} are read");
    series.x.map_or(Ok(()), figure)?;
    series.rounds.iter().flatten().copied().try_for_each(figure)?;
    ensure!(series.busy.len() <= count, "it has more shares of time than rounds");
    if let Some(text) = &series.histogram {
        amount.histogram_bytes += Counts::decoded(text).context("its histogram")?.bytes;
        ensure!(
            amount.histogram_bytes <= HISTOGRAM_BYTES_MAX,
            "the histograms up to its own take more than {} MiB once inflated: give fewer files",
            HISTOGRAM_BYTES_MAX >> 20
        );
    }
    Ok(())
}

fn figure(value: f64) -> anyhow::Result<()> {
    ensure!(value.abs() <= FIGURE_MAX, "the figure {value:e} is beyond ±{FIGURE_MAX:e}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::histogram::Histogram;
    use crate::lab::report::Model;
    use crate::lab::report::tests::{report, series};

    fn error(report: &Report) -> String {
        format!("{:#}", check(report, &mut Amount::default()).unwrap_err())
    }

    #[test]
    fn figures_that_nothing_measures_are_refused() {
        for wrong in [1e308, -1e308, 1.1e100, f64::INFINITY, f64::NAN] {
            let of = Report { series: vec![series("TCP", &[1.0, wrong])], ..report() };
            assert!(error(&of).starts_with("round trip of TCP: the figure "), "{}", error(&of));
            let mut place = Report { series: vec![series("TCP", &[1.0])], ..report() };
            place.series[0].x = Some(wrong);
            assert!(error(&place).contains("is beyond ±1e100"), "{}", error(&place));
            let model = Model::new("20 B", Some(20.0), "TCP", wrong);
            assert!(
                check(&Report { models: vec![model], ..report() }, &mut Amount::default()).is_err()
            );
        }
        let right = [0.0, -0.0, 5e-324, -1e100, 1e100];
        check(&Report { series: vec![series("TCP", &right)], ..report() }, &mut Amount::default())
            .unwrap();
    }

    #[test]
    fn all_rounds_that_a_run_may_have_can_be_read() {
        assert!(crate::lab::rounds(&ROUNDS_MAX.to_string()).is_ok());
        assert!(crate::lab::rounds(&(ROUNDS_MAX + 1).to_string()).is_err());
    }

    #[test]
    fn the_documentation_has_the_bounds() {
        let document = include_str!("../../../../docs/LAB.md");
        let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
        let number = |number: usize| crate::lab::numbers::count(number as u64);
        for words in [
            format!("| a file | {} |", mib(FILE_BYTES_MAX)),
            format!("| all files | {} |", mib(FILES_BYTES_MAX)),
            format!("| a report | {} series,", number(SERIES_MAX)),
            format!("| {} rounds, with figures up to {FIGURE_MAX:e} |", number(ROUNDS_MAX)),
            format!("| {} rounds |", number(MERGED_ROUNDS_MAX)),
            format!("once inflated | {} |", mib(HISTOGRAM_BYTES_MAX as u64)),
            format!("a million values and {} series |", number(SERIES_OF_ALL_MAX)),
            format!("| {} pairs of values", number(COMPARED_MAX)),
        ] {
            assert!(document.contains(&words), "docs/LAB.md does not say: {words}");
        }
        assert_eq!(VALUES_MAX, 1_000_000);
    }

    #[test]
    fn a_figure_that_is_there_twice_is_refused() {
        let mut of =
            Report { series: vec![series("TCP", &[1.0]), series("TCP", &[5.0])], ..report() };
        assert_eq!(error(&of), "it has round trip of TCP, 20 B twice");
        of.series[1].unit = "B".to_owned();
        check(&of, &mut Amount::default()).unwrap();
    }

    #[test]
    fn lists_and_histograms_are_bounded() {
        let rounds = Report { series: vec![series("TCP", &vec![1.0; ROUNDS_MAX + 1])], ..report() };
        assert!(error(&rounds).ends_with("it has 1001 rounds, at most 1000 are read"));
        let many = Report { series: vec![series("TCP", &[]); SERIES_MAX + 1], ..report() };
        assert_eq!(error(&many), "it has 1001 series, at most 1000 are read");
        let mut of = Report { series: vec![series("TCP", &[1.0])], ..report() };
        let mut durations = Histogram::default();
        durations.record(Duration::from_millis(1));
        of.series[0].histogram = durations.encoded().ok();
        check(&of, &mut Amount::default()).unwrap();
        let bytes = Counts::decoded(of.series[0].histogram.as_ref().unwrap()).unwrap().bytes;
        let mut amount =
            Amount { histogram_bytes: HISTOGRAM_BYTES_MAX - 2 * bytes, ..Amount::default() };
        check(&of, &mut amount).unwrap();
        check(&of, &mut amount).unwrap();
        assert_eq!(amount.histogram_bytes, HISTOGRAM_BYTES_MAX);
        let error_of_more = format!("{:#}", check(&of, &mut amount).unwrap_err());
        assert!(error_of_more.contains("take more than 256 MiB once inflated"), "{error_of_more}");
        // Its header promises 4 GiB.
        let lie = "HISTFAAAACB4nJNpmSz8HwgYIIAZSjMCmW4GOxYw2H+ACAAA168IRw==";
        of.series[0].histogram = Some(lie.to_owned());
        assert!(error(&of).starts_with("round trip of TCP: its histogram: "), "{}", error(&of));
    }
}
