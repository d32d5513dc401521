//! The public API of a crate as others see it: a line for each name, and for what a name can do.
//!
//! Read from the source, as the modules are. So types stand there as they are written.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Token, Visibility};

use crate::modules::house::{Found, House, attributes, is_test, leaves_of, name_of};

/// The lines, in order.
pub(crate) fn listing(house: &House, name: &str) -> BTreeSet<String> {
    let mut listing = Listing { house, lines: BTreeSet::new(), shown: Vec::new() };
    listing.module(0, name, "");
    listing.impls();
    listing.lines
}

struct Listing<'a> {
    house: &'a House,
    lines: BTreeSet<String>,
    /// The items that have a line, and where they are shown.
    shown: Vec<(Found, String)>,
}

impl Listing<'_> {
    fn add(&mut self, cfgs: &str, line: impl ToString) {
        self.lines.insert(format!("{}{cfgs}", tidy(&line.to_string())));
    }

    /// Lists the public names of a module under this path.
    fn module(&mut self, module: usize, path: &str, cfgs: &str) {
        let house = self.house;
        for item in &house.modules[module].source {
            let all = format!("{cfgs}{}", conditions(attributes(item)));
            match item {
                Item::Mod(child) if is_public(&child.vis) => {
                    let name = child.ident.to_string();
                    self.add(&all, format!("mod {path}::{name}"));
                    let child = house.modules[module].children[&name];
                    self.module(child, &format!("{path}::{name}"), &all);
                }
                Item::Use(import) if is_public(&import.vis) => {
                    let mut leaves = Vec::new();
                    leaves_of(&import.tree, &mut Vec::new(), &mut leaves);
                    for (alias, target) in leaves {
                        self.import(module, alias, &target, path, &all);
                    }
                }
                Item::Macro(item) if has(&item.attrs, "macro_export") => {
                    let name = item.ident.as_ref().unwrap();
                    self.add(&all, format!("macro {path}::{name}!"));
                }
                Item::Mod(_) | Item::Use(_) | Item::Macro(_) => {}
                item => {
                    if let Some(name) = name_of(item) {
                        self.item(module, &name, &format!("{path}::{name}"), cfgs);
                    }
                }
            }
        }
    }

    fn import(
        &mut self,
        module: usize,
        alias: Option<String>,
        target: &[String],
        path: &str,
        cfgs: &str,
    ) {
        let shown = alias.map_or(path.to_owned(), |alias| format!("{path}::{alias}"));
        match self.house.find(module, target) {
            Some((found, Some(name))) => self.item(found, &name, &shown, cfgs),
            Some((found, None)) => self.module(found, &shown, cfgs),
            None => self.add(cfgs, format!("use {} as {shown}", target.join("::"))),
        }
    }

    /// Lists the items of this name, if they are public.
    fn item(&mut self, module: usize, name: &str, path: &str, cfgs: &str) {
        let house = self.house;
        for item in &house.modules[module].source {
            if name_of(item).as_deref() != Some(name) {
                continue;
            }
            let cfgs = &format!("{cfgs}{}", conditions(attributes(item)));
            match item {
                Item::Fn(item) if is_public(&item.vis) => {
                    self.add(cfgs, signature(&item.sig, path));
                }
                Item::Struct(item) if is_public(&item.vis) => {
                    let (begin, _, bounds) = item.generics.split_for_impl();
                    let (begin, bounds) = (begin.to_token_stream(), bounds.to_token_stream());
                    self.add(
                        cfgs,
                        format!("struct {path} {begin} {bounds} {}", openness(&item.attrs)),
                    );
                    self.derives(path, &item.attrs, cfgs);
                    for (at, field) in
                        item.fields.iter().enumerate().filter(|(_, field)| is_public(&field.vis))
                    {
                        let name = field.ident.as_ref().map_or(at.to_string(), ToString::to_string);
                        self.add(
                            cfgs,
                            format!("field {path}::{name}: {}", field.ty.to_token_stream()),
                        );
                    }
                }
                Item::Enum(item) if is_public(&item.vis) => {
                    let (begin, _, bounds) = item.generics.split_for_impl();
                    let (begin, bounds) = (begin.to_token_stream(), bounds.to_token_stream());
                    self.add(
                        cfgs,
                        format!("enum {path} {begin} {bounds} {}", openness(&item.attrs)),
                    );
                    self.derives(path, &item.attrs, cfgs);
                    for variant in &item.variants {
                        let mut fields = variant.fields.clone();
                        fields.iter_mut().for_each(|field| field.attrs.clear());
                        let begin = format!("variant {path}::{}", variant.ident);
                        self.add(cfgs, format!("{begin} {}", fields.to_token_stream()));
                    }
                }
                Item::Trait(item) if is_public(&item.vis) => {
                    let above = &item.supertraits;
                    let above = if above.is_empty() {
                        String::new()
                    } else {
                        format!(": {}", above.to_token_stream())
                    };
                    self.add(
                        cfgs,
                        format!("trait {path} {} {above}", item.generics.to_token_stream()),
                    );
                    for item in &item.items {
                        self.trait_item(item, path, cfgs);
                    }
                }
                Item::Type(item) if is_public(&item.vis) => {
                    let (generics, ty) =
                        (item.generics.to_token_stream(), item.ty.to_token_stream());
                    self.add(cfgs, format!("type {path} {generics} = {ty}"));
                }
                Item::Const(item) if is_public(&item.vis) => {
                    self.add(cfgs, format!("const {path}: {}", item.ty.to_token_stream()));
                }
                Item::Static(item) if is_public(&item.vis) => {
                    self.add(cfgs, format!("static {path}: {}", item.ty.to_token_stream()));
                }
                _ => continue,
            }
            self.shown.push(((module, Some(name.to_owned())), path.to_owned()));
        }
    }

    fn trait_item(&mut self, item: &syn::TraitItem, path: &str, cfgs: &str) {
        match item {
            syn::TraitItem::Fn(item) => {
                let provided = if item.default.is_some() { " (provided)" } else { "" };
                let line = signature(&item.sig, &format!("{path}::{}", item.sig.ident));
                self.add(&format!("{provided}{cfgs}"), line);
            }
            syn::TraitItem::Type(item) => {
                self.add(
                    cfgs,
                    format!("type {path}::{}: {}", item.ident, item.bounds.to_token_stream()),
                );
            }
            syn::TraitItem::Const(item) => {
                self.add(
                    cfgs,
                    format!("const {path}::{}: {}", item.ident, item.ty.to_token_stream()),
                );
            }
            _ => {}
        }
    }

    fn derives(&mut self, path: &str, attributes: &[Attribute], cfgs: &str) {
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
            let traits =
                attribute.parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated);
            for derived in traits.unwrap() {
                self.add(cfgs, format!("impl {} for {path}", derived.to_token_stream()));
            }
        }
    }

    /// Lists the methods and traits of the listed names, wherever they are implemented.
    fn impls(&mut self) {
        let house = self.house;
        for (module, of) in house.modules.iter().enumerate() {
            for item in &of.source {
                let Item::Impl(item) = item else { continue };
                let cfgs = format!("{}{}", self.above(module), conditions(&item.attrs));
                match &item.trait_ {
                    None => {
                        let own = path_of(&item.self_ty).map(|path| self.places(module, path));
                        for path in own.into_iter().flatten() {
                            self.inherent(&item.items, &path, &cfgs);
                        }
                    }
                    Some((_, of_trait, _)) => {
                        if !self.is_shown(module, item, of_trait) {
                            continue;
                        }
                        let (begin, _, bounds) = item.generics.split_for_impl();
                        let (begin, bounds) = (begin.to_token_stream(), bounds.to_token_stream());
                        let (name, who) =
                            (of_trait.to_token_stream(), item.self_ty.to_token_stream());
                        self.add(&cfgs, format!("impl {begin} {name} for {who} {bounds}"));
                    }
                }
            }
        }
    }

    fn inherent(&mut self, items: &[syn::ImplItem], path: &str, cfgs: &str) {
        for item in items {
            match item {
                syn::ImplItem::Fn(item) if is_public(&item.vis) => {
                    let cfgs = format!("{cfgs}{}", conditions(&item.attrs));
                    self.add(&cfgs, signature(&item.sig, &format!("{path}::{}", item.sig.ident)));
                }
                syn::ImplItem::Const(item) if is_public(&item.vis) => {
                    self.add(
                        cfgs,
                        format!("const {path}::{}: {}", item.ident, item.ty.to_token_stream()),
                    );
                }
                syn::ImplItem::Macro(item) => {
                    self.inherent(&self.made(&item.mac), path, cfgs);
                }
                _ => {}
            }
        }
    }

    /// Returns the items that a macro of this crate without arguments makes.
    fn made(&self, called: &syn::Macro) -> Vec<syn::ImplItem> {
        let items = self.house.modules.iter().flat_map(|module| &module.source);
        let mut bodies = items.filter_map(|item| match item {
            Item::Macro(item) if item.ident.as_ref() == called.path.get_ident() => {
                let tokens = item.mac.tokens.to_string();
                tokens
                    .split_once("=>")
                    .map(|(_, body)| body.trim_end_matches([' ', ';']).to_owned())
            }
            _ => None,
        });
        let body = bodies.next().unwrap_or_else(|| panic!("{}", called.to_token_stream()));
        syn::parse_str::<syn::ItemImpl>(&format!("impl Made {body}")).unwrap().items
    }

    /// Returns true if other crates can see this implementation: one of its names is listed, and none is private.
    fn is_shown(&self, module: usize, item: &syn::ItemImpl, of_trait: &syn::Path) -> bool {
        let arguments = of_trait.segments.last().map(|segment| &segment.arguments);
        let arguments = arguments.map(|arguments| match arguments {
            syn::PathArguments::AngleBracketed(list) => list.args.iter().collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let types = arguments.into_iter().flatten().filter_map(|argument| match argument {
            syn::GenericArgument::Type(ty) => path_of(ty),
            _ => None,
        });
        let is_secret = |path: &&syn::Path| {
            self.found(module, path).is_some() && self.places(module, path).is_empty()
        };
        let names: Vec<_> = types.chain(path_of(&item.self_ty)).chain([of_trait]).collect();
        !names.iter().any(is_secret)
            && names.iter().any(|path| !self.places(module, path).is_empty())
    }

    /// Finds the item of a path, if it is in this crate.
    fn found(&self, module: usize, path: &syn::Path) -> Option<Found> {
        let names =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>();
        self.house.find(module, &names)
    }

    /// Returns the public paths of a type or trait.
    fn places(&self, module: usize, path: &syn::Path) -> Vec<String> {
        let found = self.found(module, path);
        let shown = self.shown.iter().filter(|(shown, _)| Some(shown) == found.as_ref());
        shown.map(|(_, path)| path.clone()).collect()
    }

    /// The conditions of the modules around.
    fn above(&self, module: usize) -> String {
        let Some(parent) = self.house.modules[module].parent else { return String::new() };
        let declares = |item: &&Item| match item {
            Item::Mod(child) => {
                self.house.modules[parent].children[&child.ident.to_string()] == module
            }
            _ => false,
        };
        let own = self.house.modules[parent].source.iter().find(declares);
        format!(
            "{}{}",
            self.above(parent),
            own.map(|item| conditions(attributes(item))).unwrap_or_default()
        )
    }
}

fn path_of(ty: &syn::Type) -> Option<&syn::Path> {
    match ty {
        syn::Type::Path(path) => Some(&path.path),
        _ => None,
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

fn openness(attributes: &[Attribute]) -> &'static str {
    if has(attributes, "non_exhaustive") { "(non-exhaustive)" } else { "" }
}

/// The conditions on which something is there, as words behind its line.
fn conditions(attributes: &[Attribute]) -> String {
    assert!(!is_test(attributes));
    let cfgs = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    cfgs.map(|cfg| format!(" [if {}]", tidy(&cfg.meta.require_list().unwrap().tokens.to_string())))
        .collect()
}

/// A function's signature with the path in the place of its name.
fn signature(function: &syn::Signature, path: &str) -> String {
    let name = function.ident.to_string();
    let text = function.to_token_stream().to_string();
    text.replacen(&format!("fn {name}"), &format!("fn {path}"), 1)
}

/// Formats tokens with the usual spaces.
fn tidy(tokens: &str) -> String {
    let words: Vec<_> = tokens.split_whitespace().collect();
    let mut text = words.join(" ");
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ;", ";"),
        (" :", ":"),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("? ", "?"),
        ("->(", "-> ("),
        (",(", ", ("),
        ("=(", "= ("),
        ("for(", "for ("),
        (":(", ": ("),
        (",)", ")"),
        (",>", ">"),
        ("(non-exhaustive)", " (non-exhaustive)"),
        ("(mut ", "("),
        (", mut ", ", "),
        (", }", " }"),
    ] {
        text = text.replace(from, to);
    }
    text.trim_end_matches([' ', ',']).to_owned()
}
