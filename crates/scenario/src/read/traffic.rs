//! `[[traffic]]`: the applications.

use super::fields::{Fields, Only, check_only, required};
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Key, MAX_FLOWS, Section};
use crate::scenario::{Arrivals, ConnectionsPer, ObjectSizes, Traffic, TrafficKind};
use crate::suggest::nearest;
use crate::tree::{Node, Report};
use anabranch_units::Duration;

/// One unlimited bulk transfer unless the file has traffic.
pub(crate) fn traffic(report: &mut Report, entries: &[Fields<'_>]) -> Option<Vec<Traffic>> {
    if let Some(second) = entries.get(1) {
        report
            .error(Code::NotAvailable, second.at, "several [[traffic]] tables are not available yet")
            .label("the second one")
            .help("this version runs one kind of application; `flows` sets their number");
    }
    if entries.is_empty() {
        return Some(vec![TrafficKind::Bulk { size: None }.into()]);
    }
    entries.iter().map(|fields| application(report, fields)).collect()
}

/// Kinds that may have several flows.
const SINGLE: &[&str] = &["bulk", "frames", "request"];

/// The keys that only some kinds of traffic have.
const ONLY: &Only = &[
    ("interval", &["frames", "request"]),
    ("count", &["frames", "request"]),
    ("request", &["request", "web"]),
    ("objects", &["web"]),
    ("connections", &["web"]),
    ("connections_per", &["web"]),
    ("sizes", &["web"]),
    ("flows", SINGLE),
    ("arrivals", SINGLE),
];

fn application(report: &mut Report, fields: &Fields<'_>) -> Option<Traffic> {
    let word = fields.get(report, "kind", value::word)?;
    check_only(report, fields, ONLY, "traffic", word);
    let kind = match word {
        "bulk" => Some(TrafficKind::Bulk { size: fields.get(report, "size", value::size) }),
        "frames" => frames(report, fields),
        "request" => request(report, fields),
        _ => web(report, fields),
    };
    let flows = fields.get(report, "flows", number);
    let arrivals = fields.get(report, "arrivals", arrivals);
    Some(Traffic { kind: kind?, flows: flows?, arrivals: arrivals? })
}

fn number(report: &mut Report, key: &'static Key, node: &Node) -> Option<u32> {
    value::integer(report, key, node).and_then(|number| u32::try_from(number).ok())
}

fn count(report: &mut Report, fields: &Fields<'_>) -> Option<u64> {
    fields.get(report, "count", value::integer).and_then(|count| u64::try_from(count).ok())
}

fn frames(report: &mut Report, fields: &Fields<'_>) -> Option<TrafficKind> {
    let size = required(report, fields, "size", value::size);
    let interval = required(report, fields, "interval", |report, key, node| {
        let interval = value::duration(report, key, node)?;
        if interval.is_zero() {
            value::impossible(report, key, node, "must be above zero for frames");
            return None;
        }
        Some(interval)
    });
    let count = count(report, fields);
    Some(TrafficKind::Frames { size: size?, interval: interval?, count })
}

fn request(report: &mut Report, fields: &Fields<'_>) -> Option<TrafficKind> {
    let size = required(report, fields, "size", value::size);
    let request = fields.get(report, "request", value::size);
    let interval = match fields.written("interval") {
        Some(_) => fields.get(report, "interval", value::duration),
        None => Some(Duration::ZERO),
    };
    let count = count(report, fields);
    Some(TrafficKind::Request { request: request?, size: size?, interval: interval?, count })
}

fn web(report: &mut Report, fields: &Fields<'_>) -> Option<TrafficKind> {
    let size = required(report, fields, "size", value::size);
    let objects = required(report, fields, "objects", number);
    let connections = fields.get(report, "connections", number);
    let connections_per = match fields.get(report, "connections_per", value::word) {
        Some("object") => ConnectionsPer::Object,
        _ => ConnectionsPer::Page,
    };
    let sizes = fields.get(report, "sizes", value::word);
    let request = fields.get(report, "request", value::size);
    if let (Some(bytes), Some(objects), Some(node)) = (size, objects, fields.written("size"))
        && bytes < objects.into()
    {
        value::impossible(report, fields.key("size"), node, "is less than a byte for each object");
    }
    if let (ConnectionsPer::Object, Some(objects), Some(node)) = (connections_per, objects, fields.written("objects"))
        && i64::from(objects) > MAX_FLOWS
    {
        value::impossible(report, fields.key("objects"), node, "needs more ports than there are: one per connection");
    }
    let sizes = if sizes? == "lognormal" { ObjectSizes::Lognormal } else { ObjectSizes::Equal };
    let (size, objects, connections, request) = (size?, objects?, connections?, request?);
    Some(TrafficKind::Web { size, objects, connections, connections_per, sizes, request })
}

const TOGETHER: &str = "together";

/// [`TOGETHER`], or a table.
fn arrivals(report: &mut Report, key: &'static Key, node: &Node) -> Option<Arrivals> {
    if node.as_table().is_some() {
        let fields = Fields::open(report, Section::Arrivals, Some(node));
        let kind = fields.get(report, "kind", value::word);
        let rate = fields.get(report, "rate", value::real);
        return kind.and(Some(Arrivals::Poisson { rate: rate? }));
    }
    let Some(text) = node.as_text() else {
        value::wrong_type(report, key, node);
        return None;
    };
    if text == TOGETHER {
        return Some(Arrivals::Together);
    }
    let help = match nearest(text, [TOGETHER]) {
        Some(word) => format!("did you mean \"{word}\"?"),
        None => format!("expected {}", key.form.expected()),
    };
    let message = format!("`{}` cannot be \"{text}\"", key.full_name());
    report.error(Code::UnknownWord, node.at, message).label("unknown").help(help);
    None
}
