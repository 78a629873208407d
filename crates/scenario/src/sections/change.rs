//! One change of a timeline: the key that it sets, and the value.

use super::bucket::{self, BURST, POLICE};
use super::impairment::{LOSS, REORDER};
use super::jitter::{self, JITTER};
use super::medium;
use super::middlebox::BOXES;
use super::mtu::check_least;
use super::network::{Names, resolve_queue};
use super::options;
use super::path::{self, Way};
use super::queue::{QUEUE, Queue};
use super::radio;
use super::traces::Traces;
use crate::diagnostic::Code;
use crate::keys::Key;
use crate::notation::{RATE, SCHEDULER};
use crate::scenario::{Hosts, PathOptions, TimelineChange};
use crate::tree::{Node, Report, quoted};
use crate::vocabulary::Word;
use crate::written;
use anabranch_network::{BehindChange, BottleneckSpec, Change, PathSpec, Place, RadioChange, Topology, WaySpec};
use anabranch_units::{Direction, Duration};

/// The parts of a scenario that entries of a timeline refer to.
pub(crate) struct Reader<'a, 'r> {
    pub traces: &'a mut Traces<'r>,
    pub names: &'a Names,
    pub topology: Option<&'a Topology>,
    /// Bytes of a full packet without overhead.
    pub packet: u64,
    /// Options of the paths; none if a path has a mistake.
    pub options: &'a [PathOptions],
    pub hosts: Hosts,
}

/// The change of one direction. Each key that is changeable has its line here, or in [`of_bottleneck`].
pub(crate) fn change(
    report: &mut Report,
    reader: &mut Reader<'_, '_>,
    place: Place,
    key: &'static Key,
    direction: Direction,
    node: &Node,
) -> Option<Change> {
    let mut way = Way::default().spec;
    let mut rows = match place {
        Place::Path(_) => path::way(&mut way),
        Place::Link(_) => path::behind(&mut way),
    };
    let Some(row) = rows.iter_mut().find(|row| row.name == key.name) else {
        return of_bottleneck(report, reader, place, key, direction, node);
    };
    row.read(report, key, node).then_some(())?;
    drop(rows);
    let path = match place {
        Place::Path(path) => path,
        Place::Link(link) => {
            let change = behind(report, reader, key, node, way)?;
            return Some(Change::Behind(link, direction, change));
        }
    };
    match key.name {
        "jitter" => {
            let read = jitter::load(report, reader.traces, node, &mut way.jitter);
            read.then_some(Change::Jitter(path, direction, way.jitter))
        }
        "middlebox" => Some(Change::Middleboxes(path, direction, way.middleboxes)),
        "arq" => Some(Change::Radio(path, direction, RadioChange::Arq(way.radio.arq))),
        "aggregate" => Some(Change::Radio(path, direction, RadioChange::Aggregate(way.radio.aggregate))),
        "wake" => Some(Change::Radio(path, direction, RadioChange::Wake(way.radio.wake))),
        "slots" => Some(Change::Radio(path, direction, RadioChange::Slots(way.radio.slots))),
        "delay" => Some(Change::Delay(path, direction, way.delay)),
        "loss" => Some(Change::Loss(path, direction, way.loss)),
        "mtu" => {
            check_least(report, node, way.mtu?, reader.options.get(path)?.version(&reader.hosts));
            Some(Change::Mtu(path, direction, way.mtu?))
        }
        "reorder" => Some(Change::Reorder(path, direction, way.reorder)),
        other => unreachable!("{other} is changeable"),
    }
}

/// The change behind the bottleneck of a link, of which `way` has the value.
fn behind(
    report: &mut Report,
    reader: &mut Reader<'_, '_>,
    key: &'static Key,
    node: &Node,
    mut way: WaySpec,
) -> Option<BehindChange> {
    Some(match key.name {
        "delay" => BehindChange::Delay(way.delay),
        "jitter" => {
            jitter::load(report, reader.traces, node, &mut way.jitter).then_some(())?;
            BehindChange::Jitter(way.jitter)
        }
        "loss" => BehindChange::Loss(way.loss),
        "reorder" => BehindChange::Reorder(way.reorder),
        "arq" => BehindChange::Radio(RadioChange::Arq(way.radio.arq)),
        "aggregate" => BehindChange::Radio(RadioChange::Aggregate(way.radio.aggregate)),
        "slots" => BehindChange::Radio(RadioChange::Slots(way.radio.slots)),
        other => unreachable!("{other} is changeable"),
    })
}

/// The change of a bottleneck: `rate`, `burst`, `police` or `queue`.
fn of_bottleneck(
    report: &mut Report,
    reader: &Reader<'_, '_>,
    place: Place,
    key: &'static Key,
    direction: Direction,
    node: &Node,
) -> Option<Change> {
    let overhead = reader.topology.map_or(0, |topology| overhead(topology, place, direction));
    let packet = reader.packet.saturating_add_signed(overhead);
    match key.name {
        "rate" => Some(Change::Rate(place, direction, (RATE.read)(report, key, node)?)),
        "burst" => {
            let burst = (BURST.read)(report, key, node)?;
            bucket::check_burst(report, node, burst, packet);
            let own = reader.topology.and_then(|topology| bottleneck(topology, place, direction));
            medium::check_burst(report, node, own);
            Some(Change::Burst(place, direction, burst))
        }
        "police" => {
            let police = (POLICE.read)(report, key, node)?;
            bucket::check_burst(report, node, police.burst, packet);
            Some(Change::Police(place, direction, police))
        }
        "queue" => {
            let queue = (QUEUE.read)(report, key, node)?;
            let topology = reader.topology?;
            let own = bottleneck(topology, place, direction)?;
            check_queue(report, node, &queue, own)?;
            // A bandwidth-delay product is that of the beginning.
            let spec = resolve_queue(queue, &own.capacity, round_trip(topology, place, direction), packet);
            Some(Change::Queue(place, direction, spec.limit()))
        }
        other => unreachable!("{other} is changeable"),
    }
}

/// Refuses a queue in place of `own` where one of them is more than a length.
fn check_queue(report: &mut Report, node: &Node, queue: &Queue, own: &BottleneckSpec) -> Option<()> {
    let label = match (queue.discipline, own.queue.discipline()) {
        (Some(_), _) => "this value has a kind",
        (None, Some(_)) => "this queue has a kind",
        (None, None) => return Some(()),
    };
    report
        .error(Code::Conflict, node.at, "only the length of a drop-tail queue can change while the experiment runs")
        .label(label)
        .help("run the scenario once with each queue");
    None
}

/// The key that `change` sets, of which direction, and its value in a file's notation.
pub(crate) fn written(topology: &Topology, change: &TimelineChange) -> (String, String) {
    let path = |index: usize| topology.paths.get(index).map_or("", |path| path.name.as_str());
    let link = |index: usize| topology.links.get(index).map_or("", |link| link.name.as_str());
    let of = |place: &Place| match place {
        Place::Path(index) => format!("path.{}", path(*index)),
        Place::Link(index) => format!("link.{}", link(*index)),
    };
    let change = match change {
        TimelineChange::Network(change) => change,
        TimelineChange::Scheduler(plug_in) => return (quoted("connection.scheduler"), (SCHEDULER.write)(plug_in)),
        TimelineChange::Option(index, change) => {
            let (name, value) = options::written(*change);
            return (quoted(&format!("path.{}.{name}", path(*index))), value);
        }
    };
    let (set, direction, value) = match change {
        Change::Rate(place, way, rate) => (format!("{}.rate", of(place)), way, (RATE.write)(rate)),
        Change::Delay(index, way, delay) => (format!("path.{}.delay", path(*index)), way, written::duration(*delay)),
        Change::Burst(place, way, burst) => (format!("{}.burst", of(place)), way, (BURST.write)(burst)),
        Change::Police(place, way, police) => (format!("{}.police", of(place)), way, (POLICE.write)(police)),
        Change::Jitter(index, way, jitter) => (format!("path.{}.jitter", path(*index)), way, (JITTER.write)(jitter)),
        Change::Radio(index, way, change) => {
            let (name, value) = radio::written(*change);
            (format!("path.{}.{name}", path(*index)), way, value)
        }
        Change::Middleboxes(index, way, boxes) => {
            (format!("path.{}.middlebox", path(*index)), way, (BOXES.write)(boxes))
        }
        Change::Loss(index, way, loss) => (format!("path.{}.loss", path(*index)), way, (LOSS.write)(loss)),
        Change::Mtu(index, way, bytes) => (format!("path.{}.mtu", path(*index)), way, bytes.to_string()),
        Change::Reorder(index, way, spec) => (format!("path.{}.reorder", path(*index)), way, (REORDER.write)(spec)),
        Change::Behind(index, way, change) => {
            let (name, value) = match change {
                BehindChange::Delay(delay) => ("delay", written::duration(*delay)),
                BehindChange::Jitter(jitter) => ("jitter", (JITTER.write)(jitter)),
                BehindChange::Radio(layer) => radio::written(*layer),
                BehindChange::Loss(loss) => ("loss", (LOSS.write)(loss)),
                BehindChange::Reorder(spec) => ("reorder", (REORDER.write)(spec)),
            };
            (format!("link.{}.{name}", link(*index)), way, value)
        }
        Change::Queue(place, way, limit) => (format!("{}.queue", of(place)), way, written::limit((*limit).into())),
    };
    (quoted(&set), format!("{{ {} = {value} }}", direction.name()))
}

/// The path at `place`, or those that cross the link.
fn crossing(topology: &Topology, place: Place, direction: Direction) -> impl Iterator<Item = &PathSpec> {
    let paths = topology.paths.iter().enumerate().filter(move |(index, path)| match place {
        Place::Path(path) => *index == path,
        Place::Link(link) => path.way(direction).bottleneck.crosses(link),
    });
    paths.map(|(_, path)| path)
}

/// Bytes that the path at `place` adds to a packet; of a link, the most of those that cross it.
fn overhead(topology: &Topology, place: Place, direction: Direction) -> i64 {
    crossing(topology, place, direction).map(|path| path.way(direction).overhead.into()).max().unwrap_or(0)
}

/// Both one-way delays of the path at `place`; of a link, the longest of those that cross it.
fn round_trip(topology: &Topology, place: Place, direction: Direction) -> Duration {
    let delays = crossing(topology, place, direction).map(|path| topology.round_trip(path));
    delays.max().unwrap_or_default()
}

/// The own bottleneck of a path, or a link; `None` for a path across a link.
fn bottleneck(topology: &Topology, place: Place, direction: Direction) -> Option<&BottleneckSpec> {
    match place {
        Place::Path(path) => topology.paths.get(path)?.way(direction).bottleneck.own(),
        Place::Link(link) => Some(topology.links.get(link)?.bottleneck(direction)),
    }
}
