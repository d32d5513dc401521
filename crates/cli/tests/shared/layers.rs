//! Arrows point down: a crate uses only crates of lower levels.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

/// Each crate, and the ones of ours that it may use.
const ALLOWED: [(&str, &[&str]); 11] = [
    ("proto", &[]),
    ("wire", &[]),
    ("hub", &["wire"]),
    ("ws", &["proto"]),
    ("client", &["ws", "wire"]),
    ("sources", &["hub", "wire"]),
    ("services", &["hub", "wire"]),
    ("server", &["ws", "hub", "wire"]),
    ("lab", &["ws", "wire"]),
    ("cli", &["proto", "hub", "ws", "client", "sources", "services", "server", "lab"]),
    ("testing", &["hub", "ws", "server"]),
];

/// The crates of ours that stand in a manifest.
fn used(manifest: &str) -> Vec<String> {
    let names = manifest.lines().filter_map(|line| line.strip_prefix("anemone-"));
    names.map(|rest| rest.split(['.', ' ', '=']).next().unwrap().to_owned()).collect()
}

#[test]
fn no_crate_uses_one_above_or_beside_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let allowed: BTreeMap<_, _> = ALLOWED.into_iter().collect();
    let mut seen = 0;
    for entry in std::fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
        let allowed = allowed.get(&*name).unwrap_or_else(|| panic!("crate {name} has no level"));
        let (product, tests) = manifest.split_once("[dev-dependencies]").unwrap_or((&manifest, ""));
        // The tests of every crate may use their support, and nothing else may. The examples of `services` need a server.
        let is_support =
            |used: &String| used == "testing" || name == "services" && used == "server";
        let tests = used(tests).into_iter().filter(|used| !is_support(used));
        for used in used(product).into_iter().chain(tests) {
            assert!(allowed.contains(&&*used), "{name} may not use {used}");
        }
        seen += 1;
    }
    assert_eq!(seen, ALLOWED.len());
}

/// A file's text, or that of all files in a folder.
fn text(path: &Path) -> String {
    if path.is_dir() {
        return std::fs::read_dir(path)
            .unwrap()
            .map(|entry| text(&entry.unwrap().path()))
            .collect();
    }
    std::fs::read_to_string(path).unwrap()
}

/// All lines of documentation below a folder: comments that rustdoc shows, and Markdown.
fn documentation(folder: &Path, lines: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_comment =
            |line: &&str| ["//!", "///"].iter().any(|mark| line.trim_start().starts_with(mark));
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => documentation(&path, lines),
            Some("rs") => lines.extend(text(&path).lines().filter(is_comment).map(str::to_owned)),
            Some("md") => lines.extend(text(&path).lines().map(str::to_owned)),
            _ => {}
        }
    }
}

#[test]
fn no_example_teaches_a_fixed_epoch_or_a_fixed_time() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut lines: Vec<_> =
        ["README.md", "ARCHITECTURE.md"].map(|name| text(&root.join(name))).into();
    documentation(&root.join("docs"), &mut lines);
    documentation(&root.join("crates"), &mut lines);
    let taught = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
    assert_eq!((taught("Epoch::from_bits("), taught("UnixTime::from_micros(")), (0, 0));
    assert!(taught("Epoch::random()") > 0 && taught("UnixTime::now()") > 0);
}

/// Files beside the transports which all of them may use.
const SHARED: [&str; 3] = ["mod", "link", "pages"];

#[test]
fn no_transport_imports_another() {
    for folder in ["../server/src/transport", "../client/src/transport"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let names: Vec<_> =
            files.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
        for (path, own) in files.iter().zip(&names).filter(|(_, own)| !SHARED.contains(own)) {
            let text = text(path);
            for other in names.iter().filter(|other| *other != own && !SHARED.contains(other)) {
                let imports = [format!("transport::{other}"), format!("super::{other}")];
                let is_imported = imports.iter().any(|import| text.contains(import));
                assert!(!is_imported, "{own} imports {other}");
            }
        }
    }
}
