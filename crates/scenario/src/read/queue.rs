//! `queue`: a limit, or active queue management with one.

use super::fields::{Fields, check_only};
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Key, Section};
use crate::quantity::{QueueLimit, Threshold};
use crate::tree::{Node, Report};
use anabranch_network::{CodelSpec, DropTail, QueueSpec, RedSpec};

/// A queue as written: a limit in bandwidth-delay products depends on rates and delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Queue {
    pub limit: QueueLimit,
    pub manager: Manager,
}

/// Active queue management, which drops packets before the limit is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Manager {
    Nobody,
    Red(RedSpec),
    Codel(CodelSpec),
}

impl Queue {
    /// The same with its limit in packets or bytes.
    pub fn resolve(&self, limit: DropTail) -> QueueSpec {
        match (self.manager, limit) {
            (Manager::Nobody, DropTail::Packets(packets)) => QueueSpec::Packets(packets),
            (Manager::Nobody, DropTail::Bytes(bytes)) => QueueSpec::Bytes(bytes),
            (Manager::Red(spec), limit) => QueueSpec::Red(spec, limit),
            (Manager::Codel(spec), limit) => QueueSpec::Codel(spec, limit),
        }
    }
}

/// RFC 8289 leaves it open; 1000 packets is Linux's default.
const CODEL_LIMIT: QueueLimit = QueueLimit::Packets(1000);
const RED_LIMIT: QueueLimit = QueueLimit::Bdp(1_000_000);

/// Keys that only some kinds have, with these kinds.
const ONLY: &[(&str, &[&str])] = &[
    ("min", &["red"]),
    ("max", &["red"]),
    ("max_p", &["red"]),
    ("weight", &["red"]),
    ("gentle", &["red"]),
    ("wait", &["red"]),
    ("mean_packet", &["red"]),
    ("target", &["codel"]),
    ("interval", &["codel"]),
];

/// A limit, or a table of [`Section::Queue`].
pub(crate) fn queue(report: &mut Report, key: &'static Key, node: &Node) -> Option<Queue> {
    if node.as_table().is_none() {
        return Some(Queue { limit: value::limit(report, key, node)?, manager: Manager::Nobody });
    }
    let fields = Fields::open(report, Section::Queue, Some(node));
    let kind = fields.get(report, "kind", value::word)?;
    check_only(report, &fields, ONLY, "a queue", kind);
    let fallback = if kind == "red" { RED_LIMIT } else { CODEL_LIMIT };
    let limit = match fields.written("limit") {
        Some(_) => fields.get(report, "limit", value::limit),
        None => Some(fallback),
    };
    let manager = match kind {
        "red" => Manager::Red(red(report, &fields)?),
        _ => Manager::Codel(codel(report, &fields)?),
    };
    Some(Queue { limit: limit?, manager })
}

fn codel(report: &mut Report, fields: &Fields<'_>) -> Option<CodelSpec> {
    let [target, interval] = ["target", "interval"].map(|name| fields.get(report, name, value::duration));
    let ecn = fields.get(report, "ecn", value::flag);
    Some(CodelSpec { target: target?, interval: interval?, ecn: ecn? })
}

fn red(report: &mut Report, fields: &Fields<'_>) -> Option<RedSpec> {
    let min = fields.get(report, "min", value::threshold);
    let max = fields.get(report, "max", value::threshold);
    let max_p = fields.get(report, "max_p", value::probability);
    let weight = fields.get(report, "weight", value::probability);
    let [gentle, wait, ecn] = ["gentle", "wait", "ecn"].map(|name| fields.get(report, name, value::flag));
    let mean_packet = fields.get(report, "mean_packet", value::size);
    let (min, max, in_bytes) = thresholds(report, fields, min?, max)?;
    Some(RedSpec {
        min,
        max,
        in_bytes,
        max_p: max_p?,
        weight: weight?,
        gentle: gentle?,
        wait: wait?,
        ecn: ecn?,
        mean_packet: u32::try_from(mean_packet?).ok()?,
    })
}

/// Both in packets or both in bytes, the upper one above the lower; zero leaves the value to the network.
fn thresholds(
    report: &mut Report,
    fields: &Fields<'_>,
    min: Threshold,
    max: Option<Threshold>,
) -> Option<(f64, f64, bool)> {
    let Some(written) = fields.written("max") else { return Some((min.amount, 3.0 * min.amount, min.in_bytes)) };
    let max = max?;
    if min.amount > 0.0 && max.amount > 0.0 && min.in_bytes != max.in_bytes {
        report
            .error(Code::Conflict, written.at, "one threshold counts packets, the other bytes")
            .label(if max.in_bytes { "bytes" } else { "packets" })
            .help("write both in packets, or both in bytes");
        return None;
    }
    if max.amount > 0.0 && max.amount < min.amount {
        report
            .error(Code::ImpossibleValue, written.at, "`max` is below `min`")
            .label("below `min`")
            .help("the drop probability rises from zero at `min` to `max_p` at `max`");
        return None;
    }
    Some((min.amount, max.amount, min.in_bytes || max.in_bytes))
}
