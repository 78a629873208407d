//! The JSON schema of scenario files, made from the table of keys, for editors that complete and check TOML.

use crate::keys::{Directions, Fallback, Form, Key, Section, changeable};
use crate::quantity::{RATE, SIZE, TIME, UNLIMITED, Units};
use anabranch_workload::Ladder;
use serde_json::{Map, Value, json};

/// The schema (draft 2020-12), as JSON text that ends with a newline.
pub fn schema() -> String {
    let mut properties = keys_of(Section::Top);
    for section in Section::ALL.into_iter().filter(|section| section.has_header()) {
        let table = table(section);
        let value = if section.is_list() { json!({ "type": "array", "items": table }) } else { table };
        properties.insert(section.name().into(), value);
    }
    let sweep = "keys with lists of values; every combination is a cell";
    properties.insert("sweep".into(), json!({ "type": "object", "description": sweep }));
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Anabranch scenario",
        "type": "object",
        "properties": properties,
        "required": ["path"],
        "additionalProperties": false,
    });
    format!("{schema:#}\n")
}

/// Each name once; of several kinds, any of their forms.
fn keys_of(section: Section) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in section.keys() {
        let property = property(key);
        match properties.get_mut(key.name) {
            None => {
                properties.insert(key.name.into(), property);
            }
            Some(before) if before["anyOf"] == property["anyOf"] => {
                let both = [&before["description"], &property["description"]].map(|d| d.as_str().unwrap_or_default());
                before["description"] = both.join("; ").into();
            }
            Some(before) => {
                let of_kinds = before.get("anyOf").and_then(Value::as_array).cloned();
                let mut forms = of_kinds.unwrap_or_else(|| vec![before.clone()]);
                forms.push(property);
                *before = json!({ "anyOf": forms });
            }
        }
    }
    properties
}

fn table(section: Section) -> Value {
    let always = |key: &&&Key| key.fallback == Fallback::Required && key.kinds.is_empty();
    let required: Vec<_> = section.keys().filter(|key| always(&key)).map(|key| key.name).collect();
    json!({
        "type": "object",
        "description": section.about(),
        "properties": keys_of(section),
        "required": required,
        "additionalProperties": false,
    })
}

fn property(key: &Key) -> Value {
    let mut value = match key.directions {
        Directions::None => form(key.form),
        Directions::Both | Directions::Down => json!({ "anyOf": [form(key.form), by_direction(key.form)] }),
    };
    if let Value::Object(object) = &mut value {
        let kinds = if key.kinds.is_empty() { String::new() } else { format!("{}: ", key.kinds.join(", ")) };
        object.insert("description".into(), format!("{kinds}{} (default: {})", key.about, key.default()).into());
        if let (Fallback::Value(text), true) = (&key.fallback, key.kinds.is_empty()) {
            // Numbers, lists, true and false have the same notation in both languages; anything else is a string.
            object.insert("default".into(), serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()));
        }
    }
    value
}

fn by_direction(form: Form) -> Value {
    let form = self::form(form);
    json!({
        "type": "object",
        "properties": { "down": form, "up": form },
        "minProperties": 1,
        "additionalProperties": false,
    })
}

fn form(form: Form) -> Value {
    match form {
        Form::Text | Form::Trace => json!({ "type": "string", "minLength": 1 }),
        Form::Name | Form::PathName | Form::LinkName | Form::FabricName | Form::MediumName | Form::FirstPath => {
            json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" })
        }
        Form::Route => names(Form::LinkName),
        Form::Paths => names(Form::PathName),
        Form::Duration { .. } => text_with(&TIME),
        Form::TraceStart => json!({ "anyOf": [{ "enum": form.words() }, text_with(&TIME)] }),
        Form::Rate => text_with(&RATE),
        Form::Size { min, max } => {
            json!({ "anyOf": [text_with(&SIZE), { "type": "integer", "minimum": min, "maximum": max }] })
        }
        Form::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Form::Integers(numbers) => json!({ "enum": numbers }),
        Form::Real { above } => json!({ "type": "number", "exclusiveMinimum": above }),
        Form::Probability => probability(),
        Form::Flag => json!({ "type": "boolean" }),
        Form::Words(words) => json!({ "enum": words }),
        Form::Price => {
            json!({ "anyOf": [{ "type": "number", "minimum": 0 }, pattern(&format!("/1?{}", units(&SIZE)))] })
        }
        Form::Limit => json!({ "anyOf": limit() }),
        Form::Queue => {
            let [other, bytes, unlimited] = limit();
            json!({ "anyOf": [other, bytes, unlimited, table(Section::Queue)] })
        }
        Form::Threshold => {
            json!({ "anyOf": [{ "type": "number", "minimum": 0 }, pattern("[pP]"), text_with(&SIZE)] })
        }
        Form::Range => json!({ "anyOf": [text_with(&TIME), table(Section::Range)] }),
        Form::Loss => json!({ "anyOf": [probability(), table(Section::Loss)] }),
        Form::Reorder => json!({ "anyOf": [probability(), table(Section::Reorder)] }),
        Form::Jitter => json!({ "anyOf": [text_with(&TIME), table(Section::Jitter)] }),
        Form::Table(section, _) => table(section),
        Form::DelayDistribution => {
            json!({ "anyOf": [{ "enum": form.words() }, { "type": "string", "pattern": r"\.dist$" }] })
        }
        Form::Arrivals => json!({ "anyOf": [{ "enum": ["together"] }, table(Section::Arrivals)] }),
        Form::Outages => {
            let pair = json!({ "type": "array", "items": text_with(&TIME), "minItems": 2, "maxItems": 2 });
            json!({ "type": "array", "items": pair })
        }
        Form::Middleboxes => json!({ "type": "array", "items": table(Section::Middlebox) }),
        Form::Options => {
            let word = json!({ "enum": form.words() });
            json!({ "anyOf": [word, { "type": "array", "items": word }] })
        }
        Form::Scheduler => plug_in(&crate::sections::scheduler_names()),
        Form::Abr => plug_in(&crate::sections::abr_names()),
        Form::Ladder => {
            let rates = json!({ "type": "array", "items": text_with(&RATE), "minItems": 1, "uniqueItems": true });
            json!({ "anyOf": [{ "enum": Ladder::NAMES }, rates] })
        }
        Form::Congestion => plug_in(&crate::sections::congestion_names()),
        Form::Changeable => json!({ "type": "string", "pattern": changes() }),
        Form::Value => json!({}),
    }
}

/// Pattern of the keys that the timeline changes.
fn changes() -> String {
    let name = "[A-Za-z0-9_-]{1,64}";
    let keys = changeable().filter(|key| key.section.is_list());
    let keys: Vec<String> = keys.map(|key| format!(r"{}\.{name}\.{}", key.section.name(), key.name)).collect();
    format!(r"^(({})(\.(down|up))?|connection\.scheduler)$", keys.join("|"))
}

/// Names, each once.
fn names(of: Form) -> Value {
    json!({ "type": "array", "items": form(of), "minItems": 1, "uniqueItems": true })
}

/// The limit of a queue.
fn limit() -> [Value; 3] {
    [pattern("([pP]|[bB][dD][pP])"), text_with(&SIZE), json!({ "enum": [UNLIMITED] })]
}

fn probability() -> Value {
    json!({ "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, pattern("%?")] })
}

/// A name, alone or with parameters in brackets, or a table with the name and its parameters.
fn plug_in(names: &[String]) -> Value {
    let parameter = json!({ "type": ["number", "boolean"] });
    json!({ "anyOf": [
        { "enum": names },
        { "type": "string", "pattern": r"^[a-z0-9+-]+\s*\(.*\)\s*$" },
        {
            "type": "object",
            "properties": { "kind": { "enum": names } },
            "required": ["kind"],
            "additionalProperties": parameter,
        },
    ] })
}

fn text_with(family: &Units) -> Value {
    pattern(&units(family))
}

/// A decimal number and then `unit`, a regular expression.
fn pattern(unit: &str) -> Value {
    json!({ "type": "string", "pattern": format!(r"^\s*[0-9]+(\.[0-9]+)?\s*{unit}\s*$") })
}

/// A regular expression for the units of a family.
fn units(family: &Units) -> String {
    // JSON schema's regular expressions have no flag for case.
    let any_case = |c: char| format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase());
    let spelling = |name: &str| if family.case_sensitive { name.into() } else { name.chars().map(any_case).collect() };
    let names: Vec<String> = family.units.iter().map(|(name, _)| spelling(name)).collect();
    format!("({})", names.join("|"))
}
