//! Reads the reports of earlier runs from files and directories.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::bounds::{Amount, FILE_BYTES_MAX, FILES_BYTES_MAX, check};
use super::regular_file::read_text;
use super::report::{Report, VERSION};

/// Reads the reports in a file, or in all files `*.json` of a directory. A file has one report, or a list of them; the
/// Lab page exports lists. `amount` counts all data that the command reads.
pub(crate) fn read(path: &Path, amount: &mut Amount) -> anyhow::Result<Vec<Report>> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files = in_directory(path).with_context(|| format!("reading {}", path.display()))?;
    }
    let mut reports = Vec::new();
    for file in files {
        let text = read_text(&file, FILE_BYTES_MAX)?;
        amount.file_bytes += text.len() as u64;
        ensure!(
            amount.file_bytes <= FILES_BYTES_MAX,
            "{}: all files together have more than {FILES_BYTES_MAX} bytes, which is the most that is read",
            file.display()
        );
        let read = parse(&text, amount).with_context(|| file.display().to_string())?;
        reports.extend(read.into_iter().map(|report| Report { file: file.clone(), ..report }));
    }
    if reports.is_empty() {
        bail!("{}: there is no report: anemone lab NAME --out DIR writes one", path.display());
    }
    Ok(reports)
}

fn in_directory(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let files = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = files.collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}

fn parse(text: &str, amount: &mut Amount) -> anyhow::Result<Vec<Report>> {
    const NO_REPORT: &str = "this is not a report of anemone lab";
    let reports = match serde_json::from_str(text).context(NO_REPORT)? {
        Value::Array(reports) => reports,
        report => vec![report],
    };
    let mut read = |report: Value| match report.get("version").and_then(Value::as_u64) {
        None => bail!(NO_REPORT),
        Some(version) if version != u64::from(VERSION) => bail!(
            "this report has version {version}, and this program reads version {VERSION}: use the anemone that wrote it"
        ),
        Some(_) => {
            let report: Report = serde_json::from_value(report).context(NO_REPORT)?;
            check(&report, amount).map(|()| report)
        }
    };
    reports.into_iter().map(&mut read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::tests::{report, series};

    #[test]
    fn a_file_has_a_report_or_a_list_of_them() {
        let mut report = report();
        report.series = vec![series("TCP", &[1.0, 2.0])];
        let text = serde_json::to_string(&report).unwrap();
        for (text, count) in [(text.clone(), 1), (format!("[{text},{text}]"), 2)] {
            let read = parse(&text, &mut Amount::default()).unwrap();
            assert_eq!((read.len(), read[0].series[0].values()), (count, vec![1.0, 2.0]));
        }
    }

    #[test]
    fn all_places_of_a_command_have_one_bound() {
        let file = std::env::temp_dir().join(format!("lab-files-{}.json", std::process::id()));
        let text = serde_json::to_string(&report()).unwrap();
        fs::write(&file, &text).unwrap();
        let file_bytes = FILES_BYTES_MAX - text.len() as u64;
        let mut amount = Amount { file_bytes, ..Amount::default() };
        assert_eq!(read(&file, &mut amount).unwrap().len(), 1);
        let error = format!("{:#}", read(&file, &mut amount).unwrap_err());
        assert!(error.contains("all files together have more than"), "{error}");
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_is_no_report_of_this_version_is_refused_with_words() {
        let version = Report { version: 2, ..report() };
        let version = serde_json::to_string(&version).unwrap();
        for (text, words) in [
            ("no JSON", "not a report of anemone lab"),
            ("{\"a\":1}", "not a report of anemone lab"),
            ("{\"version\":1}", "not a report of anemone lab"),
            (&*version, "has version 2, and this program reads version 1"),
        ] {
            let error = format!("{:#}", parse(text, &mut Amount::default()).unwrap_err());
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
