//! `[sweep]`: the cross product of lists of values.

use crate::assign::{dotted, full_key};
use crate::diagnostic::Code;
use crate::scenario::{Cell, Scenario};
use crate::tree::{Key, Node, Report, Span, Table, Value, quoted};

/// Limit of cells.
const MOST_CELLS: usize = 10_000;

/// Limit of varied keys.
const MOST_AXES: usize = 16;

/// A varied key.
#[derive(Debug)]
pub(crate) struct Axis {
    /// As in the file, for results.
    name: String,
    /// Its parts, as a full key.
    pub key: Vec<Key>,
    values: Vec<Node>,
}

/// Reads the scenario in which the axes have these values.
pub(crate) type ReadCell<'a> = dyn FnMut(&mut Report, &[(&Axis, &Node)]) -> Option<Scenario> + 'a;

/// All axes.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    axes: Vec<Axis>,
    at: Span,
}

impl Sweep {
    /// Takes the sweep out of a document. A key that an override sets is not varied.
    pub fn take(report: &mut Report, root: &mut Table, fixed: &[Vec<Key>]) -> Self {
        let Some(node) = root.get("sweep").cloned() else { return Self::default() };
        root.remove("sweep");
        let Value::Table(table) = &node.value else {
            report
                .error(Code::WrongType, node.at, format!("`sweep` must be a table, not {}", node.kind()))
                .label(format!("this is {}", node.kind()))
                .help("write lists of values under [sweep]: scheduler = [\"minrtt\", \"blest\"]");
            return Self::default();
        };
        let mut axes = Vec::new();
        collect(report, &[], table, &mut axes);
        axes.retain(|axis: &Axis| fixed.iter().all(|key| dotted(key) != dotted(&axis.key)));
        let cells = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.values.len()));
        if cells.is_none_or(|n| n > MOST_CELLS) || axes.len() > MOST_AXES {
            report
                .error(
                    Code::ImpossibleValue,
                    node.at,
                    format!("this sweep has more than {MOST_CELLS} cells or {MOST_AXES} keys"),
                )
                .label("the product of all lists")
                .help("split it into several scenarios");
            return Self::default();
        }
        for (index, axis) in axes.iter().enumerate() {
            if axes[..index].iter().any(|other| dotted(&other.key) == dotted(&axis.key)) {
                report
                    .error(Code::Conflict, axis.key[0].at, format!("`{}` is swept twice", dotted(&axis.key)))
                    .label("second time")
                    .help("leave one of the two out");
            }
        }
        Self { axes, at: node.at }
    }

    /// Reads every cell with `read`; the last axis varies fastest. `None` if there was a mistake, which was reported.
    pub fn cells(&self, report: &mut Report, read: &mut ReadCell<'_>) -> Option<Vec<(Cell, Scenario)>> {
        // Every value alone first, so that every mistake is reported once.
        for (axis, value) in self.axes.iter().flat_map(|axis| axis.values.iter().map(move |value| (axis, value))) {
            if report.is_full() {
                report.set_partial();
                break;
            }
            read(report, &[(axis, value)]);
        }
        let mut cells = Vec::new();
        let count = self.axes.iter().map(|axis| axis.values.len()).product();
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
        let mut point: Vec<_> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            point.push((axis, &axis.values[number % axis.values.len()]));
            number /= axis.values.len();
        }
        point.reverse();
        point
    }

    /// Keys and values in TOML.
    pub fn axes(&self, report: &Report) -> Vec<(String, Vec<String>)> {
        let toml = |value: &Node| value.as_text().map_or_else(|| as_written(report, value), quoted);
        let values = |axis: &Axis| axis.values.iter().map(toml).collect();
        self.axes.iter().map(|axis| (axis.name.clone(), values(axis))).collect()
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
                axes.push(Axis { name: dotted(&parts), key: full_key(parts), values: values.clone() });
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
