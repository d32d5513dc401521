//! This crate reads and writes the examples of docs/PROTOCOL.md.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use anemone_wire::{After, Gap, ProgressLine, Token};

const PROTOCOL: &str = include_str!("../../../docs/PROTOCOL.md");

/// Returns the indented lines below a heading.
fn shown(heading: &str) -> Vec<&'static str> {
    let (_, rest) = PROTOCOL.split_once(&format!("# {heading}\n")).expect(heading);
    let section = rest.split("\n#").next().unwrap();
    section.lines().filter_map(|line| line.strip_prefix("    ")).collect()
}

fn gap() -> Gap {
    let [gap] = shown("Gaps")[..] else { panic!("one gap") };
    serde_json::from_str(gap).unwrap()
}

#[test]
fn a_gap_is_as_shown() {
    let mut written = String::new();
    gap().write(After::Position, &mut written);
    assert_eq!(shown("Gaps"), [written]);
}

#[test]
fn the_reason_of_a_close_is_as_shown() {
    let words = gap().in_words();
    let expected = [format!("4000 gap: {words}"), format!("1008 too slow: {words}")];
    assert_eq!(shown("Plain WebSocket"), expected);
}

#[test]
fn a_token_is_as_shown() {
    let [token] = shown("Many topics")[..] else { panic!("one token") };
    assert_eq!(token.parse::<Token>().unwrap().to_string(), token);
}

#[test]
fn both_forms_of_progress_are_as_shown() {
    let lines = shown("Runs").into_iter().filter(|line| {
        line.contains("progress\":0.42,\"text\":\"some") || line.starts_with("progress ")
    });
    let expected = ProgressLine { fraction: 0.42, text: Some("some words".to_owned()) };
    let read: Vec<_> = lines.map(ProgressLine::parse).collect();
    assert_eq!(read, [Some(expected.clone()), Some(expected)]);
}
