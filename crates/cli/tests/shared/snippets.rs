//! Each block of code in a document is run by a test, or there is a reason why not: `snippets.txt` says which.
//!
//! A line there has the document, the heading above the blocks, their language, their number, and one of `FILE: TEST`,
//! `compiled: FILE`, which has the document in its own documentation, and `not run: REASON`. The language is `-` for a block that is
//! only indented, and `none` for one between fences without a language. The experiments of the lab are run shorter by its own tests.
#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anemone_testing::documents;

/// Returns the blocks and the claim about them, in each line.
fn claims() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("snippets.txt").lines();
    lines.map(|line| line.rsplit_once(" | ").unwrap()).collect()
}

/// Returns the document, the heading, the language and the number of the blocks that have these in common.
fn blocks() -> BTreeSet<String> {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for document in documents::all() {
        for block in document.blocks() {
            let language = match block.language.as_deref() {
                None => "-",
                Some("") => "none",
                Some(language) => language,
            };
            let of = format!("{} | {} | {language}", document.path, block.heading);
            *counts.entry(of).or_default() += 1;
        }
    }
    counts.into_iter().map(|(of, count)| format!("{of} | {count}")).collect()
}

/// Returns whether a text has a test of this name: in Rust, in Python, or in JavaScript.
fn has_test(text: &str, name: &str) -> bool {
    let definitions = [format!("fn {name}("), format!("def {name}("), format!("test(\"{name}\"")];
    definitions.iter().any(|definition| text.contains(definition))
}

#[test]
fn each_block_has_a_claim_and_each_claim_a_block() {
    let (blocks, claims) = (blocks(), claims());
    let claimed: BTreeSet<_> = claims.iter().map(|(of, _)| (*of).to_owned()).collect();
    let difference: Vec<_> = blocks.symmetric_difference(&claimed).collect();
    assert!(difference.is_empty(), "snippets.txt and the documents differ in {difference:#?}");
    assert_eq!(claimed.len(), claims.len(), "two lines of snippets.txt are about the same blocks");
}

#[test]
fn each_test_that_runs_a_block_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    for (block, claim) in claims() {
        match claim.split_once(": ").unwrap() {
            ("not run", _) => {}
            ("compiled", file) => {
                assert!(
                    read(file).contains("doc = include_str!(\"../README.md\")"),
                    "{block}: {file}"
                );
            }
            (file, test) => {
                assert!(has_test(&read(file), test), "{block}: {file} has no test {test}")
            }
        }
    }
}
