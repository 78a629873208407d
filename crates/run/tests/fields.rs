//! The documents for schedulers from elsewhere list the facts that they may read, and no other.

#![expect(clippy::disallowed_methods, reason = "the test reads the documentation itself")]

use anabranch_run::fields::{Field, PATH_FIELDS, VIEW_FIELDS};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn text(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap()
}

fn names(fields: &[Field], name: fn(&Field) -> &str, more: &[&str]) -> BTreeSet<String> {
    fields.iter().map(name).chain(more.iter().copied()).map(str::to_owned).collect()
}

/// The properties of a class in the stubs of the Python package.
fn properties(stubs: &str, class: &str) -> BTreeSet<String> {
    let (_, body) = stubs.split_once(&format!("\nclass {class}:\n")).unwrap();
    let body = body.split("\nclass ").next().unwrap();
    let property = |part: &str| Some(part.trim_start().strip_prefix("def ")?.split_once('(')?.0.to_owned());
    body.split("@property\n").skip(1).filter_map(property).collect()
}

#[test]
fn the_stubs_of_python_have_just_these_fields() {
    let stubs = text("python/anabranch/_native.pyi");
    let of_python = |fields, more: &[&str]| names(fields, |field| field.python, more);
    assert_eq!(properties(&stubs, "Path"), of_python(PATH_FIELDS, &["id"]));
    // A round has its cause and its paths, too.
    assert_eq!(properties(&stubs, "Round"), of_python(VIEW_FIELDS, &["cause", "paths", "candidates"]));
}

#[test]
fn the_page_of_the_playground_has_just_these_fields() {
    let page = text("docs/playground.md");
    let (_, table) = page.split_once("\n| field | what |\n|---|---|\n").unwrap();
    let rows = table.lines().map_while(|line| line.strip_prefix("| ")?.split_once(" |").map(|(names, _)| names));
    let (mut of_view, mut of_path) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let of = if row.starts_with("`paths[].") { &mut of_path } else { &mut of_view };
        of.extend(row.split(", ").map(|name| name.trim_matches('`').trim_start_matches("paths[].").to_owned()));
    }
    let of_javascript = |fields, more: &[&str]| names(fields, |field| field.javascript, more);
    assert_eq!(of_view, of_javascript(VIEW_FIELDS, &[]));
    assert_eq!(of_path, of_javascript(PATH_FIELDS, &["id", "mayWait", "copy"]));
}
