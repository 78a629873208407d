//! A document in full: every default and both directions of every path, as an equivalent scenario file.

use crate::document::Document;
use crate::group::Group;
use crate::quantity::QueueLimit;
use crate::row::{Row, inline, lines};
use crate::scenario::{Cross, Over, Scenario, TimelineEntry, TraceStart, Traffic};
use crate::sections::bucket::{BURST, POLICE};
use crate::sections::queue::{QUEUE, Queue};
use crate::sections::{
    LEAST_PACKETS, Pair, change, connection, cross, fabric, full_packet, group, hosts, least_queue, medium, path, tcp,
    top, traffic,
};
use crate::tree::quoted;
use crate::written;
use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, DropTail, LinkSpec, PathSpec, WaySpec};
use anabranch_units::Direction;
use std::fmt::Display;

impl Document {
    /// The whole document as TOML, which reads back to the same document.
    pub fn resolved(&self) -> String {
        let mut out = Writer { text: String::new(), document: self };
        let scenario = &self.scenario;
        out.once(scenario);
        for (index, path) in scenario.topology.paths.iter().enumerate() {
            out.path(index, path);
        }
        for fabric in &scenario.fabrics {
            out.header("[[fabric]]");
            out.line("name", quoted(&fabric.name));
            out.line("kind", quoted(fabric.shape.name()));
            out.text.push_str(&lines(&fabric::rows(&mut fabric.shape.clone())));
            out.link(fabric.first_link, &scenario.topology.links[fabric.first_link]);
        }
        let of_fabric = |index: &usize| scenario.fabrics.iter().any(|fabric| fabric.links().contains(index));
        for (index, link) in scenario.topology.links.iter().enumerate().filter(|(index, _)| !of_fabric(index)) {
            out.header("[[link]]");
            out.line("name", quoted(&link.name));
            out.link(index, link);
            out.some("per_pair", scenario.per_pair.contains(&index).then_some(true));
        }
        out.media();
        scenario.groups.iter().for_each(|group| out.group(group));
        scenario.cross.iter().for_each(|cross| out.cross(cross));
        scenario.timeline.iter().for_each(|entry| out.timeline(entry));
        scenario.traffic.iter().for_each(|traffic| out.traffic(traffic));
        if !self.axes.is_empty() {
            out.header("[sweep]");
            for (key, values) in &self.axes {
                out.line(&quoted(key), format!("[{}]", values.join(", ")));
            }
        }
        out.text
    }
}

/// Writes sections and keys.
struct Writer<'d> {
    text: String,
    document: &'d Document,
}

impl Writer<'_> {
    fn header(&mut self, header: &str) {
        self.text.push_str(&format!("\n{header}\n"));
    }

    fn line(&mut self, key: &str, value: impl Display) {
        self.text.push_str(&format!("{key} = {value}\n"));
    }

    /// A line if there is a value.
    fn some(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.line(key, value);
        }
    }

    /// A line with a value per direction that has one.
    fn pair(&mut self, key: &str, down: Option<String>, up: Option<String>) {
        let parts = [("down", down), ("up", up)].map(|(name, value)| value.map(|value| format!("{name} = {value}")));
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            self.line(key, format!("{{ {} }}", parts.join(", ")));
        }
    }

    /// The keys of sections that stand once, from the rows with which they are read.
    fn once(&mut self, scenario: &Scenario) {
        let s = &mut scenario.clone();
        self.text.push_str(&lines(&top::rows(s)));
        self.header("[connection]");
        self.text.push_str(&lines(&connection::rows(s)));
        self.some("first_path", connection::first_path(scenario).map(quoted));
        self.header("[tcp]");
        self.text.push_str(&lines(&tcp::rows(s)));
        self.header("[hosts]");
        self.text.push_str(&lines(&hosts::rows(s)));
    }

    /// The keys of a link but its name.
    fn link(&mut self, index: usize, link: &LinkSpec) {
        let limits = &self.document.limits;
        let crossing = |way: &WaySpec| way.bottleneck.crosses(index);
        let least = self.least_queues(crossing);
        let steps = |end: &BottleneckSpec| matches!(&end.capacity, CapacitySpec::Steps(steps) if steps.steps().holds());
        let held = link.behind.iter().flat_map(|behind| behind.iter()).any(holds);
        self.trace(limits.link_traces.get(index), held || [&link.down, &link.up].into_iter().any(steps));
        self.bottleneck(Some(&link.down), Some(&link.up), limits.links.get(index), least);
        let [mut down, mut up] = [Direction::Down, Direction::Up].map(|way| behind(link, way));
        self.ways(path::behind, [&mut down, &mut up]);
    }

    fn path(&mut self, index: usize, path: &PathSpec) {
        let scenario = &self.document.scenario;
        let links = &scenario.topology.links;
        let name = |link: &usize| links.get(*link).map(|link| quoted(&link.name));
        let link = |way: &WaySpec| way.bottleneck.route().first().and_then(name);
        self.header("[[path]]");
        self.line("name", quoted(&path.name));
        let fabric = scenario.paths[index].fabric.map(|fabric| &scenario.fabrics[fabric]);
        match (fabric, path.down.bottleneck.route()) {
            (Some(fabric), _) => self.line("fabric", quoted(&fabric.name)),
            (None, [] | [_]) => self.pair("link", link(&path.down), link(&path.up)),
            (None, route) => self.line("route", list(route.iter().filter_map(name))),
        }
        let holds = [&path.down, &path.up].into_iter().any(holds);
        self.trace(self.document.limits.path_traces.get(index), holds);
        let least = [&path.down, &path.up].map(|way| self.least_queue(way.overhead));
        self.bottleneck(own(&path.down), own(&path.up), self.document.limits.paths.get(index), least);
        let (mut down, mut up) = (path.down.clone(), path.up.clone());
        self.ways(path::way, [&mut down, &mut up]);
        let mut options = scenario.paths[index];
        let start = match options.trace_start {
            TraceStart::Begin => None,
            TraceStart::Seed => Some(quoted("seed")),
            TraceStart::At(from) => Some(written::duration(from)),
        };
        self.some("trace_start", start);
        self.line("shared", own(&path.down).is_some_and(|spec| medium::is_own(spec, &path.name)));
        self.text.push_str(&lines(&path::options(&mut options)));
    }

    /// The keys of both directions of a path or link that `rows` reads.
    fn ways(&mut self, rows: fn(&mut WaySpec) -> Vec<Row<'_>>, [down, up]: [&mut WaySpec; 2]) {
        let recorded = [&*down, &*up].map(|way| [way.recorded_delay.is_some(), way.recorded_loss.is_some()]);
        let is_recorded = |key: &str, [delay, loss]: [bool; 2]| key == "delay" && delay || key == "loss" && loss;
        for (row, other) in rows(down).iter().zip(&rows(up)) {
            let own = |row: &Row<'_>, recorded| row.write().filter(|_| !is_recorded(row.name, recorded));
            self.pair(row.name, own(row, recorded[0]), own(other, recorded[1]));
        }
    }

    /// The media that paths and links name, each once.
    fn media(&mut self) {
        let topology = &self.document.scenario.topology;
        let owns = topology.paths.iter().flat_map(|path| [&path.down, &path.up]).filter_map(own);
        let all = owns.chain(topology.links.iter().flat_map(|link| [&link.down, &link.up]));
        let mut written: Vec<&str> = Vec::new();
        for spec in all {
            let (Some(name), Some(medium)) = (medium::named(spec), spec.medium.as_deref()) else { continue };
            if !written.contains(&name) {
                written.push(name);
                self.header("[[medium]]");
                self.line("name", quoted(name));
                self.text.push_str(&lines(&medium::rows(&mut medium.clone())));
            }
        }
    }

    /// The trace, and its end if it is not the default.
    fn trace(&mut self, files: Option<&Pair<Option<String>>>, holds: bool) {
        let name = |file: &Option<String>| file.as_deref().map(quoted);
        if let Some(files) = files {
            self.pair("trace", name(&files.down), name(&files.up));
        }
        self.some("trace_end", holds.then(|| quoted("hold")));
    }

    /// Bytes of the least queue given in bandwidth-delay products, on a path that adds `overhead` to each packet.
    fn least_queue(&self, overhead: i32) -> u64 {
        let Scenario { settings, hosts, .. } = &self.document.scenario;
        least_queue(full_packet(settings.mss, hosts.ip).saturating_add_signed(overhead.into()))
    }

    /// The same of a link, down and up, that is `crossed` by some directions of paths.
    fn least_queues(&self, crossed: impl Fn(&WaySpec) -> bool) -> [u64; 2] {
        let paths = &self.document.scenario.topology.paths;
        let greatest = |way: fn(&PathSpec) -> &WaySpec| {
            let overheads = paths.iter().map(way).filter(|way| crossed(way)).map(|way| way.overhead);
            self.least_queue(overheads.max().unwrap_or(0))
        };
        [greatest(|path| &path.down), greatest(|path| &path.up)]
    }

    /// Rate or trace, and queue. `least`: bytes of the least queue given in bandwidth-delay products, down and up.
    fn bottleneck(
        &mut self,
        down: Option<&BottleneckSpec>,
        up: Option<&BottleneckSpec>,
        limits: Option<&Pair<Queue>>,
        least: [u64; 2],
    ) {
        let rate = |spec: &BottleneckSpec| match &spec.capacity {
            CapacitySpec::Fixed(_) | CapacitySpec::Bucket(_) => Some(quoted(&spec.capacity.initial_rate().to_string())),
            CapacitySpec::Trace(_) | CapacitySpec::Steps(_) => None,
        };
        let burst = |spec: &BottleneckSpec| match &spec.capacity {
            CapacitySpec::Bucket(bucket) => Some((BURST.write)(&bucket.burst)),
            _ => None,
        };
        let police = |spec: &BottleneckSpec| spec.police.as_ref().map(POLICE.write);
        let medium = |spec: &BottleneckSpec| medium::named(spec).map(quoted);
        self.pair("rate", down.and_then(rate), up.and_then(rate));
        self.pair("burst", down.and_then(burst), up.and_then(burst));
        self.pair("police", down.and_then(police), up.and_then(police));
        self.pair("medium", down.and_then(medium), up.and_then(medium));
        let Some(limits) = limits else { return };
        // The value of a product is in a comment: written as bytes, it would no longer follow rate and delay.
        let comment = |spec: Option<&BottleneckSpec>, limit, least| match (spec.map(|spec| spec.queue.limit()), limit) {
            (Some(DropTail::Bytes(bytes)), QueueLimit::Bdp(_)) if bytes == least => {
                Some(format!("{bytes} bytes ({LEAST_PACKETS} full packets, the least)"))
            }
            (Some(DropTail::Bytes(bytes)), QueueLimit::Bdp(_)) => Some(format!("{bytes} bytes")),
            _ => None,
        };
        let comments = [comment(down, limits.down.limit, least[0]), comment(up, limits.up.limit, least[1])];
        self.pair("queue", down.map(|_| (QUEUE.write)(&limits.down)), up.map(|_| (QUEUE.write)(&limits.up)));
        let comments: Vec<String> = comments.into_iter().flatten().collect();
        if !comments.is_empty() {
            self.text.pop();
            self.text.push_str(&format!("  # {}\n", comments.join(", ")));
        }
    }

    fn group(&mut self, group: &Group) {
        let paths = &self.document.scenario.topology.paths;
        let names = group.paths.iter().filter_map(|path| paths.get(*path)).map(|path| quoted(&path.name));
        self.header("[[group]]");
        self.line("name", quoted(&group.name));
        self.line("paths", list(names));
        self.text.push_str(&lines(&group::rows(&mut group.clone())));
        for traffic in &group.traffic {
            let kind = [("kind", quoted(traffic.kind.name()))];
            let mut own = traffic.clone();
            let mut shared = own.clone();
            let rows: Vec<Row<'_>> = traffic::shared(&mut shared).into_iter().chain(traffic::rows(&mut own)).collect();
            self.line("traffic", inline(&kind, &rows));
        }
    }

    fn cross(&mut self, cross: &Cross) {
        let topology = &self.document.scenario.topology;
        let link = |link: &usize| topology.links.get(*link).map(|link| quoted(&link.name));
        let (key, name) = match &cross.over {
            Over::Path(path) => ("path", topology.paths.get(*path).map(|path| quoted(&path.name))),
            Over::Links(links) => match &links[..] {
                [one] => ("link", link(one)),
                links => ("route", Some(list(links.iter().filter_map(link)))),
            },
        };
        self.header("[[cross]]");
        self.line("kind", quoted(cross.kind.name()));
        self.some(key, name);
        let mut cross = cross.clone();
        self.text.push_str(&lines(&cross::shared(&mut cross)));
        self.text.push_str(&lines(&cross::rows(&mut cross.kind)));
    }

    fn timeline(&mut self, entry: &TimelineEntry) {
        let (set, value) = change::written(&self.document.scenario.topology, &entry.change);
        self.header("[[timeline]]");
        self.line("at", written::instant(entry.at));
        self.line("set", set);
        self.line("value", value);
    }

    fn traffic(&mut self, traffic: &Traffic) {
        self.header("[[traffic]]");
        self.line("kind", quoted(traffic.kind.name()));
        self.text.push_str(&lines(&traffic::shared(&mut traffic.clone())));
        self.text.push_str(&lines(&traffic::rows(&mut traffic.clone())));
    }
}

/// A list within a line.
fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

/// The part of a link behind its bottleneck.
fn behind(link: &LinkSpec, direction: Direction) -> WaySpec {
    link.behind(direction).cloned().unwrap_or_else(|| path::Way::default().spec)
}

/// The last values of the path's trace stay.
fn holds(way: &WaySpec) -> bool {
    let rate = match &way.bottleneck {
        Bottleneck::Own(BottleneckSpec { capacity: CapacitySpec::Steps(steps), .. }) => steps.steps().holds(),
        _ => false,
    };
    let delay = way.recorded_delay.as_ref().is_some_and(|delay| delay.holds());
    rate || delay || way.recorded_loss.as_ref().is_some_and(|loss| loss.holds())
}

fn own(way: &WaySpec) -> Option<&BottleneckSpec> {
    way.bottleneck.own()
}
