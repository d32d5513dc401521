//! Functions are short: at most 70 lines each, and half of all at most 8. Since rustfmt formats the whole tree, each
//! ends with a brace at the indentation of its first line, so the lines alone show its length.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

const LINES_MAX: usize = 70;
const MEDIAN_MAX: usize = 8;

/// The source files of all crates, tests left out.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if ["tests", "testing", "contract"].contains(&stem) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The name of the function whose first line this is.
fn name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_modifier = |word: &str| {
        ["const", "async", "unsafe", "pub"].contains(&word) || word.starts_with("pub(")
    };
    let words = before.replace("pub(in ", "pub(in-");
    words.split_whitespace().all(is_modifier).then_some(())?;
    after.split(['(', '<']).next()
}

/// Each function of this source with the number of its lines.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let tests = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines: Vec<&str> = text[..tests].lines().collect();
    let length = |(at, line): (usize, &&'_ str)| {
        let depth = line.len() - line.trim_start().len();
        let own = lines[at..].iter();
        let ends = |line: &&str| {
            let inner = line.get(depth..).unwrap_or_default();
            inner.starts_with('}') || inner.starts_with(')') && inner.ends_with(';')
        };
        let is_one_line = line.ends_with('}') || line.ends_with(';');
        if is_one_line { 1 } else { own.take_while(|line| !ends(line)).count() + 1 }
    };
    let all = lines.iter().enumerate();
    all.filter_map(|found| Some((name(found.1)?, length(found)))).collect()
}

#[test]
fn functions_are_short() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    let (mut lengths, mut long) = (Vec::new(), Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (name, lines) in functions(&text) {
            lengths.push(lines);
            if lines > LINES_MAX {
                long.push(format!("{}: {name}", file.strip_prefix(crates).unwrap().display()));
            }
        }
    }
    assert_eq!(long, Vec::<String>::new(), "longer than {LINES_MAX} lines");
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(median <= MEDIAN_MAX && lengths.len() > 3000, "{median} of {}", lengths.len());
}

#[test]
fn the_length_of_a_function_is_told() {
    let text = "fn a() {}\nimpl A {\n    pub(in crate::b) const fn b<T>() -> T {\n        if x {\n        }\n    }\n}\n\
                trait T {\n    fn c(\n        d: u8,\n    );\n    fn e();\n}\n// fn f\n\n#[cfg(test)]\nmod tests {\n\
                fn g() {}\n}\n";
    assert_eq!(functions(text), [("a", 1), ("b", 4), ("c", 3), ("e", 1)]);
}
