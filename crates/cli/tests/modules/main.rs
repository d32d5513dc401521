//! Arrows point down inside each crate, too: no module uses one that uses it, straight or through others.
#![allow(clippy::unwrap_used)]

mod circles;
mod house;

use std::collections::BTreeSet;
use std::path::Path;

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
    assert_eq!(seen, 8);
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
        "pub fn run() -> crate::a::A { todo!() }",
        "pub fn run() { println!(\"{}\", crate::a::A); }",
        "use crate::a::*; pub fn run() -> A { todo!() }",
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
