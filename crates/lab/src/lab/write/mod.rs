//! Reports as files: HTML, JSON with all rounds, CSV, logs of histograms, and Markdown.

mod changes;
mod csv;
mod hdr;
mod html;
mod markdown;
mod plot;
mod tables;

use std::fs;
use std::path::Path;

use anyhow::Context as _;

pub(crate) use self::changes::changes;
pub(crate) use self::html::all;
pub(crate) use self::markdown::markdown;
use super::report::Report;

/// Makes a directory for reports.
pub(crate) fn prepare(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("creating the directory {}", directory.display()))
}

/// Writes a report in every form into a directory that [`prepare`] has made.
pub(crate) fn write(report: &Report, directory: &Path) -> anyhow::Result<()> {
    let into = |extension: &str, text: &[u8]| {
        let path = directory.join(format!("{}.{extension}", report.experiment));
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    };
    into("html", html::html(report)?.as_bytes())?;
    into("json", &serde_json::to_vec_pretty(report)?)?;
    into("csv", csv::csv(report).as_bytes())?;
    if let Some(log) = hdr::log(report)? {
        into("hlog", &log)?;
    }
    into("md", markdown(report).as_bytes())
}
