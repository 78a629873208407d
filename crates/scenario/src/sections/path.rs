//! `[[path]]` and `[[link]]`: their keys. `network.rs` makes a topology of them.

use super::bucket::{BURST, Buckets, POLICE};
use super::impairment::{LOSS, NO_REORDERING, OUTAGES, REORDER};
use super::jitter::JITTER;
use super::middlebox;
use super::preset;
use super::queue::Queue;
use super::radio;
use crate::keys::{Form, MAX_BYTES};
use crate::notation::{FLAG, INSTANT, PRICE, PROBABILITY, TIME, integer, integers, real, size, word};
use crate::row::Row;
use crate::scenario::PathOptions;
use crate::vocabulary::Word;
use anabranch_network::{Bottleneck, CapacitySpec, MediumSpec, WaySpec};
use anabranch_units::Duration;
use std::ops::Range;
use std::sync::Arc;

/// The end of a CSV trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TraceEnd {
    Loop,
    Hold,
}

/// The least MTU of an IPv4 host (RFC 1122 §3.3.2).
const LEAST_MTU: i64 = 576;

const TRACE_END: &str = "at the end of a CSV trace: loop begins again, hold keeps the last values";

const MEDIUM: &str =
    "the medium over which the bottleneck sends, instead of one of its own: stations on it send in turns";
const OWN_MEDIUM: &str = "a medium of its own";

/// One direction of a path, before its queue has a number of packets or bytes.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// Without its bottleneck.
    pub spec: WaySpec,
    /// The path's own bottleneck.
    pub capacity: Option<CapacitySpec>,
    pub queue: Queue,
    pub buckets: Buckets,
    /// The file of its trace.
    pub file: Option<String>,
    /// The links in its place, in the order in which packets of this direction meet them.
    pub links: Vec<usize>,
    /// Links any of which it may cross: those of a fabric.
    pub fabric: Range<usize>,
    pub medium: Option<Arc<MediumSpec>>,
}

impl Way {
    /// Whether packets may cross a link.
    pub fn crosses(&self, link: usize) -> bool {
        self.links.contains(&link) || self.fabric.contains(&link)
    }
}

impl Default for Way {
    fn default() -> Self {
        let clean = WaySpec::clean(Bottleneck::Route(Vec::new()), Duration::ZERO);
        let spec = WaySpec { reorder: NO_REORDERING, ..clean };
        let (queue, buckets) = (Queue::default(), Buckets::default());
        Self { spec, capacity: None, queue, buckets, file: None, links: Vec::new(), fabric: 0..0, medium: None }
    }
}

/// Keys of one direction that [`super::network`] reads and writes.
#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn bottleneck() -> Vec<Row<'static>> {
    vec![
        Row::by_hand("name", Form::Name, "unique among paths and links").required(),
        Row::by_hand("rate", Form::Rate, "capacity of the path's own bottleneck; IP header and overhead count").silent("required, unless trace, link, route or fabric is given").both().changeable(),
        Row::by_hand("trace", Form::Trace, "a recording. CSV whose header names time_s and any of rate, delay or rtt, loss, each instead of the key; or capacity in mahimahi's format: one millisecond per line, at which 1500 bytes may leave").silent("none").both(),
        Row::by_hand("link", Form::LinkName, "the shared link that is the path's bottleneck, instead of rate, trace and queue").silent("a bottleneck of its own").both(),
        Row::by_hand("route", Form::Route, "the links that the path crosses, in the order in which data from the server meets them, instead of link; answers meet them in reverse order").silent("the link, or a bottleneck of its own"),
        Row::by_hand("fabric", Form::FabricName, "the fabric that the path crosses, instead of rate, trace, link and queue: each pair of a [[group]] has its own way, which switches choose by a hash among equal ones (ECMP, RFC 2992)").silent("none"),
        Row::by_hand("burst", BURST.form, "unused bytes of the rate that are kept, and then leave at once: the rate is a shaper's token bucket of this size (tc-tbf)").silent("none: each packet takes its time at the rate").both().changeable(),
        Row::by_hand("police", POLICE.form, "a policer before the queue: packets beyond its token bucket are dropped on arrival").silent("none").both().changeable(),
        Row::by_hand("queue", Form::Queue, "capacity of the queue at the bottleneck, without the packet in transmission; 1bdp = initial rate (trace: mean) × the sum of both one-way delays, at least 10 full packets (mss + 80 bytes, IPv6: 100, + overhead)").or("1bdp").both().changeable(),
        Row::by_hand("medium", Form::MediumName, MEDIUM).silent(OWN_MEDIUM).both(),
    ]
}

/// Keys of one direction of a path.
#[rustfmt::skip]
pub(crate) fn way(way: &mut WaySpec) -> Vec<Row<'_>> {
    let mut rows = vec![
        Row::new("delay", TIME, &mut way.delay, "one-way propagation delay").silent("required, unless a trace or a link has it").both().changeable(),
        Row::new("jitter", JITTER, &mut way.jitter, "variation of the delay, drawn per packet (tc-netem's delay): a spread, within which it is uniform, or a table").both().changeable(),
        Row::new("overhead", integer(-39, 65_535), &mut way.overhead, "bytes added to each packet's size; may be negative, to match a stated packet size").both(),
        Row::new("loss", LOSS, &mut way.loss, "random loss after the bottleneck, of every packet, SYNs and ACKs too").down().changeable(),
        Row::new("reorder", REORDER, &mut way.reorder, "packets held back so that others overtake them").or("0%").down().changeable(),
        Row::new("duplicate", PROBABILITY, &mut way.duplicate, "probability that a packet arrives twice").down(),
        Row::new("corrupt", PROBABILITY, &mut way.corrupt, "probability that a packet arrives with a wrong checksum, and is dropped there").down(),
        Row::new("outage", OUTAGES, &mut way.outages, "times in which no packet arrives, from the start of the run, warm-up included: [[\"20s\", \"30s\"]]").both(),
        Row::optional("mtu", integer(LEAST_MTU, 65_535), &mut way.mtu, "bytes of the largest IP packet that the path carries, overhead aside; none is fragmented").silent("any packet passes; connection.mss says what the hosts send").both().changeable(),
        Row::new("device", FLAG, &mut way.device, "the bottleneck, own or shared, is the sending host's own device, whose queue its scheduler can read (qaware)").both(),
    ];
    rows.push(middlebox::row(&mut way.middleboxes));
    rows.extend(radio::rows(&mut way.radio));
    rows
}

/// Keys without a direction.
#[rustfmt::skip]
pub(crate) fn options(path: &mut PathOptions) -> Vec<Row<'_>> {
    vec![
        Row::by_hand("trace_start", Form::TraceStart, "the part of the trace at time 0. begin: its beginning, so that every repetition is the same draw; seed: a place that each repetition draws from its seed, the same part of the way through the traces of all paths that say seed, so that traces of one length stay aligned; a time such as 20s: that place in every repetition").or("begin"),
        Row::by_hand("trace_end", Form::Words(TraceEnd::NAMES), TRACE_END).or("loop"),
        Row::by_hand("shared", Form::Flag, "both directions divide one medium, which no other station uses: one sends at a time, in turns").or("false"),
        Row::by_hand("preset", Form::Words(preset::NAMES), "a kind of link, whose keys are the defaults of the path's; keys beside it override them (docs/radio.md says where each is from). lte: LTE of 2012; 5g-mid: 5G at 2.5 GHz; 5g-mmwave: 5G at millimetre waves, in sight; starlink: Starlink with its slots of 15 s; wifi-busy: Wi-Fi among many stations; 3g-2012: UMTS with its promotion; dsl: ADSL2+").silent("none"),
        Row::optional("start", INSTANT, &mut path.presence.start, "when the path appears, warm-up included: the client then joins over it, or opens the connection if there was none; until then nothing passes. An outage differs: the host does not see it").silent("it is there from the beginning"),
        Row::optional("stop", INSTANT, &mut path.presence.stop, "when the path goes, warm-up included: the client withdraws its address (REMOVE_ADDR, RFC 8684 §3.4.2) and closes the subflow; plain TCP waits in vain").silent("it stays"),
        Row::optional("ip", integers(&[4, 6]), &mut path.ip, "IP version of the path, so that one connection has subflows of both").silent("hosts.ip"),
        Row::new("mtu_signal", word(), &mut path.mtu_signal, "how the hosts learn of mtu. interface: it is that of their interfaces, and they ask for such segments (MSS option); icmp: a router drops a larger packet and says so (RFC 1191, RFC 8201), which the sender hears after the other direction's delay; none: a black hole"),
        Row::new("backup", FLAG, &mut path.backup, "used only if no other path works (RFC 8684 §3.3.8)").changeable(),
        Row::new("price", PRICE, &mut path.policy.price, "price of data on this path; used by scheduler cost").changeable(),
        Row::optional("cap", size(1, MAX_BYTES), &mut path.policy.cap, "payload that the path's tariff includes, counted at the sender, with retransmissions; used by scheduler cost").silent("no limit").changeable(),
        Row::optional("weight", real(0.0), &mut path.policy.weight, "share of the traffic relative to the other paths' weights; used by scheduler weighted").silent("the path's rate (window over RTT), or 1 if another path has a weight").changeable(),
    ]
}

/// The name of a medium.
pub(crate) fn medium_name() -> Row<'static> {
    Row::by_hand("name", Form::Name, "unique among paths, links and media").required()
}

/// Keys of a link.
#[rustfmt::skip]
pub(crate) fn link() -> Vec<Row<'static>> {
    vec![
        Row::by_hand("name", Form::Name, "unique among paths and links").required(),
        Row::by_hand("rate", Form::Rate, "capacity").silent("required, unless trace is given").both().changeable(),
        Row::by_hand("trace", Form::Trace, "recorded capacity instead of a rate: CSV with time_s and rate, or mahimahi's format").silent("a fixed rate").both(),
        Row::by_hand("trace_end", Form::Words(TraceEnd::NAMES), TRACE_END).or("loop"),
        Row::by_hand("burst", BURST.form, "unused bytes of the rate that are kept, and then leave at once").silent("none: each packet takes its time at the rate").both().changeable(),
        Row::by_hand("police", POLICE.form, "a policer before the queue: packets beyond its token bucket are dropped on arrival").silent("none").both().changeable(),
        Row::by_hand("queue", Form::Queue, "capacity of the queue; 1bdp uses the longest path that crosses the link").or("1bdp").both().changeable(),
        Row::by_hand("medium", Form::MediumName, MEDIUM).silent(OWN_MEDIUM).both(),
        Row::by_hand("per_pair", Form::Flag, "each pair of hosts of a [[group]] has a link of its own, such as its access line; false: all share it").or("false"),
    ]
}

/// Keys of a path that no link has.
const OF_PATHS: [&str; 5] = ["overhead", "mtu", "device", "middlebox", "wake"];

/// Keys of one direction of a link behind its bottleneck: those of a path that delay or impair packets there.
pub(crate) fn behind(way: &mut WaySpec) -> Vec<Row<'_>> {
    let rows = self::way(way).into_iter().filter(|row| !OF_PATHS.contains(&row.name));
    rows.map(|row| if row.name == "delay" { row.or("0s") } else { row }).collect()
}
