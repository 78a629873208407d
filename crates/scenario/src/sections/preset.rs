//! `path.preset`: the keys of a kind of link. Keys beside it override them.

use super::fields::is_directed;
use super::value;
use crate::keys::{Key as KnownKey, Section};
use crate::tree::{Key, Node, Report, Span, Table, Value, parse_document};
use std::borrow::Cow;

/// Defines the registry: a name, which is that of its file, each.
macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        /// The names of all presets.
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        /// The file of a preset: its keys under `[path]`, with a comment that says where each is from.
        const FILES: &[&str] = &[$(include_str!(concat!("../../presets/", $name, ".toml"))),*];
    };
}

presets!("lte", "5g-mid", "5g-mmwave", "starlink", "wifi-busy", "3g-2012", "dsl");

/// Keys of a path's own bottleneck, each with the keys that take its place in a preset.
const OF_BOTTLENECK: [(&str, &[&str]); 3] =
    [("rate", &["link", "trace"]), ("queue", &["link"]), ("shared", &["link", "trace", "burst", "medium"])];

/// The document with the keys of the presets that its paths name.
pub(crate) fn expand<'r>(report: &mut Report, root: &'r Table) -> Cow<'r, Table> {
    let Some(Value::List(paths)) = root.get(Section::Path.name()).map(|node| &node.value) else {
        return Cow::Borrowed(root);
    };
    if !paths.iter().filter_map(Node::as_table).any(|path| path.get("preset").is_some()) {
        return Cow::Borrowed(root);
    }
    let mut root = root.clone();
    if let Some(Value::List(paths)) = root.get_mut(Section::Path.name()).map(|node| &mut node.value) {
        for path in paths {
            if let Value::Table(path) = &mut path.value {
                add(report, path);
            }
        }
    }
    Cow::Owned(root)
}

/// Adds the keys of the preset that a path names.
fn add(report: &mut Report, path: &mut Table) {
    let (Some(node), Some(key)) = (path.get("preset").cloned(), Section::Path.key("preset")) else { return };
    let Some(name) = value::word(report, key, &node) else { return };
    for (key, mut default) in keys(report, name) {
        let Some(known) = Section::Path.key(&key.name) else { continue };
        let excluded =
            |(name, by): &(&str, &[&str])| key.name == *name && by.iter().any(|other| path.get(other).is_some());
        if OF_BOTTLENECK.iter().any(excluded) {
            continue;
        }
        place(&mut default, node.at);
        match path.get_mut(&key.name) {
            Some(written) => fill(known, written, &default),
            None => path.set(Key { name: key.name, at: node.at }, default),
        }
    }
}

/// The keys of a preset.
fn keys(report: &mut Report, name: &str) -> Vec<(Key, Node)> {
    let file = NAMES.iter().position(|known| *known == name).map_or("", |index| FILES[index]);
    let source = report.add_source(name, file.into());
    let root = parse_document(report, source, file);
    let path = root.as_ref().and_then(|root| root.get("path")).and_then(Node::as_table);
    path.map(|path| path.0.clone()).unwrap_or_default()
}

/// Places a value, with all inside, where the preset is named: mistakes are reported there.
fn place(node: &mut Node, at: Span) {
    node.at = at;
    match &mut node.value {
        Value::Table(table) => table.0.iter_mut().for_each(|(key, node)| {
            key.at = at;
            place(node, at);
        }),
        Value::List(items) => items.iter_mut().for_each(|node| place(node, at)),
        _ => {}
    }
}

/// Adds what a written value lacks: directions, and keys of its table.
fn fill(key: &KnownKey, written: &mut Node, default: &Node) {
    let Value::Table(table) = &mut written.value else { return };
    let per_direction = |table: &Table| is_directed(key, table);
    let directed = per_direction(table);
    match default.as_table() {
        Some(defaults) if per_direction(defaults) == directed => {
            for (name, value) in &defaults.0 {
                match table.get_mut(&name.name) {
                    Some(written) => fill(key, written, value),
                    None => table.set(name.clone(), value.clone()),
                }
            }
        }
        // The default applies to both directions.
        _ if directed => {
            for name in ["down", "up"] {
                match table.get_mut(name) {
                    Some(written) => fill(key, written, default),
                    None => table.set(Key { name: name.into(), at: default.at }, default.clone()),
                }
            }
        }
        _ => {}
    }
}
