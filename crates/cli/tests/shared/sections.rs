//! A comment that names a section of a document names one that is there: ("Gaps" in `docs/PROTOCOL.md`).
#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::{Path, PathBuf};

use anemone_testing::documents::document;

/// Returns the source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    let files = entries.flat_map(below);
    files.filter(|path| path.extension().is_some_and(|end| end == "rs" || end == "js")).collect()
}

/// Returns the document that a line of a comment names, and the sections that it says are there.
fn named(line: &str) -> Option<(String, Vec<&str>)> {
    let comment = line.trim_start().strip_prefix(['/', '*'])?;
    let (sections, document) = comment.split_once("\" in `docs/")?;
    let sections = sections.split('"').skip(1).step_by(2).collect();
    Some((format!("docs/{}", document.split('`').next()?), sections))
}

#[test]
fn every_section_that_a_comment_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for file in
        ["crates", "clients/js/src", "web"].map(|folder| sources(&root.join(folder))).concat()
    {
        let text = std::fs::read_to_string(&file).unwrap();
        for (path, sections) in text.lines().filter_map(named) {
            for section in sections {
                let is_there = document(&path).below(section).is_some();
                assert!(is_there, "{}: {path} has no section {section}", file.display());
                count += 1;
            }
        }
    }
    assert!(count > 25, "{count} sections");
}
