//! The documents read at once: no sentence is long.

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
