//! Documents against a JSON schema.

use regex_lite::Regex;
use serde_json::Value;

/// The first reason why `value` does not match `schema`, for the JSON schema keywords that the schema uses; any other
/// keyword is an error, so that none is silently ignored.
pub fn check(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
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
            "uniqueItems" => {
                value.as_array().is_none_or(|items| (1..items.len()).all(|n| !items[..n].contains(&items[n])))
            }
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
        Some("null") => value.is_null(),
        Some(other) => panic!("the test does not know the type {other}"),
    }
}
