//! Sets one key of a tree by its dotted name, for `--set` and sweeps.

use crate::diagnostic::Code;
use crate::keys::{Directions, Fallback, Form, Key as KnownKey, Section};
use crate::sections::{in_brackets, is_directed, section_names, unknown_key};
use crate::suggest::nearest;
use crate::tree::{Key, Node, Report, Table, Value, parse_value};

/// The parts of a full key: a bare key of `[connection]`, such as `mss` or `scheduler.lambda`, gets its section.
pub(crate) fn full_key(mut parts: Vec<Key>) -> Vec<Key> {
    if let [first, ..] = &parts[..]
        && Section::Connection.key(&first.name).is_some()
    {
        let at = first.at;
        parts.insert(0, Key { name: Section::Connection.name().into(), at });
    }
    parts
}

/// The parts as one name.
pub(crate) fn dotted(parts: &[Key]) -> String {
    parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(".")
}

/// Sets the key that `parts` (see [`full_key`]) name. The reader reports a malformed section.
pub(crate) fn assign(report: &mut Report, root: &mut Table, parts: &[Key], value: Node) {
    let [first, rest @ ..] = parts else { return };
    let section = Section::ALL.into_iter().find(|s| s.has_header() && s.name() == first.name);
    match section {
        Some(section) if section.is_list() => assign_in_list(report, root, section, parts, value),
        Some(section) => {
            if root.get(&first.name).is_none() {
                root.set(first.clone(), Node { value: Value::Table(Table::default()), at: first.at });
            }
            if let Some(Value::Table(table)) = root.get_mut(&first.name).map(|node| &mut node.value) {
                assign_in_section(report, table, section, first, rest, value);
            }
        }
        None if first.name == "sweep" && !rest.is_empty() => assign_axis(root, first, rest, value),
        None if Section::Top.key(&first.name).is_some() => {
            assign_in_section(report, root, Section::Top, first, parts, value);
        }
        None => {
            let connection = Section::Connection.keys().map(|key| key.name);
            let valid: Vec<_> =
                Section::Top.keys().map(|key| key.name).chain(section_names()).chain(connection).collect();
            unknown_key(report, first.at, &first.name, "", valid.into_iter());
        }
    }
}

/// `path.NAME.KEY`, `traffic.NAME.KEY`, `cross.0.KEY`, or `traffic.KEY` if there is one entry.
fn assign_in_list(report: &mut Report, root: &mut Table, section: Section, parts: &[Key], value: Node) {
    let name = section.name();
    let items = match root.get_mut(name).map(|node| &mut node.value) {
        Some(Value::List(items)) => &mut items[..],
        Some(_) => return,
        None => &mut [],
    };
    let named = matches!(section, Section::Path | Section::Link | Section::Fabric | Section::Medium | Section::Group);
    let Some(second) = parts.get(1) else {
        let form = if named { format!("{name}.NAME.KEY") } else { format!("{name}.0.KEY") };
        report
            .error(Code::UnknownKey, parts[0].at, format!("`{name}` is a list, not a key"))
            .label("which one?")
            .help(format!("write {form}"));
        return;
    };
    let has_names = named || section == Section::Traffic;
    let names: Vec<String> = items.iter().enumerate().map(|(i, item)| item_name(item, i, has_names)).collect();
    let (index, used) = match names.iter().position(|name| *name == second.name) {
        Some(index) => (index, 2),
        None if !named && items.len() == 1 && second.name.parse::<usize>().is_err() => (0, 1),
        None => {
            let help = match nearest(&second.name, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{name}.{near}`?"),
                None if names.is_empty() => format!("the scenario has no [[{name}]]"),
                None => format!("write {name}.NAME.KEY; there is: {}", names.join(", ")),
            };
            let message = format!("there is no {name} `{}`", second.name);
            report.error(Code::UnknownName, second.at, message).label("unknown name").help(help);
            return;
        }
    };
    if let Value::Table(table) = &mut items[index].value {
        assign_in_section(report, table, section, second, &parts[used..], value);
    }
}

/// The name of a list's item in a dotted key.
fn item_name(item: &Node, index: usize, named: bool) -> String {
    let name = item.as_table().and_then(|table| table.get("name")?.as_text());
    name.filter(|_| named).map_or_else(|| index.to_string(), Into::into)
}

/// Sets `parts` (`[key]`, or a key and a key inside its value) in a section's table.
fn assign_in_section(report: &mut Report, table: &mut Table, section: Section, last: &Key, parts: &[Key], value: Node) {
    let [key, inside @ ..] = parts else {
        let keys: Vec<_> = section.keys().map(|key| key.name).collect();
        report
            .error(Code::UnknownKey, last.at, format!("`{}` is a section, not a key", last.name))
            .label("which of its keys?")
            .help(format!("keys are: {}", keys.join(", ")));
        return;
    };
    let known = section.key(&key.name);
    let before = table.get(&key.name).cloned().or_else(|| default_of(report, known, key));
    // A bottleneck has one of these two: the last one set applies.
    match key.name.as_str() {
        "rate" if inside.is_empty() => table.remove("trace"),
        "trace" if inside.is_empty() => table.remove("rate"),
        _ => {}
    }
    let node = put(report, known, before, inside, value);
    table.set(key.clone(), node);
}

fn default_of(report: &mut Report, known: Option<&KnownKey>, key: &Key) -> Option<Node> {
    match &known?.fallback {
        Fallback::Value(text) => parse_value(report, key.at, text),
        _ => None,
    }
}

/// `value`, or `before` with `value` set inside it.
fn put(report: &mut Report, known: Option<&KnownKey>, before: Option<Node>, inside: &[Key], value: Node) -> Node {
    let [part, deeper @ ..] = inside else { return value };
    let at = part.at;
    let mut table = match before {
        Some(Node { value: Value::Table(table), .. }) if !turns(known, &table, part) => table,
        Some(scalar) => spread(report, known, scalar, part),
        None => Table::default(),
    };
    let inner = put(report, known, table.get(&part.name).cloned(), deeper, value);
    table.set(part.clone(), inner);
    Node { value: Value::Table(table), at }
}

fn is_direction(part: &Key) -> bool {
    matches!(part.name.as_str(), "down" | "up")
}

/// True if a direction is set inside a value without directions.
fn turns(known: Option<&KnownKey>, table: &Table, part: &Key) -> bool {
    is_direction(part) && known.is_some_and(|key| !is_directed(key, table))
}

/// A value without directions or parameters, as a table that has them.
fn spread(report: &mut Report, known: Option<&KnownKey>, scalar: Node, part: &Key) -> Table {
    let plug_in = matches!(known.map(|key| key.form), Some(Form::Scheduler | Form::Congestion | Form::Abr));
    if plug_in && let Some(table) = in_brackets(report, &scalar) {
        return table;
    }
    let named = |name: &str| (Key { name: name.into(), at: scalar.at }, scalar.clone());
    let form = known.map(|key| (key.directions, key.form));
    Table(match form {
        Some((Directions::Both, _)) if is_direction(part) => vec![named("down"), named("up")],
        Some((Directions::Down, _)) if is_direction(part) => vec![named("down")],
        Some((_, Form::Reorder)) => vec![named("probability")],
        Some((_, Form::Jitter)) => vec![named("spread")],
        Some((_, Form::Queue)) => vec![named("limit")],
        Some((_, Form::Range)) => vec![named("min"), named("max")],
        Some((_, Form::Scheduler | Form::Congestion | Form::Abr | Form::Arrivals)) => vec![named("kind")],
        _ => Vec::new(),
    })
}

/// `sweep.KEY`.
fn assign_axis(root: &mut Table, sweep: &Key, rest: &[Key], value: Node) {
    if root.get("sweep").is_none() {
        root.set(sweep.clone(), Node { value: Value::Table(Table::default()), at: sweep.at });
    }
    if let Some(Value::Table(table)) = root.get_mut("sweep").map(|node| &mut node.value) {
        table.set(Key { name: dotted(rest), at: rest[0].at }, value);
    }
}
