//! The structure of the engine, read from its syntax trees: a connection conducts, its parts own.
//!
//! Parts are the folders `session`, `sending`, `receiving`, `paths` and `subflow`. Each is given plain values and subflows,
//! and knows none of its peers; `connection` alone knows all of them. The fields of a subflow are changed in its folder alone.

#![expect(clippy::disallowed_methods, reason = "the test reads the engine's own sources")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const PARTS: [&str; 5] = ["session", "sending", "receiving", "paths", "subflow"];

/// Bounds of `impl Connection`: files, and lines in all of them.
const FILES: usize = 4;
const LINES: usize = 910;

/// Methods of the two largest parts, at most: more is a reason to take a part out of them.
const METHODS: [(&str, usize); 2] = [("Sending", 88), ("Subflow", 152)];

/// Functions of parts that take the connection's protocol, at most.
const MODES: usize = 15;

/// A source file: its path below `src`, and its syntax without tests.
struct Source {
    path: PathBuf,
    file: syn::File,
}

impl Source {
    /// The module at the crate's root that it is or belongs to.
    fn module(&self) -> String {
        let first = self.path.components().next().expect("a file has a name").as_os_str().to_string_lossy();
        first.trim_end_matches(".rs").to_owned()
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the engine") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name == "tests") {
                continue;
            } else if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let mut file = syn::parse_file(&fs::read_to_string(&path).expect("a source file")).expect("Rust");
                file.items.retain(|item| !is_test(item));
                found.push(Source { path: path.strip_prefix(&root).expect("below the root").to_owned(), file });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 40, "the engine has more files");
    found
}

fn is_test(item: &syn::Item) -> bool {
    matches!(item, syn::Item::Mod(module) if module.attrs.iter().any(|attr| attr.path().is_ident("cfg")))
}

/// The paths that a file names, from the crate's root: by `use crate::…`, and in full elsewhere.
#[derive(Default)]
struct Names {
    paths: Vec<Vec<String>>,
}

impl Names {
    fn of(file: &syn::File) -> Vec<Vec<String>> {
        let mut names = Self::default();
        names.visit_file(file);
        names.paths
    }

    fn add_tree(&mut self, tree: &syn::UseTree, mut before: Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(&path.tree, before);
            }
            syn::UseTree::Name(name) => {
                before.push(name.ident.to_string());
                self.paths.push(before);
            }
            syn::UseTree::Rename(rename) => {
                before.push(rename.rename.to_string());
                self.paths.push(before);
            }
            syn::UseTree::Glob(_) => self.paths.push(before),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(tree, before.clone())),
        }
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.add_tree(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

/// The root modules of the engine that a file names, and what of each.
fn neighbours(source: &Source) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in Names::of(&source.file) {
        if let [root, module, rest @ ..] = &path[..]
            && root == "crate"
            && *module != source.module()
        {
            found.entry(module.clone()).or_default().extend(rest.last().cloned());
        }
    }
    found
}

fn is_named(ty: &syn::Type, name: &str) -> bool {
    matches!(ty, syn::Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

fn is_connection(ty: &syn::Type) -> bool {
    is_named(ty, "Connection")
}

#[test]
fn the_connection_is_written_in_few_files() {
    let (mut files, mut lines) = (BTreeSet::new(), 0);
    for source in sources() {
        for item in &source.file.items {
            if let syn::Item::Impl(block) = item
                && block.trait_.is_none()
                && is_connection(&block.self_ty)
            {
                assert_eq!(source.module(), "connection", "{}: an impl of Connection", source.path.display());
                lines += block.span().end().line - block.span().start().line + 1;
                files.insert(source.path.clone());
            }
        }
    }
    assert!((2..=FILES).contains(&files.len()), "impl Connection is in {files:?}");
    assert!((100..=LINES).contains(&lines), "impl Connection has {lines} lines");
}

#[test]
fn parts_have_few_methods() {
    for (name, most) in METHODS {
        let files = sources();
        let items = files.iter().flat_map(|source| &source.file.items);
        let blocks = items.filter_map(|item| match item {
            syn::Item::Impl(block) if block.trait_.is_none() && is_named(&block.self_ty, name) => Some(&block.items),
            _ => None,
        });
        let methods = blocks.flatten().filter(|item| matches!(item, syn::ImplItem::Fn(_))).count();
        assert!((most / 2..=most).contains(&methods), "impl {name} has {methods} methods");
    }
}

/// Finds assignments to a field of a subflow: of `s`, as all code calls one, or of one in a list of `subflows`.
struct Assignments<'a> {
    path: &'a Path,
    found: Vec<String>,
}

impl Assignments<'_> {
    fn check(&mut self, left: &syn::Expr) {
        let (mut base, mut fields) = (left, 0);
        while let syn::Expr::Field(field) = base {
            (base, fields) = (&field.base, fields + 1);
        }
        let is_subflow = match base {
            syn::Expr::Path(path) => path.path.is_ident("s"),
            syn::Expr::Index(index) => match &*index.expr {
                syn::Expr::Path(path) => path.path.is_ident("subflows"),
                syn::Expr::Field(field) => matches!(&field.member, syn::Member::Named(name) if name == "subflows"),
                _ => false,
            },
            _ => false,
        };
        if fields > 0 && is_subflow {
            self.found.push(format!("{}:{}", self.path.display(), left.span().start().line));
        }
    }
}

impl<'a> Visit<'a> for Assignments<'_> {
    fn visit_expr_assign(&mut self, assign: &'a syn::ExprAssign) {
        match &*assign.left {
            syn::Expr::Tuple(tuple) => tuple.elems.iter().for_each(|left| self.check(left)),
            left => self.check(left),
        }
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        use syn::BinOp::{AddAssign, BitAndAssign, BitOrAssign, SubAssign};
        if matches!(binary.op, AddAssign(_) | BitAndAssign(_) | BitOrAssign(_) | SubAssign(_)) {
            self.check(&binary.left);
        }
        visit::visit_expr_binary(self, binary);
    }
}

/// Others tell a subflow what happened: its verbs keep its fields in step.
#[test]
fn only_a_subflow_changes_its_fields() {
    let found = |path: &Path, file: &syn::File| {
        let mut assignments = Assignments { path, found: Vec::new() };
        assignments.visit_file(file);
        assignments.found
    };
    let such = "fn f() { s.fin.wanted = true; self.subflows[i].probes += 1; (s.a, b) = (c, d); t = s.reset; }";
    assert_eq!(found(Path::new("such"), &syn::parse_file(such).expect("Rust")).len(), 3);
    for source in sources().iter().filter(|source| source.module() != "subflow") {
        assert_eq!(found(&source.path, &source.file), [""; 0], "assignments to the fields of a subflow");
    }
}

/// Finds parameters of a type with this name, in functions and methods.
struct Parameters<'a> {
    name: &'a str,
    types: &'a [&'a str],
    found: Vec<String>,
}

impl<'a> Visit<'a> for Parameters<'_> {
    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        for input in &signature.inputs {
            if let syn::FnArg::Typed(typed) = input
                && self.types.iter().any(|name| is_named(&typed.ty, name))
                && matches!(&*typed.pat, syn::Pat::Ident(pat) if self.name.is_empty() || pat.ident == self.name)
            {
                self.found.push(signature.ident.to_string());
            }
        }
    }
}

/// Parameters of one of `types`, by name unless that is empty, in the files below one of `modules`.
fn parameters(modules: &[&str], name: &str, types: &[&str]) -> Vec<String> {
    let mut parameters = Parameters { name, types, found: Vec::new() };
    let files = sources();
    for source in files.iter().filter(|source| modules.contains(&source.module().as_str())) {
        parameters.visit_file(&source.file);
    }
    parameters.found
}

/// A number may be out of date, or that of something else. A subflow is named by its `Handle`, or lent.
#[test]
fn no_subflow_is_named_by_a_number() {
    let conducting = ["connection", "session", "sending", "receiving", "paths", "subflow"];
    assert_eq!(parameters(&conducting, "i", &["usize"]), [""; 0]);
    assert!(parameters(&conducting, "i", &["Handle"]).len() > 10, "handles have another name now");
}

/// A part learns each change of the protocol, and keeps the consequences.
#[test]
fn few_functions_take_the_protocol() {
    let takers = parameters(&["session", "sending", "receiving", "paths", "subflow"], "", &["Mode"]);
    assert!((5..=MODES).contains(&takers.len()), "{takers:?}");
}

/// Which host a sender or receiver acts like becomes policies where a connection begins.
#[test]
fn only_policies_ask_for_the_kind_of_host() {
    let files = sources();
    let asking: Vec<_> = files
        .iter()
        .filter(|source| Names::of(&source.file).iter().any(|path| path.iter().any(|name| name == "HostModel")))
        .map(|source| source.path.to_string_lossy().into_owned())
        .collect();
    assert_eq!(asking, ["lib.rs", "receiving/policy.rs", "settings.rs", "subflow/mod.rs"]);
}

/// Finds functions that take `&mut Connection`.
struct Takers<'a> {
    path: &'a Path,
    found: Vec<String>,
}

impl<'a> Visit<'a> for Takers<'_> {
    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        for input in &signature.inputs {
            if let syn::FnArg::Typed(typed) = input
                && let syn::Type::Reference(reference) = &*typed.ty
                && reference.mutability.is_some()
                && is_connection(&reference.elem)
            {
                self.found.push(format!("{}: {}", self.path.display(), signature.ident));
            }
        }
    }
}

#[test]
fn only_the_connection_changes_a_connection() {
    for source in sources().iter().filter(|source| source.module() != "connection") {
        let mut takers = Takers { path: &source.path, found: Vec::new() };
        takers.visit_file(&source.file);
        assert_eq!(takers.found, [""; 0], "functions that take &mut Connection");
    }
}

/// The names of the types of all fields.
#[derive(Default)]
struct Fields(BTreeSet<String>);

impl<'a> Visit<'a> for Fields {
    fn visit_field(&mut self, field: &'a syn::Field) {
        let mut names = Names::default();
        names.visit_type(&field.ty);
        self.0.extend(names.paths.into_iter().filter_map(|path| path.last().cloned()));
    }
}

#[test]
fn no_part_holds_another() {
    for source in sources().iter().filter(|source| PARTS.contains(&source.module().as_str())) {
        let mut fields = Fields::default();
        fields.visit_file(&source.file);
        for (module, names) in neighbours(source).iter().filter(|(module, _)| PARTS.contains(&module.as_str())) {
            // A handle names a subflow and has nothing of it; it is checked where it is used.
            let held: Vec<_> = fields.0.intersection(names).filter(|name| *name != "Handle").collect();
            assert!(held.is_empty(), "{}: {held:?} of {module}", source.path.display());
        }
    }
}

/// Which root module of the engine names which.
fn graph() -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources().iter().filter(|source| source.module() != "lib") {
        graph.entry(source.module()).or_default().extend(neighbours(source).into_keys());
    }
    graph
}

#[test]
fn the_parts_do_not_know_each_other() {
    let graph = graph();
    for part in PARTS {
        let known: Vec<_> = graph[part].iter().filter(|module| PARTS.contains(&module.as_str())).collect();
        // Subflows lie below: they are handed to the other parts, which read and change one or all of them.
        assert!(known.iter().all(|module| *module == "subflow"), "{part} knows {known:?}");
        assert!(
            !graph[part].contains("connection") && !graph[part].contains("endpoint"),
            "{part} knows who conducts it"
        );
    }
}

#[test]
fn no_module_calls_itself_by_way_of_others() {
    let graph = graph();
    let mut left: BTreeSet<&String> = graph.keys().collect();
    loop {
        // A module that calls none of those left is on no cycle.
        let free: Vec<_> =
            left.iter().copied().filter(|module| !graph[*module].iter().any(|m| left.contains(m))).collect();
        if free.is_empty() {
            break;
        }
        for module in free {
            left.remove(module);
        }
    }
    assert!(left.is_empty(), "these modules form a cycle, or lead into one: {left:?}");
}
