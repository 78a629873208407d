//! A whole document: the scenario, and the cells of its sweep.

use crate::assign::{assign, full_key};
use crate::diagnostic::{Code, Diagnostic};
use crate::keys::Section;
use crate::listed::{ListFault, listed};
use crate::scenario::{Cell, PlugIn, Scenario};
use crate::sections::{self, Limits, Reading, Traces};
use crate::source::{NoFiles, Override, Resolver, Role, Source};
use crate::sweep::{Axis, Sweep};
use crate::tree::{Key, Node, Report, Span, Table, parse_document, parse_value};
use std::ops::Range;

/// The content of a scenario file and its overrides.
#[derive(Clone, Debug)]
pub struct Document {
    /// The scenario without its sweep.
    pub scenario: Scenario,
    /// The keys that the sweep varies, each with its values in TOML; empty without a sweep.
    pub axes: Vec<(String, Vec<String>)>,
    /// Every cell of the sweep, the last key varying fastest; without a sweep one cell with no keys, which is the scenario.
    pub cells: Vec<(Cell, Scenario)>,
    pub(crate) limits: Limits,
}

/// Reads a scenario, with `overrides` applied to the file in their order.
///
/// # Errors
/// Every mistake, in the order of the file and then of the overrides.
pub fn read(source: &Source, overrides: &[Override], resolver: &dyn Resolver) -> Result<Document, Vec<Diagnostic>> {
    let mut report = Report::default();
    let mut traces = Traces::new(resolver);
    match document(&mut report, &mut traces, source, overrides) {
        Some((Reading { scenario, limits }, axes, cells)) if report.is_clean() => {
            Ok(Document { scenario, axes, cells, limits })
        }
        _ => Err(report.into_diagnostics()),
    }
}

/// The smallest scenario, for a file in which nothing stands.
const LEAST: &str = "\
duration = \"10s\"

[[path]]
name = \"wlan\"
rate = \"25mbit\"
delay = \"25ms\"";

type Parts = (Reading, Vec<(String, Vec<String>)>, Vec<(Cell, Scenario)>);

fn document(report: &mut Report, traces: &mut Traces<'_>, source: &Source, overrides: &[Override]) -> Option<Parts> {
    let file = report.add_source(&source.name, source.text.clone());
    let mut root = parse_document(report, file, &source.text)?;
    if root.0.is_empty() {
        report
            .error(Code::MissingKey, Span { source: file, start: 0, end: 0 }, "a scenario needs a [[path]] and an end")
            .label("nothing is set in this file")
            .help(format!("begin with:\n{LEAST}"));
        return None;
    }
    let (mut fixed, mut given) = (Vec::new(), Vec::new());
    for o in overrides {
        match o.role {
            Role::Set => fixed.push(apply(report, &mut root, o)),
            Role::Sweep | Role::Zip => given.extend(axis(report, o)),
        }
    }
    let sweep = Sweep::take(report, &mut root, &fixed, given);
    let before = report.calls();
    let reading = sections::scenario(report, traces, &root, &source.name);
    // Mistakes outside the sweep would be found again in every cell.
    if report.calls() > before {
        return None;
    }
    let mut cell = |report: &mut Report, point: &[(&Axis, &Node)]| {
        let mut root = root.clone();
        for (axis, value) in point {
            assign(report, &mut root, &axis.key, (*value).clone());
        }
        sections::scenario(report, traces, &root, &source.name).map(|reading| reading.scenario)
    };
    let cells = sweep.cells(report, &mut cell)?;
    Some((reading?, sweep.axes(report), cells))
}

/// Where an override's key and value stand in its text, without surrounding blanks.
struct Places {
    /// Parts of the key, as a full key.
    key: Vec<Key>,
    key_at: Span,
    value_at: Span,
}

impl Places {
    fn of(report: &mut Report, o: &Override) -> Self {
        let typed = o.text();
        let source = report.add_source(&o.origin, typed.into());
        let end = typed.trim_end().len();
        let value_at = Span { source, start: end - o.value.len(), end };
        let mut start = typed.len() - typed.trim_start().len();
        let key_at = Span { source, start, end: start + o.key.len() };
        let part = |name: &str| {
            let at = Span { source, start, end: start + name.len() };
            start = at.end + 1;
            Key { name: name.into(), at }
        };
        let key = full_key(o.key.split('.').map(part).collect());
        Self { key, key_at, value_at }
    }
}

/// The axis that an override adds; `None` if it is none, which is reported.
fn axis(report: &mut Report, o: &Override) -> Option<Axis> {
    let Places { key, key_at, value_at } = Places::of(report, o);
    if o.value.is_empty() {
        report
            .error(Code::Syntax, key_at, format!("`{}` is swept over nothing", o.key))
            .label("no values")
            .help("write KEY=A,B,C or a range, such as path.wlan.delay=10ms..200ms*2");
        return None;
    }
    let inside = |at: Range<usize>| Span {
        source: value_at.source,
        start: value_at.start + at.start,
        end: value_at.start + at.end,
    };
    let values = match listed(&o.value) {
        Ok(values) => values,
        Err(ListFault { at, label, help }) => {
            report
                .error(Code::ImpossibleValue, inside(at), format!("the values of `{}` cannot be listed", o.key))
                .label(label)
                .help(help);
            return None;
        }
    };
    let mut nodes = Vec::new();
    for (at, text) in values {
        let here = inside(at.clone());
        if text.is_empty() {
            report
                .error(Code::Syntax, here, format!("`{}` lacks a value between two commas", o.key))
                .label("nothing stands here")
                .help("leave the comma out");
            return None;
        }
        // A value of a range stands nowhere in what was typed.
        let here = match o.value[at] == text {
            true => here,
            false => {
                let start = o.key.len() + 1;
                let source = report.add_source(&o.origin, format!("{}={text}", o.key));
                Span { source, start, end: start + text.len() }
            }
        };
        nodes.push(parse_value(report, here, &text)?);
    }
    Some(Axis { name: o.key.clone(), key, values: nodes, role: o.role })
}

/// Applies one override; returns the key that it set.
fn apply(report: &mut Report, root: &mut Table, o: &Override) -> Vec<Key> {
    let Places { key, key_at, value_at } = Places::of(report, o);
    if o.value.is_empty() {
        report
            .error(Code::Syntax, key_at, format!("`{}` is set to nothing", o.key))
            .label("no value")
            .help("write KEY=VALUE, such as path.wlan.loss=2%");
    } else if let Some(value) = parse_value(report, value_at, &o.value) {
        assign(report, root, &key, value);
    }
    key
}

/// Reads a scheduler from an option: its name, such as `blest+or` after `--scheduler`, its name with parameters, such
/// as `blest(delta=0.01)`, or a TOML table of both.
///
/// # Errors
/// Every mistake in it.
pub fn scheduler(origin: &str, text: &str) -> Result<PlugIn, Vec<Diagnostic>> {
    plug_in(origin, text, "scheduler")
}

/// The same for a congestion control.
///
/// # Errors
/// Every mistake in it.
pub fn congestion(origin: &str, text: &str) -> Result<PlugIn, Vec<Diagnostic>> {
    plug_in(origin, text, "congestion")
}

fn plug_in(origin: &str, text: &str, key: &str) -> Result<PlugIn, Vec<Diagnostic>> {
    let mut report = Report::default();
    let source = report.add_source(origin, text.into());
    let node = parse_value(&mut report, Span { source, start: 0, end: text.len() }, text);
    let read = if key == "scheduler" { sections::scheduler } else { sections::congestion };
    let found = node.zip(Section::Connection.key(key)).and_then(|(node, key)| read(&mut report, key, &node));
    // A table with an unknown key is still read.
    found.filter(|_| report.is_clean()).ok_or_else(|| report.into_diagnostics())
}

impl Document {
    /// Reads a scenario that names no files, without overrides.
    ///
    /// # Errors
    /// Every mistake.
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        read(&Source { name: name.into(), text: text.into() }, &[], &NoFiles)
    }
}

/// Reads a scenario that names no files and has no sweep: the time that it takes is bounded by the length of the text.
///
/// # Errors
/// Every mistake, or the sweep.
pub fn read_unswept(name: &str, text: &str) -> Result<Scenario, Vec<Diagnostic>> {
    let mut report = Report::default();
    let file = report.add_source(name, text.into());
    let root = parse_document(&mut report, file, text);
    let reading = match root.as_ref().map(|root| (root, root.get("sweep"))) {
        Some((_, Some(sweep))) => {
            report
                .error(Code::Conflict, sweep.at, "a sweep cannot stand here")
                .label("several scenarios")
                .help("give one at a time");
            None
        }
        Some((root, None)) => sections::scenario(&mut report, &mut Traces::new(&NoFiles), root, name),
        None => None,
    };
    reading.filter(|_| report.is_clean()).map(|reading| reading.scenario).ok_or_else(|| report.into_diagnostics())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_scenario_is_one() {
        assert!(Document::parse("least", LEAST).is_ok());
    }

    #[test]
    fn without_a_sweep_it_is_the_same_scenario_and_with_one_refused() {
        let text = format!("{LEAST}\n[[traffic]]\nkind = \"bulk\"\n");
        assert_eq!(read_unswept("x", &text).unwrap(), Document::parse("x", &text).unwrap().scenario);
        let swept = format!("{text}[sweep]\nseed = [1, 2]\n");
        assert!(Document::parse("x", &swept).is_ok());
        let said = |text: &str| read_unswept("x", text).unwrap_err()[0].to_string();
        assert!(said(&swept).contains("a sweep cannot stand here"), "{}", said(&swept));
        assert_eq!(said("nonsense"), Document::parse("x", "nonsense").unwrap_err()[0].to_string());
        assert!(read_unswept("x", "").is_err());
    }
}
