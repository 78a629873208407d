//! `[[cross]]`: flows that share a bottleneck with the connection.

use super::fields::Fields;
use super::network::Names;
use super::{route, value};
use crate::diagnostic::Code;
use crate::keys::{Form, Key, MAX_BYTES, Section};
use crate::notation::{CONGESTION, INSTANT, Notation, PACKET, POSITIVE_TIME, RATE, TIME, integer, real, size, word};
use crate::row::{Row, inline};
use crate::scenario::{Cross, CrossData, CrossKind, Distribution, Over, PACKET_SIZES, PlugIn, TimeRange};
use crate::tree::{Node, Report};
use crate::written;
use anabranch_units::{Duration, Instant, Rate};

const RANGE: Notation<TimeRange> = Notation { form: Form::Range, read: range, write: written_range };
const PACKETS_PER_SECOND: Notation<f64> = Notation { read: packets_per_second, ..real(0.0) };
/// The most packets that a flow writes per second.
const MOST_PACKETS: f64 = 1e6;

impl CrossKind {
    /// Names of all kinds.
    pub(crate) const NAMES: &'static [&'static str] = &["tcp", "tcp-limited", "udp", "udp-onoff"];

    /// Every kind as it is without its keys, in the order of [`Self::NAMES`].
    pub(crate) fn blank() -> [CrossKind; 4] {
        let (rate, packet) = (Rate::from_bps(0), 1000);
        let (rates, packets) = (Distribution::Fixed, Distribution::Fixed);
        let (on, off, shape) = (Duration::ZERO, Duration::ZERO, 1.5);
        let limited = CrossData::Packets { per_second: 0.0, rates, packet, packets };
        let tcp = |data| CrossKind::Tcp { congestion: PlugIn::named("cubic"), delay: None, data };
        [
            tcp(CrossData::Bulk(None)),
            tcp(limited),
            CrossKind::Udp { rate, rates, packet },
            CrossKind::UdpOnOff { rate, rates, packet, packets, on, off, shape },
        ]
    }

    /// Name as scenario files write it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tcp { data: CrossData::Bulk(_), .. } => Self::NAMES[0],
            Self::Tcp { data: CrossData::Packets { .. }, .. } => Self::NAMES[1],
            Self::Udp { .. } => Self::NAMES[2],
            Self::UdpOnOff { .. } => Self::NAMES[3],
        }
    }
}

/// Keys that every kind has and [`cross`] reads.
#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn over() -> Vec<Row<'static>> {
    vec![
        Row::by_hand("kind", Form::Words(CrossKind::NAMES), "tcp: as much as TCP carries; tcp-limited: TCP whose application writes packets at exponential intervals, without Nagle's algorithm; udp: constant bit rate; udp-onoff: Pareto on and exponential off times").required(),
        Row::by_hand("path", Form::PathName, "the path whose bottleneck it shares").silent("required, unless link or route is given"),
        Row::by_hand("link", Form::LinkName, "the link that it crosses").silent("required, unless path or route is given"),
        Row::by_hand("route", Form::Route, "the links that it crosses, in the order in which data from the server meets them").silent("the link or the path"),
    ]
}

/// Keys that every kind has.
#[rustfmt::skip]
pub(crate) fn shared(cross: &mut Cross) -> Vec<Row<'_>> {
    vec![
        Row::new("direction", word(), &mut cross.direction, "direction of the data: down = server to client, as the connection's, up = client to server"),
        Row::new("count", integer(0, 1000), &mut cross.count, "number of such flows; each draws its own times, rates and packets"),
        Row::new("start", RANGE, &mut cross.start, "when it starts, warm-up included"),
        Row::optional("stop", INSTANT, &mut cross.stop, "when it stops").silent("never"),
    ]
}

/// Keys of one kind.
#[rustfmt::skip]
pub(crate) fn rows(kind: &mut CrossKind) -> Vec<Row<'_>> {
    let rates_row = |rates| Row::new("rate_distribution", word(), rates, "each flow's rate is as written, or drawn with that mean");
    let packets_row = |packets| Row::new("packet_distribution", word(), packets, "sizes are as written, or exponential, cut to 40 to 1500 bytes, with that mean after the cut");
    match kind {
        CrossKind::Tcp { congestion, delay, data } => {
            let mut rows = vec![
                Row::new("congestion", CONGESTION, congestion, "congestion control; everything else is as in [connection] and [tcp]").or("cubic"),
                Row::optional("delay", RANGE, delay, "one-way delay of its own behind the bottleneck, in each direction; a path's loss and other impairments apply to it too").silent("that of the path, or of the first path across the link"),
            ];
            match data {
                CrossData::Bulk(bytes) => rows.push(
                    Row::optional("size", size(1, MAX_BYTES), bytes, "bytes to transfer; a run without a duration waits for these flows too (cross_completion_mean_s)").silent("until the end"),
                ),
                CrossData::Packets { per_second, rates, packet, packets } => rows.extend([
                    Row::new("packets_per_second", PACKETS_PER_SECOND, per_second, "mean number of packets that the application writes; at most 1e6").required(),
                    rates_row(rates),
                    Row::new("packet", PACKET, packet, "mean size of one write"),
                    packets_row(packets),
                ]),
            }
            rows
        }
        CrossKind::Udp { rate, rates, packet } => vec![
            Row::new("rate", RATE, rate, "rate while on, counting whole IP packets").required(),
            rates_row(rates),
            Row::new("packet", PACKET, packet, "mean size of one IP packet"),
        ],
        CrossKind::UdpOnOff { rate, rates, packet, packets, on, off, shape } => vec![
            Row::new("rate", RATE, rate, "rate while on, counting whole IP packets").required(),
            rates_row(rates),
            Row::new("packet", PACKET, packet, "mean size of one IP packet"),
            packets_row(packets),
            Row::new("on", POSITIVE_TIME, on, "mean on time").required(),
            Row::new("off", POSITIVE_TIME, off, "mean off time").required(),
            Row::new("shape", real(1.0), shape, "shape of the Pareto distribution of on times"),
        ],
    }
}

/// Flows that share a bottleneck with the connection.
pub(super) fn cross(report: &mut Report, names: &Names, fields: &Fields<'_>) -> Option<Cross> {
    let kind = fields.get(report, "kind", value::word);
    let over = bottleneck(report, names, fields);
    let kind = CrossKind::blank().into_iter().find(|blank| Some(blank.name()) == kind)?;
    let mut cross = Cross::blank(kind);
    let shared_read = fields.fill(report, Some(cross.kind.name()), shared(&mut cross));
    let kind_read = fields.fill(report, Some(cross.kind.name()), rows(&mut cross.kind));
    check_stop(report, fields, &cross);
    if !(packets_fit(report, fields, &cross.kind) && shared_read && kind_read) {
        return None;
    }
    cross.over = over?;
    Some(cross)
}

fn check_stop(report: &mut Report, fields: &Fields<'_>, cross: &Cross) {
    if let (Some(stop), Some(node)) = (cross.stop, fields.written("stop"))
        && stop <= Instant::ZERO + cross.start.max
        && fields.are_sound(report, &["start", "stop"])
    {
        report
            .error(Code::ImpossibleValue, node.at, "this flow stops before it starts")
            .label(format!("it starts at {}", cross.start.max))
            .help("leave `stop` out for a flow that never stops");
    }
}

/// Keys of the table form of a range of times.
#[rustfmt::skip]
pub(crate) fn range_rows(range: &mut TimeRange) -> Vec<Row<'_>> {
    vec![
        Row::new("min", TIME, &mut range.min, "the shortest").required(),
        Row::new("max", TIME, &mut range.max, "the longest; all between are equally likely").required(),
    ]
}

/// A time, or a range of times.
fn range(report: &mut Report, key: &'static Key, node: &Node) -> Option<TimeRange> {
    if node.as_table().is_none() {
        let time = value::duration(report, key, node)?;
        return Some(TimeRange { min: time, max: time });
    }
    let fields = Fields::open(report, Section::Range, Some(node));
    let mut range = TimeRange::default();
    if !fields.fill(report, None, range_rows(&mut range)) {
        return None;
    }
    if range.max < range.min {
        value::impossible(report, key, node, "ends before it begins");
        return None;
    }
    Some(range)
}

fn written_range(range: &TimeRange) -> String {
    match range.is_fixed() {
        true => written::duration(range.min),
        false => inline(&[], &range_rows(&mut range.clone())),
    }
}

/// The path or the links.
fn bottleneck(report: &mut Report, names: &Names, fields: &Fields<'_>) -> Option<Over> {
    let written: Vec<_> = ["path", "link", "route"].into_iter().filter_map(|key| fields.written(key)).collect();
    if let [_, second, ..] = written[..] {
        report
            .error(Code::Conflict, second.at, "cross traffic goes over a `path`, a `link` or a `route`")
            .label("the second of them")
            .help("leave one out");
        return None;
    }
    if written.is_empty() {
        fields.missing(report, fields.key("path"));
    }
    let path = fields.get(report, "path", |report, key, node| names.path(report, key, node));
    let link = fields.get(report, "link", |report, key, node| names.link(report, key, node));
    let route = fields.get(report, "route", |report, key, node| route::route(report, names, key, node));
    path.map(Over::Path).or(link.map(|link| Over::Links(vec![link]))).or(route.map(Over::Links))
}

fn packets_per_second(report: &mut Report, key: &'static Key, node: &Node) -> Option<f64> {
    let value = value::real(report, key, node)?;
    if value > MOST_PACKETS {
        value::impossible(report, key, node, "is too large");
    }
    (value <= MOST_PACKETS).then_some(value)
}

/// Whether exponential sizes can have the mean that is written.
fn packets_fit(report: &mut Report, fields: &Fields<'_>, kind: &CrossKind) -> bool {
    let (mean, spread) = match *kind {
        CrossKind::Tcp { data: CrossData::Packets { packet, packets, .. }, .. } => (packet, packets),
        CrossKind::UdpOnOff { packet, packets, .. } => (packet, packets),
        CrossKind::Tcp { data: CrossData::Bulk(_), .. } | CrossKind::Udp { .. } => return true,
    };
    let (least, most) = PACKET_SIZES;
    let sound = fields.are_sound(report, &["packet", "packet_distribution"]);
    if !sound || spread == Distribution::Fixed || (least < mean && mean < most) {
        return true;
    }
    let at = fields.written("packet").map_or(fields.at, |node| node.at);
    report
        .error(Code::ImpossibleValue, at, format!("exponential sizes cannot have a mean of {mean} bytes"))
        .label("beyond the cut")
        .help(format!("they are cut to {least} to {most} bytes: the mean must lie between"));
    false
}
