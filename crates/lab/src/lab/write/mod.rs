//! Reports as files: HTML, JSON with all rounds, CSV, logs of histograms, and Markdown.

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

pub(crate) use self::changes::changes;
pub(crate) use self::html::all;
pub(crate) use self::markdown::markdown;
use super::report::Report;

/// The forms of a report, by the ends of their names.
const FORMS: [&str; 5] = ["html", "json", "csv", "hlog", "md"];

/// Makes a directory for the reports of these experiments, and tries whether they can be written there.
///
/// # Errors
/// When a file cannot be created there, or one of an earlier report cannot be written.
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

/// Writes a report in every form into a directory that [`prepare`] has made.
pub(crate) fn write(report: &Report, directory: &Path) -> anyhow::Result<()> {
    let into = |extension: &str, text: &[u8]| {
        let path = file(directory, &report.experiment, extension);
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

#[cfg(test)]
mod tests {
    use super::*;

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
