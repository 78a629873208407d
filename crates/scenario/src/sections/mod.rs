//! The sections of a scenario file. Each file has the keys of one section, the way from the tree to its values, and what else
//! must hold among them.

pub(crate) mod bucket;
pub(crate) mod change;
pub(crate) mod connection;
pub(crate) mod cross;
pub(crate) mod fabric;
mod fields;
pub(crate) mod group;
pub(crate) mod hosts;
mod impairment;
pub(crate) mod jitter;
pub(crate) mod medium;
pub(crate) mod middlebox;
mod mtu;
mod network;
mod options;
pub(crate) mod path;
mod plugin;
pub(crate) mod preset;
pub(crate) mod queue;
pub(crate) mod radio;
mod route;
pub(crate) mod tcp;
mod timeline;
pub(crate) mod top;
mod traces;
pub(crate) mod traffic;
pub(crate) mod value;
mod video;

pub(crate) use fields::{Pair, is_directed, unknown_key};
pub(crate) use network::Limits;
pub use network::{LEAST_PACKETS, full_packet, least_queue};
pub(crate) use plugin::{abr, abr_names, congestion, congestion_names, in_brackets, scheduler, scheduler_names};
pub(crate) use traces::Traces;

use crate::diagnostic::Code;
use crate::fabric::Shape;
use crate::group::Group;
use crate::keys::{Key, Section};
use crate::row::Row;
use crate::scenario::{Cross, CrossKind, Host, PathOptions, Scenario, TimeRange, TimelineEntry, Traffic, TrafficKind};
use crate::tree::{Node, Report, Span, Table, Value};
use anabranch_engine::FirstPath;
use anabranch_network::{Discipline, MiddleboxSpec, SlotsSpec, WakeSpec};
use anabranch_units::{Duration, PathId, Side};
use fields::Fields;
use network::Names;

/// The keys of a section, from the rows with which it is read.
pub(crate) fn keys(section: Section) -> Vec<Key> {
    let mut table = Keys { section, keys: Vec::new() };
    let mut blank = Scenario::blank();
    match section {
        Section::Top => table.add(None, top::rows(&mut blank)),
        Section::Connection => table.add(None, connection::rows(&mut blank)),
        Section::Tcp => table.add(None, tcp::rows(&mut blank)),
        Section::Hosts => table.add(None, hosts::rows(&mut blank)),
        Section::Path => {
            table.add(None, path::bottleneck());
            table.add(None, path::way(&mut path::Way::default().spec));
            table.add(None, path::options(&mut PathOptions::default()));
        }
        Section::Loss => table.add(None, impairment::loss_rows(&mut impairment::Bursts::default())),
        Section::Reorder => table.add(None, impairment::reorder_rows(&mut impairment::NO_REORDERING.clone())),
        Section::Police => table.add(None, bucket::rows(&mut bucket::BLANK.clone())),
        Section::Jitter => table.add(None, jitter::rows(&mut jitter::Draft::default())),
        Section::Arq => table.add(None, radio::arq_rows(&mut radio::Draft::default())),
        Section::Wake => table.add(None, radio::wake_rows(&mut WakeSpec::NONE.clone())),
        Section::Slots => table.add(None, radio::slots_rows(&mut SlotsSpec::NONE.clone())),
        Section::Queue => {
            table.add(None, vec![queue::kind()]);
            for discipline in Discipline::all() {
                table.add(Some(discipline.name()), queue::rows(&mut queue::Queue::managed(discipline)));
            }
        }
        Section::Middlebox => {
            table.add(None, vec![middlebox::kind()]);
            for mut spec in MiddleboxSpec::all() {
                table.add(Some(spec.name()), middlebox::rows(&mut spec));
            }
        }
        Section::Link => {
            table.add(None, path::link());
            table.add(None, path::behind(&mut path::Way::default().spec));
        }
        Section::Fabric => fabric_keys(&mut table),
        Section::Medium => {
            table.add(None, vec![path::medium_name()]);
            table.add(None, medium::rows(&mut medium::blank("")));
        }
        Section::Group => {
            table.add(None, group::by_hand());
            table.add(None, group::rows(&mut Group::named(String::new())));
        }
        Section::Cross => cross_keys(&mut table),
        Section::Range => table.add(None, cross::range_rows(&mut TimeRange::default())),
        Section::Timeline => table.add(None, timeline::rows()),
        Section::Traffic => {
            table.add(None, vec![traffic::kind()]);
            table.add(None, traffic::shared(&mut Traffic::from(TrafficKind::Bulk { size: None })));
            for kind in TrafficKind::blank() {
                table.add(Some(kind.name()), traffic::rows(&mut Traffic::from(kind)));
            }
        }
        Section::Arrivals => table.add(None, traffic::arrivals_rows(&mut 0.0)),
    }
    table.keys
}

/// Keys of a fabric: its name, those of each kind, those of its cables.
fn fabric_keys(table: &mut Keys) {
    table.add(None, fabric::by_hand());
    for mut shape in Shape::BLANK {
        table.add(Some(shape.name()), fabric::rows(&mut shape));
    }
    table.add(None, fabric::cable(&mut path::Way::default().spec));
}

/// Keys of cross traffic: where it runs, those of every kind, and those of each.
fn cross_keys(table: &mut Keys) {
    table.add(None, cross::over());
    let [first, ..] = CrossKind::blank();
    table.add(None, cross::shared(&mut Cross::blank(first)));
    for mut kind in CrossKind::blank() {
        table.add(Some(kind.name()), cross::rows(&mut kind));
    }
}

/// The table of one section while it grows.
struct Keys {
    section: Section,
    keys: Vec<Key>,
}

impl Keys {
    /// Adds keys of one kind, or of all. A key that differs in its kind alone applies to both.
    fn add(&mut self, kind: Option<&'static str>, rows: Vec<Row<'_>>) {
        for row in rows {
            let key = row.key(self.section, kind.into_iter().collect());
            match self.keys.iter_mut().find(|known| known.is_alike(&key)) {
                Some(known) => known.kinds.extend(kind),
                None => self.keys.push(key),
            }
        }
    }
}

/// A scenario, and its queues as written.
pub(crate) struct Reading {
    pub scenario: Scenario,
    pub limits: Limits,
}

/// Sections of which a file may have several.
const LISTS: [Section; 7] = [
    Section::Path,
    Section::Link,
    Section::Medium,
    Section::Group,
    Section::Cross,
    Section::Timeline,
    Section::Traffic,
];

/// Reads one scenario; `file` is its name if it states none. `None` if there was a mistake, which was reported.
pub(crate) fn scenario(report: &mut Report, traces: &mut Traces<'_>, root: &Table, file: &str) -> Option<Reading> {
    let begin = report.calls();
    let root = preset::expand(report, root);
    let (root, fabrics) = fabric::expand(report, root);
    let root = &*root;
    // Without its preset a path lacks keys, which are no mistakes of their own. The same holds of fabrics.
    if report.calls() > begin {
        return None;
    }
    check_top(report, root);
    let root_node = Node { value: Value::Table(top_keys(root)), at: Span::default() };
    let top = Fields::open(report, Section::Top, Some(&root_node));
    let [connection, tcp, hosts] = [Section::Connection, Section::Tcp, Section::Hosts]
        .map(|section| Fields::open(report, section, root.get(section.name())));
    let [paths, links, media, groups, crosses, changes, entries] = LISTS.map(|section| tables(report, root, section));
    let mut scenario = Scenario { name: stem(file), ..Scenario::blank() };
    top.fill(report, None, top::rows(&mut scenario));
    let applications = traffic::traffic(report, &entries);
    scenario.traffic = applications.clone().unwrap_or_default();
    let names = Names::read(report, [&paths, &links, &media], fabrics, most_paths(&groups));
    let read_groups = group::groups(report, &names, &groups);
    scenario.groups = read_groups.clone().unwrap_or_default();
    let is_bulk = scenario.applications().all(|traffic| matches!(traffic.kind, TrafficKind::Bulk { .. }));
    scenario.settings.tcp.nagle = is_bulk;
    scenario.per_pair = group::per_pair(report, &links);
    connection::read(report, &connection, &names, &mut scenario);
    tcp::read(report, &tcp, &mut scenario);
    hosts.fill(report, None, hosts::rows(&mut scenario));
    let hosts_fields = hosts;
    let packet = full_packet(scenario.settings.mss, scenario.hosts.ip);
    let network = network::read(report, traces, &names, [&paths, &links, &media], packet);
    let flows: Vec<_> = crosses.iter().map(|fields| cross::cross(report, &names, fields)).collect();
    let topology = network.as_ref().map(|n| &n.topology);
    let (options, hosts) = (network.as_ref().map_or(&[][..], |n| &n.options), scenario.hosts);
    let mut reader = change::Reader { traces, names: &names, topology, packet, options, hosts };
    let timeline = timeline(report, &mut reader, &changes);

    check_start(report, &top, &scenario);
    check_end(report, &top, &scenario, applications.is_some() && read_groups.is_some());
    check_paths(report, root, &paths, scenario.settings.mptcp || !groups.is_empty());
    group::check(report, &groups, &hosts_fields, [&paths, &crosses], &scenario);
    group::check_cross(report, &crosses, &flows, &scenario);
    traffic::check(report, &entries, &hosts_fields, &scenario);
    check_race(report, &connection, &scenario);
    check_presence(report, &paths, &scenario);
    if let Some(network) = &network {
        mtu::check(report, &paths, timeline.as_deref(), network, (&hosts, scenario.host(Side::Client)));
    }

    let network = network.filter(|_| report.calls() == begin)?;
    scenario.topology = network.topology;
    timeline.iter().flatten().for_each(|entry| timeline::make_room(&mut scenario.topology, &entry.change));
    scenario.paths = network.options;
    applications?;
    read_groups?;
    scenario.fabrics = names.fabrics;
    scenario.cross = flows.into_iter().collect::<Option<_>>()?;
    scenario.timeline = timeline?;
    Some(Reading { scenario, limits: network.limits })
}

/// The names that may be headers: `path`, `tcp`…
pub(crate) fn section_names() -> impl Iterator<Item = &'static str> + Clone {
    Section::ALL.into_iter().filter(|section| section.has_header()).map(Section::name).chain(["sweep"])
}

/// Reports names at the top that are neither keys nor sections.
fn check_top(report: &mut Report, root: &Table) {
    for (key, _) in &root.0 {
        if Section::Top.key(&key.name).is_none() && section_names().all(|name| name != key.name) {
            let valid: Vec<_> = Section::Top.keys().map(|key| key.name).chain(section_names()).collect();
            unknown_key(report, key.at, &key.name, "", valid.into_iter());
        }
    }
}

fn top_keys(root: &Table) -> Table {
    Table(root.0.iter().filter(|(key, _)| Section::Top.key(&key.name).is_some()).cloned().collect())
}

/// The tables of a section that may repeat.
fn tables<'t>(report: &mut Report, root: &'t Table, section: Section) -> Vec<Fields<'t>> {
    match root.get(section.name()).map(|node| (&node.value, node)) {
        None => Vec::new(),
        Some((Value::List(items), _)) => items.iter().map(|item| Fields::open(report, section, Some(item))).collect(),
        Some((_, node)) => {
            let name = section.name();
            report
                .error(Code::WrongType, node.at, format!("`{name}` must be a list of tables, not {}", node.kind()))
                .label("one pair of brackets")
                .help(format!("write [[{name}]]: a scenario may have several"));
            Vec::new()
        }
    }
}

/// All changes in order of time.
fn timeline(
    report: &mut Report,
    reader: &mut change::Reader<'_, '_>,
    entries: &[Fields<'_>],
) -> Option<Vec<TimelineEntry>> {
    let changes: Vec<_> = entries.iter().map(|fields| timeline::entry(report, reader, fields)).collect();
    let changes: Vec<_> = changes.into_iter().collect::<Option<_>>()?;
    let values = entries.iter().map(|fields| fields.written("value"));
    let of_entry = |(value, changes): (_, Vec<TimelineEntry>)| changes.into_iter().map(move |change| (value, change));
    let mut changes: Vec<_> = values.zip(changes).flat_map(of_entry).collect();
    // Stable: of two changes at one time the later one in the file wins.
    changes.sort_by_key(|(_, entry)| entry.at);
    reader.topology.into_iter().for_each(|topology| timeline::check_variation(report, topology, &changes));
    Some(changes.into_iter().map(|(_, entry)| entry).collect())
}

/// Most paths of a file: without groups one connection has them all.
fn most_paths(groups: &[Fields<'_>]) -> usize {
    if groups.is_empty() { PathId::LIMIT } else { group::MOST_PATHS }
}

/// There must be a path, and not more than the protocol can name.
fn check_paths(report: &mut Report, root: &Table, paths: &[Fields<'_>], mptcp: bool) {
    let written = root.get("path");
    if written.is_none_or(|node| matches!(&node.value, Value::List(items) if items.is_empty())) {
        report
            .error(
                Code::MissingKey,
                written.map_or(Span::default(), |node| node.at),
                "a scenario needs at least one [[path]]",
            )
            .label("no [[path]] in this scenario")
            .help("add a path:\n[[path]]\nname = \"wlan\"\nrate = \"25mbit\"\ndelay = \"25ms\"");
    }
    if let (false, Some(second)) = (mptcp, paths.get(1)) {
        report
            .error(Code::Conflict, second.at, "plain TCP (`mptcp = false`) uses one path")
            .label("the second path")
            .help("leave one [[path]], or leave `mptcp` out");
    }
}

/// A kernel opens its connections over one path.
fn check_race(report: &mut Report, connection: &Fields<'_>, scenario: &Scenario) {
    let race = scenario.settings.first_path == FirstPath::Race;
    if let (true, Host::Linux, Some(node)) = (race, scenario.host(Side::Client), connection.written("first_path")) {
        report
            .error(Code::Conflict, node.at, "a Linux client does not race its paths")
            .label("needs an engine as the client's host")
            .help("name the path over which it opens the connection, or let this engine be the client");
    }
}

/// A path is there for some time before the end of the run.
fn check_presence(report: &mut Report, paths: &[Fields<'_>], scenario: &Scenario) {
    let end = scenario.duration.map(|duration| scenario.warmup + duration);
    for fields in paths {
        let [start, stop] = ["start", "stop"].map(|name| fields.written(name));
        if !fields.are_sound(report, &["start", "stop"]) {
            continue;
        }
        let [begins, ends] = ["start", "stop"].map(|name| fields.get(report, name, value::duration));
        if let (Some(begins), Some(ends), Some(node)) = (begins, ends, stop)
            && ends <= begins
        {
            report
                .error(Code::ImpossibleValue, node.at, "this path goes before it appears")
                .label(format!("it appears at {begins}"))
                .help("leave `stop` out for a path that stays");
        }
        if let (Some(begins), Some(end), Some(node)) = (begins, end, start)
            && end <= begins
        {
            report
                .error(Code::ImpossibleValue, node.at, "this path appears after the end")
                .label(format!("warm-up and measured time end at {end}"))
                .help("times count from the beginning of the run, warm-up included");
        }
    }
}

/// Traffic must start before the end of the run.
fn check_start(report: &mut Report, top: &Fields<'_>, scenario: &Scenario) {
    let end = scenario.duration.map(|duration| scenario.warmup + duration);
    if let (Some(end), Some(node)) = (end, top.written("start"))
        && end <= scenario.start
    {
        report
            .error(Code::ImpossibleValue, node.at, "the traffic starts after the end")
            .label(format!("warm-up and measured time end at {end}"))
            .help("times count from the beginning of the run, warm-up included");
    }
}

/// A run must end, and one that ends at the last byte has no warm-up.
fn check_end(report: &mut Report, top: &Fields<'_>, scenario: &Scenario, is_known: bool) {
    if !is_known || top.written("duration").is_some() {
        return;
    }
    let warmup: Duration = scenario.warmup;
    if scenario.applications().any(|traffic| !traffic.has_end()) {
        report
            .error(Code::MissingKey, top.at, "`duration` is missing: this traffic has no end of its own")
            .label("no `duration` in this scenario")
            .help("add `duration = \"90s\"`, or give the traffic a `size` (frames, request: a `count`; call, video: a `stop`)");
    } else if let Some(node) = top.written("warmup").filter(|_| !warmup.is_zero()) {
        report
            .error(Code::Conflict, node.at, "`warmup` needs a `duration`")
            .label("there is nothing to discard it from")
            .help("a transfer without `duration` is measured from its first SYN to its last byte: leave `warmup` out");
    }
}

/// The file's name without folders and extension, as a title.
fn stem(file: &str) -> String {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = base.rsplit_once('.').map_or(base, |(stem, _)| stem);
    let title: String = stem.chars().filter(|c| !c.is_control()).collect();
    if title.trim().is_empty() { "scenario".into() } else { title }
}
