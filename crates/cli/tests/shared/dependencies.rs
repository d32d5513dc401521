//! What the tree of dependencies may hold: deny.toml says it, for every platform and feature.
//!
//! Licences, versions and sources are checked here, from what cargo knows itself. Known vulnerabilities need a database that changes
//! daily: scripts/audit.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspaces: the product, and the fuzz targets.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "fuzz/Cargo.toml", "tests/features/Cargo.toml"];

#[derive(serde::Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
}

#[derive(serde::Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
    exceptions: Vec<Exception>,
}

#[derive(serde::Deserialize)]
struct Exception {
    allow: Vec<String>,
    #[serde(rename = "crate")]
    name: String,
}

#[derive(serde::Deserialize)]
struct Bans {
    skip: Vec<Named>,
    deny: Vec<Named>,
}

#[derive(serde::Deserialize)]
struct Named {
    /// A name, or `name@version`, whose version may be short: `syn@2`.
    #[serde(rename = "crate")]
    name: String,
}

/// A package in the tree of a workspace.
#[derive(Clone, Debug)]
struct Package {
    name: String,
    version: String,
    /// Where it comes from, in cargo's words; empty for crates.io.
    source: String,
    license: String,
}

impl Named {
    fn is(&self, name: &str, version: &str) -> bool {
        match self.name.split_once('@') {
            None => self.name == name,
            Some((skipped, from)) => {
                let rest = version.strip_prefix(from);
                skipped == name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rules() -> Rules {
    toml::from_str(&std::fs::read_to_string(root().join("deny.toml")).unwrap()).unwrap()
}

/// Returns all packages of a workspace, on every platform and with all features.
fn packages(manifest: &str) -> Vec<Package> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--workspace", "--all-features", "--target", "all", "--locked"]);
    cargo.args(["--prefix", "none", "--format", "{p}|{l}", "--manifest-path"]);
    let output = cargo.arg(root().join(manifest)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: BTreeSet<_> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    // An empty line is between the trees of two members.
    lines.into_iter().filter(|line| !line.is_empty()).map(package).collect()
}

/// Reads `NAME vVERSION (WHAT IT IS) (WHERE IT COMES FROM)|LICENSE (*)`, without the parentheses where there is nothing to say.
fn package(line: &str) -> Package {
    let (package, license) = line.split_once('|').unwrap();
    let license = license.trim_end_matches(" (*)").to_owned();
    let mut words = package.splitn(3, ' ');
    let (name, version) = (words.next().unwrap(), words.next().unwrap());
    let source = words.next().unwrap_or_default().replace("(proc-macro)", "").trim().to_owned();
    Package { name: name.to_owned(), version: version[1..].to_owned(), source, license }
}

/// Returns all that the rules find wrong in a tree.
fn faults(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let root = format!("({}", root().canonicalize().unwrap().display());
    let mut faults = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Package { name, version, source, license } in packages {
        if !is_allowed(&rules.licenses, name, license) {
            faults.push(format!("{name} {version}: license \"{license}\" is not allowed"));
        }
        if rules.bans.deny.iter().any(|denied| denied.is(name, version)) {
            faults.push(format!("{name} {version} is denied"));
        }
        if !source.is_empty() && !source.starts_with(&root) {
            faults.push(format!("{name} {version} comes from elsewhere: {source}"));
        }
        if !rules.bans.skip.iter().any(|skipped| skipped.is(name, version)) {
            versions.entry(name).or_default().insert(version);
        }
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    faults.extend(several.map(|(name, versions)| format!("{name} has versions {versions:?}")));
    faults
}

fn is_allowed(rules: &Licenses, name: &str, license: &str) -> bool {
    let excepted = rules.exceptions.iter().filter(|exception| exception.name == name);
    let excepted: BTreeSet<_> = excepted.flat_map(|exception| &exception.allow).collect();
    // Older manifests have a slash for OR.
    spdx::Expression::parse(&license.replace('/', " OR ")).is_ok_and(|license| {
        license.evaluate(|required| {
            let name = required.to_string();
            rules.allow.contains(&name) || excepted.contains(&name)
        })
    })
}

#[test]
fn licences_versions_and_sources_of_all_dependencies_are_allowed() {
    for manifest in MANIFESTS {
        let packages = packages(manifest);
        assert!(packages.len() > 5, "{manifest}: {packages:?}");
        assert_eq!(faults(&rules(), &packages), [""; 0], "{manifest}");
    }
}

#[test]
fn no_manifest_takes_any_version() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    let of_crates = crates.map(|entry| entry.unwrap().path().join("Cargo.toml"));
    let manifests: Vec<_> =
        MANIFESTS.map(|path| root().join(path)).into_iter().chain(of_crates).collect();
    assert!(manifests.len() > 10, "{manifests:?}");
    for manifest in manifests {
        let text = std::fs::read_to_string(&manifest).unwrap();
        assert!(!text.contains("= \"*\""), "{}", manifest.display());
    }
}

#[test]
fn deny_toml_asks_for_what_is_checked_here() {
    let rules = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let rules: toml::Table = rules.parse().unwrap();
    for (table, key, value) in [
        ("graph", "all-features", toml::Value::from(true)),
        ("licenses", "include-build", toml::Value::from(true)),
        ("licenses", "include-dev", toml::Value::from(true)),
        ("bans", "multiple-versions", toml::Value::from("deny")),
        ("bans", "multiple-versions-include-dev", toml::Value::from(true)),
        ("bans", "wildcards", toml::Value::from("deny")),
        ("sources", "unknown-git", toml::Value::from("deny")),
        ("sources", "unknown-registry", toml::Value::from("deny")),
    ] {
        assert_eq!(rules[table].get(key), Some(&value), "{table}.{key}");
    }
    // It allows no other source.
    assert_eq!(rules["sources"].as_table().unwrap().len(), 2);
}

#[test]
fn what_is_not_allowed_is_found() {
    let all = packages("Cargo.toml");
    let found = |line: &str| {
        let with_it = [&all[..], &[package(line)]].concat();
        faults(&rules(), &with_it).join("; ")
    };
    assert_eq!(found("a-new-one v1.2.3 (proc-macro)|GPL-3.0-only OR MIT (*)"), "");
    assert!(found("a-new-one v1.2.3|GPL-3.0-only").contains("is not allowed"));
    assert!(found("a-new-one v1.2.3|").contains("is not allowed"));
    assert!(found("bytes v0.9.0|MIT").contains("bytes has versions"));
    assert!(found("openssl-sys v1.2.3|MIT").contains("is denied"));
    for elsewhere in ["https://example.org/a?branch=b#1234", "registry `another`", "/elsewhere/a"] {
        let found = found(&format!("a-new-one v1.2.3 ({elsewhere})|MIT"));
        assert!(found.contains("comes from elsewhere"), "{found}");
    }
}
