//! Each block of code in a document is run by a test, or there is a reason why not: `snippets.txt` says which.
//!
//! A line there has the document, the heading above the block, its language, and `FILE: TEST` or `not run: REASON`. The language
//! is `-` for a block that is only indented, and `none` for one between fences without a language. The experiments of the lab
//! are run shorter by its own tests.
#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::Path;

use anemone_testing::documents;

/// Returns the block and the claim about it, in each line.
fn claims() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("snippets.txt").lines();
    lines.map(|line| line.rsplit_once(" | ").unwrap()).collect()
}

/// Returns the document, the heading and the language of each block.
fn blocks() -> Vec<String> {
    let of = |document: documents::Document| {
        document.blocks().into_iter().map(move |block| {
            let language = match block.language.as_deref() {
                None => "-",
                Some("") => "none",
                Some(language) => language,
            };
            format!("{} | {} | {language}", document.path, block.heading)
        })
    };
    documents::all().flat_map(of).collect()
}

#[test]
fn each_block_has_a_claim_and_each_claim_a_block() {
    let (blocks, claims) = (blocks(), claims());
    for block in &blocks {
        let count = claims.iter().filter(|(of, _)| of == block).count();
        assert_eq!(count, 1, "lines of snippets.txt about {block}");
    }
    for (of, _) in claims {
        assert!(blocks.iter().any(|block| block == of), "no document has {of}");
    }
}

#[test]
fn each_test_that_runs_a_block_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (block, claim) in claims() {
        let (file, test) = claim.split_once(": ").unwrap();
        if file != "not run" {
            let tests = std::fs::read_to_string(root.join(file)).unwrap();
            assert!(tests.contains(test), "{block}: {file} has no test {test}");
        }
    }
}
