//! From the tree to a checked scenario.

mod cross;
mod fields;
mod impairment;
mod network;
mod plugin;
mod queue;
mod settings;
mod timeline;
mod traces;
mod traffic;
mod value;

pub(crate) use fields::Pair;
pub(crate) use fields::{is_directed, unknown_key};
pub(crate) use network::Limits;
pub use network::{LEAST_PACKETS, full_packet, least_queue};
pub(crate) use plugin::{congestion, congestion_names, in_brackets, scheduler, scheduler_names};
pub(crate) use queue::{Manager, Queue};
pub(crate) use traces::Traces;

use crate::diagnostic::Code;
use crate::era;
use crate::keys::Section;
use crate::scenario::{Host, Hosts, Scenario, TimelineEntry, Traffic, TrafficKind};
use crate::tree::{Node, Report, Span, Table, Value};
use anabranch_engine::{FirstPath, Settings};
use anabranch_units::Duration;
use fields::Fields;
use network::Names;

/// A scenario, and its queues as written.
pub(crate) struct Reading {
    pub scenario: Scenario,
    pub limits: Limits,
}

/// Reads one scenario; `file` is its name if it states none. `None` if there was a mistake, which was reported.
pub(crate) fn scenario(report: &mut Report, traces: &mut Traces<'_>, root: &Table, file: &str) -> Option<Reading> {
    check_top(report, root);
    let root_node = Node { value: Value::Table(top_keys(root)), at: Span::default() };
    let top = Fields::open(report, Section::Top, Some(&root_node));
    let connection = Fields::open(report, Section::Connection, root.get("connection"));
    let tcp = Fields::open(report, Section::Tcp, root.get("tcp"));
    let era = tcp.get(report, "era", value::word).and_then(era::find);
    let tcp = tcp.with_defaults(era.map_or(&[], |era| era.keys));
    let hosts = Fields::open(report, Section::Hosts, root.get("hosts"));
    let [paths, links, crosses, changes, traffic] =
        [Section::Path, Section::Link, Section::Cross, Section::Timeline, Section::Traffic]
            .map(|section| tables(report, root, section));
    let name = top.get(report, "name", value::title).or_else(|| Some(stem(file)));
    let [duration, warmup, start, start_jitter] =
        ["duration", "warmup", "start", "start_jitter"].map(|key| top.get(report, key, value::duration));
    let [seed, repeat] = ["seed", "repeat"].map(|key| top.get(report, key, value::integer));
    let scheduler = connection.get(report, "scheduler", plugin::scheduler);
    let congestion = connection.get(report, "congestion", plugin::congestion);
    let traffic = traffic::traffic(report, &traffic);
    let bulk = |traffic: &Traffic| matches!(traffic.kind, TrafficKind::Bulk { .. });
    let nagle = traffic.iter().flatten().all(bulk);
    let names = Names::read(report, &paths, &links);
    let settings = settings::settings(report, &names, &connection, &tcp, nagle);
    let (hosts, models) = settings::hosts(report, &hosts).unzip();
    let (mss, ip) = (settings.as_ref().map_or(0, |s| s.mss), hosts.map_or(4, |h| h.ip));
    let network = network::read(report, traces, &names, &paths, &links, full_packet(mss, ip));
    let flows: Vec<_> = crosses.iter().map(|fields| cross::cross(report, &names, fields)).collect();
    let topology = network.as_ref().map(|n| &n.topology);
    let timeline = timeline(report, &names, topology, &changes);

    check_start(report, &top, [duration, warmup, start]);
    check_end(report, &top, duration, warmup, traffic.as_deref());
    check_paths(report, root, &paths, settings.as_ref().is_none_or(|s| s.mptcp));
    check_race(report, &connection, settings.as_ref(), hosts);

    let network = network?;
    let [sender_model, receiver_model] = models?;
    let scenario = Scenario {
        name: name?,
        duration,
        warmup: warmup?,
        seed: u64::try_from(seed?).ok()?,
        repeat: u32::try_from(repeat?).ok()?,
        start: start?,
        start_jitter: start_jitter?,
        scheduler: scheduler?,
        congestion: congestion?,
        era: era.map(|era| era.name),
        settings: Settings { sender_model, receiver_model, ..settings? },
        topology: network.topology,
        backup: network.backup,
        trace_start: network.trace_start,
        policy: network.policy,
        traffic: traffic?,
        cross: flows.into_iter().collect::<Option<_>>()?,
        timeline: timeline?,
        hosts: hosts?,
    };
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
    names: &Names,
    topology: Option<&anabranch_network::Topology>,
    entries: &[Fields<'_>],
) -> Option<Vec<TimelineEntry>> {
    let changes: Vec<_> = entries.iter().map(|fields| timeline::entry(report, names, topology, fields)).collect();
    let mut changes: Vec<_> = changes.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    // Stable: of two changes at one time the later one in the file wins.
    changes.sort_by_key(|entry| entry.at);
    Some(changes)
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
fn check_race(report: &mut Report, connection: &Fields<'_>, settings: Option<&Settings>, hosts: Option<Hosts>) {
    let race = settings.is_some_and(|settings| settings.first_path == FirstPath::Race);
    if let (true, Some(Host::Linux), Some(node)) =
        (race, hosts.map(|hosts| hosts.receiver), connection.written("first_path"))
    {
        report
            .error(Code::Conflict, node.at, "a Linux client does not race its paths")
            .label("needs `receiver = \"engine\"`")
            .help("name the path over which it opens the connection, or let this engine be the client");
    }
}

/// Traffic must start before the end of the run.
fn check_start(report: &mut Report, top: &Fields<'_>, [duration, warmup, start]: [Option<Duration>; 3]) {
    let end = duration.zip(warmup).map(|(duration, warmup)| warmup + duration);
    if let (Some(end), Some(start), Some(node)) = (end, start, top.written("start"))
        && end <= start
    {
        report
            .error(Code::ImpossibleValue, node.at, "the traffic starts after the end")
            .label(format!("warm-up and measured time end at {end}"))
            .help("times count from the beginning of the run, warm-up included");
    }
}

/// A run must end, and one that ends at the last byte has no warm-up.
fn check_end(
    report: &mut Report,
    top: &Fields<'_>,
    duration: Option<Duration>,
    warmup: Option<Duration>,
    traffic: Option<&[Traffic]>,
) {
    let unlimited = traffic.is_some_and(|t| t.iter().any(|traffic| traffic.total().is_none()));
    if duration.is_some() || top.written("duration").is_some() || traffic.is_none() {
        return;
    }
    if unlimited {
        report
            .error(Code::MissingKey, top.at, "`duration` is missing: this traffic has no end of its own")
            .label("no `duration` in this scenario")
            .help("add `duration = \"90s\"`, or give the traffic a `size` (frames, request: a `count`)");
    } else if let (Some(node), Some(true)) = (top.written("warmup"), warmup.map(|w| !w.is_zero())) {
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
