//! Files and functions stay small: lines of every crate's sources, tests left out.

use proc_macro2::Span;
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// 95 of 100 files and functions have at most so many lines, and no function has more.
const FILE_P95: usize = 350;
const FUNCTION_P95: usize = 28;
const LONGEST: usize = 60;

/// Lines and name.
type Size = (usize, String);

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !["tests", "target", "examples"].contains(&name.as_str()) {
                folders.push(path);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 300, "there are more: {}", found.len());
    found
}

/// Collects functions, and the lines of tests.
#[derive(Default)]
struct Seen {
    functions: Vec<Size>,
    of_tests: usize,
}

impl Seen {
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = extent(signature.span(), block.span());
        self.functions.push((lines, signature.ident.to_string()));
    }
}

fn extent(first: Span, last: Span) -> usize {
    last.end().line - first.start().line + 1
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_cfg_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_cfg_test)
}

impl<'a> Visit<'a> for Seen {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        match is_test(&module.attrs) {
            true => self.of_tests += extent(module.span(), module.span()),
            false => visit::visit_item_mod(self, module),
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.function(&function.sig, block);
        }
    }
}

/// The least size that 95 of 100 do not exceed.
fn p95(sizes: &[Size]) -> usize {
    sizes[(sizes.len() * 95).div_ceil(100) - 1].0
}

#[test]
fn files_and_functions_are_short() {
    let (mut files, mut functions) = (Vec::<Size>::new(), Vec::<Size>::new());
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let mut seen = Seen::default();
        seen.visit_file(&syn::parse_file(&text).unwrap());
        let name = path.display().to_string();
        files.push((text.lines().count() - seen.of_tests, name.clone()));
        functions.extend(seen.functions.into_iter().map(|(lines, function)| (lines, format!("{name}: {function}"))));
    }
    files.sort();
    functions.sort();
    let (file, function, longest) = (p95(&files), p95(&functions), functions.last().unwrap());
    println!("{} files: p95 {file} lines, longest {:?}", files.len(), files.last().unwrap());
    println!("{} functions: p95 {function} lines, longest {longest:?}", functions.len());
    assert!(file <= FILE_P95, "{file} lines; the longest: {:#?}", &files[files.len() - 10..]);
    assert!(function <= FUNCTION_P95, "{function} lines");
    let too_long: Vec<&Size> = functions.iter().filter(|(lines, _)| *lines > LONGEST).collect();
    assert!(too_long.is_empty(), "functions of more than {LONGEST} lines: {too_long:#?}");
}
