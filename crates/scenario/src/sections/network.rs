//! `[[path]]` and `[[link]]`: the topology.

use super::bucket::{Buckets, buckets};
use super::fields::{Fields, Pair, missing_direction};
use super::path::{self, TraceEnd, Way};
use super::queue::{QUEUE, Queue};
use super::traces::{Trace, Traces};
use super::{jitter, medium, radio, route, value};
use crate::diagnostic::Code;
use crate::fabric::Fabric;
use crate::keys::Key;
use crate::quantity::QueueLimit;
use crate::scenario::{PathOptions, TraceStart};
use crate::tree::{Node, Report};
use crate::vocabulary::Word;
use anabranch_engine::FirstPath;
use anabranch_network::{
    Bottleneck, BottleneckSpec, CapacitySpec, DropTail, LinkSpec, MediumSpec, PathSpec, QueueSpec, Recorded, Topology,
    WaySpec,
};
use anabranch_units::{Direction, Duration, PathId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The paths' keys beyond the topology.
pub(crate) struct Network {
    pub topology: Topology,
    pub options: Vec<PathOptions>,
    pub limits: Limits,
}

/// All queues as written. The number of packets or bytes of a queue follows from them; where a direction has a link,
/// the path's own queue is unused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub paths: Vec<Pair<Queue>>,
    pub links: Vec<Pair<Queue>>,
    /// The files of their traces, as written.
    pub path_traces: Vec<Pair<Option<String>>>,
    pub link_traces: Vec<Pair<Option<String>>>,
}

/// The names of all paths, links and media, as far as they are readable.
pub(crate) struct Names {
    pub paths: Listed,
    pub links: Listed,
    pub media: Listed,
    pub fabrics: Vec<Fabric>,
    /// The most paths that the file may have.
    most_paths: usize,
}

/// Names in the order of the file.
pub(crate) struct Listed {
    names: Vec<Option<String>>,
    /// The first place of each.
    places: BTreeMap<String, usize>,
}

/// The values of `first_path` other than a path's name.
const FIRST_PATHS: [(&str, FirstPath); 2] = [("first", FirstPath::First), ("race", FirstPath::Race)];
/// The number of names that are compared with an unknown one.
const MOST_NEIGHBOURS: usize = 1000;

impl Listed {
    fn new(names: Vec<Option<String>>) -> Self {
        let mut places = BTreeMap::new();
        for (place, name) in names.iter().enumerate() {
            if let Some(name) = name {
                places.entry(name.clone()).or_insert(place);
            }
        }
        Self { names, places }
    }

    /// How many there are, readable or not.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The index of a name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The name at an index, if it is readable.
    pub fn name(&self, index: usize) -> Option<&str> {
        self.names.get(index)?.as_deref()
    }

    /// Candidates for an unknown name.
    pub fn neighbours(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().flatten().map(String::as_str).take(MOST_NEIGHBOURS)
    }
}

impl Names {
    /// Reads all of them first, because references may point forward.
    pub fn read(
        report: &mut Report,
        [paths, links, media]: [&[Fields<'_>]; 3],
        fabrics: Vec<Fabric>,
        most_paths: usize,
    ) -> Self {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut read = |fields: &Fields<'_>| {
            fields.get(report, "name", |report, key, node| {
                let name = value::name(report, key, node)?;
                if !taken.insert(name.clone()) {
                    report
                        .error(
                            Code::DuplicateName,
                            node.at,
                            format!("there are two paths, links or media named \"{name}\""),
                        )
                        .label("second use of this name")
                        .help("give each path, link and medium a name of its own");
                }
                Some(name)
            })
        };
        let paths = Listed::new(paths.iter().map(&mut read).collect());
        let [links, media] = [links, media].map(|fields| Listed::new(fields.iter().map(&mut read).collect()));
        Self { paths, links, media, fabrics, most_paths }
    }

    /// The index of the path that `node` names.
    pub fn path(&self, report: &mut Report, key: &'static Key, node: &Node) -> Option<usize> {
        find(report, key, node, &self.paths, "path")
    }

    /// The path over which a connection opens.
    pub fn first_path(&self, report: &mut Report, key: &'static Key, node: &Node) -> Option<FirstPath> {
        let word = value::reference(report, key, node)?;
        if let Some((_, meant)) = FIRST_PATHS.iter().find(|(name, _)| *name == word) {
            return Some(*meant);
        }
        let index = self.paths.place(&word).and_then(|index| u8::try_from(index).ok());
        if index.is_none() {
            let words = self.paths.neighbours().chain(FIRST_PATHS.iter().map(|(name, _)| *name));
            let message = format!("there is no path named \"{word}\"");
            value::unknown_word(report, Code::UnknownName, node, message, words);
        }
        index.map(|index| FirstPath::On(PathId(index)))
    }

    /// Reports a word that is also a path's name. The first path itself may be named `first`.
    pub fn check_first_path(&self, report: &mut Report, node: &Node) {
        let is_word = |text: &&str| FIRST_PATHS.iter().any(|(name, _)| name == text);
        let Some(word) = node.as_text().filter(is_word) else { return };
        if self.paths.place(word).is_some_and(|index| index > 0 || word != "first") {
            report
                .error(Code::Conflict, node.at, format!("\"{word}\" is the name of a path here, too"))
                .label("is it the word or the path?")
                .help("give the path another name");
        }
    }

    /// The index of the link that `node` names.
    pub fn link(&self, report: &mut Report, key: &'static Key, node: &Node) -> Option<usize> {
        find(report, key, node, &self.links, "link")
    }

    /// The index of the fabric that `node` names.
    pub fn fabric(&self, report: &mut Report, key: &'static Key, node: &Node) -> Option<usize> {
        let names = self.fabrics.iter().map(|fabric| Some(fabric.name.clone())).collect();
        find(report, key, node, &Listed::new(names), "fabric")
    }

    /// The index of the medium that `node` names.
    pub fn medium(&self, report: &mut Report, key: &'static Key, node: &Node) -> Option<usize> {
        find(report, key, node, &self.media, "medium")
    }
}

fn find(report: &mut Report, key: &'static Key, node: &Node, names: &Listed, what: &str) -> Option<usize> {
    let name = value::reference(report, key, node)?;
    let index = names.place(&name);
    if index.is_none() {
        let message = format!("there is no {what} named \"{name}\"");
        if names.neighbours().next().is_none() {
            let help = format!("add [[{what}]] with `name = \"{name}\"`");
            report.error(Code::UnknownName, node.at, message).label("the scenario has none").help(help);
            return None;
        }
        value::unknown_word(report, Code::UnknownName, node, message, names.neighbours());
    }
    index
}

/// Bytes of the largest data packet with a payload of `mss`: IP header, 20 bytes of TCP header and 40 of options.
pub fn full_packet(mss: u32, ip: u8) -> u64 {
    u64::from(mss) + if ip == 6 { 100 } else { 80 }
}

/// The limit of shared links.
const MOST_LINKS: usize = 1000;

/// Reads all paths, links and media. `None` if there was a mistake, which was reported.
pub(crate) fn read(
    report: &mut Report,
    traces: &mut Traces<'_>,
    names: &Names,
    [paths, links, media]: [&[Fields<'_>]; 3],
    full_packet: u64,
) -> Option<Network> {
    if let Some(extra) = paths.get(names.most_paths) {
        let message = match names.most_paths {
            PathId::LIMIT => format!("a connection has at most {} paths", PathId::LIMIT),
            most => format!("a scenario has at most {most} paths"),
        };
        report.error(Code::ImpossibleValue, extra.at, message).label("one too many");
    }
    let own_links = names.fabrics.first().map_or(links.len(), |fabric| fabric.first_link);
    if let Some(extra) = links[..own_links].get(MOST_LINKS) {
        report
            .error(Code::ImpossibleValue, extra.at, format!("a scenario has at most {MOST_LINKS} links"))
            .label("one too many");
    }
    let (paths, links) = (
        &paths[..paths.len().min(names.most_paths)],
        &links[..if own_links > MOST_LINKS { MOST_LINKS } else { links.len() }],
    );
    let air = medium::media(report, names, media);
    let read = |fields| path(report, traces, (names, &air, links), fields, full_packet);
    let drafts: Vec<_> = paths.iter().map(read).collect();
    let bottlenecks: Vec<_> = links.iter().map(|fields| link(report, traces, (names, &air), fields)).collect();
    let options: Vec<_> =
        paths.iter().zip(&drafts).map(|(fields, draft)| options(report, names, fields, draft.as_ref())).collect();

    let drafts: Vec<Pair<Way>> = drafts.into_iter().collect::<Option<_>>()?;
    let limits = Limits {
        paths: drafts.iter().map(|draft| Pair { down: draft.down.queue, up: draft.up.queue }).collect(),
        links: bottlenecks
            .iter()
            .map(|link| Some(Pair { down: link.down.as_ref()?.queue, up: link.up.as_ref()?.queue }))
            .collect::<Option<_>>()?,
        path_traces: drafts
            .iter()
            .map(|draft| Pair { down: draft.down.file.clone(), up: draft.up.file.clone() })
            .collect(),
        link_traces: bottlenecks
            .iter()
            .map(|link| Some(Pair { down: link.down.as_ref()?.file.clone(), up: link.up.as_ref()?.file.clone() }))
            .collect::<Option<_>>()?,
    };
    for (index, (fields, draft)) in links.iter().zip(&bottlenecks).enumerate() {
        for direction in [Direction::Down, Direction::Up] {
            if let Some(Draft { buckets, .. }) = draft.get(direction) {
                buckets.check(report, fields, direction, largest(&drafts, index, direction, full_packet));
            }
        }
    }
    let links = links_of(names, &bottlenecks, &drafts, full_packet)?;
    let paths = names.paths.names.iter().zip(drafts).map(|(name, draft)| resolve(name.as_ref()?, draft, full_packet));
    let topology = Topology { paths: paths.collect::<Option<_>>()?, links };
    medium::check_use(report, media, &air, &topology);
    Some(Network { topology, options: options.into_iter().collect::<Option<_>>()?, limits })
}

fn options(report: &mut Report, names: &Names, fields: &Fields<'_>, draft: Option<&Pair<Way>>) -> Option<PathOptions> {
    let mut path = PathOptions::default();
    let read = fields.fill(report, None, path::options(&mut path));
    path.fabric = route::fabric(report, names, fields);
    let trace_start = trace_start(report, fields, draft)?;
    read.then_some(PathOptions { trace_start, ..path })
}

fn path(
    report: &mut Report,
    traces: &mut Traces<'_>,
    (names, media, links): (&Names, &[Arc<MediumSpec>], &[Fields<'_>]),
    fields: &Fields<'_>,
    full_packet: u64,
) -> Option<Pair<Way>> {
    let mut ways = Pair::<Way>::default();
    let over = route::fabric(report, names, fields);
    let mut route = route::of_path(report, names, fields, over);
    let mut sources = sources(report, traces, fields);
    let mut queue = fields.pair(report, "queue", QUEUE.read);
    let read = fields.fill_pair(report, path::way(&mut ways.down.spec), path::way(&mut ways.up.spec));
    let shared = exclude_own_bottleneck(report, fields);
    for direction in [Direction::Down, Direction::Up] {
        if !shared.get(direction) && sources.get(direction).capacity.is_none() {
            missing_capacity(report, fields, direction, &sources.get(direction).recorded);
        }
    }
    check_delays(report, fields, &sources, route::has_delay(&route, links));
    for (direction, way) in [(Direction::Down, &mut ways.down), (Direction::Up, &mut ways.up)] {
        let recorded = core::mem::take(&mut sources.get_mut(direction).recorded);
        take_recorded(report, fields, direction, recorded, &mut way.spec);
    }
    let read = jitter::finish(report, traces, fields, &mut ways) && read;
    let read = radio::finish(report, fields, &ways) && read;
    let buckets = buckets(report, fields);
    let mut media = medium::of_path(report, names, media, fields);
    check_media(report, fields, &media, &sources);
    for (direction, way) in [(Direction::Down, &ways.down), (Direction::Up, &ways.up)] {
        let packet = full_packet.saturating_add_signed(way.spec.overhead.into());
        buckets.get(direction).check(report, fields, direction, packet);
    }
    let mut with = |direction, way: Way| {
        let Source { capacity, file, .. } = core::mem::take(sources.get_mut(direction));
        let (links, buckets) = (core::mem::take(route.get_mut(direction)), *buckets.get(direction));
        let medium = media.take(direction);
        let fabric = over.map_or(0..0, |fabric| names.fabrics[fabric].links());
        Some(Way { capacity, links, fabric, buckets, file, medium, queue: queue.take(direction)?, ..way })
    };
    let ways = Pair { down: with(Direction::Down, ways.down)?, up: with(Direction::Up, ways.up)? };
    read.then_some(ways)
}

/// Reports capacities that no station of a shared medium has.
fn check_media(
    report: &mut Report,
    fields: &Fields<'_>,
    media: &Pair<Option<Arc<MediumSpec>>>,
    sources: &Pair<Source>,
) {
    for direction in [Direction::Down, Direction::Up] {
        if media.get(direction).is_some() {
            medium::check_capacity(report, fields, direction, sources.get(direction).capacity.as_ref());
        }
    }
}

fn link(
    report: &mut Report,
    traces: &mut Traces<'_>,
    (names, media): (&Names, &[Arc<MediumSpec>]),
    fields: &Fields<'_>,
) -> Pair<Option<Draft>> {
    let mut sources = sources(report, traces, fields);
    let mut queue = fields.pair(report, "queue", QUEUE.read);
    for direction in [Direction::Down, Direction::Up] {
        let Source { capacity, recorded, .. } = sources.get(direction);
        if capacity.is_none() {
            missing_capacity(report, fields, direction, recorded);
        }
    }
    let mut ways = Pair::<Way>::default();
    let read = fields.fill_pair(report, path::behind(&mut ways.down.spec), path::behind(&mut ways.up.spec));
    for (direction, way) in [(Direction::Down, &mut ways.down), (Direction::Up, &mut ways.up)] {
        let recorded = core::mem::take(&mut sources.get_mut(direction).recorded);
        take_recorded(report, fields, direction, recorded, &mut way.spec);
    }
    let read = jitter::finish(report, traces, fields, &mut ways) && read;
    let read = radio::finish(report, fields, &ways) && read;
    let buckets = buckets(report, fields);
    let mut media = medium::named_by(report, names, media, fields);
    check_media(report, fields, &media, &sources);
    let mut both = |direction| {
        let Source { capacity, file, .. } = core::mem::take(sources.get_mut(direction));
        let (buckets, medium) = (*buckets.get(direction), media.take(direction));
        let behind = core::mem::replace(&mut ways.get_mut(direction).spec, path::Way::default().spec);
        read.then_some(())?;
        Some(Draft { capacity: capacity?, queue: queue.take(direction)?, buckets, file, medium, behind })
    };
    Pair { down: both(Direction::Down), up: both(Direction::Up) }
}

/// Where the path's own traces begin: before the end of each.
fn trace_start(report: &mut Report, fields: &Fields<'_>, draft: Option<&Pair<Way>>) -> Option<TraceStart> {
    let start = fields.get(report, "trace_start", value::trace_start)?;
    let trace = fields.places("trace");
    let Some(node) = fields.written("trace_start").filter(|_| start != TraceStart::Begin) else { return Some(start) };
    if trace.down.or(trace.up).is_none() {
        report
            .error(Code::Conflict, node.at, "`trace_start` is of a path that has a `trace`")
            .label("this path has none of its own")
            .help("give the path a trace, or leave `trace_start` out");
    }
    let period = |draft: &Way| match &draft.capacity {
        Some(CapacitySpec::Trace(trace)) => Some(Duration::from_millis(trace.period_millis())),
        Some(CapacitySpec::Steps(steps)) => Some(steps.steps().duration()),
        _ => draft.spec.recorded_delay.as_ref().map(|delay| delay.duration()),
    };
    let shortest = draft.and_then(|draft| [&draft.down, &draft.up].into_iter().filter_map(period).min());
    if let (TraceStart::At(from), Some(end)) = (start, shortest)
        && from >= end
    {
        report
            .error(Code::ImpossibleValue, node.at, format!("`path.trace_start` is {from}, and the trace ends at {end}"))
            .label("the trace is over by then")
            .help(format!("a time before {end}"));
    }
    Some(start)
}

/// The capacity of one direction, and what else its trace has.
#[derive(Default)]
struct Source {
    capacity: Option<CapacitySpec>,
    recorded: Recorded,
    file: Option<String>,
}

/// `rate` or `trace`, per direction.
fn sources(report: &mut Report, traces: &mut Traces<'_>, fields: &Fields<'_>) -> Pair<Source> {
    let mut rate = fields.pair(report, "rate", value::rate);
    let mut trace = fields.pair(report, "trace", |report, key, node| traces.read(report, key, node));
    let end = fields.get(report, "trace_end", value::word).and_then(TraceEnd::of).unwrap_or(TraceEnd::Loop);
    let (rates, files) = (fields.places("rate"), fields.places("trace"));
    let mut clash = None;
    let mut source = |direction| {
        let fixed = rate.take(direction).map(CapacitySpec::Fixed);
        let trace = trace.take(direction);
        let file = files.get(direction).and_then(Node::as_text).map(str::to_owned);
        let recorded = match &trace {
            Some(Trace::Recording(recording)) if end == TraceEnd::Hold => recording.of(direction).held(),
            Some(Trace::Recording(recording)) => recording.of(direction).clone(),
            Some(Trace::Capacity(_)) | None => Recorded::default(),
        };
        let capacity = match trace {
            Some(Trace::Capacity(trace)) => Some(CapacitySpec::Trace(trace)),
            _ => recorded.rate.clone().map(CapacitySpec::Steps),
        };
        if let (Some(_), Some(_), Some(node)) = (&capacity, rates.get(direction), files.get(direction)) {
            clash = clash.or(Some(node.at));
        }
        Source { capacity: capacity.or(fixed), recorded, file }
    };
    let sources = Pair { down: source(Direction::Down), up: source(Direction::Up) };
    if let Some(at) = clash {
        report
            .error(Code::Conflict, at, "a bottleneck has a `rate` or a `trace`, not both")
            .label("the second of the two")
            .help("leave one out, or give each its direction: rate = { up = … }, trace = { down = … }");
    }
    check_end(report, fields, &sources, end);
    sources
}

/// Only a recording has an end that may be held.
fn check_end(report: &mut Report, fields: &Fields<'_>, sources: &Pair<Source>, end: TraceEnd) {
    let has_recording = [&sources.down, &sources.up].iter().any(|source| source.recorded != Recorded::default());
    let node = fields.written("trace_end").filter(|_| end == TraceEnd::Hold && !has_recording);
    if let Some(node) = node.filter(|_| fields.are_sound(report, &["trace", "trace_end"])) {
        let help = match fields.written("trace") {
            Some(_) => "opportunities in mahimahi's format begin again: leave `trace_end` out",
            None => "give it such a trace, or leave `trace_end` out",
        };
        report
            .error(Code::Conflict, node.at, "`trace_end` is of a trace in CSV")
            .label("there is none here")
            .help(help);
    }
}

/// The delay and the loss of a path's trace take the place of the keys.
fn take_recorded(
    report: &mut Report,
    fields: &Fields<'_>,
    direction: Direction,
    recorded: Recorded,
    spec: &mut WaySpec,
) {
    for (name, found) in [("delay", recorded.delay.is_some()), ("loss", recorded.loss.is_some())] {
        if let Some(node) = fields.places(name).get(direction).filter(|_| found) {
            report
                .error(Code::Conflict, node.at, format!("the path's trace has its own {name}"))
                .label("the second of the two")
                .help(format!("leave `{name}` out, or the column out of the trace"));
        }
    }
    if let Some(delay) = &recorded.delay {
        spec.delay = Duration::from_nanos(delay.mean(|delay| delay.as_nanos() as f64) as u64);
    }
    (spec.recorded_delay, spec.recorded_loss) = (recorded.delay, recorded.loss);
}

/// Reports a delay that neither the file nor a trace has, nor a link.
fn check_delays(report: &mut Report, fields: &Fields<'_>, sources: &Pair<Source>, links_have: bool) {
    let written = fields.places("delay");
    let lacks =
        |direction| !links_have && written.get(direction).is_none() && sources.get(direction).recorded.delay.is_none();
    let (key, node) = (fields.key("delay"), fields.written("delay"));
    match (lacks(Direction::Down), lacks(Direction::Up), node) {
        _ if !fields.are_sound(report, &["delay", "trace", "link", "route", "fabric"]) => {}
        (false, false, _) => {}
        (.., None) => fields.missing(report, key),
        (true, _, Some(node)) => missing_direction(report, key, node, Direction::Down),
        (_, true, Some(node)) => missing_direction(report, key, node, Direction::Up),
    }
}

/// A direction with links has no bottleneck of its own. Returns the directions that have a link.
fn exclude_own_bottleneck(report: &mut Report, fields: &Fields<'_>) -> Pair<bool> {
    let whole = |node| Pair { down: Some(node), up: Some(node) };
    let (link, key, owner) = match (fields.written("route"), fields.written("fabric")) {
        (Some(route), _) => (whole(route), "route", "the links of the path's route"),
        (None, Some(fabric)) => (whole(fabric), "fabric", "the fabric that the path names"),
        (None, None) => (fields.places("link"), "link", "the link that the path names"),
    };
    for name in ["rate", "trace", "burst", "police", "queue", "medium"] {
        let own = fields.places(name);
        let section = if key == "fabric" { key } else { "link" };
        if let Some(at) = link.down.and(own.down).or(link.up.and(own.up)) {
            report
                .error(Code::Conflict, at.at, format!("`{name}` belongs to {owner}"))
                .label("the path has no bottleneck of its own")
                .help(format!("write `{name}` under the [[{section}]], or leave `{key}` out"));
        }
    }
    Pair { down: link.down.is_some(), up: link.up.is_some() }
}

/// Reports that a direction has neither rate nor trace, unless a mistake in either was already reported.
fn missing_capacity(report: &mut Report, fields: &Fields<'_>, direction: Direction, recorded: &Recorded) {
    let (rate, trace) = (fields.places("rate"), fields.places("trace"));
    if let Some(node) = trace.get(direction).filter(|_| *recorded != Recorded::default()) {
        report
            .error(Code::MissingKey, node.at, "this trace has no rate")
            .label("no column such as rate_mbps")
            .help("add `rate`, or a column with it");
    }
    if rate.get(direction).is_some() || trace.get(direction).is_some() {
        return;
    }
    match (fields.written("rate").or(fields.written("trace")), direction) {
        (None, Direction::Down) => fields.missing(report, fields.key("rate")),
        // Reported for `down` already.
        (None, Direction::Up) => {}
        (Some(node), _) => missing_direction(report, fields.key("rate"), node, direction),
    }
}

/// The bottleneck of a link, down or up, before its queue has a number of packets or bytes.
#[derive(Clone)]
struct Draft {
    capacity: CapacitySpec,
    queue: Queue,
    buckets: Buckets,
    file: Option<String>,
    medium: Option<Arc<MediumSpec>>,
    behind: WaySpec,
}

fn bottleneck(
    capacity: CapacitySpec,
    queue: QueueSpec,
    buckets: Buckets,
    medium: Option<Arc<MediumSpec>>,
) -> BottleneckSpec {
    let capacity = buckets.burst.map_or(capacity.clone(), |burst| capacity.with_burst(burst));
    BottleneckSpec { capacity, queue, police: buckets.police, medium }
}

/// Bytes of the largest data packet of the paths that cross a link.
fn largest(drafts: &[Pair<Way>], link: usize, direction: Direction, full_packet: u64) -> u64 {
    let crossing = drafts.iter().map(|draft| draft.get(direction)).filter(|way| way.crosses(link));
    let overhead = crossing.map(|way| way.spec.overhead).max().unwrap_or(0);
    full_packet.saturating_add_signed(overhead.into())
}

/// Links with their queues; a bandwidth-delay product uses the longest path that crosses the link.
fn links_of(
    names: &Names,
    bottlenecks: &[Pair<Option<Draft>>],
    drafts: &[Pair<Way>],
    full_packet: u64,
) -> Option<Vec<LinkSpec>> {
    let behind = |link: usize, direction| bottlenecks.get(link)?.get(direction).as_ref().map(|link| link.behind.delay);
    let spec = |index: usize, direction: Direction| {
        let Draft { capacity, queue, buckets, medium, .. } = bottlenecks[index].get(direction).clone()?;
        let crossing = || drafts.iter().filter(|draft| draft.get(direction).crosses(index));
        let delay = crossing().map(|draft| route::round_trip(draft, behind)).max().unwrap_or_default();
        let full_packet = largest(drafts, index, direction, full_packet);
        let queue = resolve_queue(queue, &capacity, delay, full_packet);
        Some(bottleneck(capacity, queue, buckets, medium))
    };
    let link = |(index, name): (usize, &Option<String>)| {
        let (down, up) = (spec(index, Direction::Down)?, spec(index, Direction::Up)?);
        let both = [Direction::Down, Direction::Up].map(|way| bottlenecks[index].get(way).as_ref());
        let behind = both.map(|draft| draft.map(|draft| draft.behind.clone()));
        Some(LinkSpec { behind: route::behind(behind), ..LinkSpec::new(name.as_ref()?, down, up) })
    };
    names.links.names.iter().take(bottlenecks.len()).enumerate().map(link).collect()
}

fn resolve(name: &str, draft: Pair<Way>, full_packet: u64) -> Option<PathSpec> {
    let round_trip = draft.down.spec.delay + draft.up.spec.delay;
    let way = |draft: Way| {
        let bottleneck = match draft.links {
            links if !links.is_empty() => Bottleneck::Route(links),
            _ => {
                let capacity = draft.capacity?;
                let full_packet = full_packet.saturating_add_signed(draft.spec.overhead.into());
                let queue = resolve_queue(draft.queue, &capacity, round_trip, full_packet);
                Bottleneck::Own(bottleneck(capacity, queue, draft.buckets, draft.medium))
            }
        };
        Some(WaySpec { bottleneck, ..draft.spec })
    };
    Some(PathSpec { name: name.into(), down: way(draft.down)?, up: way(draft.up)? })
}

/// Fewest full packets that fit into a queue given in bandwidth-delay products.
pub const LEAST_PACKETS: u64 = 10;

/// Bytes of the least queue that is given in bandwidth-delay products, where a full packet takes `full_packet` bytes.
pub const fn least_queue(full_packet: u64) -> u64 {
    LEAST_PACKETS * full_packet
}

pub(crate) fn resolve_queue(
    queue: Queue,
    capacity: &CapacitySpec,
    round_trip: Duration,
    full_packet: u64,
) -> QueueSpec {
    queue.resolve(match queue.limit {
        QueueLimit::Packets(packets) => DropTail::Packets(packets),
        QueueLimit::Bytes(bytes) => DropTail::Bytes(bytes),
        QueueLimit::Unlimited => DropTail::UNLIMITED,
        QueueLimit::Bdp(millionths) => {
            let product = capacity.initial_rate().bytes_in(round_trip) as u128 * millionths as u128 / 1_000_000;
            let bytes = u64::try_from(product).unwrap_or(u64::MAX);
            DropTail::Bytes(bytes.max(least_queue(full_packet)))
        }
    })
}
