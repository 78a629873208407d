//! `[[traffic]]`: the applications.

use super::fields::Fields;
use super::{hosts as host_keys, value, video};
use crate::diagnostic::Code;
use crate::keys::{Form, Key, MAX_BYTES, MAX_FLOWS, Section};
use crate::notation::{INSTANT, NAME, Notation, POSITIVE_TIME, RATE, TIME, integer, real, size, word};
use crate::row::{Row, inline};
use crate::scenario::{Arrivals, ConnectionsPer, ObjectSizes, Scenario, Traffic, TrafficKind};
use crate::suggest::nearest;
use crate::tree::{Node, Report, quoted};
use anabranch_units::{Duration, Instant, Rate};
use anabranch_workload::REQUEST_BYTES;
use std::collections::BTreeSet;

const BYTES: Notation<u64> = size(1, MAX_BYTES);
pub(super) const REQUEST: Notation<u64> = size(*REQUEST_BYTES.start(), *REQUEST_BYTES.end());
const COUNT: Notation<u64> = integer(1, 1_000_000_000);
const FLOWS: Notation<u32> = integer(1, MAX_FLOWS);
const ARRIVALS: Notation<Arrivals> = Notation { form: Form::Arrivals, read: arrivals, write: written_arrivals };

impl TrafficKind {
    /// Every kind as it is without its keys.
    pub(crate) fn blank() -> [TrafficKind; 6] {
        [
            TrafficKind::Bulk { size: None },
            TrafficKind::Frames { size: 0, interval: Duration::ZERO, count: None, deadline: None },
            TrafficKind::CALL,
            video::blank(),
            TrafficKind::Request { request: 100, size: 0, interval: Duration::ZERO, count: None },
            TrafficKind::Web {
                size: 0,
                objects: 0,
                connections: 6,
                connections_per: ConnectionsPer::Page,
                sizes: ObjectSizes::Equal,
                request: 100,
            },
        ]
    }

    /// Names of all kinds, in the order of [`Self::blank`].
    pub(crate) const NAMES: &'static [&'static str] = &["bulk", "frames", "call", "video", "request", "web"];

    /// Name as scenario files write it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bulk { .. } => Self::NAMES[0],
            Self::Frames { .. } => Self::NAMES[1],
            Self::Call { .. } => Self::NAMES[2],
            Self::Video { .. } => Self::NAMES[3],
            Self::Request { .. } => Self::NAMES[4],
            Self::Web { .. } => Self::NAMES[5],
        }
    }
}

impl TrafficKind {
    /// Call with a bit rate of fullband speech (Opus, RFC 7587 §3.1.1: 28 to 40 kbit/s) and the deadline of ITU-T G.114, the
    /// defaults of the kind's keys.
    pub const CALL: Self = Self::Call {
        audio: Rate::from_bps(32_000),
        video: None,
        frame_rate: 30,
        key_every: 300,
        deadline: Duration::from_millis(150),
    };
}

/// The key that chooses the kind.
pub(crate) fn kind() -> Row<'static> {
    Row::by_hand("kind", Form::Words(TrafficKind::NAMES), "bulk: an end, the server unless direction says otherwise, sends as much as it can; frames: it writes frames of one size at a steady pace; call: both ends, unless direction says otherwise, send speech and pictures with a deadline; video: the client plays a video in segments, and requests each at a rate that suits its buffer; request: the client sends requests and the server answers them, one after the other; web: the client requests a page's objects over several connections").required()
}

/// Keys of every kind.
#[rustfmt::skip]
pub(crate) fn shared(traffic: &mut Traffic) -> Vec<Row<'_>> {
    vec![
        Row::optional("name", NAME, &mut traffic.name, "unique among applications; results have its metrics as traffic.NAME.METRIC. Several applications need names").silent("one application has no name"),
        Row::optional("start", TIME, &mut traffic.start, "when it begins, warm-up included; start_jitter delays each application by a time of its own").silent("the scenario's start"),
        Row::optional("stop", INSTANT, &mut traffic.stop, "when both ends give its connections up").silent("never"),
    ]
}

/// Keys of one kind.
#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn rows(traffic: &mut Traffic) -> Vec<Row<'_>> {
    let has_direction = !traffic.kind.has_requests();
    let mut rows = match &mut traffic.kind {
        kind @ TrafficKind::Video { .. } => video::rows(kind),
        TrafficKind::Bulk { size } => vec![
            Row::optional("size", BYTES, size, "bytes to transfer").silent("until the end"),
        ],
        TrafficKind::Frames { size, interval, count, deadline } => vec![
            Row::new("size", BYTES, size, "bytes of a frame").required(),
            Row::new("interval", POSITIVE_TIME, interval, "time from one frame to the next").required(),
            Row::optional("count", COUNT, count, "number of frames").silent("until the end"),
            Row::optional("deadline", POSITIVE_TIME, deadline, "time from when a frame is due to its play-out; a frame that is not complete by then is late").silent("frames are never late"),
        ],
        TrafficKind::Call { audio, video, frame_rate, key_every, deadline } => vec![
            Row::new("audio", RATE, audio, "payload of speech, as one frame per 20 ms (the default frame of Opus, RFC 6716)"),
            Row::optional("video", RATE, video, "mean payload of the camera's pictures. A key frame has 3.24 times the mean and the seven pictures after it make up for that; the others vary around the mean by a Laplace distribution with parameter 0.15 (RFC 8593 §5)").silent("speech alone"),
            Row::new("frame_rate", integer(1, 240), frame_rate, "pictures per second"),
            Row::new("key_every", integer(8, 3000), key_every, "pictures from a key frame to the next"),
            Row::new("deadline", POSITIVE_TIME, deadline, "time from capture to play-out; a frame that is not complete by then is late and lost to the user, though it is still delivered. ITU-T G.114 has 150 ms from mouth to ear; here the network has all of it: capture, coding and the play-out device take no time"),
        ],
        TrafficKind::Request { request, size, interval, count } => vec![
            Row::new("size", BYTES, size, "bytes of a response").required(),
            Row::new("interval", TIME, interval, "time from a response to the next request"),
            Row::optional("count", COUNT, count, "number of requests").silent("until the end"),
            Row::new("request", REQUEST, request, "bytes of a request"),
        ],
        TrafficKind::Web { size, objects, connections, connections_per, sizes, request } => return vec![
            Row::new("size", BYTES, size, "bytes of all objects together").required(),
            Row::new("request", REQUEST, request, "bytes of a request"),
            Row::new("objects", integer(1, 100_000), objects, "number of the page's objects").required(),
            Row::new("connections", integer(1, MAX_FLOWS), connections, "connections, opened together at the start, each of which requests the next object when one is complete; at most as many as there are objects"),
            Row::new("connections_per", word(), connections_per, "lifetime of a connection: page: the connections last as long as the page and share its objects (HTTP/1.1); object: one connection per object, `connections` of them at a time, the next as soon as an object is complete (HTTP/1.0, RFC 1945 §1.3)"),
            Row::new("sizes", word(), sizes, "distribution of the page's bytes over its objects: equal, or lognormal (σ = 1.318 of the logarithm, Barford and Crovella 1998) and scaled to the page's size"),
        ],
    };
    if has_direction {
        rows.push(Row::new("direction", word(), &mut traffic.direction, "which end sends the data. down: the server, a download; up: the client, an upload; both: each end at once, over the same connections, `size` or `count` each. Metrics are of the sending end; of both, goodput, completion and counts add up, and goodput and completion stand for each direction too"));
    }
    rows.extend([
        Row::new("flows", FLOWS, &mut traffic.flows, "number of simultaneous instances, each on its own connection"),
        Row::new("arrivals", ARRIVALS, &mut traffic.arrivals, "when the flows begin: all at the start, or at random times after it"),
    ]);
    rows
}

/// One unlimited bulk transfer unless the file has traffic.
pub(super) fn traffic(report: &mut Report, entries: &[Fields<'_>]) -> Option<Vec<Traffic>> {
    if entries.is_empty() {
        return Some(vec![TrafficKind::Bulk { size: None }.into()]);
    }
    check_names(report, entries);
    let traffic: Vec<_> = entries.iter().map(|fields| application(report, fields)).collect();
    let traffic: Vec<Traffic> = traffic.into_iter().collect::<Option<_>>()?;
    check_number(report, entries, &traffic).then_some(traffic)
}

/// Each of several applications has a name of its own.
fn check_names(report: &mut Report, entries: &[Fields<'_>]) {
    let mut taken = BTreeSet::new();
    for fields in entries.iter().filter(|_| entries.len() > 1) {
        let Some(node) = fields.written("name") else {
            report
                .error(Code::MissingKey, fields.at, "each of several applications needs a name")
                .label("no `name` here")
                .help("name it: name = \"call\"");
            continue;
        };
        if let Some(name) = node.as_text().filter(|name| !taken.insert(*name)) {
            report
                .error(Code::DuplicateName, node.at, format!("there are two applications named \"{name}\""))
                .label("second use of this name")
                .help("give each application a name of its own");
        }
    }
}

/// Each connection of all applications has a port.
fn check_number(report: &mut Report, entries: &[Fields<'_>], traffic: &[Traffic]) -> bool {
    let sums = traffic.iter().scan(0, |sum, application| {
        *sum += i64::from(application.connections());
        Some(*sum)
    });
    let Some((sum, fields)) = sums.zip(entries).find(|(sum, _)| *sum > MAX_FLOWS) else { return true };
    if entries.len() == 1 {
        return true;
    }
    report
        .error(
            Code::ImpossibleValue,
            fields.at,
            format!("all applications together have at most {MAX_FLOWS} connections"),
        )
        .label(format!("{sum} with this one"));
    false
}

/// Several applications run in virtual time between one pair of hosts, and each begins before it stops and before the run ends.
pub(super) fn check(report: &mut Report, entries: &[Fields<'_>], hosts: &Fields<'_>, scenario: &Scenario) {
    if let Some(second) = entries.get(1) {
        if !scenario.groups.is_empty() {
            report
                .error(Code::NotAvailable, second.at, "groups of hosts run one application each")
                .label("the second one")
                .help("give each [[group]] its own `traffic`, or leave the [[group]]s out");
        }
        host_keys::refuse_kernels(
            report,
            hosts,
            "several applications run in virtual time alone",
            "leave one [[traffic]]",
        );
    }
    for (fields, traffic) in entries.iter().zip(&scenario.traffic) {
        check_times(report, fields, traffic, scenario);
    }
}

fn check_times(report: &mut Report, fields: &Fields<'_>, traffic: &Traffic, scenario: &Scenario) {
    let start = traffic.start.unwrap_or(scenario.start);
    let latest = start + scenario.start_jitter;
    if let (Some(stop), Some(node)) = (traffic.stop, fields.written("stop"))
        && fields.are_sound(report, &["start", "stop"])
        && stop <= Instant::ZERO + latest
    {
        report
            .error(Code::ImpossibleValue, node.at, "this application stops before it starts")
            .label(format!("it starts at {latest}"))
            .help("leave `stop` out for an application that never stops");
    }
    if let (Some(stop), Some(node)) = (traffic.stop, fields.written("stop"))
        && stop <= Instant::ZERO + scenario.warmup
    {
        report
            .error(Code::ImpossibleValue, node.at, "this application stops before anything is measured")
            .label(format!("warm-up ends at {}", scenario.warmup))
            .help("times count from the beginning of the run, warm-up included");
    }
    // A shorter run may leave some out.
    let end = scenario.duration.map(|duration| scenario.warmup + duration);
    let begins = |traffic: &Traffic| end.is_some_and(|end| traffic.start.unwrap_or(scenario.start) < end);
    if let (Some(end), Some(node)) = (end, fields.written("start"))
        && !scenario.traffic.iter().any(begins)
    {
        report
            .error(Code::ImpossibleValue, node.at, "this application starts after the end")
            .label(format!("warm-up and measured time end at {end}"))
            .help("times count from the beginning of the run, warm-up included");
    }
}

pub(super) fn application(report: &mut Report, fields: &Fields<'_>) -> Option<Traffic> {
    let word = fields.get(report, "kind", value::word)?;
    let kind = TrafficKind::blank().into_iter().find(|kind| kind.name() == word)?;
    let mut traffic = Traffic::from(kind);
    let shared = fields.fill(report, Some(word), shared(&mut traffic));
    let read = fields.fill(report, Some(word), rows(&mut traffic));
    check_page(report, fields, &traffic.kind);
    video::check(report, fields, &traffic.kind);
    (shared && read).then_some(traffic)
}

/// Each object has a byte, and each connection a port.
fn check_page(report: &mut Report, fields: &Fields<'_>, kind: &TrafficKind) {
    let TrafficKind::Web { size, objects, connections_per, .. } = *kind else { return };
    if !fields.are_sound(report, &["size", "objects", "connections_per"]) {
        return;
    }
    if let Some(node) = fields.written("size").filter(|_| size < objects.into()) {
        value::impossible(report, fields.key("size"), node, "is less than a byte for each object");
    }
    let too_many = connections_per == ConnectionsPer::Object && i64::from(objects) > MAX_FLOWS;
    if let Some(node) = fields.written("objects").filter(|_| too_many) {
        value::impossible(report, fields.key("objects"), node, "needs more ports than there are: one per connection");
    }
}

pub(crate) const TOGETHER: &str = "together";
const POISSON: &str = "poisson";

/// Keys of the table form of `arrivals`.
#[rustfmt::skip]
pub(crate) fn arrivals_rows(rate: &mut f64) -> Vec<Row<'_>> {
    vec![
        Row::by_hand("kind", Form::Words(&[POISSON]), "poisson: with exponential times between them").required(),
        Row::new("rate", real(0.0), rate, "mean arrivals per second").required(),
    ]
}

/// [`TOGETHER`], or a table.
fn arrivals(report: &mut Report, key: &'static Key, node: &Node) -> Option<Arrivals> {
    if node.as_table().is_some() {
        let fields = Fields::open(report, Section::Arrivals, Some(node));
        let kind = fields.get(report, "kind", value::word);
        let mut rate = 0.0;
        let read = fields.fill(report, None, arrivals_rows(&mut rate));
        return kind.filter(|_| read).map(|_| Arrivals::Poisson { rate });
    }
    let Some(text) = node.as_text() else {
        value::wrong_type(report, key, node);
        return None;
    };
    if text == TOGETHER {
        return Some(Arrivals::Together);
    }
    let help = match nearest(text, [TOGETHER]) {
        Some(word) => format!("did you mean \"{word}\"?"),
        None => format!("expected {}", key.form.expected()),
    };
    let message = format!("`{}` cannot be \"{text}\"", key.full_name());
    report.error(Code::UnknownWord, node.at, message).label("unknown").help(help);
    None
}

fn written_arrivals(arrivals: &Arrivals) -> String {
    match *arrivals {
        Arrivals::Together => quoted(TOGETHER),
        Arrivals::Poisson { mut rate } => inline(&[("kind", quoted(POISSON))], &arrivals_rows(&mut rate)),
    }
}
