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
use super::regular_file::write_whole;
use super::report::Report;

/// The forms of a report, by the ends of their names, in the order in which they are written: the one with every round first, since
/// the others can be made of it.
const FORMS: [&str; 5] = ["json", "html", "csv", "hlog", "md"];

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
///
/// # Errors
/// Once a file cannot be written whole, with those that were. The others are as they were before.
pub(crate) fn write(report: &Report, directory: &Path) -> anyhow::Result<()> {
    let mut whole = Vec::new();
    for form in FORMS {
        let path = file(directory, &report.experiment, form);
        let written = formatted(report, form)
            .and_then(|text| Ok(text.map_or(Ok(()), |text| write_whole(&path, &text))?));
        written.with_context(|| {
            let whole = if whole.is_empty() { "none".to_owned() } else { whole.join(", ") };
            let path = path.display();
            format!("writing {path} (new and whole: {whole}; the other files are as before)")
        })?;
        whole.push(format!("{}.{form}", report.experiment));
    }
    Ok(())
}

/// Returns a report in a form, if there is anything to say in it.
fn formatted(report: &Report, form: &str) -> anyhow::Result<Option<Vec<u8>>> {
    Ok(Some(match form {
        "json" => serde_json::to_vec_pretty(report)?,
        "html" => html::html(report)?.into_bytes(),
        "csv" => csv::csv(report).into_bytes(),
        "hlog" => return hdr::log(report),
        _ => markdown(report).into_bytes(),
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
        let error = format!("{:#}", write(&report(), directory).unwrap_err());
        assert!(error.contains("echo.html (new and whole: echo.json; the other"), "{error}");
        let json = fs::read(directory.join("echo.json")).unwrap();
        assert!(serde_json::from_slice::<Report>(&json).is_ok());
        assert_eq!(fs::read(directory.join("echo.md")).unwrap(), b"earlier");
        assert_eq!(fs::read_dir(directory).unwrap().count(), 3, "nothing is left of the try");
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
