//! Files of the crates for real links depend on each other in one direction, read from their syntax trees. Tests within them do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

const CRATES: [&str; 3] = ["link", "measure", "proxy"];

/// A module's path from the crate's root, which has none.
type Name = Vec<String>;

/// The files of a crate, by the module that each is.
fn files(folder: &Path, module: &Name, found: &mut BTreeMap<Name, syn::File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let own = [&module[..], std::slice::from_ref(&stem)].concat();
        if path.is_dir() {
            files(&path, &own, found);
        } else {
            let own = if ["lib", "mod"].contains(&&*stem) { module.clone() } else { own };
            let mut file = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
            file.items.retain(|item| !is_test(item));
            found.insert(own, file);
        }
    }
}

fn is_test(item: &Item) -> bool {
    matches!(item, Item::Mod(module) if module.attrs.iter().any(|attr| attr.path().is_ident("cfg")))
}

/// All paths that a file names, imported ones and others.
#[derive(Default)]
struct Paths(Vec<Name>);

impl Paths {
    fn add(&mut self, tree: &UseTree, before: &Name) {
        let with = |ident: &syn::Ident| [&before[..], &[ident.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add(&path.tree, &with(&path.ident)),
            UseTree::Name(name) => self.0.push(with(&name.ident)),
            UseTree::Rename(rename) => self.0.push(with(&rename.ident)),
            UseTree::Glob(_) => self.0.push(before.clone()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(tree, before)),
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.add(&item.tree, &Name::new());
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

/// A path in full, as the module `own` means it; `None` for one of another crate.
fn in_full(own: &Name, path: &Name) -> Option<Name> {
    let mut base = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" | "super" => own.clone(),
        _ => return None,
    };
    let ups = path.iter().take_while(|one| ["self", "super"].contains(&one.as_str())).count();
    path.iter().filter(|one| *one == "super").for_each(|_| _ = base.pop());
    Some([&base[..], &path[ups..]].concat())
}

/// The file in which a path in full ends: a module, or, through what a parent exports, the module of the item.
fn end(files: &BTreeMap<Name, syn::File>, path: &Name) -> Option<Name> {
    let module = (0..=path.len()).rev().map(|len| path[..len].to_vec()).find(|name| files.contains_key(name))?;
    let Some(item) = path.get(module.len()) else { return Some(module) };
    let mut exported = Paths::default();
    for of in &files[&module].items {
        if let Item::Use(of) = of {
            exported.visit_item_use(of);
        }
    }
    let from = exported.0.iter().find(|path| path.last() == Some(item));
    let from = from.map(|path| in_full(&module, path).unwrap_or_else(|| [&module[..], path].concat()));
    match from {
        Some(from) if files.keys().any(|name| name.len() > module.len() && from.starts_with(name)) => end(files, &from),
        _ => Some(module),
    }
}

/// The files that each file uses; those that only list others have no part in it.
fn uses(files: &BTreeMap<Name, syn::File>) -> BTreeMap<Name, BTreeSet<Name>> {
    let lists = |file: &syn::File| file.items.iter().all(|item| matches!(item, Item::Mod(_) | Item::Use(_)));
    let used = |(name, file): (&Name, &syn::File)| {
        let mut paths = Paths::default();
        paths.visit_file(file);
        let all = paths.0.iter().filter_map(|path| end(files, &in_full(name, path)?));
        (name.clone(), all.filter(|other| other != name && !lists(&files[other])).collect())
    };
    files.iter().filter(|(_, file)| !lists(file)).map(used).collect()
}

/// Circles, and the files between them: the rest is taken away file by file, as soon as a file uses none that is left or none uses it.
fn circles(mut uses: BTreeMap<Name, BTreeSet<Name>>) -> BTreeMap<Name, BTreeSet<Name>> {
    loop {
        let used: BTreeSet<Name> = uses.values().flatten().cloned().collect();
        let end = uses.iter().find(|(name, of)| of.is_empty() || !used.contains(*name));
        let Some(end) = end.map(|(name, _)| name.clone()) else { return uses };
        uses.remove(&end);
        uses.values_mut().for_each(|of| _ = of.remove(&end));
    }
}

/// The uses, one per line.
fn shown(uses: &BTreeMap<Name, BTreeSet<Name>>) -> String {
    let names = |of: &BTreeSet<Name>| of.iter().map(|name| name.join("::")).collect::<Vec<_>>().join(", ");
    uses.iter().map(|(name, of)| format!("{} uses {}\n", name.join("::"), names(of))).collect()
}

#[test]
fn no_two_files_use_each_other() {
    for name in CRATES {
        let mut found = BTreeMap::new();
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"), &Name::new(), &mut found);
        let uses = uses(&found);
        let count: usize = uses.values().map(BTreeSet::len).sum();
        assert!(uses.len() > 10 && count > uses.len(), "{name}: {count} uses of {} files", uses.len());
        let circles = circles(uses);
        assert!(circles.is_empty(), "in the crate {name}:\n{}", shown(&circles));
    }
}

#[test]
fn a_circle_is_found_through_what_a_parent_exports() {
    let name = |text: &str| text.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect::<Name>();
    let files = |b: &str| {
        let of = |(module, text): (&str, &str)| (name(module), syn::parse_file(text).unwrap());
        let lib = "mod a; mod b; pub use a::A;";
        [("", lib), ("a", "use crate::b; pub struct A(b::B);"), ("b", b)].map(of).into_iter().collect()
    };
    assert!(circles(uses(&files("pub struct B;"))).is_empty());
    for b in ["use crate::A; pub struct B(Vec<A>);", "pub struct B(Vec<super::a::A>);"] {
        assert_eq!(circles(uses(&files(b))).len(), 2, "{b}");
    }
}
