//! The JSON schema agrees with the reader.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on a host with files and an environment"
)]

mod common;

use anabranch_scenario::{Document, schema};
use common::{data, files, root};
use regex_lite::Regex;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn validator() -> Value {
    serde_json::from_str(&schema()).unwrap()
}

/// The first reason why `value` does not match `schema`, for the JSON schema keywords that the schema uses; any other
/// keyword is an error, so that none is silently ignored.
fn check(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Value::Object(words) = schema else {
        return if *schema == Value::Bool(true) { Ok(()) } else { Err(at.into()) };
    };
    for (word, wanted) in words {
        let number = |v: &Value| v.as_f64();
        let length = value.as_array().map(Vec::len);
        let fits = match word.as_str() {
            "$schema" | "title" | "description" | "default" => true,
            "type" => has_type(wanted, value),
            "enum" => wanted.as_array().unwrap().contains(value),
            "pattern" => value.as_str().is_none_or(|text| Regex::new(wanted.as_str().unwrap()).unwrap().is_match(text)),
            "minLength" => value.as_str().is_none_or(|text| text.len() as u64 >= wanted.as_u64().unwrap()),
            "minimum" => number(value).is_none_or(|n| n >= number(wanted).unwrap()),
            "maximum" => number(value).is_none_or(|n| n <= number(wanted).unwrap()),
            "exclusiveMinimum" => number(value).is_none_or(|n| n > number(wanted).unwrap()),
            "minItems" => length.is_none_or(|n| n as u64 >= wanted.as_u64().unwrap()),
            "maxItems" => length.is_none_or(|n| n as u64 <= wanted.as_u64().unwrap()),
            "minProperties" => value.as_object().is_none_or(|o| o.len() as u64 >= wanted.as_u64().unwrap()),
            "anyOf" => wanted.as_array().unwrap().iter().any(|schema| check(schema, value, at).is_ok()),
            "required" => value
                .as_object()
                .is_none_or(|o| wanted.as_array().unwrap().iter().all(|k| o.contains_key(k.as_str().unwrap()))),
            "items" => {
                value.as_array().into_iter().flatten().try_for_each(|item| check(wanted, item, &format!("{at}[]")))?;
                true
            }
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    wanted.get(key).map_or(Ok(()), |schema| check(schema, value, &format!("{at}.{key}")))?;
                }
                true
            }
            "additionalProperties" => {
                let others = value.as_object().into_iter().flatten();
                let others = others.filter(|(key, _)| words.get("properties").is_none_or(|p| p.get(key).is_none()));
                for (key, value) in others {
                    check(wanted, value, &format!("{at}.{key}"))?;
                }
                true
            }
            _ => panic!("the test does not know the word {word}"),
        };
        if !fits {
            return Err(format!("{at}: {value} against {word} {wanted}"));
        }
    }
    Ok(())
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    match wanted.as_str() {
        None => wanted.as_array().unwrap().iter().any(|wanted| has_type(wanted, value)),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some(other) => panic!("the test does not know the type {other}"),
    }
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
