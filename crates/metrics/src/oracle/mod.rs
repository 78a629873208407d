//! The best that any scheduler with any congestion control could reach on given paths.

use crate::capacity::after_changes;
use crate::{CapacityCurve, FrameTimes};
use anabranch_network::{Change, LossSpec, Place, RadioChange, Topology, WaySpec};
use anabranch_units::{Direction, Duration, FramePattern, Instant, Side};
use routes::{Routes, is_routed};
use std::collections::BTreeMap;

/// Changes of the network, in order of time.
pub type Timeline = [(Instant, Change)];

/// Upper bounds for data that flows one way, whichever path carries the first subflow, and be it plain TCP
/// over one of the paths.
///
/// Where a path crosses one bottleneck, the maximum flow has a closed form: each bottleneck is filled, at every moment, by the path across
/// it that gets most payload through. Paths over several links, and those that share one with them, are the flows of a linear program.
#[derive(Clone, Debug)]
pub struct Oracle {
    ways: Vec<WayBound>,
}

/// One way to carry the data: Multipath TCP with a given first path, or plain TCP over one path.
#[derive(Clone, Debug)]
struct WayBound {
    bottlenecks: Vec<Shared>,
    routes: Routes,
    /// The way differs from the one before only in its first path.
    other_first: bool,
}

/// Sizes of a full data segment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSizes {
    /// Payload.
    pub mss: u32,
    /// IP and TCP header of plain TCP: see [`header_len`].
    pub plain: u32,
    /// The same with what Multipath TCP adds; `None` where it is not spoken.
    pub multipath: Option<u32>,
}

/// One bottleneck and the paths across it.
#[derive(Clone, Debug)]
struct Shared {
    capacity: CapacityCurve,
    lanes: Vec<Lane>,
}

/// One path, as seen by the bottleneck that it crosses. Times are those of leaving the bottleneck unless stated otherwise.
#[derive(Clone, Debug)]
struct Lane {
    /// Least one-way delay behind the bottleneck.
    delay: Duration,
    /// Time from the first SYN until the sender may send data on the path.
    handshake: Duration,
    /// Payload of a packet, bytes.
    mss: f64,
    /// Payload ÷ bytes on the link.
    share: f64,
    /// Share of packets that arrive, from each time on, but for outages.
    arriving: Vec<(Instant, f64)>,
    /// When nothing arrives (times of arrival), where packets cannot be put off past the end of it.
    outages: Vec<(Instant, Instant)>,
}

/// Which part of a lane's time counts, and what fraction of packets.
#[derive(Clone, Copy)]
struct Use {
    opens: Instant,
    closes: Instant,
    /// How much earlier than it arrives a packet left.
    shift: Duration,
    /// The bound holds for every seed. Otherwise it holds for the mean over a long time.
    strict: bool,
}

impl Oracle {
    /// Over the paths `paths` of `topology`, of which any may carry the first subflow, for data that flow this way. Unknown
    /// paths are left out.
    pub fn new(
        topology: &Topology,
        timeline: &Timeline,
        paths: &[usize],
        sizes: SegmentSizes,
        direction: Direction,
    ) -> Self {
        let alone = paths.iter().map(|path| (std::slice::from_ref(path), *path, sizes.plain));
        let together =
            sizes.multipath.into_iter().flat_map(|header| paths.iter().map(move |path| (paths, *path, header)));
        let way = |(over, first, header): (&[usize], usize, u32)| {
            let is_routed = |path: &&usize| is_routed(topology, **path, direction);
            let (routed, single): (Vec<usize>, Vec<usize>) = over.iter().partition(is_routed);
            let (network, sizes) = ((topology, timeline), (sizes.mss, header));
            WayBound {
                bottlenecks: bottlenecks(network, (&single, first), sizes, direction),
                routes: Routes::new(network, (&routed, first), sizes, direction),
                other_first: over.len() > 1 && Some(&first) != over.first(),
            }
        };
        Self { ways: together.chain(alone).map(way).collect() }
    }

    /// The capacity of the bottleneck that path `path` crosses, of several the one that is narrowest at first; `None` if there is no such path or link.
    pub fn capacity(
        topology: &Topology,
        timeline: &Timeline,
        path: usize,
        direction: Direction,
    ) -> Option<CapacityCurve> {
        let (place, spec) = topology.narrowest(path, direction)?;
        Some(after_changes(spec, timeline, (place, direction)))
    }

    /// The capacity of a link; `None` if there is none with this index.
    pub fn link_capacity(
        topology: &Topology,
        timeline: &Timeline,
        link: usize,
        direction: Direction,
    ) -> Option<CapacityCurve> {
        let spec = topology.links.get(link)?.bottleneck(direction);
        Some(after_changes(spec, timeline, (Place::Link(link), direction)))
    }

    /// Best goodput of unlimited data from `from` to `until`, in bits per second: Σ rate × payload share × (1 − loss), over
    /// the bottlenecks, averaged over the time. Handshake and delay do not count. `None` for no time at all.
    pub fn goodput(&self, from: Instant, until: Instant) -> Option<f64> {
        let time = until.since(from).as_secs_f64();
        let whole = |_: &Lane| Use { opens: from, closes: until, shift: Duration::ZERO, strict: false };
        let payloads = self.by_paths().map(|way| way.payload(whole));
        (time > 0.0).then(|| payloads.fold(0.0, f64::max) * 8.0 / time)
    }

    /// Least time from the first SYN, sent at `start`, to the delivery of `size` bytes. No seed beats it: losses count
    /// only where a path loses everything. `None` if the paths can never carry so much.
    pub fn completion(&self, start: Instant, size: u64) -> Option<Duration> {
        let handshake = |lane: &Lane| lane.handshake;
        self.ways.iter().fold(None, |best, way| way.least_time(start, size, handshake, best).or(best))
    }

    /// Least mean time in which these frames of a pattern can be delivered, each as if it were alone
    /// and every path open. A frame cannot count more than its age at `end`. `None` without frames.
    pub fn frame_delay(&self, frames: &[FrameTimes], end: Instant, pattern: &FramePattern) -> Option<Duration> {
        let length = |times: &FrameTimes| times.counted.end.saturating_sub(times.counted.start);
        let count: u64 = frames.iter().map(length).sum();
        let total = self.by_paths().map(|way| way.frame_delays(frames, end, pattern)).min()?;
        (count > 0).then(|| Duration::from_nanos((total / u128::from(count)) as u64))
    }

    /// The ways for what does not depend on the first path.
    fn by_paths(&self) -> impl Iterator<Item = &WayBound> {
        self.ways.iter().filter(|way| !way.other_first)
    }
}

/// The bottlenecks that the paths `over` cross, the first subflow being on the path `first`.
fn bottlenecks(
    (topology, timeline): (&Topology, &Timeline),
    (over, first): (&[usize], usize),
    (mss, header): (u32, u32),
    direction: Direction,
) -> Vec<Shared> {
    let ends = |i: usize| Ends::new((topology, timeline), i, direction);
    let opening = ends(first);
    let mut found: Vec<(Option<usize>, Shared)> = Vec::new();
    for index in over {
        let Some(path) = ends(*index) else { continue };
        let join = opening.as_ref().filter(|_| *index != first);
        let lane = path.lane(join, timeline, mss, header);
        let link = path.data.bottleneck.route().first().copied();
        match found.iter_mut().find(|(l, _)| link.is_some() && *l == link) {
            Some((_, shared)) => shared.lanes.push(lane),
            None => {
                let Some(capacity) = Oracle::capacity(topology, timeline, *index, direction) else { continue };
                found.push((link, Shared { capacity, lanes: vec![lane] }));
            }
        }
    }
    found.into_iter().map(|(_, shared)| shared).collect()
}

impl WayBound {
    /// The sum of the least delays of all of them, in nanoseconds.
    fn frame_delays(&self, frames: &[FrameTimes], end: Instant, pattern: &FramePattern) -> u128 {
        let least = |due: Instant, size: u64| self.least_time(due, size, |_| Duration::ZERO, None);
        // By size, if the time does not matter.
        let mut always = self.is_constant().then(BTreeMap::new);
        let mut delay = |(due, size): (Instant, u64)| {
            let least = match &mut always {
                Some(known) => *known.entry(size).or_insert_with(|| least(due, size)),
                None => least(due, size),
            };
            least.unwrap_or(Duration::MAX).min(end.since(due))
        };
        frames.iter().flat_map(|times| times.due(pattern)).map(|frame| u128::from(delay(frame).as_nanos())).sum()
    }

    /// Nothing that counts strictly changes.
    fn is_constant(&self) -> bool {
        let routes = self.routes.links.iter().all(|link| link.capacity.is_constant());
        routes
            && self.routes.lanes.iter().all(Lane::is_steady)
            && self
                .bottlenecks
                .iter()
                .all(|shared| shared.capacity.is_constant() && shared.lanes.iter().all(Lane::is_steady))
    }

    /// Least time from `start` to the delivery of `size` bytes, if each lane opens so much later; `None`, too, if it is not `below`
    /// what another way takes, which one look shows.
    fn least_time(
        &self,
        start: Instant,
        size: u64,
        opens: fn(&Lane) -> Duration,
        below: Option<Duration>,
    ) -> Option<Duration> {
        // Whole packets cannot be faster than this fluid. The margin covers the rounding of sums.
        let enough = size as f64 * (1.0 - 1e-12);
        let payload = |time: u64| self.payload_by(start, Duration::from_nanos(time), opens);
        let (mut low, mut high) = (0, below.map_or(1_000_000, |below| below.as_nanos().saturating_sub(1)));
        // The payload just before `low`, which is too little, and at `high`.
        let (mut few, mut many) = (0.0, payload(high));
        while many < enough {
            (low, few) = (high + 1, many);
            high = high.checked_mul(2).filter(|high| below.is_none() && *high < u64::MAX / 4)?;
            many = payload(high);
        }
        let mut halve = false;
        while low < high {
            // Where the payload grows evenly, its share of the way is the share of the time; halves bound the looks elsewhere.
            let share = if halve { 0.5 } else { (enough - few) / (many - few) };
            let middle = (low + ((high - low) as f64 * share) as u64).min(high - 1);
            let at = payload(middle);
            if at < enough {
                (low, few) = (middle + 1, at)
            } else {
                (high, many) = (middle, at)
            }
            halve = !halve;
        }
        Some(Duration::from_nanos(high))
    }

    /// Most payload bytes that can have arrived `time` after `start`.
    fn payload_by(&self, start: Instant, time: Duration, opens: fn(&Lane) -> Duration) -> f64 {
        self.payload(|lane| Use {
            opens: start + opens(lane),
            closes: (start + time) - lane.delay,
            shift: lane.delay,
            strict: true,
        })
    }

    /// Payload bytes that all bottlenecks together can carry.
    fn payload(&self, of: impl Fn(&Lane) -> Use) -> f64 {
        let bottlenecks: f64 = self.bottlenecks.iter().map(|shared| shared.payload(&of)).sum();
        bottlenecks + self.routes.payload(&of)
    }
}

impl Shared {
    fn payload(&self, of: impl Fn(&Lane) -> Use) -> f64 {
        if let [lane] = &self.lanes[..]
            && lane.is_steady()
        {
            // Nearly always: there is nothing to cut. A search asks a hundred times.
            let how = of(lane);
            let efficiency = lane.efficiency(how.opens, how);
            return if efficiency > 0.0 { efficiency * self.capacity.bytes(how.opens, how.closes) } else { 0.0 };
        }
        let uses: Vec<(&Lane, Use)> = self.lanes.iter().map(|lane| (lane, of(lane))).collect();
        let mut cuts: Vec<Instant> = uses.iter().flat_map(|(lane, how)| lane.cuts(*how)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        // Between two cuts nothing changes but the capacity, which `Capacity` sums.
        let part = |pair: &[Instant]| {
            let best = uses.iter().map(|(lane, how)| lane.efficiency(pair[0], *how)).max_by(f64::total_cmp);
            match best {
                Some(best) if best > 0.0 => best * self.capacity.bytes(pair[0], pair[1]),
                _ => 0.0,
            }
        };
        let survivors: f64 = uses.iter().map(|(lane, how)| lane.survivors(*how)).sum();
        cuts.windows(2).map(part).sum::<f64>() + survivors
    }
}

impl Lane {
    /// The lane's losses stay what they are, and it is never down.
    fn is_steady(&self) -> bool {
        self.arriving.len() == 1 && self.outages.is_empty()
    }

    /// Times at which the lane's efficiency changes.
    fn cuts(&self, how: Use) -> impl Iterator<Item = Instant> + '_ {
        let losses = self.arriving.iter().map(|(at, _)| *at);
        // Pieces include their ends: a nanosecond earlier, so that what arrives just when an outage ends gets through.
        let earlier = how.shift + Duration::from_nanos(1);
        let outages = self.outages.iter().flat_map(move |(from, to)| [*from - how.shift, *to - earlier]);
        losses
            .chain(outages)
            .filter(move |at| how.opens < *at && *at < how.closes)
            .chain([how.opens, how.closes.max(how.opens)])
    }

    /// Payload that counts strictly though it used the link in an outage: of the packets in transmission when one ends.
    fn survivors(&self, how: Use) -> f64 {
        let ends = self.outages.iter().map(|(_, to)| *to - how.shift);
        let seen = ends.filter(|end| how.strict && how.opens < *end && *end <= how.closes).count();
        self.mss * seen as f64
    }

    /// The best efficiency of all times that count.
    fn best_efficiency(&self, how: Use) -> f64 {
        let cuts = self.cuts(how).collect::<Vec<_>>();
        cuts.into_iter().map(|at| self.efficiency(at, how)).fold(0.0, f64::max)
    }

    /// Payload that arrives ÷ bytes on the link, for what leaves the bottleneck from `at` until the next cut.
    fn efficiency(&self, at: Instant, how: Use) -> f64 {
        let arrival = at + how.shift;
        let next = arrival.next();
        let down = self.outages.iter().any(|(from, to)| *from <= arrival && next < *to);
        if at < how.opens || at >= how.closes || down {
            return 0.0;
        }
        let piece = self.arriving.partition_point(|(from, _)| *from <= at).saturating_sub(1);
        let arriving = self.arriving[piece].1;
        // Strictly, only a path that loses everything carries nothing.
        if how.strict && arriving > 0.0 { self.share } else { self.share * arriving }
    }
}

/// A reason for which packets of a direction arrive earlier.
enum Earlier {
    /// Another delay.
    Delay(Duration),
    /// Jitter, by at most this time.
    Jitter(Duration),
    /// The delay of a slot, by at most this time.
    Slots(Duration),
}

/// Both directions of a path, that of the data and that of acknowledgments, with what the timeline does to their delays.
struct Ends<'a> {
    index: usize,
    direction: Direction,
    data: &'a WaySpec,
    /// Least delays.
    data_delay: Duration,
    ack_delay: Duration,
    /// Share of the packets that its links let through.
    links_arriving: f64,
    delay_varies: bool,
}

impl<'a> Ends<'a> {
    /// `None` if there is no such path.
    fn new((topology, timeline): (&'a Topology, &Timeline), index: usize, direction: Direction) -> Option<Self> {
        let path = topology.paths.get(index)?;
        let (data, acks) = (path.way(direction), path.way(direction.reverse()));
        let links = |way| routes::least_delay(topology, timeline, path, way);
        let least = |way: &WaySpec, direction| {
            let changes = timeline.iter().filter_map(move |(_, change)| match change {
                Change::Delay(i, d, delay) if (*i, *d) == (index, direction) => Some(Earlier::Delay(*delay)),
                Change::Jitter(i, d, jitter) if (*i, *d) == (index, direction) => {
                    Some(Earlier::Jitter(jitter.earliest()))
                }
                Change::Radio(i, d, RadioChange::Slots(slots)) if (*i, *d) == (index, direction) => {
                    Some(Earlier::Slots(slots.earliest()))
                }
                _ => None,
            });
            let (mut delay, mut jitter, mut slots) =
                (way.least_delay(), way.jitter.earliest(), way.radio.slots.earliest());
            for change in changes {
                match change {
                    Earlier::Delay(to) => delay = delay.min(to),
                    Earlier::Jitter(by) => jitter = jitter.max(by),
                    Earlier::Slots(by) => slots = slots.max(by),
                }
            }
            delay.saturating_sub(jitter + slots)
        };
        let varies = |change: &Change| match change {
            Change::Delay(i, d, _) | Change::Jitter(i, d, _) | Change::Radio(i, d, _) => (*i, *d) == (index, direction),
            _ => false,
        };
        Some(Self {
            index,
            direction,
            data,
            data_delay: least(data, direction) + links(direction),
            ack_delay: least(acks, direction.reverse()) + links(direction.reverse()),
            links_arriving: routes::arriving(topology, timeline, data, direction),
            delay_varies: routes::delays_vary(topology, timeline, data, direction)
                || !data.jitter.is_none()
                || data.radio.impairs()
                || data.recorded_delay.is_some()
                || timeline.iter().any(|(_, change)| varies(change)),
        })
    }

    fn rtt(&self) -> Duration {
        self.data_delay + self.ack_delay
    }

    /// Time from the SYN of a subflow on the path until its sender may send data: a server once the third segment of the handshake
    /// is in; a client once it has the SYN/ACK, of a join the fourth segment (RFC 8684 §3.2).
    fn handshake(&self, joins: bool) -> Duration {
        match (self.direction.sender(), joins) {
            (Side::Client, false) => self.rtt(),
            (Side::Client, true) => self.rtt() * 2,
            (Side::Server, _) => self.rtt() + self.ack_delay,
        }
    }

    /// `first` = the path of the first subflow, if this is another one.
    fn lane(&self, first: Option<&Self>, timeline: &Timeline, mss: u32, header: u32) -> Lane {
        // A join begins when the client has the first subflow's SYN/ACK (RFC 8684 §3.1, §3.2).
        let own = self.handshake(first.is_some());
        let handshake = first.map_or(own, |first| first.rtt() + own);
        let size = (i64::from(mss) + i64::from(header) + i64::from(self.data.overhead)).max(1);
        let corrupt = self.data.corrupt;
        // Of a recorded loss, the least: a bound.
        let least =
            self.data.recorded_loss.as_ref().map(|steps| steps.parts().map(|(_, loss)| loss).fold(1.0, f64::min));
        let loss = least.map_or(self.data.loss, LossSpec::Bernoulli);
        let mut arriving = vec![(Instant::ZERO, self.links_arriving * arriving(&loss, corrupt))];
        for (at, change) in timeline {
            if let Change::Loss(i, way, loss) = change
                && (*i, *way) == (self.index, self.direction)
            {
                arriving.push((*at, self.links_arriving * self::arriving(loss, corrupt)));
            }
        }
        // A packet that is held back may outlive an outage: then outages bound nothing.
        let held_back = self.delay_varies || self.data.reorder.probability > 0.0;
        let outages = if held_back { Vec::new() } else { self.data.outages.clone() };
        let mss = f64::from(mss);
        Lane { delay: self.data_delay, handshake, mss, share: mss / size as f64, arriving, outages }
    }
}

/// The share of packets that arrive in the long run.
fn arriving(loss: &LossSpec, corrupt: f64) -> f64 {
    let arriving = match *loss {
        LossSpec::None => 1.0,
        LossSpec::Bernoulli(p) => 1.0 - p,
        LossSpec::GilbertElliott { p, r, h, k } => {
            // Stationary: in the bad state with probability p/(p + r); without any change always in the good one.
            let bad = if p + r > 0.0 { p / (p + r) } else { 0.0 };
            bad * h + (1.0 - bad) * k
        }
    };
    (arriving * (1.0 - corrupt)).clamp(0.0, 1.0)
}

/// Bytes of IP and TCP header on a data segment as the engine sends it: fixed headers, timestamps if negotiated, and with
/// `dss`, the bytes of data sequence numbers and acknowledgments (4 or 8), a DSS option: of 28 bytes for 8.
pub const fn header_len(ip: u8, timestamps: bool, dss: Option<u32>) -> u32 {
    let ip = if ip == 6 { 40 } else { 20 };
    // RFC 7323 §3.2: ten bytes, padded to twelve.
    let timestamps = if timestamps { 12 } else { 0 };
    // RFC 8684 §3.3: 4 bytes of kind and flags, DATA_ACK and DSN, subflow number 4, length 2, checksum or padding 2.
    let dss = match dss {
        Some(number) => 4 + 2 * number + 8,
        None => 0,
    };
    ip + 20 + timestamps + dss
}

mod packing;
mod routes;

#[cfg(test)]
mod tests;
