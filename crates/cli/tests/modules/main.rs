//! Arrows point down inside each crate, too: no module uses one that uses it, straight or through others.
#![allow(clippy::unwrap_used)]

mod circles;
mod house;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use house::House;

/// Each circle of a crate, with the names that tie it.
fn circles(root: &Path) -> Vec<String> {
    let house = House::read(root);
    let arrows = house.arrows();
    let tell = |circle: BTreeSet<usize>| {
        let ties =
            arrows.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        let ties = ties.map(|((from, to), names)| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let [from, to] = [from, to].map(|room| house.rooms[*room].display());
            format!("{from} -> {to}: {}", names.join(", "))
        });
        ties.collect::<Vec<_>>().join("\n")
    };
    circles::of(&arrows.keys().copied().collect()).into_iter().map(tell).collect()
}

#[test]
fn no_modules_use_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        let roots = ["lib.rs", "main.rs"].map(|name| source.join(name));
        for root in roots.iter().filter(|root| root.exists()) {
            assert_eq!(circles(root), Vec::<String>::new(), "{}", root.display());
            seen += 1;
        }
    }
    assert_eq!(seen, 9);
}

/// The steps of a crate's stair in ARCHITECTURE.md, the lowest first: the modules that stand on each.
fn stair(architecture: &str, name: &str) -> Vec<Vec<PathBuf>> {
    let (_, rest) = architecture.split_once(&format!("\n**{name}**")).unwrap();
    let (_, list) = rest.split_once("\n1. ").unwrap();
    let list = list.split_once("\n\n").unwrap().0.replace("\n   ", " ");
    let steps = list.lines().map(|step| step.split_once(": ").unwrap().0);
    steps.map(|step| step.split('`').skip(1).step_by(2).map(PathBuf::from).collect()).collect()
}

#[test]
fn each_module_uses_those_on_its_step_and_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for name in ["hub", "server"] {
        let house = House::read(&root.join("crates").join(name).join("src/lib.rs"));
        let stair = stair(&architecture, name);
        let step = |room: usize| {
            let path = house.rooms[room].with_extension("");
            let is_on = |step: &Vec<PathBuf>| step.iter().any(|module| path.starts_with(module));
            let found: Vec<_> = (0..stair.len()).filter(|step| is_on(&stair[*step])).collect();
            assert_eq!(found.len(), 1, "{name}: the steps of {}", path.display());
            found[0]
        };
        for ((from, to), names) in house.arrows() {
            let [user, used] = [from, to].map(|room| house.rooms[room].display());
            assert!(step(from) >= step(to), "{name}: {user} uses {names:?} of {used} above it");
        }
        let exists = |module: &&PathBuf| {
            house.rooms.iter().any(|room| room.with_extension("").starts_with(module))
        };
        assert_eq!(stair.iter().flatten().find(|module| !exists(module)), None, "{name}");
    }
}

/// Writes a crate of these files, and finds its circles.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let dir = tempfile::TempDir::new().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    circles(&dir.path().join("lib.rs"))
}

#[test]
fn a_circle_is_found_by_whatever_names_it_is_tied() {
    let lib = ("lib.rs", "mod a; mod b; mod c; pub use b::B;");
    let b = ("b.rs", "use crate::c; pub struct B; fn b() { c::run(); }");
    for c in [
        "use crate::a::A; pub fn run() {}",
        "use super::a::{self, A as Other}; pub fn run() { a::other(); }",
        "pub fn run() -> crate::a::A { loop {} }",
        "pub fn run() { println!(\"{}\", crate::a::A); }",
        "use crate::a::*; pub fn run() -> A { loop {} }",
        "pub fn run() { use crate::a; a::A }",
        "#[cfg(not(test))] use crate::a::A; pub fn run() {}",
    ] {
        let a = ("a/mod.rs", "mod inner; pub use inner::A;");
        let inner = ("a/inner.rs", "use crate::B; pub struct A(B);");
        let found = circles_of(&[lib, a, inner, b, ("c.rs", c)]);
        let [circle] = &found[..] else { panic!("{c}: {found:?}") };
        let ties = ["a/inner.rs -> b.rs: B", "b.rs -> c.rs: run", "c.rs -> a/inner.rs: "];
        assert!(ties.iter().all(|tie| circle.contains(tie)), "{c}: {circle}");
    }
}

#[test]
fn what_is_no_circle_is_none() {
    let lib = ("lib.rs", "mod a; mod b; pub use a::A;");
    for (a, b) in [
        ("pub struct A;", "use crate::A; struct B(A);"),
        // What hands names on uses nothing, a test may, and another crate may have any name.
        ("mod inner { pub struct I; } pub use inner::I; pub struct A;", "use crate::a::{A, I};"),
        (
            "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }",
            "use crate::a::A; pub struct B;",
        ),
        ("use b::b; pub struct A;", "use crate::a::A; pub fn b() {}"),
    ] {
        assert_eq!(circles_of(&[lib, ("a.rs", a), ("b.rs", b)]), Vec::<String>::new(), "{a}");
    }
}
