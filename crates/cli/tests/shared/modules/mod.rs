//! No module uses one that uses it, directly or through others. And the public API of each library is as listed.
#![allow(clippy::unwrap_used)]

mod api;
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
    assert_eq!(seen, 11);
}

/// The steps of a crate's stair in docs/MODULES.md, the lowest first: the modules that stand on each.
fn stair(modules: &str, name: &str) -> Vec<Vec<PathBuf>> {
    let (_, rest) = modules.split_once(&format!("\n**{name}**")).unwrap();
    let (_, list) = rest.split_once("\n1. ").unwrap();
    let list = list.split_once("\n\n").unwrap().0.replace("\n   ", " ");
    let steps = list.lines().map(|step| step.split_once(": ").unwrap().0);
    steps.map(|step| step.split('`').skip(1).step_by(2).map(PathBuf::from).collect()).collect()
}

#[test]
fn each_module_uses_those_on_its_step_and_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let modules = std::fs::read_to_string(root.join("docs/MODULES.md")).unwrap();
    for name in [
        "proto", "wire", "hub", "ws", "client", "sources", "services", "server", "lab", "cli",
        "testing",
    ] {
        let file = if name == "cli" { "src/main.rs" } else { "src/lib.rs" };
        let house = House::read(&root.join("crates").join(name).join(file));
        let stair = stair(&modules, name);
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

/// A crate of these files.
fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::TempDir::new().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    circles(&written(files).path().join("lib.rs"))
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
        // A re-export is no use, a test may use anything, and names of other crates do not count.
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

/// The libraries that others build into their programs.
const LIBRARIES: [&str; 7] = ["wire", "proto", "ws", "hub", "services", "client", "server"];

/// The public API of a crate, a line for each name.
fn public_api(root: &Path, name: &str) -> String {
    let lines = api::listing(&House::read(root), name);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// With RENEW=1 in the environment the files are written instead.
#[test]
fn the_public_api_of_each_library_is_as_it_is_listed() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut differences = Vec::new();
    for name in LIBRARIES {
        let folder = crates.join(name);
        let found = public_api(&folder.join("src/lib.rs"), &format!("anemone_{name}"));
        let file = folder.join("public-api.txt");
        if std::env::var_os("RENEW").is_some() {
            std::fs::write(&file, &found).unwrap();
        }
        let listed = std::fs::read_to_string(&file).unwrap_or_default();
        let [old, new] = [&listed, &found].map(|text| text.lines().collect::<BTreeSet<_>>());
        differences.extend(old.difference(&new).map(|line| format!("- {line}")));
        differences.extend(new.difference(&old).map(|line| format!("+ {line}")));
    }
    assert!(
        differences.is_empty(),
        "crates/*/public-api.txt are out of date:\n{}\nIf that is meant, renew them with `RENEW=1 cargo test --package \
         anemone-cli --test shared modules`, and name in CHANGELOG.md what breaks: each line with a minus, and each function that \
         a trait has and does not provide.",
        differences.join("\n")
    );
}

#[test]
fn a_public_name_is_listed_where_others_find_it_with_what_it_can_do() {
    let lib = "mod inner; pub mod shown; pub use inner::{Kept, Kind as Sort, Takes}; pub use other::Foreign;
        #[cfg(feature = \"more\")] pub fn more<T: Copy>(mut all: Vec<T>) -> (T, u8) { loop {} }
        pub(crate) fn own() {} #[cfg(test)] pub fn of_tests() {}";
    let inner = "#[derive(Clone)] #[non_exhaustive] pub struct Kept { pub len: usize, own: u8 }
        pub enum Kind { One(u8), Two { it: &'static str } }
        pub trait Takes: Send { fn take(&mut self); fn may(&self) -> bool { true } }
        pub struct Hidden; struct Own;
        impl Kept { pub const MAX: usize = 1; pub async fn run(&self) {} fn own(&self) {} }
        impl From<Kept> for Vec<u8> { } impl From<Own> for Kept { } impl Takes for Own { }
        impl Takes for str { } impl Drop for Kept { } impl Drop for Hidden { }";
    let shown =
        "pub const LEN: usize = 1; pub type List<T> = Vec<T>; pub use crate::inner::Kept as Same;";
    let files = [("lib.rs", lib), ("inner.rs", inner), ("shown.rs", shown)];
    let expected = "\
async fn x::Kept::run(&self)
async fn x::shown::Same::run(&self)
const x::Kept::MAX: usize
const x::shown::LEN: usize
const x::shown::Same::MAX: usize
enum x::Sort
field x::Kept::len: usize
field x::shown::Same::len: usize
fn x::Takes::may(&self) -> bool (provided)
fn x::Takes::take(&mut self)
fn x::more<T: Copy>(all: Vec<T>) -> (T, u8) [if feature = \"more\"]
impl Clone for x::Kept
impl Clone for x::shown::Same
impl Drop for Kept
impl From<Kept> for Vec<u8>
impl Takes for str
mod x::shown
struct x::Kept (non-exhaustive)
struct x::shown::Same (non-exhaustive)
trait x::Takes: Send
type x::shown::List<T> = Vec<T>
use other::Foreign as x::Foreign
variant x::Sort::One(u8)
variant x::Sort::Two { it: &'static str }
";
    let dir = written(&files);
    assert_eq!(public_api(&dir.path().join("lib.rs"), "x"), expected);
}
