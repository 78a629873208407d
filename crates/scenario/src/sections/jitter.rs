//! `jitter`: the variation of a path's delay, in netem's words.

use super::fields::{Fields, Pair};
use super::path::Way;
use super::traces::Traces;
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Form, Key, Section};
use crate::notation::{Notation, PROBABILITY, TIME, word};
use crate::row::{Row, inline};
use crate::tree::{Node, Report, quoted};
use crate::written;
use anabranch_network::{DelayDistribution, DelayTable, JitterSpec};
use anabranch_units::{Direction, Duration};
use std::sync::Arc;

pub(crate) const JITTER: Notation<JitterSpec> = Notation { form: Form::Jitter, read: jitter, write: written_jitter };
const DISTRIBUTION: Notation<DelayDistribution> =
    Notation { form: Form::DelayDistribution, read: distribution, write: |it| quoted(name(it)) };

/// The order of packets with jitter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    Kept,
    Free,
}

/// The words of distributions.
pub(crate) const NAMES: &[&str] = &["uniform", "normal", "pareto", "paretonormal"];

/// Each distribution of [`NAMES`], with its word.
fn named() -> impl Iterator<Item = (&'static str, DelayDistribution)> {
    use DelayDistribution::{Normal, Pareto, ParetoNormal, Uniform};
    NAMES.iter().copied().zip([Uniform, Normal, Pareto, ParetoNormal])
}

/// The end of the name of a file with a table.
const TABLE: &str = ".dist";

/// A jitter while it is read.
#[derive(Clone)]
pub(crate) struct Draft {
    spec: JitterSpec,
    order: Order,
}

impl Default for Draft {
    fn default() -> Self {
        Self::from(&JitterSpec::NONE)
    }
}

impl From<&JitterSpec> for Draft {
    fn from(spec: &JitterSpec) -> Self {
        Self { spec: spec.clone(), order: if spec.free { Order::Free } else { Order::Kept } }
    }
}

/// Keys of the table form.
#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn rows(draft: &mut Draft) -> Vec<Row<'_>> {
    let spec = &mut draft.spec;
    vec![
        Row::new("spread", TIME, &mut spec.spread, "half the width of a uniform distribution, the standard deviation of a normal one; at most the delay").required(),
        Row::new("correlation", PROBABILITY, &mut spec.correlation, "the previous packet's share in a packet's uniform number; as in netem, it also narrows the distribution"),
        Row::new("distribution", DISTRIBUTION, &mut spec.distribution, "the distribution of the delay: a word of netem, or a table in iproute2's format; a delay below zero is zero"),
        Row::new("order", word(), &mut draft.order, "kept: no packet overtakes another; free: a packet arrives when it is due, also before earlier ones"),
    ]
}

/// A spread, or a table of [`Section::Jitter`].
fn jitter(report: &mut Report, key: &'static Key, node: &Node) -> Option<JitterSpec> {
    if node.as_table().is_none() {
        return Some(JitterSpec { spread: value::duration(report, key, node)?, ..JitterSpec::NONE });
    }
    let fields = Fields::open(report, Section::Jitter, Some(node));
    let mut draft = Draft::default();
    let read = fields.fill(report, None, rows(&mut draft));
    read.then_some(JitterSpec { free: draft.order == Order::Free, ..draft.spec })
}

fn written_jitter(spec: &JitterSpec) -> String {
    if *spec == (JitterSpec { spread: spec.spread, ..JitterSpec::NONE }) {
        return written::duration(spec.spread);
    }
    inline(&[], &rows(&mut Draft::from(spec)))
}

/// A word, or the name of a file, which is yet to be read.
fn distribution(report: &mut Report, key: &'static Key, node: &Node) -> Option<DelayDistribution> {
    let text = value::reference(report, key, node)?;
    if text.ends_with(TABLE) {
        return Some(DelayDistribution::Table(Arc::new(DelayTable::unread(text))));
    }
    let found = named().find(|(word, _)| *word == text).map(|(_, distribution)| distribution);
    if found.is_none() {
        let message = format!("there is no distribution named \"{text}\"");
        value::unknown_word(report, Code::UnknownWord, node, message, NAMES.iter().copied());
    }
    found
}

fn name(distribution: &DelayDistribution) -> &str {
    if let DelayDistribution::Table(table) = distribution {
        return &table.file;
    }
    named().find(|(_, known)| known == distribution).map_or("", |(word, _)| word)
}

/// Reads the table that the jitter in `node` names, if any. False if that is impossible, which was reported.
pub(crate) fn load(report: &mut Report, traces: &mut Traces<'_>, node: &Node, spec: &mut JitterSpec) -> bool {
    let DelayDistribution::Table(table) = &spec.distribution else { return true };
    let at = node.as_table().and_then(|table| table.get("distribution")).unwrap_or(node);
    let read = traces.table(report, at, &table.file);
    let found = read.is_some();
    spec.distribution = read.map_or(DelayDistribution::Uniform, DelayDistribution::Table);
    found
}

/// Reads the tables of both directions of a path, and reports a spread beyond the delay.
pub(crate) fn finish(report: &mut Report, traces: &mut Traces<'_>, fields: &Fields<'_>, ways: &mut Pair<Way>) -> bool {
    let before = report.calls();
    let (places, delays) = (fields.places("jitter"), fields.places("delay"));
    let has_zero = fields.key("delay").has_default();
    for (direction, way) in [(Direction::Down, &mut ways.down.spec), (Direction::Up, &mut ways.up.spec)] {
        let Some(node) = places.get(direction) else { continue };
        load(report, traces, node, &mut way.jitter);
        let has_delay = has_zero || delays.get(direction).is_some() || way.recorded_delay.is_some();
        if has_delay && fields.are_sound(report, &["delay", "jitter", "trace"]) {
            check_spread(report, node, &way.jitter, way.least_delay());
        }
    }
    report.calls() == before
}

/// Reports a spread beyond the delay at `node`.
pub(crate) fn check_spread(report: &mut Report, node: &Node, jitter: &JitterSpec, delay: Duration) {
    if jitter.spread > delay {
        let at = node.as_table().and_then(|table| table.get("spread")).unwrap_or(node).at;
        report
            .error(Code::Conflict, at, format!("a jitter of {} around a delay of {delay}", jitter.spread))
            .label("a packet would arrive before it is sent")
            .help(format!("at most the delay, {delay}"));
    }
}
