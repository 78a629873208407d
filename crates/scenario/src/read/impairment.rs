//! `loss`, `reorder`, `outage`: values of more than one number.

use super::fields::Fields;
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Key, Section};
use crate::tree::{Node, Report, Value};
use anabranch_network::{LossSpec, ReorderSpec};
use anabranch_units::Instant;

/// A probability, or a model of bursts.
pub(crate) fn loss(report: &mut Report, key: &'static Key, node: &Node) -> Option<LossSpec> {
    if node.as_table().is_none() {
        let p = value::probability(report, key, node)?;
        return Some(if p == 0.0 { LossSpec::None } else { LossSpec::Bernoulli(p) });
    }
    let fields = Fields::open(report, Section::Loss, Some(node));
    let kind = fields.get(report, "kind", value::word);
    let [p, r, h, k] = ["p", "r", "h", "k"].map(|name| fields.get(report, name, value::probability));
    kind?;
    Some(LossSpec::GilbertElliott { p: p?, r: r?, h: h?, k: k? })
}

/// A probability, or one with the delay of a held-back packet.
pub(crate) fn reorder(report: &mut Report, key: &'static Key, node: &Node) -> Option<ReorderSpec> {
    if node.as_table().is_some() {
        let fields = Fields::open(report, Section::Reorder, Some(node));
        let probability = fields.get(report, "probability", value::probability);
        let by = fields.get(report, "by", value::duration);
        return Some(ReorderSpec { probability: probability?, by: by? });
    }
    let probability = value::probability(report, key, node)?;
    let by = Fields::open(report, Section::Reorder, None).get(report, "by", value::duration)?;
    Some(ReorderSpec { probability, by })
}

/// Pairs of times, each after the previous one.
pub(crate) fn outages(report: &mut Report, key: &'static Key, node: &Node) -> Option<Vec<(Instant, Instant)>> {
    let Value::List(items) = &node.value else {
        value::wrong_type(report, key, node);
        return None;
    };
    let mut outages: Vec<(Instant, Instant)> = Vec::new();
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
