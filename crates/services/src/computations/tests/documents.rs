//! Documents that are taken, up to their limits, and documents that are refused.

use std::fs;
use std::path::Path;

use anemone_hub::run::RunRefusal;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::computations::tree::{ActionTree, DOCUMENT_BYTES_MAX};

fn parse(document: &Value) -> Result<ActionTree, (String, String)> {
    ActionTree::parse(document.to_string().as_bytes()).map_err(|refusal| match refusal {
        RunRefusal::Unprocessable { pointer: Some(pointer), detail } => (pointer, detail),
        other => panic!("{other}"),
    })
}

/// A document that begins with a list `a` of 10 elements.
fn with(actions: &[Value]) -> Value {
    let list = json!({"id": "a", "do": "list", "size": 10});
    let actions = [&[list], actions].concat();
    json!({ "actions": actions })
}

fn list(size: &Value) -> Value {
    json!({"actions": [{"id": "a", "do": "list", "size": size}]})
}

fn sort(id: &str, after: &str) -> Value {
    json!({"id": id, "do": "sort", "algorithm": "quick", "after": after})
}

/// A list, and actions that start one after the other, in this number together.
fn chain(count: usize) -> Value {
    let ids: Vec<String> = (0..count).map(|at| format!("a{at}")).collect();
    let sorts = ids.windows(2).map(|pair| sort(&pair[1], &pair[0]));
    let first = json!({"id": "a0", "do": "list", "size": 1});
    // The children first: the order in the document does not count.
    json!({ "actions": sorts.rev().chain([first]).collect::<Vec<_>>() })
}

fn wide(count: usize) -> Value {
    with(&(1..count).map(|at| sort(&format!("s{at}"), "a")).collect::<Vec<_>>())
}

#[test]
fn a_document_is_taken_up_to_each_limit() {
    for (taken, actions) in [
        (list(&json!(1)), 1),
        (list(&json!(100_000)), 1),
        (chain(16), 16),
        (wide(64), 64),
        (
            json!({"actions": [
                {"id": "a", "do": "list", "size": 100_000, "seed": (1_u64 << 53) - 1, "distribution": "few-unique"},
                {"id": "A-1_.", "do": "sort", "after": "a", "algorithm": "radix", "criterion": "by-digit-sum"},
            ]}),
            2,
        ),
        (
            json!({"actions": [
                {"id": "x".repeat(40), "do": "list", "size": 20_000, "seed": 0},
                {"id": "b", "do": "sort", "after": "x".repeat(40), "algorithm": "bubble"},
            ]}),
            2,
        ),
    ] {
        assert_eq!(parse(&taken).unwrap().actions.len(), actions, "{taken}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_place_and_what_is_allowed() {
    let size = "expected a whole number from 1 to 100000";
    let bubble = json!({"id": "b", "do": "sort", "after": "a", "algorithm": "bubble"});
    let long = "x".repeat(41);
    for (document, pointer, words) in [
        (json!([]), "", "expected an object"),
        (json!({}), "/actions", "is missing"),
        (json!({"actions": []}), "/actions", "expected an array of 1 to 64 items, found 0"),
        (wide(65), "/actions", "1 to 64 items, found 65"),
        (json!({"actions": [], "a/b~": 1}), "/a~1b~0", "is unknown here; allowed are actions"),
        (json!({"actions": [7]}), "/actions/0", "expected an object"),
        (with(&[json!({"id": "b", "do": "dance"})]), "/actions/1/do", "expected one of list, sort"),
        (with(&[json!({"id": "b"})]), "/actions/1/do", "expected one of list, sort"),
        (list(&json!(0)), "/actions/0/size", size),
        (list(&json!(100_001)), "/actions/0/size", size),
        (list(&json!(-1)), "/actions/0/size", size),
        (list(&json!(1.5)), "/actions/0/size", size),
        (list(&json!(u64::MAX)), "/actions/0/size", size),
        (list(&json!("10")), "/actions/0/size", size),
        (json!({"actions": [{"id": "a", "do": "list"}]}), "/actions/0/size", size),
        (
            json!({"actions": [{"id": "a", "do": "list", "size": 1, "seed": 1_u64 << 53}]}),
            "/actions/0/seed",
            "expected a whole number from 0 to 9007199254740991",
        ),
        (
            json!({"actions": [{"id": "a", "do": "list", "size": 1, "distribution": "odd"}]}),
            "/actions/0/distribution",
            "expected one of random, sorted, reversed, nearly-sorted, few-unique",
        ),
        (
            json!({"actions": [{"id": "a", "do": "list", "size": 1, "algorithm": "quick"}]}),
            "/actions/0/algorithm",
            "allowed are id, do, after, size, distribution, seed",
        ),
        (
            with(&[json!({"id": "b", "do": "sort", "after": "a", "algorithm": "bogo"})]),
            "/actions/1/algorithm",
            "expected one of quick, merge",
        ),
        (
            with(&[json!({"id": "b", "do": "sort", "after": "a"})]),
            "/actions/1/algorithm",
            "expected one of quick, merge",
        ),
        (
            with(&[
                json!({"id": "b", "do": "sort", "after": "a", "algorithm": "quick", "criterion": "up"}),
            ]),
            "/actions/1/criterion",
            "expected one of ascending, descending, by-last-digit, by-digit-sum",
        ),
        (
            with(&[json!({"id": "b", "do": "sort", "algorithm": "quick"})]),
            "/actions/1",
            "a sort needs \"after\"",
        ),
        (with(&[sort("b", "c")]), "/actions/1/after", "no action has the id \"c\""),
        (with(&[sort("a", "a")]), "/actions/1/id", "the id \"a\" already belongs to /actions/0"),
        (with(&[sort("b c", "a")]), "/actions/1/id", "1 to 40 of the characters"),
        (with(&[sort(&long, "a")]), "/actions/1/id", "1 to 40 of the characters"),
        (with(&[sort("", "a")]), "/actions/1/id", "1 to 40 of the characters"),
        (with(&[sort("b", "b")]), "/actions/1/after", "a cycle: each starts after the next, \"b\""),
        (
            with(&[sort("b", "d"), sort("c", "b"), sort("d", "c"), sort("e", "a")]),
            "/actions/1/after",
            "a cycle: each starts after the next, \"b\", \"d\", \"c\"",
        ),
        (with(&[sort("e", "b"), sort("b", "c"), sort("c", "b")]), "/actions/2/after", "a cycle"),
        (chain(17), "/actions/0/after", "17 actions one after the other, at most 16 allowed"),
        (
            json!({"actions": [{"id": "a", "do": "list", "size": 20_001}, bubble]}),
            "/actions/1/algorithm",
            "20001 elements; this algorithm takes at most 20000",
        ),
        (
            json!({"actions": [{"id": "a", "do": "list", "size": 66_667}, sort("b", "a"), sort("c", "a")]}),
            "/actions/2",
            "the lists of all actions have 200001 elements, at most 200000 allowed",
        ),
    ] {
        let (place, detail) = parse(&document).expect_err(&document.to_string());
        assert_eq!(place, pointer, "{document}: {detail}");
        assert!(detail.contains(words), "{document}: {detail}");
    }
}

#[test]
fn a_document_of_too_many_bytes_is_not_read() {
    let padded = |bytes: usize| {
        let document = list(&json!(1)).to_string();
        ActionTree::parse((document.clone() + &" ".repeat(bytes - document.len())).as_bytes())
    };
    assert!(padded(DOCUMENT_BYTES_MAX).is_ok());
    let refusal = padded(DOCUMENT_BYTES_MAX + 1).unwrap_err();
    let words = "the document has 65537 bytes, at most 65536 allowed";
    assert_eq!(refusal.to_string(), words);
}

#[test]
fn a_body_that_is_no_json_is_refused_with_line_and_column() {
    let deep = "[".repeat(10_000);
    for (body, words) in [
        ("", "the body is empty: send a document, such as {\"actions\""),
        (" ", "line 1 column 1"),
        ("{\n \"actions\": [}", "line 2 column 14"),
        (deep.as_str(), "recursion limit exceeded at line 1 column 128"),
        ("{\"actions\":[{\"size\":1e999}]}", "number out of range"),
        ("{\"actions\":[{\"size\":NaN}]}", "line 1 column 21"),
        ("{\"actions\":[{\"size\":NaN}]}", "NaN is not JSON: write null in its place"),
    ] {
        let refusal = ActionTree::parse(body.as_bytes()).unwrap_err();
        assert!(matches!(refusal, RunRefusal::BadBody(_)), "{refusal}");
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
    let example = ActionTree::parse(b"").unwrap_err().to_string();
    let example = example.split_once("such as ").unwrap().1;
    assert_eq!(ActionTree::parse(example.as_bytes()).unwrap().actions.len(), 2);
    assert!(matches!(ActionTree::parse(b"{\"\xff\":1}"), Err(RunRefusal::BadBody(_))));
}

/// A document, and the judgement that the service and its page share.
#[derive(Deserialize)]
struct Case {
    about: String,
    text: String,
    /// The spaces after the text.
    #[serde(default)]
    spaces: usize,
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "verdict")]
enum Verdict {
    #[serde(rename = "fits")]
    Fits,
    #[serde(rename = "no JSON")]
    NoJson,
    #[serde(rename = "unfit")]
    Unfit { pointer: String },
}

/// The page checks a document before it is sent, with rules of its own: `tests/web/computations.test.js` reads the same file.
#[test]
fn each_document_is_judged_as_the_page_judges_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cases = fs::read(root.join("tests/cases/computations.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_slice(&cases).unwrap();
    for Case { about, text, spaces, verdict } in cases {
        let document = text + &" ".repeat(spaces);
        let found = match ActionTree::parse(document.as_bytes()) {
            Ok(_) => Verdict::Fits,
            Err(RunRefusal::BadBody(_)) => Verdict::NoJson,
            Err(RunRefusal::Unprocessable { pointer: Some(pointer), .. }) => {
                Verdict::Unfit { pointer }
            }
            Err(other) => panic!("{about}: {other}"),
        };
        assert_eq!(found, verdict, "{about}");
    }
}
