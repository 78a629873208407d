//! `[[medium]]`, and `shared` and `medium` of a path or link: air that several bottlenecks divide.

use super::fields::{Fields, Pair};
use super::network::Names;
use super::value;
use crate::diagnostic::Code;
use crate::notation::{TIME, integer};
use crate::row::Row;
use crate::tree::{Node, Report};
use anabranch_network::{BottleneckSpec, CapacitySpec, MediumSpec, Topology};
use anabranch_units::{Direction, Duration};
use std::sync::Arc;

/// The most packets of an aggregated frame: a block acknowledgment of 802.11be covers 1024 (IEEE 802.11be §9.3.1.8).
const MOST_PACKETS: i64 = 1024;

/// Keys of a medium.
#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn rows(medium: &mut MediumSpec) -> Vec<Row<'_>> {
    vec![
        Row::new("overhead", TIME, &mut medium.overhead, "airtime of each turn before its first bit: contention, preamble, acknowledgment"),
        Row::new("packets", integer(1, MOST_PACKETS), &mut medium.packets, "the most packets of one turn, which have its overhead once: an aggregated frame"),
    ]
}

/// A medium while it is read.
pub(crate) fn blank(name: &str) -> MediumSpec {
    MediumSpec { name: name.into(), overhead: Duration::ZERO, packets: 1 }
}

/// Reads all media; those with a mistake, which was reported, are as if they had no keys.
pub(super) fn media(report: &mut Report, names: &Names, media: &[Fields<'_>]) -> Vec<Arc<MediumSpec>> {
    let read = |(index, fields): (usize, &Fields<'_>)| {
        let mut spec = blank(names.media.name(index).unwrap_or_default());
        fields.fill(report, None, rows(&mut spec));
        Arc::new(spec)
    };
    media.iter().enumerate().map(read).collect()
}

/// The medium of each direction of a path or link, as its `medium` names it.
pub(super) fn named_by(
    report: &mut Report,
    names: &Names,
    media: &[Arc<MediumSpec>],
    fields: &Fields<'_>,
) -> Pair<Option<Arc<MediumSpec>>> {
    let mut named = fields.pair(report, "medium", |report, key, node| names.medium(report, key, node));
    let mut of = |direction| named.take(direction).and_then(|index: usize| media.get(index).cloned());
    Pair { down: of(Direction::Down), up: of(Direction::Up) }
}

/// The medium of each direction of a path, as its `medium` names it or its `shared` has it.
pub(super) fn of_path(
    report: &mut Report,
    names: &Names,
    media: &[Arc<MediumSpec>],
    fields: &Fields<'_>,
) -> Pair<Option<Arc<MediumSpec>>> {
    let named = named_by(report, names, media, fields);
    let Some(node) = fields.written("shared").filter(|_| fields.get(report, "shared", value::flag) == Some(true))
    else {
        return named;
    };
    if fields.written("medium").is_some() {
        report
            .error(Code::Conflict, node.at, "a path has a medium of its own (`shared`) or a named one, not both")
            .label("the path has a `medium`")
            .help("leave `shared` out: directions on one medium divide it");
    }
    if fields.written("link").is_some() {
        report
            .error(Code::Conflict, node.at, "`shared` is of a path with bottlenecks of its own in both directions")
            .label("this path names a link")
            .help("write `medium` under the [[link]], and the medium as [[medium]]");
    }
    let name = fields.written("name").and_then(Node::as_text).unwrap_or_default();
    let medium = Some(Arc::new(blank(&own_name(name))));
    Pair { down: medium.clone(), up: medium }
}

/// The name of a path's own medium: no file can write it.
fn own_name(path: &str) -> String {
    format!("path.{path}")
}

/// Whether the medium of a bottleneck is its path's own.
pub(crate) fn is_own(spec: &BottleneckSpec, path: &str) -> bool {
    spec.medium.as_ref().is_some_and(|medium| medium.name == own_name(path))
}

/// The name of a bottleneck's medium, if a file can write it.
pub(crate) fn named(spec: &BottleneckSpec) -> Option<&str> {
    spec.medium.as_ref().map(|medium| medium.name.as_str()).filter(|name| !name.contains('.'))
}

/// Reports the `trace` or `burst` of a direction on a shared medium: a station sends its frames at a rate.
pub(super) fn check_capacity(
    report: &mut Report,
    fields: &Fields<'_>,
    direction: Direction,
    capacity: Option<&CapacitySpec>,
) {
    let is_recorded = matches!(capacity, Some(CapacitySpec::Trace(_) | CapacitySpec::Steps(_)));
    if let Some(node) = fields.places("trace").get(direction).filter(|_| is_recorded) {
        report
            .error(Code::Conflict, node.at, "a recorded capacity is what its medium left: it divides none")
            .label("its medium is shared")
            .help("leave `trace` out, or the medium");
    }
    if let Some(node) = fields.places("burst").get(direction) {
        refuse_burst(report, node);
    }
}

fn refuse_burst(report: &mut Report, node: &Node) {
    report
        .error(Code::Conflict, node.at, "a station of a shared medium has a rate, and no shaper")
        .label("its medium is shared")
        .help("leave `burst` out, or the medium");
}

/// Reports a burst at `node` of a bottleneck on a shared medium.
pub(crate) fn check_burst(report: &mut Report, node: &Node, spec: Option<&BottleneckSpec>) {
    if spec.is_some_and(|spec| spec.medium.is_some()) {
        refuse_burst(report, node);
    }
}

/// Reports media that no path uses, itself or by its link.
pub(super) fn check_use(report: &mut Report, fields: &[Fields<'_>], media: &[Arc<MediumSpec>], topology: &Topology) {
    let uses = |medium: &Arc<MediumSpec>| {
        topology.paths.iter().any(|path| {
            [Direction::Down, Direction::Up].into_iter().any(|direction| {
                let bottleneck = &path.way(direction).bottleneck;
                let links = bottleneck.route().iter().filter_map(|link| topology.links.get(*link));
                let specs = bottleneck.own().into_iter().chain(links.map(|link| link.bottleneck(direction)));
                specs.filter_map(|spec| spec.medium.as_ref()).any(|used| used.name == medium.name)
            })
        })
    };
    for (fields, medium) in fields.iter().zip(media).filter(|(_, medium)| !uses(medium)) {
        let at = fields.written("name").map_or(fields.at, |node| node.at);
        report
            .error(Code::Conflict, at, format!("no path uses the medium \"{}\"", medium.name))
            .label("nothing is sent over it")
            .help(format!(
                "write `medium = \"{}\"` under a [[path]], or under the [[link]] that it crosses",
                medium.name
            ));
    }
}
