//! `middlebox`: the boxes of a path, in order.

use super::fields::Fields;
use super::{queue, value};
use crate::diagnostic::Code;
use crate::keys::{Form, Key, Section};
use crate::notation::Notation;
use crate::row::{Row, inline};
use crate::tree::{Node, Report, Value, quoted};
use anabranch_network::{MiddleboxSpec, Misfit, OptionKind, OptionSet};
use std::sync::LazyLock;

pub(crate) const BOXES: Notation<Vec<MiddleboxSpec>> =
    Notation { form: Form::Middleboxes, read: boxes, write: |boxes| written(boxes) };
pub(crate) const OPTIONS: Notation<OptionSet> = Notation { form: Form::Options, read: options, write: written_options };

/// The key of a path.
pub(crate) fn row(boxes: &mut Vec<MiddleboxSpec>) -> Row<'_> {
    let about = "what stands between the sending host and the bottleneck, in order (docs/middleboxes.md)";
    Row::unless("middlebox", BOXES, boxes, Vec::new(), about).silent("none").both().changeable()
}

/// The key that chooses the box.
pub(crate) fn kind() -> Row<'static> {
    Row::by_hand("kind", Form::Words(MiddleboxSpec::NAMES), &KINDS).required()
}

/// Every kind with its line.
static KINDS: LazyLock<String> = LazyLock::new(|| {
    let lines = MiddleboxSpec::all().map(|spec| format!("{}: {}", spec.name(), spec.about()));
    lines.collect::<Vec<_>>().join("; ")
});

/// Keys of a box.
pub(crate) fn rows(spec: &mut MiddleboxSpec) -> Vec<Row<'_>> {
    spec.parameters().into_iter().map(queue::row).collect()
}

fn boxes(report: &mut Report, key: &'static Key, node: &Node) -> Option<Vec<MiddleboxSpec>> {
    let Value::List(items) = &node.value else {
        value::wrong_type(report, key, node);
        return None;
    };
    let boxes: Vec<_> = items.iter().map(|item| one(report, key, item)).collect();
    boxes.into_iter().collect()
}

fn one(report: &mut Report, key: &'static Key, node: &Node) -> Option<MiddleboxSpec> {
    if node.as_table().is_none() {
        value::wrong_type(report, key, node);
        return None;
    }
    let fields = Fields::open(report, Section::Middlebox, Some(node));
    let kind = fields.get(report, "kind", value::word)?;
    let mut spec = MiddleboxSpec::all().find(|spec| spec.name() == kind)?;
    fields.fill(report, Some(kind), rows(&mut spec)).then_some(())?;
    match spec.check() {
        Ok(()) => Some(spec),
        Err(Misfit { parameter, message, help }) => {
            let at = fields.written(parameter).map_or(node.at, |node| node.at);
            report.error(Code::ImpossibleValue, at, message).label("does nothing").help(help);
            None
        }
    }
}

fn written(boxes: &[MiddleboxSpec]) -> String {
    let one = |spec: &MiddleboxSpec| inline(&[("kind", quoted(spec.name()))], &rows(&mut spec.clone()));
    format!("[{}]", boxes.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// One name, or a list of them.
fn options(report: &mut Report, key: &'static Key, node: &Node) -> Option<OptionSet> {
    let one = core::slice::from_ref(node);
    let names = if let Value::List(items) = &node.value { items } else { one };
    let kinds: Vec<_> = names.iter().map(|name| value::word(report, key, name)).collect();
    let kinds: Option<Vec<_>> = kinds.into_iter().collect();
    let places = kinds?.into_iter().filter_map(|name| OptionKind::NAMES.iter().position(|known| *known == name));
    Some(places.fold(OptionSet::default(), |set, place| set.with(OptionKind::ALL[place])))
}

fn written_options(set: &OptionSet) -> String {
    let names: Vec<_> = set.iter().map(|kind| quoted(OptionKind::NAMES[kind as usize])).collect();
    format!("[{}]", names.join(", "))
}
