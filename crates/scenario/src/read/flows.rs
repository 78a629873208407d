//! `[[cross]]`: other flows; and what sections with kinds share.

use super::fields::Fields;
use super::network::Names;
use super::{plugin, value};
use crate::diagnostic::Code;
use crate::scenario::{Cross, CrossKind};
use crate::tree::Report;
use anabranch_units::{Duration, Instant};

/// Keys that only some kinds have, with these kinds.
pub(super) type Only = [(&'static str, &'static [&'static str])];

/// Reports keys that mean nothing for `kind`.
pub(super) fn check_only(report: &mut Report, fields: &Fields<'_>, only: &Only, what: &str, kind: &str) {
    for (name, kinds) in only {
        if let (Some(node), false) = (fields.written(name), kinds.contains(&kind)) {
            report
                .error(Code::Conflict, node.at, format!("`{name}` means nothing for {what} of kind \"{kind}\""))
                .label("does not apply")
                .help(format!("it applies to {}", kinds.join(" and ")));
        }
    }
}

/// The keys that only some kinds of cross traffic have.
const ONLY: &Only = &[
    ("congestion", &["tcp"]),
    ("rate", &["udp", "udp-onoff"]),
    ("packet", &["udp", "udp-onoff"]),
    ("on", &["udp-onoff"]),
    ("off", &["udp-onoff"]),
    ("shape", &["udp-onoff"]),
];

/// One flow that shares a bottleneck with the connection.
pub(crate) fn cross(report: &mut Report, names: &Names, fields: &Fields<'_>) -> Option<Cross> {
    let kind = fields.get(report, "kind", value::word);
    if let Some(kind) = kind {
        check_only(report, fields, ONLY, "cross traffic", kind);
    }
    let over = bottleneck(report, names, fields);
    let start = fields.get(report, "start", value::duration);
    let stop = fields.get(report, "stop", value::duration);
    if let (Some(start), Some(stop), Some(node)) = (start, stop, fields.written("stop"))
        && stop <= start
    {
        report
            .error(Code::ImpossibleValue, node.at, "this flow stops before it starts")
            .label(format!("it starts at {start}"))
            .help("leave `stop` out for a flow that never stops");
    }
    let kind = cross_kind(report, fields, kind?);
    let (over, shared) = over?;
    let stop = stop.map(|stop| Instant::ZERO + stop);
    Some(Cross { over, shared, kind: kind?, start: Instant::ZERO + start?, stop })
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
    if kind == "tcp" {
        return Some(CrossKind::Tcp { congestion: fields.get(report, "congestion", plugin::congestion)? });
    }
    let rate = required(report, fields, "rate", value::rate);
    let packet = fields.get(report, "packet", value::size).and_then(|bytes| u32::try_from(bytes).ok());
    if kind == "udp" {
        return Some(CrossKind::Udp { rate: rate?, packet: packet? });
    }
    let [on, off]: [Option<Duration>; 2] = ["on", "off"].map(|name| required(report, fields, name, value::duration));
    let shape = fields.get(report, "shape", value::real);
    Some(CrossKind::UdpOnOff { rate: rate?, packet: packet?, on: on?, off: off?, shape: shape? })
}

/// A key that is required for this kind alone.
pub(super) fn required<T>(
    report: &mut Report,
    fields: &Fields<'_>,
    name: &str,
    read: impl FnOnce(&mut Report, &'static crate::keys::Key, &crate::tree::Node) -> Option<T>,
) -> Option<T> {
    if fields.written(name).is_none() {
        fields.missing(report, fields.key(name));
    }
    fields.get(report, name, read)
}
