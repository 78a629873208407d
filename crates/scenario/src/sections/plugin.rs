//! Schedulers, congestion controls and rules of bitrate adaptation: a name, `NAME(PARAMETER=VALUE,…)` or `{ kind = "NAME", PARAMETER = VALUE, … }`, checked
//! against the registries.

use super::fields::unknown_key;
use super::value;
use crate::diagnostic::Code;
use crate::keys::Key;
use crate::scenario::PlugIn;
use crate::suggest::nearest;
use crate::tree::{Key as WrittenKey, Node, Report, Span, Table, Value, parse_value};
use anabranch_plugin::registry::{Entry, Kind, Parameter, contradiction};
use anabranch_workload::abr;
use std::borrow::Cow;

/// A scheduler with its suffix.
pub(crate) fn scheduler(report: &mut Report, key: &'static Key, node: &Node) -> Option<PlugIn> {
    let node = spelt_out(report, node);
    let (kind, given) = kind(report, key, &node)?;
    let name = value::reference(report, key, kind)?;
    match anabranch_schedulers::resolve(&name) {
        Ok(found) => plug_in(report, found.name(), &found.parameters().collect::<Vec<_>>(), given),
        Err(anabranch_schedulers::BuildError::NoSuffix { base, suffix }) => {
            report
                .error(Code::Conflict, kind.at, format!("`{}` cannot be followed by `{}`", base.name, suffix.name))
                .label("not a pull scheduler")
                .help(format!("write \"{}\" alone", base.name));
            None
        }
        Err(_) => {
            let message = format!("there is no scheduler \"{name}\"");
            let help = match nearest(&name, scheduler_names().iter().map(String::as_str)) {
                Some(word) => format!("did you mean \"{word}\"?"),
                None => "`anabranch list schedulers` names them; some may be followed by +pr or +or".into(),
            };
            report.error(Code::UnknownScheduler, kind.at, message).label("unknown").help(help);
            None
        }
    }
}

/// Every name, then every alias, then both with the suffixes that they take.
pub(crate) fn scheduler_names() -> Vec<String> {
    let all = anabranch_schedulers::all();
    let mut names: Vec<String> = all.iter().map(|entry| entry.name.into()).collect();
    names.extend(all.iter().flat_map(|entry| entry.aliases).map(|alias| alias.to_string()));
    for entry in all.iter().filter(|entry| anabranch_schedulers::takes_suffix(entry)) {
        for suffix in anabranch_schedulers::suffixes() {
            names.extend(entry.aliases.iter().chain([&entry.name]).map(|name| format!("{name}{}", suffix.name)));
        }
    }
    names
}

/// Names of congestion controls.
pub(crate) fn congestion_names() -> Vec<String> {
    names(anabranch_congestion::all())
}

/// Names of rules of bitrate adaptation.
pub(crate) fn abr_names() -> Vec<String> {
    names(abr::registry::all())
}

/// Every name, then every alias.
fn names<T: ?Sized>(all: &[&Entry<T>]) -> Vec<String> {
    let mut names: Vec<String> = all.iter().map(|entry| entry.name.into()).collect();
    names.extend(all.iter().flat_map(|entry| entry.aliases).map(|alias| alias.to_string()));
    names
}

/// A congestion control.
pub(crate) fn congestion(report: &mut Report, key: &'static Key, node: &Node) -> Option<PlugIn> {
    let what = What { code: Code::UnknownCongestion, noun: "congestion control", list: "congestion" };
    of_registry(report, (key, node), anabranch_congestion::all(), &what)
}

/// A rule of bitrate adaptation.
pub(crate) fn abr(report: &mut Report, key: &'static Key, node: &Node) -> Option<PlugIn> {
    let what = What { code: Code::UnknownWord, noun: "ABR", list: "abrs" };
    of_registry(report, (key, node), abr::registry::all(), &what)
}

/// How a registry is spoken of.
struct What {
    code: Code,
    noun: &'static str,
    /// As `anabranch list` knows it.
    list: &'static str,
}

/// An entry of a registry without suffixes.
fn of_registry<T: ?Sized>(
    report: &mut Report,
    (key, node): (&'static Key, &Node),
    all: &'static [&'static Entry<T>],
    what: &What,
) -> Option<PlugIn> {
    let node = spelt_out(report, node);
    let (kind, given) = kind(report, key, &node)?;
    let name = value::reference(report, key, kind)?;
    let Some(entry) = all.iter().find(|entry| entry.answers_to(&name)) else {
        let message = format!("there is no {} \"{name}\"", what.noun);
        let help = match nearest(&name, names(all).iter().map(String::as_str)) {
            Some(word) => format!("did you mean \"{word}\"?"),
            None => format!("`anabranch list {}` names them", what.list),
        };
        report.error(what.code, kind.at, message).label("unknown").help(help);
        return None;
    };
    plug_in(report, entry.name.into(), &entry.parameters.iter().collect::<Vec<_>>(), given)
}

/// A text with brackets as the equivalent table; anything else unchanged.
fn spelt_out<'n>(report: &mut Report, node: &'n Node) -> Cow<'n, Node> {
    match in_brackets(report, node) {
        Some(table) => Cow::Owned(Node { value: Value::Table(table), at: node.at }),
        None => Cow::Borrowed(node),
    }
}

/// `blest(delta=0.01)`, as reports print it, as the table `{ kind = "blest", delta = 0.01 }`; `None` for a text without
/// brackets. Mistakes are reported and left out.
pub(crate) fn in_brackets(report: &mut Report, node: &Node) -> Option<Table> {
    let text = node.as_text()?;
    let (name, inside) = text.split_once('(')?;
    // Without the quotes; in a text with escapes the parts have no place of their own in the source.
    let written = report.text(node.at);
    let quote = usize::from(written.starts_with(['"', '\'']));
    let plain = written.get(quote..).is_some_and(|written| written.starts_with(text));
    let place = |start: usize, length: usize| match (plain, node.at.start + quote + start) {
        (true, start) => Span { start, end: start + length, ..node.at },
        (false, _) => node.at,
    };
    let kind = Node { value: Value::Text(name.trim_end().into()), at: place(0, name.trim_end().len()) };
    let mut table = Table(vec![(WrittenKey { name: "kind".into(), at: kind.at }, kind)]);
    let help = format!("write {}(PARAMETER=VALUE, …)", name.trim());
    let Some(inside) = inside.trim_end().strip_suffix(')') else {
        let at = place(name.len(), text.len() - name.len());
        report.error(Code::Syntax, at, "the bracket is not closed").help(help);
        return Some(table);
    };
    let mut start = name.len() + 1;
    for part in inside.split(',') {
        let (word, value) = part.split_once('=').unwrap_or((part, ""));
        let behind = |rest: &str| start + part.len() - rest.trim_start().len();
        let (key_at, at) = (place(behind(part), word.trim().len()), place(behind(value), value.trim().len()));
        let (word, value) = (word.trim(), value.trim());
        let key = WrittenKey { name: word.into(), at: key_at };
        start += part.len() + 1;
        if part.trim().is_empty() {
            continue;
        }
        if value.is_empty() {
            report.error(Code::Syntax, key.at, format!("`{word}` has no value")).help(&help);
        } else if table.get(word).is_some() {
            report.error(Code::Conflict, key.at, format!("`{word}` is given twice")).label("second time");
        } else if let Some(node) = parse_value(report, at, value) {
            table.set(key, Node { at, ..node });
        }
    }
    Some(table)
}

/// The node that holds the name, and the table that holds the parameters.
fn kind<'n>(report: &mut Report, key: &Key, node: &'n Node) -> Option<(&'n Node, Option<&'n Table>)> {
    let Some(table) = node.as_table() else { return Some((node, None)) };
    let kind = table.get("kind");
    if kind.is_none() {
        report
            .error(Code::MissingKey, node.at, format!("`{}` needs a `kind`", key.full_name()))
            .label("no `kind` here")
            .help(format!("expected {}", key.form.expected()));
    }
    Some((kind?, Some(table)))
}

/// Checks the parameters. Those that equal their defaults are left out, so that there is one notation per value.
fn plug_in(report: &mut Report, name: String, known: &[&'static Parameter], given: Option<&Table>) -> Option<PlugIn> {
    let entries: &[(WrittenKey, Node)] = given.map_or(&[], |table| &table.0);
    for (key, _) in entries {
        if key.name != "kind" && known.iter().all(|p| p.name != key.name) {
            let valid: Vec<_> = known.iter().map(|p| p.name).chain(["kind"]).collect();
            unknown_key(report, key.at, &key.name, &name, valid.into_iter());
        }
    }
    let mut parameters = Vec::new();
    let mut fine = true;
    for parameter in known {
        let Some((_, node)) = entries.iter().find(|(key, _)| key.name == parameter.name) else { continue };
        match number(report, parameter, node) {
            Some(number) if number == parameter.default => {}
            Some(number) => parameters.push((parameter.name.into(), number)),
            None => fine = false,
        }
    }
    if let Some((least, greatest)) = contradiction(known, &parameters) {
        let place = |name: &str| entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node.at);
        // At least one of them was given, because the defaults agree.
        let at = place(least.name).or(place(greatest.name))?;
        report
            .error(Code::Conflict, at, format!("`{}` is above `{}`", least.name, greatest.name))
            .label("these contradict each other")
            .help(format!("the defaults are {} and {}", least.default, greatest.default));
        return None;
    }
    fine.then_some(PlugIn { name, parameters })
}

fn number(report: &mut Report, parameter: &Parameter, node: &Node) -> Option<f64> {
    let Parameter { name, kind, min, max, unit, about, .. } = *parameter;
    let a_number = if kind == Kind::Whole { "a whole number" } else { "a number" };
    let a_number = format!("expected {a_number} from {min} to {max} {unit}");
    let number = match (kind, &node.value) {
        (Kind::Flag, Value::Flag(flag)) => f64::from(u8::from(*flag)),
        // As results print it: `daps(retransmit=0)`.
        (Kind::Flag, Value::Integer(n @ 0..=1)) => *n as f64,
        (Kind::Number | Kind::Whole, Value::Integer(n)) => *n as f64,
        (Kind::Number | Kind::Whole, Value::Real(x)) => *x,
        _ => {
            let expected = if kind == Kind::Flag { "expected true or false" } else { &a_number };
            report
                .error(Code::WrongType, node.at, format!("`{name}` cannot be {}", node.kind()))
                .label(format!("this is {}", node.kind()))
                .help(format!("{}: {about}", expected.trim_end()));
            return None;
        }
    };
    if !parameter.accepts(number) {
        let fraction = (min..=max).contains(&number);
        report
            .error(Code::ImpossibleValue, node.at, format!("`{name}` cannot be {number}"))
            .label(if fraction { "not a whole number" } else { "out of range" })
            .help(format!("{}: {about}", a_number.trim_end()));
        return None;
    }
    Some(number)
}
