//! `[[timeline]]`: changes during the experiment.

use super::change::{self, Reader};
use super::fields::{Fields, Pair, check_directions, split};
use super::network::Names;
use super::path::Way;
use super::{jitter, options, plugin, radio, value};
use crate::diagnostic::Code;
use crate::keys::{Directions, Form, Key, Section, changeable};
use crate::notation::TIME;
use crate::row::Row;
use crate::scenario::{Host, MtuSignal, PathOptions, TimelineChange, TimelineEntry};
use crate::suggest::nearest;
use crate::tree::{Node, Report};
use anabranch_network::{BehindChange, Bottleneck, CapacitySpec, Change, Place, RadioChange, Topology, WaySpec};
use anabranch_units::{Direction, Instant};

/// Keys of one change.
pub(crate) fn rows() -> Vec<Row<'static>> {
    vec![
        Row::by_hand("at", TIME.form, "when, warm-up included").required(),
        Row::by_hand("set", Form::Changeable, "the key that changes: \"path.wlan.rate\"").required(),
        Row::by_hand("value", Form::Value, "its new value").required(),
    ]
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
    let Target::Of(place) = target else {
        let change = TimelineChange::Scheduler(plugin::scheduler(report, key, node)?);
        return Some(vec![TimelineEntry { at, change }]);
    };
    if let (Place::Path(path), Directions::None) = (place, key.directions) {
        let set = fields.written("set")?;
        if direction.is_some() {
            report
                .error(Code::Conflict, set.at, format!("`{}` has no direction", key.full_name()))
                .label("names one")
                .help("leave .down and .up out: the key is of the whole path");
            return None;
        }
        let change = options::change(report, key, node)?;
        if !reader.hosts.any_is(Host::Engine) && !change.is_of_kernels() {
            report
                .error(Code::Conflict, set.at, format!("a Linux host has no {} of a path", key.name))
                .label("both hosts are Linux")
                .help("let this engine be one of the hosts");
        }
        return Some(vec![TimelineEntry { at, change: TimelineChange::Option(path, change) }]);
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
            refuse(report, reader, (place, key), direction, fields.written("set")?);
            let change = change::change(report, reader, place, key, direction, node)?;
            changes.push(TimelineEntry { at, change: TimelineChange::Network(change) });
        }
    }
    if changes.is_empty() {
        value::wrong_type(report, key, node);
    }
    Some(changes)
}

/// Reports a change of delay, jitter or slots by which packets would arrive before they are sent. `changes`: in order, each with its value.
pub(crate) fn check_variation(report: &mut Report, topology: &Topology, changes: &[(Option<&Node>, TimelineEntry)]) {
    let mut ways: Vec<_> = topology.paths.iter().map(|path| [path.down.clone(), path.up.clone()]).collect();
    let clean = || [Direction::Down, Direction::Up].map(|_| Way::default().spec);
    let mut links: Vec<_> =
        topology.links.iter().map(|link| link.behind.as_deref().cloned().unwrap_or_else(clean)).collect();
    for (value, entry) in changes {
        let TimelineChange::Network(change) = &entry.change else { continue };
        let (way, change) = match change {
            Change::Delay(path, way, delay) => (&mut ways[*path][*way as usize], BehindChange::Delay(*delay)),
            Change::Jitter(path, way, jitter) => {
                (&mut ways[*path][*way as usize], BehindChange::Jitter(jitter.clone()))
            }
            Change::Radio(path, way, layer) => (&mut ways[*path][*way as usize], BehindChange::Radio(*layer)),
            Change::Behind(link, way, change) => (&mut links[*link][*way as usize], change.clone()),
            _ => continue,
        };
        match change {
            BehindChange::Delay(delay) => way.delay = delay,
            BehindChange::Jitter(ref jitter) => way.jitter = jitter.clone(),
            BehindChange::Radio(layer @ RadioChange::Slots(_)) => way.radio = way.radio.with(layer),
            BehindChange::Radio(_) | BehindChange::Loss(_) | BehindChange::Reorder(_) => continue,
        }
        let Some(node) = value else { continue };
        if !matches!(change, BehindChange::Radio(_)) {
            jitter::check_spread(report, node, &way.jitter, way.least_delay());
        }
        if !matches!(change, BehindChange::Jitter(_)) {
            radio::check_step(report, node, way.radio.slots, way.least_delay());
        }
    }
}

/// Gives a link the parts that a change sets.
pub(crate) fn make_room(topology: &mut Topology, change: &TimelineChange) {
    if let TimelineChange::Network(Change::Behind(link, ..)) = change {
        let clean = || Box::new([Direction::Down, Direction::Up].map(|_| Way::default().spec));
        topology.links[*link].behind.get_or_insert_with(clean);
    }
}

/// The targets of a timeline.
#[derive(Clone, Copy)]
enum Target {
    Of(Place),
    Scheduler,
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
    let place = if section == Section::Path { Place::Path(index) } else { Place::Link(index) };
    Some((Target::Of(place), section.key(changed)?, direction))
}

fn malformed<T>(report: &mut Report, key: &Key, node: &Node) -> Option<T> {
    report
        .error(Code::UnknownWord, node.at, "this key cannot change while the experiment runs")
        .label("not such a key")
        .help(format!("expected {}", key.form.expected()));
    None
}

/// Refuses a change that its path or link does not have.
fn refuse(report: &mut Report, reader: &Reader<'_, '_>, of: (Place, &Key), direction: Direction, set: &Node) {
    match of.1.name {
        "delay" | "loss" => refuse_recorded(report, reader.topology, of, direction, set),
        "rate" | "burst" | "police" | "queue" => _ = needs_bottleneck(report, reader.topology, of, direction, set),
        "mtu" => refuse_interface(report, reader, of.0, set),
        _ => {}
    }
}

/// Refuses a change of the MTU of a Linux host's interface.
fn refuse_interface(report: &mut Report, reader: &Reader<'_, '_>, place: Place, set: &Node) {
    let Place::Path(path) = place else { return };
    let is_of_interface = |options: &PathOptions| options.mtu_signal == MtuSignal::Interface;
    if reader.hosts.any_is(Host::Linux) && reader.options.get(path).is_some_and(is_of_interface) {
        report
            .error(Code::Conflict, set.at, "a Linux host keeps the MTU of its interfaces")
            .label("needs engines as hosts")
            .help("let a router say so (mtu_signal = \"icmp\"), or let this engine be both hosts");
    }
}

/// Refuses a change of a value that the path's trace has.
fn refuse_recorded(
    report: &mut Report,
    topology: Option<&Topology>,
    (place, key): (Place, &Key),
    direction: Direction,
    set: &Node,
) {
    let found = topology.and_then(|topology| match place {
        Place::Path(path) => topology.paths.get(path).map(|path| path.way(direction)),
        Place::Link(link) => topology.links.get(link)?.behind(direction),
    });
    let recorded = |way: &WaySpec| match key.name {
        "delay" => way.recorded_delay.is_some(),
        _ => way.recorded_loss.is_some(),
    };
    if found.is_some_and(recorded) {
        report
            .error(Code::Conflict, set.at, format!("this {}'s {} is that of its trace", key.section.name(), key.name))
            .label("recorded")
            .help("leave the column out of the trace, or this change out");
    }
}

/// A recorded capacity has no rate to change, and a shared bottleneck's rate is the link's.
fn needs_bottleneck(
    report: &mut Report,
    topology: Option<&Topology>,
    (place, key): (Place, &Key),
    direction: Direction,
    set: &Node,
) -> Option<()> {
    let capacity = match place {
        Place::Path(path) => match &topology?.paths.get(path)?.way(direction).bottleneck {
            Bottleneck::Own(own) => &own.capacity,
            Bottleneck::Route(links) => {
                let names = links.iter().filter_map(|link| Some(&topology?.links.get(*link)?.name));
                let keys: Vec<_> = names.map(|link| format!("\"link.{link}.{}\"", key.name)).collect();
                let label = if keys.len() > 1 { "it has those of its links" } else { "its bottleneck is a link" };
                report
                    .error(Code::Conflict, set.at, format!("this path has no {} of its own", key.name))
                    .label(label)
                    .help(format!("set {}", keys.join(" or ")));
                return None;
            }
        },
        Place::Link(link) => &topology?.links.get(link)?.bottleneck(direction).capacity,
    };
    if let (CapacitySpec::Trace(_) | CapacitySpec::Steps(_), true) = (capacity, ["rate", "burst"].contains(&key.name)) {
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
