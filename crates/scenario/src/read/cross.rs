//! `[[cross]]`: flows that share a bottleneck with the connection.

use super::fields::{Fields, Only, check_only, required};
use super::network::Names;
use super::{plugin, value};
use crate::diagnostic::Code;
use crate::keys::{Key, Section};
use crate::scenario::{Cross, CrossData, CrossKind, Distribution, PACKET_SIZES, TimeRange};
use crate::tree::{Node, Report};
use anabranch_units::{Direction, Duration, Instant};

/// The keys that only some kinds of cross traffic have.
const ONLY: &Only = &[
    ("congestion", &["tcp", "tcp-limited"]),
    ("delay", &["tcp", "tcp-limited"]),
    ("size", &["tcp"]),
    ("packets_per_second", &["tcp-limited"]),
    ("rate", &["udp", "udp-onoff"]),
    ("rate_distribution", &["tcp-limited", "udp", "udp-onoff"]),
    ("packet", &["tcp-limited", "udp", "udp-onoff"]),
    ("packet_distribution", &["tcp-limited", "udp-onoff"]),
    ("on", &["udp-onoff"]),
    ("off", &["udp-onoff"]),
    ("shape", &["udp-onoff"]),
];

/// Flows that share a bottleneck with the connection.
pub(crate) fn cross(report: &mut Report, names: &Names, fields: &Fields<'_>) -> Option<Cross> {
    let kind = fields.get(report, "kind", value::word);
    if let Some(kind) = kind {
        check_only(report, fields, ONLY, "cross traffic", kind);
    }
    let over = bottleneck(report, names, fields);
    let direction = fields.get(report, "direction", value::word);
    let count = fields.get(report, "count", value::integer);
    let start = fields.get(report, "start", range);
    let stop = fields.get(report, "stop", value::duration);
    if let (Some(start), Some(stop), Some(node)) = (start, stop, fields.written("stop"))
        && stop <= start.max
    {
        report
            .error(Code::ImpossibleValue, node.at, "this flow stops before it starts")
            .label(format!("it starts at {}", start.max))
            .help("leave `stop` out for a flow that never stops");
    }
    let kind = cross_kind(report, fields, kind?);
    let (over, shared) = over?;
    Some(Cross {
        over,
        shared,
        kind: kind?,
        direction: if direction? == "down" { Direction::Down } else { Direction::Up },
        count: u32::try_from(count?).ok()?,
        start: start?,
        stop: stop.map(|stop| Instant::ZERO + stop),
    })
}

/// A time, or a range of times.
fn range(report: &mut Report, key: &'static Key, node: &Node) -> Option<TimeRange> {
    if node.as_table().is_none() {
        let time = value::duration(report, key, node)?;
        return Some(TimeRange { min: time, max: time });
    }
    let fields = Fields::open(report, Section::Range, Some(node));
    let [min, max] = ["min", "max"].map(|name| fields.get(report, name, value::duration));
    let range = TimeRange { min: min?, max: max? };
    if range.max < range.min {
        value::impossible(report, key, node, "ends before it begins");
        return None;
    }
    Some(range)
}

/// Index of the path or link, and whether it is a link.
fn bottleneck(report: &mut Report, names: &Names, fields: &Fields<'_>) -> Option<(usize, bool)> {
    if let (Some(_), Some(link)) = (fields.written("path"), fields.written("link")) {
        report
            .error(Code::Conflict, link.at, "cross traffic goes over a `path` or a `link`, not both")
            .label("the second of the two")
            .help("leave one out");
        return None;
    }
    if fields.written("path").or(fields.written("link")).is_none() {
        fields.missing(report, fields.key("path"));
    }
    let path = fields.get(report, "path", |report, key, node| names.path(report, key, node));
    let link = fields.get(report, "link", |report, key, node| names.link(report, key, node));
    path.map(|path| (path, false)).or(link.map(|link| (link, true)))
}

fn cross_kind(report: &mut Report, fields: &Fields<'_>, kind: &str) -> Option<CrossKind> {
    match kind {
        "tcp" => {
            let size = fields.get(report, "size", value::size);
            let wrong = fields.written("size").is_some() && size.is_none();
            tcp(report, fields, (!wrong).then_some(CrossData::Bulk(size)))
        }
        "tcp-limited" => {
            let data = writes(report, fields);
            tcp(report, fields, data)
        }
        "udp" => {
            let rate = required(report, fields, "rate", value::rate);
            let rates = distribution(report, fields, "rate_distribution");
            let packet = packet(report, fields);
            Some(CrossKind::Udp { rate: rate?, rates: rates?, packet: packet? })
        }
        _ => on_off(report, fields),
    }
}

fn tcp(report: &mut Report, fields: &Fields<'_>, data: Option<CrossData>) -> Option<CrossKind> {
    let congestion = fields.get(report, "congestion", plugin::congestion);
    let delay = fields.get(report, "delay", range);
    if fields.written("delay").is_some() && delay.is_none() {
        return None;
    }
    Some(CrossKind::Tcp { congestion: congestion?, delay, data: data? })
}

/// The most packets that a flow writes per second.
const MOST_PACKETS: f64 = 1e6;

fn writes(report: &mut Report, fields: &Fields<'_>) -> Option<CrossData> {
    let per_second = required(report, fields, "packets_per_second", |report, key, node| {
        let value = value::real(report, key, node)?;
        if value > MOST_PACKETS {
            value::impossible(report, key, node, "is too large");
        }
        (value <= MOST_PACKETS).then_some(value)
    });
    let rates = distribution(report, fields, "rate_distribution");
    let sizes = packets(report, fields);
    let (packet, packets) = sizes?;
    Some(CrossData::Packets { per_second: per_second?, rates: rates?, packet, packets })
}

fn on_off(report: &mut Report, fields: &Fields<'_>) -> Option<CrossKind> {
    let rate = required(report, fields, "rate", value::rate);
    let rates = distribution(report, fields, "rate_distribution");
    let sizes = packets(report, fields);
    let [on, off]: [Option<Duration>; 2] = ["on", "off"].map(|name| required(report, fields, name, value::duration));
    let shape = fields.get(report, "shape", value::real);
    let (packet, packets) = sizes?;
    Some(CrossKind::UdpOnOff { rate: rate?, rates: rates?, packet, packets, on: on?, off: off?, shape: shape? })
}

fn packet(report: &mut Report, fields: &Fields<'_>) -> Option<u32> {
    fields.get(report, "packet", value::size).and_then(|bytes| u32::try_from(bytes).ok())
}

/// The mean size of packets, and the distribution of their sizes.
fn packets(report: &mut Report, fields: &Fields<'_>) -> Option<(u32, Distribution)> {
    let mean = packet(report, fields);
    let spread = distribution(report, fields, "packet_distribution");
    let (mean, spread) = (mean?, spread?);
    let (least, most) = PACKET_SIZES;
    if spread == Distribution::Exponential && !(least < mean && mean < most) {
        let at = fields.written("packet").map_or(fields.at, |node| node.at);
        report
            .error(Code::ImpossibleValue, at, format!("exponential sizes cannot have a mean of {mean} bytes"))
            .label("beyond the cut")
            .help(format!("they are cut to {least} to {most} bytes: the mean must lie between"));
        return None;
    }
    Some((mean, spread))
}

fn distribution(report: &mut Report, fields: &Fields<'_>, name: &str) -> Option<Distribution> {
    let word = fields.get(report, name, value::word)?;
    Some(if word == "fixed" { Distribution::Fixed } else { Distribution::Exponential })
}
