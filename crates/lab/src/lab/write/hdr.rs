//! Writes all durations of a report as a log of HDR histograms, for other programs.

use std::time::{Duration, UNIX_EPOCH};

use crate::histogram::{self, Histogram};
use crate::lab::report::Report;

/// Returns the log. It has a line for each contender in each case. Returns `None` if no durations were measured.
pub(super) fn log(report: &Report) -> anyhow::Result<Option<Vec<u8>>> {
    let mut named = Vec::new();
    for series in &report.series {
        if let Some(text) = &series.histogram {
            let name = format!("{}/{}", series.case, series.contender);
            named.push((name, Histogram::decoded(text)?));
        }
    }
    let took = Duration::from_millis(report.environment.duration_ms);
    let end = UNIX_EPOCH + Duration::from_millis(report.environment.time);
    let begin = end.checked_sub(took).unwrap_or(UNIX_EPOCH);
    (!named.is_empty()).then(|| histogram::log(&named, begin, took)).transpose()
}
