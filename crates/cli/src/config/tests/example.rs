//! `anemone.toml` at the root is correct.

use std::collections::BTreeSet;

use super::*;
use crate::config::document::{Entry, Value};

const EXAMPLE: &str = include_str!("../../../../../anemone.toml");

/// Marks a key that has no default.
const IS_EXAMPLE: &str = "# example";

/// With the keys uncommented that are to be; prose has a blank after its `#`.
fn uncommented(wanted: impl Fn(&str) -> bool) -> String {
    let line = |line: &'static str| match line.strip_prefix('#') {
        Some(key) if key.starts_with(|c: char| c.is_ascii_lowercase() || c == '[') => {
            if wanted(line) { key } else { line }
        }
        _ => line,
    };
    EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_is_the_default_as_it_stands() {
    let (example, nothing) = (read(EXAMPLE, &[]).unwrap(), read("", &[]).unwrap());
    assert_same(&example, &nothing);
}

#[test]
fn every_key_in_the_example_says_the_default_or_that_it_is_an_example() {
    let all = read(&uncommented(|_| true), &[]).unwrap();
    let examples = read(&uncommented(|line| line.contains(IS_EXAMPLE)), &[]).unwrap();
    assert_same(&all, &examples);
    assert_eq!((all.topics.len(), all.runs.len(), all.sources.len()), (1, 1, 6));
}

#[test]
fn every_key_that_is_marked_as_an_example_differs_from_the_default() {
    let nothing = debug(&read("", &[]).unwrap());
    for line in EXAMPLE.lines().take_while(|line| !line.starts_with("#[[")) {
        if line.contains(IS_EXAMPLE) && !line.contains("cert") && !line.contains("key.pem") {
            let text = uncommented(|other| other == line);
            assert_ne!(debug(&read(&text, &[]).unwrap()), nothing, "{line}");
        }
    }
}

#[test]
fn no_key_is_missing_from_the_example() {
    let node = Node::parse(File::new("a.toml", uncommented(|_| true))).unwrap();
    let mut written = BTreeSet::new();
    paths("", &node, &mut written);
    let faults = Faults::default();
    Config::read(node, &args::Serve::default(), &faults);
    let known = faults.known();
    let missing: Vec<_> = known.difference(&written).collect();
    assert!(missing.is_empty() && known.len() > 100, "{missing:?}");
    // Each source has all of its keys, not only those that no other has.
    let of_sources = uncommented(|_| true).split_once("\n[[source]]").unwrap().1.to_owned();
    let lines = |key: &str| of_sources.lines().filter(|line| line.starts_with(key)).count();
    assert_eq!(["line_bytes_max", "report_interval"].map(lines), [5, 5]);
    assert_eq!(["retry_min", "retry_max", "interval"].map(lines), [3, 3, 2]);
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_read_or_told_of() {
    let text = uncommented(|_| true);
    // As many steps as take no time; each is somewhere else in its line.
    for end in (0..text.len()).step_by(37).filter(|end| text.is_char_boundary(*end)) {
        if let Err(error) = read(&text[..end], &[]) {
            assert!(error.to_string().starts_with("a.toml:"), "{end}: {error}");
        }
    }
}

fn paths(prefix: &str, node: &Node, found: &mut BTreeSet<String>) {
    let Value::Table(entries) = &node.content else { return };
    for Entry { key, node, .. } in entries {
        let path = format!("{prefix}{key}");
        match &node.content {
            Value::List(items) => {
                items.iter().for_each(|item| paths(&format!("{path}."), item, found));
            }
            _ => paths(&format!("{path}."), node, found),
        }
        found.insert(path);
    }
}
