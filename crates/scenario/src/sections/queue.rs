//! `queue`: a limit, or a managed queue with one.

use super::fields::Fields;
use super::middlebox::OPTIONS;
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Form, Key, Section};
use crate::notation::{
    FLAG, LIMIT, Notation, PACKET, POSITIVE_TIME, PROBABILITY, RATE, THRESHOLD, integer, real, word,
};
use crate::quantity::QueueLimit;
use crate::row::{Row, inline};
use crate::tree::{Node, Report, quoted};
use anabranch_network::{Discipline, DropTail, Limit, Misfit, Parameter, QueueSpec, Value};
use std::sync::LazyLock;

/// A queue as written: a limit in bandwidth-delay products depends on rates and delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Queue {
    pub limit: QueueLimit,
    /// Drops packets before the limit is reached.
    pub discipline: Option<Discipline>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { limit: ONE_BDP, discipline: None }
    }
}

const COUNT: Notation<u32> = integer(1, 65_536);
const ONE_BDP: QueueLimit = QueueLimit::Bdp(1_000_000);

pub(crate) const QUEUE: Notation<Queue> = Notation { form: Form::Queue, read: queue, write: written };

impl Queue {
    /// A managed queue whose limit is the discipline's own.
    pub fn managed(discipline: Discipline) -> Self {
        let limit = match discipline.limit() {
            Limit::Bdp => ONE_BDP,
            Limit::Packets(packets) => QueueLimit::Packets(packets),
            Limit::Bytes(bytes) => QueueLimit::Bytes(bytes),
            Limit::Unlimited => QueueLimit::Unlimited,
        };
        Self { limit, discipline: Some(discipline) }
    }

    /// The same with its limit in packets or bytes.
    pub fn resolve(&self, limit: DropTail) -> QueueSpec {
        match (self.discipline, limit) {
            (None, DropTail::Packets(packets)) => QueueSpec::Packets(packets),
            (None, DropTail::Bytes(bytes)) => QueueSpec::Bytes(bytes),
            (Some(discipline), limit) => QueueSpec::Managed(discipline, limit),
        }
    }
}

/// The key that chooses the discipline.
pub(crate) fn kind() -> Row<'static> {
    Row::by_hand("kind", Form::Words(Discipline::NAMES), &KINDS).required()
}

/// Every discipline with its line.
static KINDS: LazyLock<String> = LazyLock::new(|| {
    let lines = Discipline::all().map(|discipline| format!("{}: {}", discipline.name(), discipline.about()));
    lines.collect::<Vec<_>>().join("; ")
});

/// Keys of a managed queue.
pub(crate) fn rows(queue: &mut Queue) -> Vec<Row<'_>> {
    let limit = Row::new("limit", LIMIT, &mut queue.limit, "capacity of the queue, as in a queue without a kind");
    let parameters = queue.discipline.as_mut().map_or(Vec::new(), Discipline::parameters);
    [limit].into_iter().chain(parameters.into_iter().map(row)).collect()
}

/// The key of a parameter.
pub(crate) fn row(parameter: Parameter<'_>) -> Row<'_> {
    let Parameter { name, about, value } = parameter;
    match value {
        Value::Time(place) => Row::new(name, POSITIVE_TIME, place, about),
        Value::Probability(place) => Row::new(name, PROBABILITY, place, about),
        Value::Flag(place) => Row::new(name, FLAG, place, about),
        Value::Threshold(place) => Row::new(name, THRESHOLD, place, about),
        Value::Packet(place) => Row::new(name, PACKET, place, about),
        Value::Count(place) => Row::new(name, COUNT, place, about),
        Value::Real(place) => Row::new(name, real(0.0), place, about),
        Value::Rate(place) => Row::optional(name, RATE, place, about).silent("none"),
        Value::Whole(place, min, max) => Row::new(name, integer(min.into(), max.into()), place, about),
        Value::Options(place) => Row::new(name, OPTIONS, place, about),
        Value::Segments(place) => Row::new(name, word(), place, about),
        Value::Ecn(place) => Row::new(name, word(), place, about),
        Value::Answer(place) => Row::new(name, word(), place, about),
    }
}

/// A limit, or a table of [`Section::Queue`].
fn queue(report: &mut Report, key: &'static Key, node: &Node) -> Option<Queue> {
    if node.as_table().is_none() {
        return Some(Queue { limit: value::limit(report, key, node)?, discipline: None });
    }
    let fields = Fields::open(report, Section::Queue, Some(node));
    let kind = fields.get(report, "kind", value::word)?;
    let mut queue = Queue::managed(Discipline::all().find(|discipline| discipline.name() == kind)?);
    if !fields.fill(report, Some(kind), rows(&mut queue)) {
        return None;
    }
    match queue.discipline?.check() {
        Ok(()) => Some(queue),
        Err(Misfit { parameter, message, help }) => {
            let at = fields.written(parameter).map_or(node.at, |node| node.at);
            report.error(Code::Conflict, at, message).label("does not fit the others").help(help);
            None
        }
    }
}

fn written(queue: &Queue) -> String {
    match queue.discipline {
        None => (LIMIT.write)(&queue.limit),
        Some(discipline) => inline(&[("kind", quoted(discipline.name()))], &rows(&mut queue.clone())),
    }
}
