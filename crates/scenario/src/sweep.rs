//! `[sweep]` and `--sweep`: the cross product of lists of values.

use crate::assign::{dotted, full_key};
use crate::diagnostic::Code;
use crate::keys::{Form, Section};
use crate::quantity::{QueueLimit, price, queue, si_number};
use crate::scenario::{Cell, Scenario};
use crate::source::Role;
use crate::tree::{Key, Node, Report, Span, Table, Value, quoted};
use std::collections::BTreeSet;

/// Limit of cells.
const MOST_CELLS: usize = 10_000;

/// Limit of varied keys.
const MOST_AXES: usize = 16;

/// A varied key.
#[derive(Debug)]
pub(crate) struct Axis {
    /// As written, for results.
    pub name: String,
    /// Parts of the key, as a full key.
    pub key: Vec<Key>,
    pub values: Vec<Node>,
    /// [`Role::Set`] for one of the file.
    pub role: Role,
}

/// Reads the scenario in which the axes have these values.
pub(crate) type ReadCell<'a> = dyn FnMut(&mut Report, &[(&Axis, &Node)]) -> Option<Scenario> + 'a;

/// All axes.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// Those in one group advance together.
    groups: Vec<Vec<Axis>>,
    at: Span,
}

impl Sweep {
    /// Takes the sweep out of a document, and adds the axes that are `given` from outside. A key that an override sets is not
    /// varied by the file, one that is given is varied by that alone.
    pub fn take(report: &mut Report, root: &mut Table, fixed: &[Vec<Key>], given: Vec<Axis>) -> Self {
        let node = root.get("sweep").cloned();
        root.remove("sweep");
        let mut axes = Vec::new();
        match node.as_ref().map(|node| (&node.value, node)) {
            Some((Value::Table(table), _)) => collect(report, &[], table, &mut axes),
            Some((_, node)) => {
                report
                    .error(Code::WrongType, node.at, format!("`sweep` must be a table, not {}", node.kind()))
                    .label(format!("this is {}", node.kind()))
                    .help("write lists of values under [sweep]: scheduler = [\"minrtt\", \"blest\"]");
            }
            None => {}
        }
        let same = |a: &[Key], b: &[Key]| dotted(a) == dotted(b);
        axes.retain(|axis: &Axis| fixed.iter().all(|key| !same(key, &axis.key)));
        axes.retain(|axis| given.iter().all(|other| !same(&other.key, &axis.key)));
        axes.extend(given);
        // A part of a value may vary, the whole of which is set. A value that varies would take the place of a part.
        let takes_place_of = |a: &Axis, b: &[Key]| a.key.len() <= b.len() && same(&a.key, &b[..a.key.len()]);
        for axis in axes.iter().filter(|axis| fixed.iter().any(|key| takes_place_of(axis, key))) {
            report
                .error(Code::Conflict, axis.key[0].at, format!("`{}` is both set and swept", axis.name))
                .label("swept here")
                .help("leave one of the two out");
        }
        let Some(first) = axes.first() else { return Self::default() };
        let at = node.map_or(first.key[0].at, |node| node.at);
        // The beginnings of earlier keys, with their numbers of parts.
        let mut earlier = BTreeSet::new();
        for axis in &axes {
            if earlier.contains(&(axis.key.len(), dotted(&axis.key))) {
                report
                    .error(Code::Conflict, axis.key[0].at, format!("`{}` is swept twice", dotted(&axis.key)))
                    .label("second time")
                    .help("leave one of the two out");
            }
            earlier.extend((1..=axis.key.len()).map(|parts| (parts, dotted(&axis.key[..parts]))));
            check_timeline(report, root, axis);
        }
        let sweep = Self { groups: grouped(report, axes), at };
        let cells = sweep.groups.iter().try_fold(1usize, |n, group| n.checked_mul(group[0].values.len()));
        if cells.is_none_or(|n| n > MOST_CELLS) || sweep.groups.len() > MOST_AXES {
            report
                .error(
                    Code::ImpossibleValue,
                    at,
                    format!("this sweep has more than {MOST_CELLS} cells or {MOST_AXES} keys"),
                )
                .label("the product of all lists")
                .help("split it into several scenarios");
            return Self::default();
        }
        sweep
    }

    fn all(&self) -> impl Iterator<Item = &Axis> {
        self.groups.iter().flatten()
    }

    /// Reads every cell with `read`; the last axis varies fastest. `None` if there was a mistake, which was reported.
    pub fn cells(&self, report: &mut Report, read: &mut ReadCell<'_>) -> Option<Vec<(Cell, Scenario)>> {
        // Every value alone first, so that every mistake is reported once.
        for (axis, value) in self.all().flat_map(|axis| axis.values.iter().map(move |value| (axis, value))) {
            if report.is_full() {
                report.set_partial();
                break;
            }
            read(report, &[(axis, value)]);
        }
        let mut cells = Vec::new();
        let count = self.groups.iter().map(|group| group[0].values.len()).product();
        for number in 0..count {
            if !report.is_clean() {
                return None;
            }
            let point = self.point(number);
            let cell = point.iter().map(|(axis, value)| (axis.name.clone(), as_written(report, value))).collect();
            let scenario = read(report, &point);
            if let Some(scenario) = scenario {
                cells.push((cell, scenario));
            } else if report.is_clean() {
                report.error(Code::Conflict, self.at, "a cell of this sweep cannot be read");
            }
        }
        report.is_clean().then_some(cells)
    }

    /// The values of cell `number`.
    fn point(&self, mut number: usize) -> Vec<(&Axis, &Node)> {
        let mut point: Vec<_> = Vec::new();
        for group in self.groups.iter().rev() {
            let count = group[0].values.len();
            point.extend(group.iter().rev().map(|axis| (axis, &axis.values[number % count])));
            number /= count;
        }
        point.reverse();
        point
    }

    /// Keys and values in TOML.
    pub fn axes(&self, report: &Report) -> Vec<(String, Vec<String>)> {
        let toml = |value: &Node| value.as_text().map_or_else(|| as_written(report, value), quoted);
        let values = |axis: &Axis| axis.values.iter().map(toml).collect();
        self.all().map(|axis| (axis.name.clone(), values(axis))).collect()
    }
}

/// Each axis alone, but those that advance together in one group, in the place of the first of them.
fn grouped(report: &mut Report, axes: Vec<Axis>) -> Vec<Vec<Axis>> {
    let mut groups: Vec<Vec<Axis>> = Vec::new();
    for axis in axes {
        match groups.iter_mut().find(|group| axis.role == Role::Zip && group[0].role == Role::Zip) {
            Some(group) => {
                let (expected, found) = (group[0].values.len(), axis.values.len());
                if expected != found {
                    report
                        .error(Code::Conflict, axis.key[0].at, "keys that advance together need as many values each")
                        .label(format!("{found} values, but `{}` has {expected}", group[0].name))
                        .help("give as many values, or leave --zip out for every combination");
                }
                group.push(axis);
            }
            None => groups.push(vec![axis]),
        }
    }
    groups
}

/// A timeline that sets a swept key would undo the sweep in the middle of each run.
fn check_timeline(report: &mut Report, root: &Table, axis: &Axis) {
    let Some(Value::List(entries)) = root.get("timeline").map(|node| &node.value) else { return };
    let swept = dotted(&axis.key);
    let within = |a: &str, b: &str| a == b || a.strip_prefix(b).is_some_and(|rest| rest.starts_with('.'));
    let sets = |entry: &&Node| {
        let key = entry.as_table().and_then(|table| table.get("set")?.as_text());
        key.is_some_and(|key| within(key, &swept) || within(&swept, key))
    };
    if entries.iter().any(|entry| sets(&entry)) {
        report
            .error(Code::Conflict, axis.key[0].at, format!("`{}` is swept, but the timeline sets it", axis.name))
            .label("swept here")
            .help("sweep another key, or take the [[timeline]] entry out");
    }
}

/// A swept key's value in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swept {
    /// In SI units.
    pub number: f64,
    /// `s`, `bit/s`, `B`, `packets`, `BDP`, `1/B`; empty for a plain number or a fraction.
    pub unit: &'static str,
}

/// `text`, the value of the swept key `key`, as a number; `None` for a word or a table.
pub fn swept(key: &str, text: &str) -> Option<Swept> {
    let (name, before) = key.rsplit_once('.').map_or((key, ""), |(before, name)| (name, before));
    // A direction stands behind its key, a name or a number between a section and its key.
    let key = if matches!(name, "down" | "up") { before } else { key };
    let (section, name) = key.split_once('.').unwrap_or((Section::Connection.name(), key));
    let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
    let found = Section::ALL.into_iter().find(|known| known.name() == section);
    let form = found.and_then(|section| section.key(name)).or_else(|| Section::Top.key(key)).map(|key| key.form);
    form.map_or_else(|| number(&Form::Real { above: 0.0 }, text), |form| number(&form, text))
}

fn number(form: &Form, text: &str) -> Option<Swept> {
    let (form, unit) = match form {
        Form::Duration { .. } | Form::Range | Form::Jitter | Form::TraceStart => {
            (Form::Duration { positive: false }, "s")
        }
        Form::Rate => (Form::Rate, "bit/s"),
        Form::Size { .. } => (*form, "B"),
        Form::Probability | Form::Loss | Form::Reorder => (Form::Probability, ""),
        Form::Limit | Form::Queue => return queue(text).ok().and_then(QueueLimit::number),
        Form::Price => return price(text).ok().map(|number| Swept { number, unit: "1/B" }),
        Form::Integer { .. } | Form::Integers(_) | Form::Real { .. } => (Form::Real { above: 0.0 }, ""),
        _ => return None,
    };
    let bare = || si_number(&Form::Real { above: 0.0 }, text);
    // A size without a unit is in bytes.
    let read = si_number(&form, text).or_else(|why| if unit == "B" { bare() } else { Err(why) });
    read.ok().map(|number| Swept { number, unit })
}

impl QueueLimit {
    fn number(self) -> Option<Swept> {
        let (number, unit) = match self {
            Self::Packets(packets) => (packets.into(), "packets"),
            Self::Bytes(bytes) => (bytes as f64, "B"),
            Self::Bdp(millionths) => (millionths as f64 / 1e6, "BDP"),
            Self::Unlimited => return None,
        };
        Some(Swept { number, unit })
    }
}

/// A string without its quotes, anything else as in the file.
fn as_written(report: &Report, node: &Node) -> String {
    node.as_text().map_or_else(|| report.text(node.at).trim().into(), String::from)
}

/// Finds the lists: `"path.wlan.loss" = […]`, or `path.wlan.loss = […]`, which TOML nests.
fn collect(report: &mut Report, prefix: &[Key], table: &Table, axes: &mut Vec<Axis>) {
    for (key, node) in &table.0 {
        let parts = key.name.split('.').map(|name| Key { name: name.into(), at: key.at });
        let parts: Vec<Key> = prefix.iter().cloned().chain(parts).collect();
        match &node.value {
            Value::Table(inner) => collect(report, &parts, inner, axes),
            Value::List(values) if !values.is_empty() => {
                let (name, values) = (dotted(&parts), values.clone());
                axes.push(Axis { name, key: full_key(parts), values, role: Role::Set });
            }
            _ => {
                let empty = matches!(node.value, Value::List(_));
                let found = if empty { "an empty list" } else { node.kind() };
                report
                    .error(Code::WrongType, node.at, format!("a sweep needs a list of values, not {found}"))
                    .label(format!("this is {found}"))
                    .help(format!("write {} = [\"first\", \"second\"]", dotted(&parts)));
            }
        }
    }
}
