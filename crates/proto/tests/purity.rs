//! This crate has no IO, clock, thread, randomness or async: its source names nothing that has.
//!
//! This test lists all names that the source may use, so it finds every new one. `clippy.toml` reports the same while
//! one edits; this test reads the tokens of every file of the library, and the dependencies.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The names of the standard library that may be used: a whole module that does nothing but compute, or one item.
const STD: &[&str] = &[
    "std::borrow::Cow",
    "std::fmt",
    "std::mem",
    "std::ops::Add",
    "std::ops::Range",
    "std::str::from_utf8",
    "std::sync::Arc",
    "std::sync::OnceLock",
    "std::time::Duration",
];
const MACROS: [&str; 5] = ["debug_assert", "debug_assert_eq", "format", "matches", "write"];
const KEYWORDS_REFUSED: [&str; 4] = ["async", "await", "extern", "unsafe"];

/// Every crate that ends up in a program because of this one, with its features. A macro's own crates run in the
/// compiler only.
const DEPENDENCIES: [&str; 5] = [
    "anemone-proto []",
    "httparse []",
    "sha1_smol []",
    "thiserror [default,std]",
    "zlib-rs [rust-allocator,std]",
];

#[test]
fn the_source_names_nothing_that_is_not_pure() {
    let mut files = Vec::new();
    let mut faults = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    read(&src.join("lib.rs"), &src, &mut files, &mut faults);
    assert_eq!(faults, [""; 0]);
    // Only files that are compiled for tests are not read.
    let mut all = Vec::new();
    list(&src, &mut all);
    let left_out: Vec<_> = all.iter().filter(|path| !files.contains(path)).collect();
    for path in left_out {
        assert!(
            path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests")),
            "{}",
            path.display()
        );
    }
}

#[test]
fn whatever_is_not_pure_is_found() {
    for source in [
        "use std::time::Instant;",
        "use std::time::{Duration, Instant};",
        "use std::time::*;",
        "use std::time as clock;",
        "use std::{fmt, time::{self, Duration}};",
        "use std as clock;",
        "use ::std::net::TcpStream;",
        "use core::task::Poll;",
        "fn f() { let _ = std::fs::read(\"x\"); }",
        "fn f() { std :: thread /* a comment */ :: spawn(|| {}); }",
        "fn f<T: std::future::Future>() {}",
        "type R = std::hash::RandomState;",
        "use std::sync::{Arc, Mutex};",
        "async fn f() {}",
        "fn f() { async {}; }",
        "unsafe fn f() {}",
        "extern crate alloc;",
        "extern \"C\" { fn time(_: usize) -> i64; }",
        "fn f() { println!(\"\"); }",
        "fn f() { if a { dbg! { 1 } } }",
        "include!(\"other.rs\");",
        "const X: &str = env!(\"HOME\");",
        "#[path = \"../other.rs\"] mod other {}",
        "#[cfg(test)] mod tests { } use std::io;",
        "#[cfg(test)] use std::fmt; use std::io;",
        "#[cfg(not(test))] mod real { use std::io; }",
        "macro_rules! m { () => { std::io::stdin() } }",
    ] {
        let (faults, _) = check(source.parse().unwrap());
        assert!(!faults.is_empty(), "{source}");
    }
}

#[test]
fn what_is_pure_is_not_complained_about() {
    for source in [
        "use std::{fmt, mem::{self, take}, sync::Arc};",
        "use std::time::Duration; // std::time::Instant",
        "/// Not [`std::time::Instant`].\nfn f() { \"std::io\"; }",
        "fn f(x: u8) -> bool { x != 1 && !matches!(x, 2) }",
        "#[cfg(test)] mod tests { use std::io; async fn f() {} }",
        "#[cfg(test)] #[allow(unused)] mod tests; struct S;",
        "impl std::fmt::Debug for S { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { Ok(()) } }",
    ] {
        assert_eq!(check(source.parse().unwrap()).0, [""; 0], "{source}");
    }
}

#[test]
fn the_dependencies_are_these_and_no_others() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--package", "anemone-proto", "--prefix", "none"])
        .args(["--edges", "normal,no-proc-macro", "--target", "all", "--format", "{p} [{f}]"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    // `name v1.2.3 (where) [features]`
    let mut dependencies: Vec<_> = tree
        .lines()
        .map(|line| {
            let (name, rest) = line.split_once(' ').unwrap();
            format!("{name} {}", &rest[rest.rfind('[').unwrap()..])
        })
        .collect();
    dependencies.sort();
    assert_eq!(dependencies, DEPENDENCIES);
}

/// Checks the file and those of its modules, which are in `folder`.
fn read(path: &Path, folder: &Path, files: &mut Vec<PathBuf>, faults: &mut Vec<String>) {
    let source = fs::read_to_string(path).unwrap();
    let (found, modules) = check(source.parse().unwrap());
    faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", path.display())));
    files.push(path.to_owned());
    for name in modules {
        let inner = folder.join(&name);
        let file = folder.join(format!("{name}.rs"));
        let path = if file.exists() { file } else { inner.join("mod.rs") };
        read(&path, &inner, files, faults);
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}

/// The faults of some source, and the modules of it that are in other files.
fn check(source: TokenStream) -> (Vec<String>, Vec<String>) {
    let mut tokens = Vec::new();
    flatten(source, &mut tokens);
    let (mut faults, mut modules) = (Vec::new(), Vec::new());
    for at in 0..tokens.len() {
        let Token::Word(word) = &tokens[at] else { continue };
        let next = tokens.get(at + 1);
        match &**word {
            "std" | "core" | "alloc" => {
                let mut named = Vec::new();
                name(&tokens, at + 1, "std", &mut named);
                let refused = named.into_iter().filter(|path| {
                    !STD.iter().any(|allowed| {
                        path == allowed
                            || path.strip_prefix(allowed).is_some_and(|rest| rest.starts_with("::"))
                    })
                });
                faults.extend(refused);
            }
            "mod" => {
                if let (Some(Token::Word(name)), Some(Token::Mark(';'))) =
                    (next, tokens.get(at + 2))
                {
                    modules.push(name.clone());
                }
            }
            // A module with its file elsewhere.
            "path"
                if tokens[at.saturating_sub(1)] == Token::Open('[')
                    && next == Some(&Token::Mark('=')) =>
            {
                faults.push("#[path]".to_owned());
            }
            word if KEYWORDS_REFUSED.contains(&word) => faults.push(word.to_owned()),
            word if next == Some(&Token::Mark('!')) => {
                let is_call = matches!(tokens.get(at + 2), Some(Token::Open(_)));
                if is_call && !MACROS.contains(&word) {
                    faults.push(format!("{word}!"));
                }
            }
            _ => {}
        }
    }
    (faults, modules)
}

#[derive(Debug, Eq, PartialEq)]
enum Token {
    Word(String),
    Mark(char),
    Open(char),
    Close,
    Literal,
}

/// The tokens in order, without items that are only for tests. Comments are none, and documentation is literals.
fn flatten(source: TokenStream, tokens: &mut Vec<Token>) {
    let mut source = source.into_iter().peekable();
    while let Some(token) = source.next() {
        match token {
            TokenTree::Ident(word) => tokens.push(Token::Word(word.to_string())),
            TokenTree::Literal(_) => tokens.push(Token::Literal),
            TokenTree::Punct(mark) => {
                let is_test = mark.as_char() == '#'
                    && source
                        .peek()
                        .is_some_and(|next| next.to_string().replace(' ', "") == "[cfg(test)]");
                if !is_test {
                    tokens.push(Token::Mark(mark.as_char()));
                    continue;
                }
                source.next();
                let is_end = |token: &TokenTree| match token {
                    TokenTree::Punct(mark) => mark.as_char() == ';',
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    _ => false,
                };
                source.by_ref().find(is_end);
            }
            TokenTree::Group(group) => {
                let open = match group.delimiter() {
                    Delimiter::Parenthesis => '(',
                    Delimiter::Brace => '{',
                    Delimiter::Bracket => '[',
                    Delimiter::None => ' ',
                };
                tokens.push(Token::Open(open));
                flatten(group.stream(), tokens);
                tokens.push(Token::Close);
            }
        }
    }
}

/// Returns the end of the paths that begin with `path` and continue at `at`; there are several if it has braces.
fn name(tokens: &[Token], at: usize, path: &str, named: &mut Vec<String>) -> usize {
    let [Token::Mark(':'), Token::Mark(':'), rest @ ..] = &tokens[at..] else {
        named.push(path.to_owned());
        return at;
    };
    match rest {
        [Token::Word(word), ..] if word == "self" => {
            named.push(path.to_owned());
            at + 3
        }
        [Token::Word(word), ..] => name(tokens, at + 3, &format!("{path}::{word}"), named),
        [Token::Mark(mark), ..] => {
            named.push(format!("{path}::{mark}"));
            at + 3
        }
        _ => braces(tokens, at + 3, path, named),
    }
}

/// The same for paths in braces, up to their end.
fn braces(tokens: &[Token], mut at: usize, path: &str, named: &mut Vec<String>) -> usize {
    loop {
        at = match &tokens[at] {
            Token::Close => return at + 1,
            Token::Word(word) if word == "as" => at + 2,
            Token::Word(word) if word == "self" => {
                named.push(path.to_owned());
                at + 1
            }
            Token::Word(word) => name(tokens, at + 1, &format!("{path}::{word}"), named),
            Token::Mark(',') => at + 1,
            other => {
                named.push(format!("{path}::{other:?}"));
                at + 1
            }
        }
    }
}
