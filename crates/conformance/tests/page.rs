//! The page and the list of mutations match the suite.

use anabranch_conformance::mutation::Mutations;
use anabranch_conformance::{page, suite};
use std::collections::BTreeMap;

#[test]
fn the_page_is_that_of_the_suite() {
    let root = suite::root();
    let scripts = suite::all(&root).expect("the suite can be read");
    let mutations = Mutations::load(&root).expect("a list");
    let made = page::page(&scripts, &mutations);
    let kept = std::fs::read_to_string(root.join("../../docs/lab/conformance.md")).expect("the page");
    assert!(made == kept, "`cargo run -p anabranch-conformance --bin page > docs/lab/conformance.md` makes it again");
}

#[test]
fn every_mutation_has_its_place_and_every_script_its_mutation() {
    let root = suite::root();
    let scripts = suite::all(&root).expect("the suite can be read");
    let faults = Mutations::load(&root).expect("a list").faults(&root.join("../.."), &scripts);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_clause_has_three_scripts_at_most() {
    let mut counts = BTreeMap::new();
    for script in suite::all(&suite::root()).expect("the suite can be read") {
        *counts.entry(script.clauses[0].clone()).or_insert(0) += 1;
    }
    counts.retain(|_, count| *count > 3);
    assert!(counts.is_empty(), "{counts:?}");
}

#[test]
fn scripts_stand_in_the_folder_of_their_clause() {
    for script in suite::all(&suite::root()).expect("the suite can be read") {
        let clause = &script.clauses[0];
        let folder = script.file.strip_prefix(&format!("{}/", clause.document)).and_then(|rest| rest.split_once('-'));
        let section = folder.map_or("", |(section, _)| section);
        // Section 3.8.6 includes 3.8.6.1.
        let within = clause.section == section || clause.section.starts_with(&format!("{section}."));
        assert!(within && !section.is_empty(), "{} is of {clause:?}", script.file);
    }
}
