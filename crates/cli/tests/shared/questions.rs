//! A new user finds the way: each link leads somewhere, and each first question has its answer near the README.
#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anemone_testing::documents::{Document, all, document};

/// The words of a section in which its answer has to be.
const WORDS_MAX: usize = 200;
/// The clicks from the README to a document.
const CLICKS_MAX: usize = 2;

/// The question, the document that answers it, the heading above the answer, and words of the answer.
const QUESTIONS: [(&str, &str, &str, &str); 10] = [
    ("What is it?", "README.md", "Anemone", "See the output of any program live in a browser"),
    ("For whom?", "README.md", "Anemone", "a **long computation** that owes its users progress"),
    (
        "How do I begin?",
        "README.md",
        "Five minutes",
        "anemone serve --data state --exec cpu='vmstat 1'",
    ),
    (
        "How do I keep data?",
        "README.md",
        "Five minutes",
        "With `--data`, positions survive restarts",
    ),
    ("How do I share it?", "README.md", "Share it", "--listen 0.0.0.0:8080"),
    ("How do I protect it?", "docs/DEPLOY.md", "Who may read", "let the proxy decide who passes"),
    (
        "How do I run a computation?",
        "README.md",
        "A long computation",
        "anemone run http://127.0.0.1:8080/primes",
    ),
    (
        "Which transport?",
        "docs/FEATURES.md",
        "Behaviour by transport",
        "| a page that shows new events | SSE",
    ),
    ("From Python?", "docs/TUTORIAL.md", "From Python", "urllib.request.urlopen(request)"),
    ("From Rust?", "README.md", "In a page, Node, Rust", "anemone_client::Subscribe"),
];

/// Returns the path in the repository that a link in this document leads to, and the place there.
fn target(from: &Document, link: &str) -> (PathBuf, Option<String>) {
    let (path, place) =
        link.split_once('#').map_or((link, None), |(path, place)| (path, Some(place)));
    let mut whole = PathBuf::from(&from.path);
    if !path.is_empty() {
        whole.pop();
    }
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => assert!(whole.pop(), "{link}"),
            part => whole.push(part),
        }
    }
    (whole, place.map(str::to_owned))
}

/// Returns the links of a document that stay in the repository.
fn own_links(of: &Document) -> Vec<String> {
    of.links().into_iter().filter(|link| !link.contains("://")).collect()
}

#[test]
fn every_link_leads_to_a_file_and_to_a_place_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let anchors: BTreeMap<_, BTreeSet<_>> =
        all().map(|document| (PathBuf::from(&document.path), document.anchors())).collect();
    let mut count = 0;
    for document in all() {
        for link in own_links(document) {
            let (path, place) = target(document, &link);
            assert!(root.join(&path).exists(), "{}: {link}", document.path);
            if let (Some(place), Some(there)) = (place, anchors.get(&path)) {
                assert!(there.contains(&place), "{}: {link}", document.path);
            }
            count += 1;
        }
    }
    assert!(count > 150, "{count} links");
}

/// Returns the documents that so many clicks lead to from the README.
fn within(clicks: usize) -> BTreeSet<PathBuf> {
    let mut reached = BTreeSet::from([PathBuf::from("README.md")]);
    for _ in 0..clicks {
        let known = all().filter(|document| reached.contains(Path::new(&document.path)));
        let links = known
            .flat_map(|from| own_links(from).into_iter().map(move |link| target(from, &link).0));
        let next: Vec<_> = links.collect();
        reached.extend(next);
    }
    reached
}

#[test]
fn each_first_question_is_answered_near_the_readme() {
    let near = within(CLICKS_MAX);
    for (question, path, heading, answer) in QUESTIONS {
        assert!(near.contains(Path::new(path)), "{question} {path} is too many clicks away");
        let found = document(path);
        let section = found.below(heading).unwrap_or_default();
        let end = section.find(answer).map(|begin| begin + answer.len());
        let words = end.map(|end| section[..end].split_whitespace().count());
        assert!(
            words.is_some_and(|words| words <= WORDS_MAX),
            "{question} {path}, {heading}: {words:?} words"
        );
    }
}
