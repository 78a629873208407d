//! `route` and `link`: the links that a path or cross traffic crosses.

use super::fields::{Fields, Pair};
use super::network::Names;
use super::path::Way;
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Key, Section};
use crate::tree::{Node, Report, Value};
use anabranch_network::WaySpec;
use anabranch_units::{Direction, Duration};

/// The links of each direction of a path, in the order in which its packets meet them; none where it has its own bottleneck. A name that
/// cannot be read, which was reported, is left out.
pub(crate) fn of_path(
    report: &mut Report,
    names: &Names,
    fields: &Fields<'_>,
    fabric: Option<usize>,
) -> Pair<Vec<usize>> {
    let ways = ["fabric", "route", "link"].map(|name| fields.written(name));
    if let Some(second) = ways.into_iter().flatten().nth(1) {
        report
            .error(Code::Conflict, second.at, "a path has one of `fabric`, `route` and `link`")
            .label("the second of them")
            .help("leave one out; a route may have any number of links");
    }
    if let Some(fabric) = fabric {
        let down = names.fabrics[fabric].longest();
        return Pair { up: down.iter().rev().copied().collect(), down };
    }
    if fields.written("route").is_some() {
        let down = fields.get(report, "route", |report, key, node| route(report, names, key, node)).unwrap_or_default();
        return Pair { up: down.iter().rev().copied().collect(), down };
    }
    let mut link = fields.pair(report, "link", |report, key, node| names.link(report, key, node));
    let mut links = |direction| link.take(direction).into_iter().collect();
    Pair { down: links(Direction::Down), up: links(Direction::Up) }
}

/// The fabric that a path crosses. A name that cannot be read was reported.
pub(crate) fn fabric(report: &mut Report, names: &Names, fields: &Fields<'_>) -> Option<usize> {
    fields.get(report, "fabric", |report, key, node| names.fabric(report, key, node))
}

/// The links of a list of names: at least one, each once.
pub(crate) fn route(report: &mut Report, names: &Names, key: &'static Key, node: &Node) -> Option<Vec<usize>> {
    let Value::List(items) = &node.value else {
        value::wrong_type(report, key, node);
        return None;
    };
    if items.is_empty() {
        report
            .error(Code::ImpossibleValue, node.at, format!("`{}` crosses no link", key.full_name()))
            .label("an empty route")
            .help(match key.section {
                Section::Cross => "name its links, or the `path` that it crosses",
                _ => "name its links, or leave `route` out: a path with a `rate` has a bottleneck of its own",
            });
        return None;
    }
    let mut links = Vec::new();
    for item in items {
        let link = names.link(report, key, item)?;
        if links.contains(&link) {
            report
                .error(Code::Conflict, item.at, "this route goes in a circle")
                .label("the second time over this link")
                .help("a packet crosses a link once: leave one out");
            return None;
        }
        links.push(link);
    }
    Some(links)
}

/// Whether a link of the route has a delay.
pub(crate) fn has_delay(route: &Pair<Vec<usize>>, links: &[Fields<'_>]) -> bool {
    let all = route.down.iter().chain(&route.up);
    all.filter_map(|link| links.get(*link)).any(|fields| fields.written("delay").is_some())
}

/// Both delays of a path, with those of its links, of which `behind` knows each direction.
pub(crate) fn round_trip(path: &Pair<Way>, behind: impl Fn(usize, Direction) -> Option<Duration>) -> Duration {
    let links = |direction| path.get(direction).links.iter().filter_map(|link| behind(*link, direction)).collect();
    let both: [Vec<Duration>; 2] = [Direction::Down, Direction::Up].map(links);
    both.iter().flatten().fold(path.down.spec.delay + path.up.spec.delay, |sum, delay| sum + *delay)
}

/// The parts behind the bottleneck of both directions of a link; `None` if neither has any.
pub(crate) fn behind(both: [Option<WaySpec>; 2]) -> Option<Box<[WaySpec; 2]>> {
    let clean = || Way::default().spec;
    let [down, up] = both.map(|way| way.unwrap_or_else(clean));
    (down != clean() || up != clean()).then(|| Box::new([down, up]))
}
