//! `loss`, `reorder`, `outage`: values of more than one number.

use super::fields::Fields;
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Form, Key, Section};
use crate::notation::{Notation, PROBABILITY, TIME};
use crate::row::{Row, inline};
use crate::tree::{Node, Report, Value, quoted};
use crate::written;
use anabranch_network::{LossSpec, ReorderSpec};
use anabranch_units::{Duration, Instant};

pub(crate) const LOSS: Notation<LossSpec> = Notation { form: Form::Loss, read: loss, write: written_loss };
pub(crate) const REORDER: Notation<ReorderSpec> =
    Notation { form: Form::Reorder, read: reorder, write: written_reorder };
pub(crate) const OUTAGES: Notation<Outages> = Notation { form: Form::Outages, read: outages, write: written_outages };

/// Times from and to which no packet arrives, in ascending order.
type Outages = Vec<(Instant, Instant)>;

/// The only model of bursts.
const GILBERT_ELLIOTT: &str = "gilbert-elliott";

/// The parameters of [`GILBERT_ELLIOTT`], in the words of [`LossSpec`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    p: f64,
    r: f64,
    h: f64,
    k: f64,
}

impl Default for Bursts {
    fn default() -> Self {
        Self { p: 0.0, r: 0.0, h: 0.0, k: 1.0 }
    }
}

/// Keys of the table form of `loss`.
#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn loss_rows(bursts: &mut Bursts) -> Vec<Row<'_>> {
    vec![
        Row::by_hand("kind", Form::Words(&[GILBERT_ELLIOTT]), "the model of loss").required(),
        Row::new("p", PROBABILITY, &mut bursts.p, "probability of going from good to bad, per packet").required(),
        Row::new("r", PROBABILITY, &mut bursts.r, "probability of going from bad to good, per packet").required(),
        Row::new("h", PROBABILITY, &mut bursts.h, "probability of delivery in the bad state"),
        Row::new("k", PROBABILITY, &mut bursts.k, "probability of delivery in the good state"),
    ]
}

/// A probability, or a model of bursts.
fn loss(report: &mut Report, key: &'static Key, node: &Node) -> Option<LossSpec> {
    if node.as_table().is_none() {
        let p = value::probability(report, key, node)?;
        return Some(if p == 0.0 { LossSpec::None } else { LossSpec::Bernoulli(p) });
    }
    let fields = Fields::open(report, Section::Loss, Some(node));
    let kind = fields.get(report, "kind", value::word);
    let mut bursts = Bursts::default();
    let read = fields.fill(report, None, loss_rows(&mut bursts));
    let Bursts { p, r, h, k } = bursts;
    kind.filter(|_| read).map(|_| LossSpec::GilbertElliott { p, r, h, k })
}

fn written_loss(loss: &LossSpec) -> String {
    match *loss {
        LossSpec::None => written::probability(0.0),
        LossSpec::Bernoulli(p) => written::probability(p),
        LossSpec::GilbertElliott { p, r, h, k } => {
            inline(&[("kind", quoted(GILBERT_ELLIOTT))], &loss_rows(&mut Bursts { p, r, h, k }))
        }
    }
}

/// No packet is held back; with a probability alone, so long.
pub(crate) const NO_REORDERING: ReorderSpec = ReorderSpec { probability: 0.0, by: Duration::from_millis(10) };

/// Keys of the table form of `reorder`.
#[rustfmt::skip]
pub(crate) fn reorder_rows(spec: &mut ReorderSpec) -> Vec<Row<'_>> {
    vec![
        Row::new("probability", PROBABILITY, &mut spec.probability, "probability that a packet is held back").required(),
        Row::new("by", TIME, &mut spec.by, "how long a packet is held back"),
    ]
}

/// A probability, or one with the delay of a held-back packet.
fn reorder(report: &mut Report, key: &'static Key, node: &Node) -> Option<ReorderSpec> {
    let mut spec = NO_REORDERING;
    if node.as_table().is_none() {
        spec.probability = value::probability(report, key, node)?;
        return Some(spec);
    }
    let fields = Fields::open(report, Section::Reorder, Some(node));
    fields.fill(report, None, reorder_rows(&mut spec)).then_some(spec)
}

fn written_reorder(spec: &ReorderSpec) -> String {
    inline(&[], &reorder_rows(&mut spec.clone()))
}

/// Pairs of times, each after the previous one.
fn outages(report: &mut Report, key: &'static Key, node: &Node) -> Option<Outages> {
    let Value::List(items) = &node.value else {
        value::wrong_type(report, key, node);
        return None;
    };
    let mut outages: Outages = Vec::new();
    let mut fine = true;
    for item in items {
        let Some((from, to)) = outage(report, key, item) else {
            fine = false;
            continue;
        };
        let why = match outages.last() {
            _ if to <= from => "ends before it begins",
            Some((_, last)) if from < *last => "begins before the outage before it ends",
            _ => {
                outages.push((from, to));
                continue;
            }
        };
        fine = false;
        report
            .error(Code::ImpossibleValue, item.at, format!("this outage {why}"))
            .label(why)
            .help(format!("expected {}, each after the one before", key.form.expected()));
    }
    fine.then_some(outages)
}

fn outage(report: &mut Report, key: &'static Key, node: &Node) -> Option<(Instant, Instant)> {
    match &node.value {
        Value::List(pair) if pair.len() == 2 => {
            let [from, to] = [&pair[0], &pair[1]].map(|node| value::duration(report, key, node));
            Some((Instant::ZERO + from?, Instant::ZERO + to?))
        }
        _ => {
            value::wrong_type(report, key, node);
            None
        }
    }
}

fn written_outages(outages: &Outages) -> String {
    let pair = |(from, to): &(Instant, Instant)| format!("[{}, {}]", written::instant(*from), written::instant(*to));
    format!("[{}]", outages.iter().map(pair).collect::<Vec<_>>().join(", "))
}
