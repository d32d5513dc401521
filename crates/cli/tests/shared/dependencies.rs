//! What the tree of dependencies may hold: deny.toml says it, for every platform and feature.
//!
//! Licences, versions and sources are checked here, from what cargo knows itself. Known vulnerabilities need a database that changes
//! daily: scripts/audit.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The two workspaces: the product, and the fuzz targets.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

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

#[derive(Clone, serde::Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
}

#[derive(Clone, serde::Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// None for a folder.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Clone, serde::Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
    /// None for crates.io.
    registry: Option<String>,
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

/// All packages of a workspace on every platform, with all features.
fn metadata(manifest: &str) -> Metadata {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--all-features", "--locked"]);
    let output = cargo.arg("--manifest-path").arg(root().join(manifest)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// All that the rules find wrong in a tree.
fn faults(rules: &Rules, tree: &Metadata) -> Vec<String> {
    let mut faults = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &tree.packages {
        let (name, version) = (&*package.name, &*package.version);
        if !has_allowed_license(&rules.licenses, package) {
            faults.push(format!("{name} {version}: license {:?} is not allowed", package.license));
        }
        if rules.bans.deny.iter().any(|denied| denied.is(name, version)) {
            faults.push(format!("{name} {version} is denied"));
        }
        if !rules.bans.skip.iter().any(|skipped| skipped.is(name, version)) {
            versions.entry(name).or_default().insert(version);
        }
        let is_ours = tree.workspace_members.contains(&package.id) || package.source.is_none();
        if package.source.as_ref().is_some_and(|source| !source.starts_with("registry+")) {
            faults.push(format!("{name} {version} comes from no registry: {:?}", package.source));
        }
        for used in &package.dependencies {
            if used.registry.is_some() {
                faults.push(format!("{name} takes {} from another registry", used.name));
            }
            if is_ours && used.path.is_none() && used.req == "*" {
                faults.push(format!("{name} takes any version of {}", used.name));
            }
        }
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    faults.extend(
        several.map(|(name, versions)| format!("{name} is there in versions {versions:?}")),
    );
    faults
}

fn has_allowed_license(rules: &Licenses, package: &Package) -> bool {
    let excepted = rules.exceptions.iter().filter(|exception| exception.name == package.name);
    let excepted: BTreeSet<_> = excepted.flat_map(|exception| &exception.allow).collect();
    // Older manifests have a slash for OR.
    let license = package.license.as_deref().unwrap_or_default().replace('/', " OR ");
    spdx::Expression::parse(&license).is_ok_and(|license| {
        license.evaluate(|required| {
            let name = required.to_string();
            rules.allow.contains(&name) || excepted.contains(&name)
        })
    })
}

#[test]
fn licences_versions_and_sources_of_all_dependencies_are_allowed() {
    let rules = rules();
    for manifest in MANIFESTS {
        let tree = metadata(manifest);
        assert!(tree.packages.len() > 5, "{manifest} has {} packages", tree.packages.len());
        assert_eq!(faults(&rules, &tree), [""; 0], "{manifest}");
    }
}

#[test]
fn what_is_not_allowed_is_found() {
    let rules = rules();
    let found = |change: fn(&mut Package)| {
        let mut tree = metadata("Cargo.toml");
        let bytes = tree.packages.iter().find(|package| package.name == "bytes").unwrap();
        let mut other = bytes.clone();
        change(&mut other);
        tree.packages.push(other);
        faults(&rules, &tree).join("; ")
    };
    assert_eq!(found(|_| ()), "");
    let gpl = found(|package| package.license = Some("GPL-3.0-only".to_owned()));
    assert!(gpl.contains("\"GPL-3.0-only\") is not allowed"), "{gpl}");
    assert_eq!(found(|package| package.license = Some("GPL-3.0-only OR MIT".to_owned())), "");
    assert!(found(|package| package.license = None).contains("is not allowed"));
    assert!(found(|package| package.version = "0.9.0".to_owned()).contains("in versions"));
    assert!(found(|package| package.name = "openssl-sys".to_owned()).contains("is denied"));
    let git = found(|package| package.source = Some("git+https://example.org/a".to_owned()));
    assert!(git.contains("comes from no registry"), "{git}");
}
