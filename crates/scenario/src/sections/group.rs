//! `[[group]]`: pairs of hosts.

use super::fields::Fields;
use super::network::Names;
use super::{hosts as host_keys, traffic, value};
use crate::diagnostic::Code;
use crate::group::Group;
use crate::keys::{BUFFER, Form, Key, Section};
use crate::notation::{CONGESTION, FLAG, SCHEDULER, TIME, integer, word};
use crate::row::Row;
use crate::scenario::{Cross, Over, Scenario, Traffic};
use crate::tree::{Node, Report, Value};
use anabranch_units::PathId;
use std::collections::BTreeSet;

/// The most paths of a file with groups.
pub(super) const MOST_PATHS: usize = 10_000;
/// The most pairs of hosts, of all groups together.
const MOST_PAIRS: i64 = 10_000;

/// Keys that [`groups`] reads.
#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn by_hand() -> Vec<Row<'static>> {
    vec![
        Row::by_hand("name", Form::Name, "unique among groups; results have it as group.NAME").required(),
        Row::by_hand("paths", Form::Paths, "the paths of each pair, at most 32. Each pair has its own copy of a path, with its bottleneck; a [[link]] is shared, unless it is per_pair").silent("all"),
        Row::by_hand("traffic", Form::Table(Section::Traffic, "{ kind = \"bulk\", size = \"1MB\" }"), "the application of each pair").silent("that of [[traffic]]"),
    ]
}

/// Keys that set a place.
#[rustfmt::skip]
pub(crate) fn rows(group: &mut Group) -> Vec<Row<'_>> {
    vec![
        Row::new("count", integer(1, MOST_PAIRS), &mut group.count, "pairs of hosts, alike; each draws its own random values"),
        Row::new("pairing", word(), &mut group.pairing, "who sends to whom, where paths cross a fabric; each repetition draws its own. permutation: each host sends to one other and receives from one other; incast: all send to one; random: both ends of each pair are drawn"),
        Row::optional("scheduler", SCHEDULER, &mut group.scheduler, "packet scheduler, also when a run compares others").silent("the connection's"),
        Row::optional("congestion", CONGESTION, &mut group.congestion, "congestion control, also when a run compares others").silent("the connection's"),
        Row::optional("mptcp", FLAG, &mut group.mptcp, "speak Multipath TCP; false = plain TCP, over one path").silent("the connection's"),
        Row::optional("send_buffer", BUFFER, &mut group.send_buffer, "bytes written by the application and not yet acknowledged").silent("the connection's"),
        Row::optional("recv_buffer", BUFFER, &mut group.recv_buffer, "the connection's receive window").silent("the connection's"),
        Row::optional("start", TIME, &mut group.start, "when its traffic starts, warm-up included").silent("the scenario's"),
        Row::optional("start_jitter", TIME, &mut group.start_jitter, "random delay of each pair's start, below this value").silent("the scenario's"),
    ]
}

/// All groups; `None` if there was a mistake, which was reported.
pub(super) fn groups(report: &mut Report, names: &Names, entries: &[Fields<'_>]) -> Option<Vec<Group>> {
    let mut taken = BTreeSet::new();
    let groups: Vec<_> = entries.iter().map(|fields| group(report, names, fields, &mut taken)).collect();
    let groups: Vec<Group> = groups.into_iter().collect::<Option<_>>()?;
    let mut pairs = 0;
    for (group, fields) in groups.iter().zip(entries) {
        pairs += i64::from(group.count);
        if pairs > MOST_PAIRS {
            let at = fields.written("count").map_or(fields.at, |node| node.at);
            report
                .error(Code::ImpossibleValue, at, format!("a scenario has at most {MOST_PAIRS} pairs of hosts"))
                .label(format!("{pairs} with this group"));
            return None;
        }
    }
    Some(groups)
}

fn group(report: &mut Report, names: &Names, fields: &Fields<'_>, taken: &mut BTreeSet<String>) -> Option<Group> {
    let name = fields.get(report, "name", |report, key, node| {
        let name = value::name(report, key, node)?;
        if !taken.insert(name.clone()) {
            report
                .error(Code::DuplicateName, node.at, format!("there are two groups named \"{name}\""))
                .label("second use of this name")
                .help("give each group a name of its own");
        }
        Some(name)
    });
    let written = fields.get(report, "paths", |report, key, node| paths(report, names, key, node));
    let application = fields.written("traffic").map(|node| own_traffic(report, node));
    let mut group = Group::named(name?);
    let read = fields.fill(report, None, rows(&mut group));
    group.paths = match fields.written("paths") {
        Some(_) => written?,
        None => all_paths(report, names, fields)?,
    };
    group.traffic = application.map_or(Some(Vec::new()), |own| own.map(|own| vec![own]))?;
    read.then_some(group)
}

/// Every path of the file.
fn all_paths(report: &mut Report, names: &Names, fields: &Fields<'_>) -> Option<Vec<usize>> {
    let count = names.paths.len();
    if count > PathId::LIMIT {
        report
            .error(Code::MissingKey, fields.at, format!("a pair of hosts has at most {} paths", PathId::LIMIT))
            .label(format!("this group has all {count}"))
            .help("say which: paths = [\"…\"]");
        return None;
    }
    Some((0..count).collect())
}

fn paths(report: &mut Report, names: &Names, key: &'static Key, node: &Node) -> Option<Vec<usize>> {
    let Value::List(items) = &node.value else {
        value::wrong_type(report, key, node);
        return None;
    };
    if items.is_empty() || items.len() > PathId::LIMIT {
        report
            .error(Code::ImpossibleValue, node.at, format!("a pair of hosts has 1 to {} paths", PathId::LIMIT))
            .label(format!("{} here", items.len()))
            .help("name them, or leave `paths` out: a group has all paths then");
        return None;
    }
    let mut paths = Vec::new();
    for item in items {
        let path = names.path(report, key, item)?;
        if paths.contains(&path) {
            report
                .error(Code::Conflict, item.at, "this group has a path twice")
                .label("the second time")
                .help("leave one out");
            return None;
        }
        paths.push(path);
    }
    Some(paths)
}

fn own_traffic(report: &mut Report, node: &Node) -> Option<Traffic> {
    let fields = Fields::open(report, Section::Traffic, Some(node));
    traffic::application(report, &fields)
}

/// The links of which each pair has its own.
pub(super) fn per_pair(report: &mut Report, links: &[Fields<'_>]) -> Vec<usize> {
    let mut own = |fields: &Fields<'_>| fields.get(report, "per_pair", value::flag) == Some(true);
    links.iter().enumerate().filter_map(|(index, fields)| own(fields).then_some(index)).collect()
}

/// Refuses the keys that several pairs of hosts cannot have.
pub(super) fn check(
    report: &mut Report,
    groups: &[Fields<'_>],
    hosts: &Fields<'_>,
    [paths, crosses]: [&[Fields<'_>]; 2],
    scenario: &Scenario,
) {
    if groups.is_empty() {
        for node in paths.iter().filter_map(|fields| fields.written("fabric")) {
            report
                .error(Code::Conflict, node.at, "a way through a fabric is that of a pair of hosts")
                .label("of which pair?")
                .help("add [[group]] with `name = \"hosts\"`");
        }
        return;
    }
    host_keys::refuse_kernels(
        report,
        hosts,
        "groups of hosts run in virtual time alone",
        "leave the [[group]]s out: kernels, like `anabranch shell`, are one pair of hosts",
    );
    for node in crosses.iter().filter_map(|fields| fields.written("path")) {
        report
            .error(Code::Conflict, node.at, "each pair of hosts has its own copy of this path")
            .label("of which pair?")
            .help("let the path and the cross traffic go over a [[link]]");
    }
    for (fields, group) in groups.iter().zip(&scenario.groups) {
        check_settings(report, fields, group, scenario);
    }
}

/// Refuses cross traffic over a link of which each pair has its own: it would meet no pair.
pub(super) fn check_cross(report: &mut Report, crosses: &[Fields<'_>], flows: &[Option<Cross>], scenario: &Scenario) {
    for (fields, flow) in crosses.iter().zip(flows) {
        let Some(Cross { over: Over::Links(links), .. }) = flow else { continue };
        let Some(node) = fields.written("route").or(fields.written("link")) else { continue };
        let items = if let Value::List(items) = &node.value { &items[..] } else { std::slice::from_ref(node) };
        for (item, _) in items.iter().zip(links).filter(|(_, link)| scenario.per_pair.contains(link)) {
            report
                .error(Code::Conflict, item.at, "each pair of hosts has its own copy of this link")
                .label("of which pair?")
                .help("let cross traffic go over a link that is not `per_pair`");
        }
    }
}

fn check_settings(report: &mut Report, fields: &Fields<'_>, group: &Group, scenario: &Scenario) {
    if !group.mptcp.unwrap_or(scenario.settings.mptcp) && group.paths.len() > 1 {
        let at = fields.written("mptcp").map_or(fields.at, |node| node.at);
        report
            .error(Code::Conflict, at, "plain TCP (`mptcp = false`) uses one path")
            .label(format!("this group has {}", group.paths.len()))
            .help("name one: paths = [\"…\"]");
    }
    let mss = scenario.settings.mss;
    for (name, bytes) in [("send_buffer", group.send_buffer), ("recv_buffer", group.recv_buffer)] {
        if let Some(node) = fields.written(name).filter(|_| bytes.is_some_and(|bytes| bytes < mss.into())) {
            value::impossible(report, fields.key(name), node, "is smaller than one segment (`mss`)");
        }
    }
}
