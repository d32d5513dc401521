//! Writes reports as files: HTML, JSON with all rounds, CSV, logs of histograms, and Markdown.

mod changes;
mod csv;
mod hdr;
mod html;
mod markdown;
mod plot;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

pub(crate) use self::changes::{alone, changes};
pub(crate) use self::html::all;
pub(crate) use self::markdown::{markdown, page};
pub(crate) use self::tables::{NONE, Table, interval, percentile, reach};
use super::pace::Pace;
use super::regular_file::write_whole;
use super::report::Report;
use super::terminal::print;

/// The extensions of a report's files, in the order in which they are written. JSON comes first, since the others can
/// be made from it.
const FORMS: [&str; 5] = ["json", "html", "csv", "hlog", "md"];

/// Creates a directory for the reports of these experiments, and checks that they can be written there.
///
/// # Errors
/// A file cannot be created there, or a file of an earlier report cannot be replaced.
pub(crate) fn prepare(directory: &Path, experiments: &[String]) -> anyhow::Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("creating the directory {}", directory.display()))?;
    let tried = directory.join(format!(".anemone-lab-{}", std::process::id()));
    fs::File::create(&tried)
        .and_then(|_| fs::remove_file(&tried))
        .with_context(|| format!("writing into the directory {}", directory.display()))?;
    let files = experiments.iter().flat_map(|name| FORMS.map(|form| file(directory, name, form)));
    for file in files.filter(|file| file.exists()) {
        // It stays as it is.
        let opened = fs::OpenOptions::new().append(true).open(&file);
        opened.with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

fn file(directory: &Path, experiment: &str, form: &str) -> PathBuf {
    directory.join(format!("{experiment}.{form}"))
}

/// Prints a report as Markdown, and writes it to the directory, if there is one. If the run was interrupted before
/// anything was measured, the files of earlier runs stay unchanged.
///
/// # Errors
/// As [`write`].
pub(crate) fn hand_out(
    pace: &Pace,
    mut report: Report,
    directory: Option<&Path>,
    markdown: impl FnOnce(&Report) -> String,
) -> anyhow::Result<()> {
    pace.end();
    if report.is_interrupted {
        if !report.has_values() {
            pace.say(&nothing_measured(&report.experiment, directory));
            return Ok(());
        }
        report.method.push("It was interrupted: this is what was measured by then.".to_owned());
    }
    report.complete();
    let text = markdown(&report);
    print(&text)?;
    if let Some(directory) = directory {
        let written = write(&report, &text, directory)?;
        pace.say(&format!("written to {}: {}", directory.display(), written.join(", ")));
    }
    Ok(())
}

/// Returns the sentence that an interrupted run has no report.
fn nothing_measured(experiment: &str, directory: Option<&Path>) -> String {
    let rest = match directory {
        Some(directory) => {
            format!("no report is written, and what is in {} stays as it is", directory.display())
        }
        None => "there is no report".to_owned(),
    };
    format!("{experiment} was interrupted before anything was measured: {rest}")
}

/// Writes the files of a report into a directory that [`prepare`] has created. Removes files of an earlier report in
/// forms that this report does not have. Returns the names of the files.
///
/// # Errors
/// A file cannot be written completely. The error names the files that were written. All other files stay unchanged.
pub(crate) fn write(
    report: &Report,
    markdown: &str,
    directory: &Path,
) -> anyhow::Result<Vec<String>> {
    let (mut whole, mut stale) = (Vec::new(), Vec::new());
    for form in FORMS {
        let path = file(directory, &report.experiment, form);
        let written = formatted(report, markdown, form).and_then(|text| match text {
            Some(text) => Ok(Some(write_whole(&path, &text)?)),
            None => Ok(None),
        });
        let written = written.with_context(|| {
            let whole = if whole.is_empty() { "none".to_owned() } else { whole.join(", ") };
            let path = path.display();
            format!("writing {path} (new and whole: {whole}; the other files are as before)")
        })?;
        match written {
            Some(()) => whole.push(format!("{}.{form}", report.experiment)),
            None => stale.push(path),
        }
    }
    for path in stale.iter().filter(|path| path.exists()) {
        fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(whole)
}

/// Returns a report in this form; `None` if the report has nothing for it.
fn formatted(report: &Report, markdown: &str, form: &str) -> anyhow::Result<Option<Vec<u8>>> {
    Ok(Some(match form {
        "json" => serde_json::to_vec_pretty(report)?,
        "html" => html::html(report)?.into_bytes(),
        "csv" => csv::csv(report).into_bytes(),
        "hlog" => return hdr::log(report),
        _ => markdown.into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::tests::report;

    #[test]
    fn the_rounds_come_first_and_what_cannot_be_written_is_told_with_what_was() {
        let directory = std::env::temp_dir().join(format!("lab-write-{}", std::process::id()));
        let directory = directory.as_path();
        let _ = fs::remove_dir_all(directory);
        fs::create_dir_all(directory.join("echo.html")).unwrap();
        for form in ["json", "md"] {
            fs::write(directory.join(format!("echo.{form}")), "earlier").unwrap();
        }
        let error = format!("{:#}", write(&report(), "", directory).unwrap_err());
        assert!(error.contains("echo.html (new and whole: echo.json; the other"), "{error}");
        let json = fs::read(directory.join("echo.json")).unwrap();
        assert!(serde_json::from_slice::<Report>(&json).is_ok());
        assert_eq!(fs::read(directory.join("echo.md")).unwrap(), b"earlier");
        assert_eq!(fs::read_dir(directory).unwrap().count(), 3, "nothing is left of the try");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_report_without_durations_leaves_no_log_of_an_earlier_one() {
        let directory = std::env::temp_dir().join(format!("lab-log-{}", std::process::id()));
        let directory = directory.as_path();
        let _ = fs::remove_dir_all(directory);
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("echo.hlog"), "earlier").unwrap();
        let written = write(&report(), "", directory).unwrap();
        assert_eq!(written, ["echo.json", "echo.html", "echo.csv", "echo.md"]);
        assert!(!directory.join("echo.hlog").exists());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_before_and_one_that_can_keeps_its_files() {
        let directory = std::env::temp_dir().join(format!("lab-prepare-{}", std::process::id()));
        let directory = directory.as_path();
        let _ = fs::remove_dir_all(directory);
        fs::create_dir(directory).unwrap();
        let names = ["echo".to_owned()];
        fs::write(directory.join("echo.json"), "earlier").unwrap();
        prepare(directory, &names).unwrap();
        assert_eq!(fs::read_to_string(directory.join("echo.json")).unwrap(), "earlier");
        assert_eq!(fs::read_dir(directory).unwrap().count(), 1, "nothing is left of the try");
        // Nobody can write to it, root included.
        fs::create_dir(directory.join("echo.md")).unwrap();
        let error = format!("{:#}", prepare(directory, &names).unwrap_err());
        assert!(error.starts_with("writing ") && error.contains("echo.md: "), "{error}");
        fs::remove_dir_all(directory).unwrap();
        let error = format!("{:#}", prepare(Path::new("/proc"), &[]).unwrap_err());
        assert!(error.starts_with("writing into the directory /proc: "), "{error}");
    }
}
