//! The JSON schema agrees with the reader.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on a host with files and an environment"
)]

mod common;
#[path = "common/json_schema.rs"]
mod json_schema;

use anabranch_scenario::{Document, schema};
use common::{data, files, root};
use json_schema::check;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn validator() -> Value {
    serde_json::from_str(&schema()).unwrap()
}

fn json(path: &Path) -> Value {
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn shipped_scenarios_are_valid_as_written_and_in_full() {
    let validator = validator();
    for path in files(&root().join("scenarios")) {
        check(&validator, &json(&path), "").unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
        let document = Document::parse("x.toml", &fs::read_to_string(&path).unwrap()).unwrap();
        let full: Value = toml::from_str(&document.resolved()).unwrap();
        check(&validator, &full, "").unwrap_or_else(|wrong| panic!("{} in full: {wrong}", path.display()));
    }
}

/// A schema checks keys, types, units and words, but not references between parts of a file.
#[test]
fn mistakes_of_form_are_invalid() {
    let validator = validator();
    let of_form = [
        "unknown_key",
        "missing_key",
        "no_path",
        "wrong_type",
        "wrong_type_in_path",
        "wrong_unit",
        "unknown_word",
        "unknown_scheduler",
        "far_from_any_scheduler",
        "suffix_of_a_planner",
        "directions",
        "loss_models",
    ];
    for name in of_form {
        let path = data().join(name).with_extension("toml");
        assert!(check(&validator, &json(&path), "").is_err(), "{name} is valid by the schema");
    }
}

#[test]
fn every_default_is_valid() {
    let validator = validator();
    let mut defaults = 0;
    for key in anabranch_scenario::keys() {
        let section = match key.section.name().split_once('.') {
            Some(_) => continue, // inside of `loss` and `reorder`
            None => key.section.name(),
        };
        let table = match section {
            "" => &validator,
            section => {
                let table = &validator["properties"][section];
                table.get("items").unwrap_or(table)
            }
        };
        let property = &table["properties"][key.name];
        assert!(property.is_object(), "{} is not in the schema", key.full_name());
        if let Some(default) = property.get("default") {
            check(property, default, &key.full_name()).unwrap();
            defaults += 1;
        }
    }
    assert!(defaults > 30);
}
