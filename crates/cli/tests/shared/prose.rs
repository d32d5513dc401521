//! The documents read at once: no sentence is long.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;

use anemone_testing::documents::{self, words};

/// The most words of a sentence.
const WORDS_MAX: usize = 35;

#[test]
fn no_sentence_of_a_document_is_long() {
    let mut long = Vec::new();
    for document in documents::all() {
        for sentence in document.sentences().iter().filter(|said| words(said) > WORDS_MAX) {
            long.push(format!("{}, {} words: {sentence}", document.path, words(sentence)));
        }
    }
    assert!(long.is_empty(), "{} sentences are long:\n{}", long.len(), long.join("\n"));
}

#[test]
fn the_tests_know_every_document() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let known: BTreeSet<_> = documents::all().map(|document| document.path.to_owned()).collect();
    let there = std::fs::read_dir(root.join("docs")).unwrap();
    let there = there.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for name in there.filter(|name| name.ends_with(".md")) {
        assert!(known.contains(&format!("docs/{name}")), "{name} is not in the lists");
    }
}
