//! A crate as its modules see one another, read from its source.
//!
//! Paths alone are looked at, those in the brackets of macros too. A method that is called, or a trait's that is used, is no
//! arrow: nothing in the source says whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::Visit;

pub(crate) struct House {
    /// The root is the first.
    pub(crate) modules: Vec<Module>,
    /// The file of each room, below the crate's source folder.
    pub(crate) rooms: Vec<PathBuf>,
}

/// One `mod`, in its own file or inside another.
pub(crate) struct Module {
    pub(crate) parent: Option<usize>,
    room: usize,
    pub(crate) children: BTreeMap<String, usize>,
    /// Its items, without those for tests.
    pub(crate) source: Vec<syn::Item>,
    /// The names of the items that it defines.
    items: BTreeSet<String>,
    /// The names that it imports, and their paths.
    imports: Vec<(String, Vec<String>)>,
    /// The modules that it imports everything of.
    globs: Vec<Vec<String>>,
    /// The paths that its code names, imports that it hands on left out.
    named: Vec<Vec<String>>,
}

/// A module, and the name of an item in it.
pub(crate) type Found = (usize, Option<String>);

/// The names that one room takes from another.
pub(crate) type Arrows = BTreeMap<(usize, usize), BTreeSet<String>>;

impl House {
    /// Reads a crate from its root file, tests left out.
    pub(crate) fn read(root: &Path) -> Self {
        let mut house = Self { modules: Vec::new(), rooms: Vec::new() };
        let folder = root.parent().unwrap();
        house.read_file(root, folder, folder, None);
        house
    }

    fn read_file(
        &mut self,
        file: &Path,
        below: &Path,
        source: &Path,
        parent: Option<usize>,
    ) -> usize {
        let text = std::fs::read_to_string(file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.rooms.push(file.strip_prefix(source).unwrap().to_owned());
        self.read_items(&parsed.items, below, source, parent, self.rooms.len() - 1)
    }

    fn read_items(
        &mut self,
        items: &[syn::Item],
        below: &Path,
        source: &Path,
        parent: Option<usize>,
        room: usize,
    ) -> usize {
        let own = self.modules.len();
        self.modules.push(Module {
            parent,
            room,
            children: BTreeMap::new(),
            source: Vec::new(),
            items: BTreeSet::new(),
            imports: Vec::new(),
            globs: Vec::new(),
            named: Vec::new(),
        });
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            if let syn::Item::Mod(module) = item {
                let name = module.ident.to_string();
                let below = below.join(&name);
                let child = match &module.content {
                    Some((_, items)) => self.read_items(items, &below, source, Some(own), room),
                    None => {
                        let beside = below.with_extension("rs");
                        let file = if beside.exists() { beside } else { below.join("mod.rs") };
                        self.read_file(&file, &below, source, Some(own))
                    }
                };
                self.modules[own].children.insert(name, child);
            } else {
                self.modules[own].add(item);
            }
            self.modules[own].source.push(item.clone());
        }
        own
    }

    /// Each room and the rooms that it takes names from.
    pub(crate) fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (own, module) in self.modules.iter().enumerate() {
            for path in &module.named {
                if let Some((found, Some(_))) = self.find(own, path)
                    && self.modules[found].room != module.room
                {
                    let room = self.modules[found].room;
                    let name = path.last().cloned().unwrap_or_default();
                    arrows.entry((module.room, room)).or_default().insert(name);
                }
            }
        }
        arrows
    }

    /// The module that defines what this path means in that module, and the item's name there, or none if the path means the
    /// module itself; `None` for another crate's.
    pub(crate) fn find(&self, module: usize, path: &[String]) -> Option<Found> {
        self.find_unless(module, path, &mut Vec::new())
    }

    fn find_unless(
        &self,
        mut module: usize,
        path: &[String],
        seen: &mut Vec<(usize, String)>,
    ) -> Option<Found> {
        let mut rest = path;
        while let Some((first, after)) = rest.split_first() {
            let of = &self.modules[module];
            module = match &**first {
                "crate" => 0,
                "self" => module,
                "super" => of.parent?,
                name => match of.children.get(name) {
                    Some(child) => *child,
                    None if of.items.contains(name) => {
                        return Some((module, Some(name.to_owned())));
                    }
                    None => {
                        // `use log::log` names itself.
                        let step = (module, name.to_owned());
                        if seen.contains(&step) {
                            return None;
                        }
                        seen.push(step);
                        let through = |target: &[String], seen: &mut _| {
                            self.find_unless(module, &[target, after].concat(), seen)
                        };
                        let imported = of
                            .imports
                            .iter()
                            .filter(|(alias, _)| alias == name)
                            .map(|(_, target)| target.clone());
                        let everything = of.globs.iter().map(|glob| [&**glob, &rest[..1]].concat());
                        let targets: Vec<_> = imported.chain(everything).collect();
                        return targets.iter().find_map(|target| through(target, seen));
                    }
                },
            };
            rest = after;
        }
        Some((module, None))
    }
}

impl Module {
    fn add(&mut self, item: &syn::Item) {
        if let syn::Item::Use(import) = item {
            return self.import(import);
        }
        self.items.extend(name_of(item));
        Names(self).visit_item(item);
    }

    fn import(&mut self, import: &syn::ItemUse) {
        let mut leaves = Vec::new();
        leaves_of(&import.tree, &mut Vec::new(), &mut leaves);
        for (alias, target) in leaves {
            if matches!(import.vis, syn::Visibility::Inherited) {
                self.named.push(target.clone());
            }
            match alias {
                Some(alias) => self.imports.push((alias, target)),
                None => self.globs.push(target),
            }
        }
    }
}

/// Collects the paths that code names.
struct Names<'a>(&'a mut Module);

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string());
        self.0.named.push(names.collect());
        syn::visit::visit_path(self, path);
    }

    /// One within a function, which counts for the whole module.
    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        self.0.import(import);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    /// The tokens of a macro call have no syntax tree, so everything that looks like a path counts as one.
    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        syn::visit::visit_macro(self, called);
        let text = called.tokens.to_string().replace(" :: ", "::");
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        let paths = words.filter(|word| word.contains("::") && !word.starts_with("::"));
        self.0.named.extend(paths.map(|path| path.split("::").map(str::to_owned).collect()));
    }
}

/// Returns the imports of a tree: the local name, `None` for everything, and the path.
pub(crate) fn leaves_of(
    tree: &syn::UseTree,
    above: &mut Vec<String>,
    leaves: &mut Vec<(Option<String>, Vec<String>)>,
) {
    let whole = |above: &[String], name: &syn::Ident| {
        let mut path = above.to_vec();
        if name != "self" || path.is_empty() {
            path.push(name.to_string());
        }
        path
    };
    match tree {
        syn::UseTree::Path(path) => {
            above.push(path.ident.to_string());
            leaves_of(&path.tree, above, leaves);
            above.pop();
        }
        syn::UseTree::Name(name) => {
            let path = whole(above, &name.ident);
            leaves.push((path.last().cloned(), path));
        }
        syn::UseTree::Rename(rename) => {
            leaves.push((Some(rename.rename.to_string()), whole(above, &rename.ident)))
        }
        syn::UseTree::Glob(_) => leaves.push((None, above.clone())),
        syn::UseTree::Group(group) => {
            group.items.iter().for_each(|tree| leaves_of(tree, above, leaves))
        }
    }
}

/// Returns true if an item is only compiled for tests.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                let condition = list.tokens.to_string().replace(' ', "");
                condition == "test" || condition.starts_with("all(test,")
            })
    };
    attributes.iter().any(is_test)
}

pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        _ => panic!("attributes of this kind of item are not looked at"),
    }
}

pub(crate) fn name_of(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::TraitAlias(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Const(item) => &item.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}
