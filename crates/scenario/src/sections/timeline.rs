//! `[[timeline]]`: changes during the experiment.

use super::bucket::{self, BURST, POLICE};
use super::fields::{Fields, Pair, check_directions, split};
use super::impairment::LOSS;
use super::jitter::JITTER;
use super::network::Names;
use super::path::{self, Way};
use super::traces::Traces;
use super::{jitter, plugin, value};
use crate::diagnostic::Code;
use crate::keys::{Form, Key, Section, changeable};
use crate::notation::{RATE, SCHEDULER, TIME};
use crate::row::Row;
use crate::scenario::{TimelineChange, TimelineEntry};
use crate::suggest::nearest;
use crate::tree::{Node, Report, quoted};
use crate::vocabulary::Word;
use crate::written;
use anabranch_network::{Bottleneck, CapacitySpec, Change, Place, Topology, WaySpec};
use anabranch_units::{Direction, Instant};

/// Keys of one change.
pub(crate) fn rows() -> Vec<Row<'static>> {
    vec![
        Row::by_hand("at", TIME.form, "when, warm-up included").required(),
        Row::by_hand("set", Form::Changeable, "the key that changes: \"path.wlan.rate\"").required(),
        Row::by_hand("value", Form::Value, "its new value").required(),
    ]
}

/// The parts of a scenario that entries of a timeline refer to.
pub(crate) struct Reader<'a, 'r> {
    pub traces: &'a mut Traces<'r>,
    pub names: &'a Names,
    pub topology: Option<&'a Topology>,
    /// Bytes of a full packet without overhead.
    pub packet: u64,
}

/// The targets of a timeline.
#[derive(Clone, Copy)]
enum Target {
    Path(usize),
    Link(usize),
    Scheduler,
}

/// The changes of one entry: one, or one per direction.
pub(crate) fn entry(
    report: &mut Report,
    reader: &mut Reader<'_, '_>,
    fields: &Fields<'_>,
) -> Option<Vec<TimelineEntry>> {
    let at = fields.get(report, "at", value::duration);
    let set = fields.get(report, "set", |report, key, node| target(report, reader.names, key, node));
    // Its default is an error, because the key is required.
    fields.get(report, "value", |_, _, _| Some(()));
    let (target, key, direction) = set?;
    let node = fields.written("value")?;
    let at = Instant::ZERO + at?;
    if let Target::Scheduler = target {
        let change = TimelineChange::Scheduler(plugin::scheduler(report, key, node)?);
        return Some(vec![TimelineEntry { at, change }]);
    }
    let values = match direction {
        None => {
            check_directions(report, key, node);
            split(key, node)
        }
        Some(Direction::Down) => Pair { down: Some(node), up: None },
        Some(Direction::Up) => Pair { down: None, up: Some(node) },
    };
    let mut changes = Vec::new();
    for direction in [Direction::Down, Direction::Up] {
        if let Some(node) = values.get(direction) {
            if ["delay", "loss"].contains(&key.name) {
                refuse_recorded(report, reader.topology, (target, key), direction, fields.written("set")?);
            }
            if ["rate", "burst", "police"].contains(&key.name) {
                needs_bottleneck(report, reader.topology, (target, key), direction, fields.written("set")?);
            }
            let change = change(report, reader, target, key, direction, node)?;
            changes.push(TimelineEntry { at, change: TimelineChange::Network(change) });
        }
    }
    if changes.is_empty() {
        value::wrong_type(report, key, node);
    }
    Some(changes)
}

/// The change of one direction. Each key that is changeable has its line here.
fn change(
    report: &mut Report,
    reader: &mut Reader<'_, '_>,
    target: Target,
    key: &'static Key,
    direction: Direction,
    node: &Node,
) -> Option<Change> {
    let (path, link) = match target {
        Target::Path(path) => (Some(path), None),
        Target::Link(link) => (None, Some(link)),
        Target::Scheduler => (None, None),
    };
    if key.name == "rate" {
        let rate = (RATE.read)(report, key, node)?;
        let of_path = path.map(|path| Change::PathRate(path, direction, rate));
        return of_path.or(link.map(|link| Change::LinkRate(link, direction, rate)));
    }
    if let (Some(place), "burst" | "police") = (path.map(Place::Path).or(link.map(Place::Link)), key.name) {
        return bucket_change(report, reader, place, key, direction, node);
    }
    let mut way = Way::default().spec;
    let mut rows = path::way(&mut way);
    rows.iter_mut().find(|row| row.name == key.name)?.read(report, key, node).then_some(())?;
    drop(rows);
    match key.name {
        "jitter" => {
            let read = jitter::load(report, reader.traces, node, &mut way.jitter);
            read.then_some(Change::Jitter(path?, direction, way.jitter))
        }
        "delay" => Some(Change::Delay(path?, direction, way.delay)),
        "loss" => Some(Change::Loss(path?, direction, way.loss)),
        other => unreachable!("{other} is changeable"),
    }
}

/// The change of one direction's `burst` or `police`.
fn bucket_change(
    report: &mut Report,
    reader: &Reader<'_, '_>,
    place: Place,
    key: &'static Key,
    direction: Direction,
    node: &Node,
) -> Option<Change> {
    let overhead = reader.topology.map_or(0, |topology| overhead(topology, place, direction));
    let packet = reader.packet.saturating_add_signed(overhead);
    if key.name == "burst" {
        let burst = (BURST.read)(report, key, node)?;
        bucket::check_burst(report, node, burst, packet);
        return Some(Change::Burst(place, direction, burst));
    }
    let police = (POLICE.read)(report, key, node)?;
    bucket::check_burst(report, node, police.burst, packet);
    Some(Change::Police(place, direction, police))
}

/// Reports a change of delay or jitter by which packets would arrive before they are sent. `changes`: in order, each with its value.
pub(crate) fn check_jitter(report: &mut Report, topology: &Topology, changes: &[(Option<&Node>, TimelineEntry)]) {
    let mut ways: Vec<_> = topology.paths.iter().map(|path| [path.down.clone(), path.up.clone()]).collect();
    for (value, entry) in changes {
        let (way, jitter) = match &entry.change {
            TimelineChange::Network(Change::Delay(path, direction, delay)) => {
                let way = &mut ways[*path][*direction as usize];
                way.delay = *delay;
                (way, None)
            }
            TimelineChange::Network(Change::Jitter(path, direction, jitter)) => {
                (&mut ways[*path][*direction as usize], Some(jitter))
            }
            _ => continue,
        };
        way.jitter = jitter.unwrap_or(&way.jitter).clone();
        if let Some(node) = value {
            jitter::check_spread(report, node, &way.jitter, way.least_delay());
        }
    }
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
    };
    let (set, direction, value) = match change {
        Change::PathRate(index, way, rate) => (format!("path.{}.rate", path(*index)), way, (RATE.write)(rate)),
        Change::LinkRate(index, way, rate) => (format!("link.{}.rate", link(*index)), way, (RATE.write)(rate)),
        Change::Delay(index, way, delay) => (format!("path.{}.delay", path(*index)), way, written::duration(*delay)),
        Change::Burst(place, way, burst) => (format!("{}.burst", of(place)), way, (BURST.write)(burst)),
        Change::Police(place, way, police) => (format!("{}.police", of(place)), way, (POLICE.write)(police)),
        Change::Jitter(index, way, jitter) => (format!("path.{}.jitter", path(*index)), way, (JITTER.write)(jitter)),
        Change::Loss(index, way, loss) => (format!("path.{}.loss", path(*index)), way, (LOSS.write)(loss)),
    };
    (quoted(&set), format!("{{ {} = {value} }}", direction.name()))
}

type Changed = (Target, &'static Key, Option<Direction>);

/// The one key of `[connection]` that may change.
fn of_connection(report: &mut Report, key: &'static Key, node: &Node, name: &str) -> Option<Changed> {
    let Some(found) = Section::Connection.key(name) else { return malformed(report, key, node) };
    match found {
        found if found.name == "scheduler" => Some((Target::Scheduler, found, None)),
        found => {
            let reason = match found.name {
                "congestion" => "its windows are the state of the subflows: run the scenario once with each",
                _ => "keys that can change: scheduler",
            };
            let message = format!("`{}` cannot change while the experiment runs", found.full_name());
            report.error(Code::UnknownKey, node.at, message).label("not such a key").help(reason);
            None
        }
    }
}

/// `path.NAME.KEY` or `link.NAME.KEY`, with an optional direction, or `connection.scheduler`.
fn target(report: &mut Report, names: &Names, key: &'static Key, node: &Node) -> Option<Changed> {
    let text = value::reference(report, key, node)?;
    if let Some(name) = text.strip_prefix("connection.") {
        return of_connection(report, key, node, name);
    }
    let mut parts = text.split('.');
    let (section, name, changed) = (parts.next(), parts.next(), parts.next());
    let direction = match (parts.next(), parts.next()) {
        (None, _) => None,
        (Some("down"), None) => Some(Direction::Down),
        (Some("up"), None) => Some(Direction::Up),
        _ => return malformed(report, key, node),
    };
    let (section, listed) = match section {
        Some("path") => (Section::Path, &names.paths),
        Some("link") => (Section::Link, &names.links),
        _ => return malformed(report, key, node),
    };
    let (Some(name), Some(changed)) = (name, changed) else { return malformed(report, key, node) };
    let of_section: Vec<&str> = changeable().filter(|key| key.section == section).map(|key| key.name).collect();
    if !of_section.contains(&changed) {
        let message = format!("`{}.{changed}` cannot change while the experiment runs", section.name());
        report
            .error(Code::UnknownKey, node.at, message)
            .label("not such a key")
            .help(format!("keys that can change: {}", of_section.join(", ")));
        return None;
    }
    let Some(index) = listed.place(name) else {
        let help = match nearest(name, listed.neighbours()) {
            Some(near) => format!("did you mean \"{}.{near}.{changed}\"?", section.name()),
            None => format!("there is: {}", listed.neighbours().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("there is no {} named \"{name}\"", section.name());
        report.error(Code::UnknownName, node.at, message).label("unknown name").help(help);
        return None;
    };
    let target = if section == Section::Path { Target::Path(index) } else { Target::Link(index) };
    Some((target, section.key(changed)?, direction))
}

fn malformed<T>(report: &mut Report, key: &Key, node: &Node) -> Option<T> {
    report
        .error(Code::UnknownWord, node.at, "this key cannot change while the experiment runs")
        .label("not such a key")
        .help(format!("expected {}", key.form.expected()));
    None
}

/// Bytes that the path at `place` adds to a packet; of a link, the most of those that cross it.
fn overhead(topology: &Topology, place: Place, direction: Direction) -> i64 {
    let ways = topology.paths.iter().map(|path| if direction == Direction::Down { &path.down } else { &path.up });
    let crossing = ways.enumerate().filter(|(index, way)| match place {
        Place::Path(path) => *index == path,
        Place::Link(link) => way.bottleneck == Bottleneck::Shared(link),
    });
    crossing.map(|(_, way)| way.overhead.into()).max().unwrap_or(0)
}

/// Refuses a change of a value that the path's trace has.
fn refuse_recorded(
    report: &mut Report,
    topology: Option<&Topology>,
    (target, key): (Target, &Key),
    direction: Direction,
    set: &Node,
) {
    let Target::Path(path) = target else { return };
    let path = topology.and_then(|topology| topology.paths.get(path));
    let way = path.map(|path| if direction == Direction::Down { &path.down } else { &path.up });
    let recorded = |way: &WaySpec| match key.name {
        "delay" => way.recorded_delay.is_some(),
        _ => way.recorded_loss.is_some(),
    };
    if way.is_some_and(recorded) {
        report
            .error(Code::Conflict, set.at, format!("this path's {} is that of its trace", key.name))
            .label("recorded")
            .help("leave the column out of the trace, or this change out");
    }
}

/// A recorded capacity has no rate to change, and a shared bottleneck's rate is the link's.
fn needs_bottleneck(
    report: &mut Report,
    topology: Option<&Topology>,
    (target, key): (Target, &Key),
    direction: Direction,
    set: &Node,
) -> Option<()> {
    let capacity = match target {
        Target::Path(path) => {
            let path = topology?.paths.get(path)?;
            let way = if direction == Direction::Down { &path.down } else { &path.up };
            match &way.bottleneck {
                Bottleneck::Own(own) => &own.capacity,
                Bottleneck::Shared(link) => {
                    let link = &topology?.links.get(*link)?.name;
                    report
                        .error(Code::Conflict, set.at, format!("this path has no {} of its own", key.name))
                        .label("its bottleneck is a link")
                        .help(format!("set \"link.{link}.{}\"", key.name));
                    return None;
                }
            }
        }
        Target::Link(link) => {
            let link = topology?.links.get(link)?;
            if direction == Direction::Down { &link.down.capacity } else { &link.up.capacity }
        }
        Target::Scheduler => return None,
    };
    if let (CapacitySpec::Trace(_) | CapacitySpec::Steps(_), true) = (capacity, key.name != "police") {
        report
            .error(
                Code::Conflict,
                set.at,
                format!("this capacity is a recorded trace, which has no {} to change", key.name),
            )
            .label("has a `trace`")
            .help("give it a `rate` instead of a `trace`");
    }
    Some(())
}
