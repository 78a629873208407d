//! The metrics of one run, as a fold over its events.

mod cross;
mod efficiency;
mod frames;
mod head_start;
mod lateness;
mod prices;
mod receiver;
mod responses;
mod returns;
mod sender;
#[cfg(test)]
mod tests;
mod timing;
mod video;

use crate::catalogue::names;
use crate::over_time::Peaks;
use crate::results::present;
use crate::{CapacityCurve, Disorder, Histogram, PathMetrics, RunMetrics, WrittenFrames};
use anabranch_trace::{Event, LinkEvent, Origin, PathState, Recorder, SendKind};
use anabranch_units::{ConnId, Direction, Duration, Instant, PathId, Side, TrafficDirection};
pub use cross::CrossFlow;
use cross::CrossFlows;
use efficiency::Efficiency;
pub use frames::FrameSchedule;
use head_start::HeadStart;
use lateness::LateTotals;
use prices::Prices;
use receiver::Receiver;
pub use responses::ResponseSchedule;
use returns::Returns;
use sender::{PathSender, Sender, Tally};
pub use timing::Timed;
use timing::Timing;
pub use video::VideoSchedule;
use video::VideoTotals;

/// SYN without ACK, as on the wire (RFC 9293 §3.1): the control bits of a connection's first segment.
const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;

/// Length of the samples of out-of-order queues.
const SAMPLE: Duration = Duration::from_millis(10);

/// The configuration of a meter.
#[derive(Clone, Debug)]
pub struct MeterConfig {
    /// End of the warm-up. Events before it set the state; counters and means begin here.
    pub from: Instant,
    /// End of the measured time, if it is known; events after it do not count.
    pub until: Option<Instant>,
    /// The number of connections under test, numbered from 0 on; all others are cross traffic. Several add up.
    pub connections: u32,
    /// Which ends of them send data.
    pub direction: TrafficDirection,
    /// Directions of each connection, if they differ: then [`Self::direction`] has those of all. Completion has no directions then.
    pub directions: Vec<TrafficDirection>,
    /// Cross traffic that is TCP, numbered one after the other.
    pub cross: Vec<CrossFlow>,
    /// Bytes to be delivered over all these connections, in both directions if there are two, if the traffic is sized: the measured time begins with the
    /// first SYN (but not before `from`; see [`Self::requested`]) and ends with the last of them.
    pub size: Option<u64>,
    /// Bytes to be delivered over each of them in one direction, if each is a flow whose completion is of interest.
    pub flow_size: Option<u64>,
    /// When the application requested the first connections, by number, if they had to wait for a path: their time begins then.
    pub requested: Vec<Instant>,
    /// The times of the application that are measured.
    pub timed: Timed,
    /// Bytes of a packet for the reordering metrics.
    pub mss: u32,
    /// Displacement threshold of RBD; `None` = infinite.
    pub displacement_threshold: Option<u64>,
    /// The first connection may carry data over several paths: for `head_start_packets` and `_rtt_ratio`.
    pub head_start: bool,
    /// LIA couples the paths 0 and 1 of the first connection: for `increment_efficiency_mean`.
    pub efficiency: bool,
    /// Paths; the index is the path's number.
    pub paths: Vec<PathConfig>,
}

/// The configuration of a path.
#[derive(Clone, Debug)]
pub struct PathConfig {
    /// Name in the results.
    pub name: String,
    /// Price per payload byte at the beginning of the run.
    pub price: f64,
    /// Changes of the price, in order of time.
    pub prices: Vec<(Instant, f64)>,
    /// Capacities of its bottlenecks on the way of the data, for `utilisation`; none if one is unknown.
    pub capacities: Vec<CapacityCurve>,
    /// A queue there marks packets, for `marked_packets`.
    pub marks: bool,
    /// When it is down, in either direction: beginnings and ends, for `return_s`.
    pub outages: Vec<(Instant, Instant)>,
}

/// Measures one run: give it every event, then call [`Meter::finish`]. Where data flow both ways, each connection counts as two
/// flows of data, which add up as connections do. Memory does not grow with time.
#[derive(Clone, Debug)]
pub struct Meter {
    config: MeterConfig,
    /// Flows of data: of each connection one per direction, in the order of [`TrafficDirection::ways`].
    flows: Vec<FlowMeter>,
    cross: CrossFlows,
    links: Vec<Link>,
    returns: Vec<Returns>,
    /// Subflows of each path that ended otherwise than in order.
    lost: Vec<u64>,
    /// The out-of-order queue of each connection.
    ofo: Peaks,
    /// Those of its subflows, all together.
    subflow_ofo: Peaks,
    /// Disorder of all connections: the counters of one are as large as those of all.
    disorder: Disorder,
    head_start: HeadStart,
    efficiency: Option<Efficiency>,
    /// Events before this count without a further look: the end of the warm-up until it is over, then the end of the
    /// measured time.
    turn: Instant,
    /// Beginning of the measured time; `None` during the warm-up.
    begun: Option<Instant>,
    /// Events of links and of cross traffic count from here on: where hosts are ahead of each other, some from before come later.
    begun_at: Instant,
    started: Option<Instant>,
    prices: Prices,
    /// SYNs of clients since the run began.
    syns: u64,
    /// Bytes delivered since the run began, by direction.
    delivered: [u64; 2],
    /// When the last byte of a direction was delivered, and the last of all.
    done: [Option<Instant>; 2],
    completed: Option<Instant>,
}

/// The data of one connection under test that flow one way.
#[derive(Clone, Debug)]
struct FlowMeter {
    sender: Sender,
    receiver: Receiver,
    timing: Timing,
    started: Option<Instant>,
    /// Where its stream ends; `MAX` if that is of no interest.
    end: u64,
    completion: Option<Duration>,
}

/// One path's bottlenecks on the way of the data.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    queue_max: Option<u32>,
    marked: u64,
    departed: u64,
}

/// Payload bytes that connections have sent over the path with this index.
fn sent_over(flows: &[FlowMeter], n: usize) -> u64 {
    flows.iter().filter_map(|flow| flow.sender.paths.get(n)).map(|path| path.all().bytes).sum()
}

impl Meter {
    /// Ready for the first event.
    pub fn new(config: MeterConfig) -> Self {
        let paths = config.paths.len();
        let flow = |_| FlowMeter {
            sender: Sender::new(paths),
            receiver: Receiver::new(config.mss, config.displacement_threshold),
            timing: Timing::new(config.timed.clone()),
            started: None,
            end: config.flow_size.unwrap_or(u64::MAX),
            completion: None,
        };
        let flows = config.connections as usize * config.direction.ways().len();
        let queues = Peaks::new(SAMPLE, flows);
        let first = (config.connections > 0).then_some(ConnId(0));
        Self {
            head_start: HeadStart::new(first.filter(|_| config.head_start), config.mss),
            efficiency: first.filter(|_| config.efficiency).map(Efficiency::new),
            turn: Instant::ZERO,
            flows: (0..flows).map(flow).collect(),
            cross: CrossFlows::new(&config.cross),
            links: vec![Link::default(); paths],
            returns: config.paths.iter().map(|path| Returns::new(&path.outages)).collect(),
            lost: vec![0; config.paths.len()],
            prices: Prices::new(&config.paths),
            ofo: queues.clone(),
            subflow_ofo: queues,
            disorder: Disorder::default(),
            begun: None,
            begun_at: Instant::MAX,
            started: None,
            syns: 0,
            delivered: [0; 2],
            done: [None; 2],
            completed: None,
            config,
        }
    }

    /// Times that both hosts must reach before either goes beyond them: what counts then depends on both.
    pub fn marks(&self) -> impl Iterator<Item = Instant> {
        let prices = self.config.paths.iter().flat_map(|path| path.prices.iter().map(|(at, _)| *at));
        prices.chain([self.config.from]).filter(|at| *at > Instant::ZERO)
    }

    /// Every byte of sized traffic has been delivered: the measured time is over.
    pub const fn is_complete(&self) -> bool {
        self.completed.is_some()
    }

    /// The results, with the run ending at `now` unless the measured time ended before.
    pub fn finish(mut self, now: Instant) -> RunMetrics {
        let end = self.completed.unwrap_or(now.min(self.config.until.unwrap_or(now)));
        if self.begun.is_none() {
            self.begin(self.config.from.min(end), end);
        }
        let begin = self.begun.unwrap_or(end);
        let finished = self.config.size.is_none() || self.completed.is_some();
        let started = self.started;
        let since = |done: Instant| started.map(|started| done.since(started));
        let ended = Ended {
            sized: self.config.size.is_some(),
            flows: self.config.flow_size.is_some(),
            completion: self.completed.and_then(since),
            both: self.config.direction.is_both(),
            each: self.done.map(|done| done.and_then(since)),
        };
        let mut head_start = core::mem::take(&mut self.head_start);
        head_start.settle(Instant::MAX);
        let efficiency = self.efficiency.take().and_then(|efficiency| efficiency.mean(end));
        let mut totals = Totals {
            syns: self.syns,
            paths: vec![PathSender::default(); self.config.paths.len()],
            ofo: self.ofo.finish(end),
            subflow_ofo: self.subflow_ofo.finish(end),
            disorder: core::mem::take(&mut self.disorder),
            head_start,
            efficiency,
            ..Totals::default()
        };
        let (flows, ways) = (core::mem::take(&mut self.flows), self.config.direction.ways());
        for (flow, way) in flows.into_iter().zip((0..ways.len()).cycle()) {
            totals.add(flow, way, end);
        }
        let spent = core::mem::take(&mut self.prices).spent(|n| totals.paths[n].all().bytes);
        let mut values = totals.values(end.since(begin), ended, spent);
        values.extend(present(self.cross.values(end.since(begin))));
        RunMetrics {
            values,
            paths: self.path_metrics(&totals, (begin, end)),
            finished,
            started,
            measured: (begin, end),
            density: totals.disorder.density,
            extents: totals.disorder.extents,
            frames: totals.frame_times,
        }
    }

    /// Begins the measured time if `now` is the first moment of it; true if events of this moment count.
    #[cold]
    fn counts(&mut self, now: Instant) -> bool {
        if self.completed.is_some() || self.config.until.is_some_and(|until| now > until) {
            return false;
        }
        if self.begun.is_none() && now >= self.config.from {
            self.begin(self.config.from, self.config.from);
        }
        self.prices.advance(now, |n| sent_over(&self.flows, n));
        let end = self.config.until.map_or(Instant::MAX, Instant::next);
        self.turn = if self.begun.is_none() { end.min(self.config.from) } else { end };
        self.turn = self.turn.min(self.prices.next());
        true
    }

    /// The measured time begins at `at`, or begins again; events of links and of cross traffic count from `counted` on.
    fn begin(&mut self, at: Instant, counted: Instant) {
        (self.begun, self.begun_at) = (Some(at), counted);
        for flow in &mut self.flows {
            flow.sender.restart(at);
            flow.receiver.restart(at);
            flow.timing.restart(at);
        }
        self.ofo.restart(at);
        self.subflow_ofo.restart(at);
        self.disorder = Disorder::default();
        self.cross.restart();
        self.links.fill(Link::default());
        self.returns.iter_mut().for_each(|path| path.restart(at));
        self.lost.fill(0);
        self.prices.restart();
        self.efficiency.iter_mut().for_each(|efficiency| efficiency.restart(at));
    }

    /// As [`Self::counts`]. Nothing is left to do after it, so that the usual case saves no registers for it.
    #[cold]
    #[inline(never)]
    fn on_link_at_turn(&mut self, now: Instant, path: PathId, size: u32, what: LinkEvent) {
        if self.counts(now) {
            self.on_link(now, path, size, what);
        }
    }

    #[inline(always)]
    fn on_link(&mut self, now: Instant, path: PathId, size: u32, what: LinkEvent) {
        let Some(link) = self.links.get_mut(path.index()).filter(|_| now >= self.begun_at) else { return };
        match what {
            LinkEvent::Enqueued { queue_packets, .. } => link.queue_max = link.queue_max.max(Some(queue_packets)),
            LinkEvent::Departed => link.departed += size as u64,
            LinkEvent::Marked => link.marked += 1,
            LinkEvent::Dropped(_) => {}
        }
    }

    fn on_start(&mut self, now: Instant, connection: usize) {
        let started = self.config.requested.get(connection).copied().unwrap_or(now);
        let ways = self.config.direction.ways().len();
        for flow in &mut self.flows[connection * ways..][..ways] {
            flow.started.get_or_insert(started);
        }
        if self.started.is_some() {
            return;
        }
        self.started = Some(started);
        if self.config.size.is_some() && started > self.config.from {
            // Events of links and of other flows at this moment may come before or after.
            self.begin(started, now.next());
        }
    }

    #[inline(always)]
    fn on_host(&mut self, now: Instant, origin: Origin, event: &Event) {
        let connection = origin.connection.0;
        if connection >= self.config.connections {
            return self.cross.on_event(now, origin, event, now >= self.begun_at);
        }
        let Some(side) = origin.host else { return };
        let own = connection as usize;
        match self.config.direction {
            TrafficDirection::Both => {
                // In the order of the ways: what the server sends, what the client sends.
                let (sent, received) = if side == Side::Server { (0, 1) } else { (1, 0) };
                // A request is no data.
                let flows = self.config.directions.get(own).copied().unwrap_or(TrafficDirection::Both);
                if flows.has(side.sends()) {
                    self.on_sender(now, (own * 2 + sent, sent == 0), origin, event);
                }
                if flows.has(side.receives()) {
                    self.on_receiver(now, (own * 2 + received, received == 0), origin, event);
                }
            }
            one if one.has(side.sends()) => self.on_sender(now, (own, true), origin, event),
            _ => self.on_receiver(now, (own, true), origin, event),
        }
        if side == Side::Client {
            self.on_client(now, own, origin.path, event);
        }
    }

    /// An event of the end that sends a flow's data. Some metrics are of one direction alone (`is_first`).
    #[inline(always)]
    fn on_sender(&mut self, now: Instant, (place, is_first): (usize, bool), origin: Origin, event: &Event) {
        let FlowMeter { sender, receiver, timing, .. } = &mut self.flows[place];
        match event {
            Event::Written(range) => {
                receiver.outage.on_written(now, range.end);
                if let Timing::Frames(frames) = timing {
                    frames.on_written(now);
                }
            }
            Event::WriteEnd(end) => receiver.arrivals.set_end(*end, &mut self.disorder),
            _ => {
                if let (Event::Window(window), true) = (event, is_first) {
                    self.head_start.on_window(now, origin, window);
                }
                if let Some(efficiency) = self.efficiency.as_mut().filter(|_| is_first) {
                    efficiency.on_event(now, origin, event);
                }
                sender.on_event(now, origin.path, event);
            }
        }
    }

    /// An event of the end that receives a flow's data.
    #[inline(always)]
    fn on_receiver(&mut self, now: Instant, (place, is_first): (usize, bool), origin: Origin, event: &Event) {
        let FlowMeter { receiver, timing, started, end, completion, .. } = &mut self.flows[place];
        match event {
            Event::DataArrived { data, new, ofo } => {
                if is_first {
                    self.head_start.on_arrived(now, origin, *data);
                }
                self.ofo.set(now, place, *ofo);
                receiver.on_arrived(*data, *new, &mut self.disorder);
                if let Some(path) = self.returns.get_mut(origin.path.index()).filter(|_| *new > 0) {
                    path.on_arrived(now);
                }
            }
            Event::Delivered(range) => {
                receiver.on_delivered(now, *range);
                timing.on_delivered(now, range.end);
                if range.end >= *end {
                    *completion = completion.or(started.map(|started| now.since(started)));
                }
                self.on_delivered(now, is_first, range.len());
            }
            Event::SubflowOfo(bytes) => self.subflow_ofo.set(now, place, receiver.on_queue(origin.path, *bytes)),
            // Its queue is gone.
            Event::Path(PathState::Closed | PathState::Dead) => {
                self.subflow_ofo.set(now, place, receiver.on_queue(origin.path, 0));
            }
            Event::Written(range) => {
                if let Timing::Responses(responses) = timing {
                    responses.on_written(now, *range);
                }
            }
            Event::SegmentRequested { bps, size } => {
                if let Timing::Video(segments) = timing {
                    segments.on_requested(now, *bps, *size);
                }
            }
            _ => {}
        }
    }

    /// An event of the end that connects, whether or not it sends data.
    #[inline(always)]
    fn on_client(&mut self, now: Instant, connection: usize, path: PathId, event: &Event) {
        match event {
            Event::Path(PathState::Dead) => {
                self.lost.get_mut(path.index()).into_iter().for_each(|lost| *lost += 1);
            }
            Event::ControlSent { flags, .. } if flags & SYN_ACK == SYN => {
                self.syns += 1;
                self.on_start(now, connection);
            }
            _ => {}
        }
    }

    fn on_delivered(&mut self, now: Instant, is_first: bool, bytes: u64) {
        let Some(size) = self.config.size else { return };
        let ways = self.config.direction.ways().len() as u64;
        let way = usize::from(!is_first);
        self.delivered[way] += bytes;
        if self.config.directions.is_empty() && self.delivered[way] >= size / ways {
            self.done[way].get_or_insert(now);
        }
        if self.delivered.iter().sum::<u64>() >= size {
            // Where hosts are ahead of each other, the sender's events up to now come later.
            (self.completed, self.turn) = (Some(now), self.turn.min(now.next()));
        }
    }

    fn path_metrics(&self, totals: &Totals, (begin, end): (Instant, Instant)) -> Vec<PathMetrics> {
        let first: u64 = totals.paths.iter().map(|path| path.kind(SendKind::First).bytes).sum();
        let ends = self.returns.iter().zip(&self.lost);
        let each = self.config.paths.iter().zip(&totals.paths).zip(self.links.iter().zip(ends));
        each.map(|((config, path), (link, (returns, lost)))| {
            let sent = path.all();
            let again = path.kind(SendKind::Retransmission).packets;
            let capacity = config.capacities.iter().map(|capacity| capacity.bytes(begin, end)).sum();
            let values = present([
                ("sent_bytes", Some(sent.bytes as f64)),
                ("sent_ratio", ratio(sent.bytes as f64, first as f64)),
                ("share", ratio(path.kind(SendKind::First).bytes as f64, first as f64)),
                ("retransmitted_packets", Some(again as f64)),
                ("loss_ratio", ratio(again as f64, sent.packets as f64)),
                ("srtt_mean_s", path.srtt.mean().map(|ns| ns / 1e9)),
                ("rtt_mean_s", path.rtt.mean()),
                ("cwnd_mean_packets", path.cwnd.mean()),
                ("queue_max_packets", link.queue_max.map(f64::from)),
                ("marked_packets", Some(link.marked as f64).filter(|_| config.marks)),
                // A packet that was half sent when the measured time began counts as a whole one; the ratio is capped at 1.
                ("utilisation", ratio(link.departed as f64, capacity).map(|u| u.min(1.0))),
                ("lost_subflows", (*lost > 0).then_some(*lost as f64)),
                ("return_s", returns.longest(end).map(Duration::as_secs_f64)),
            ]);
            PathMetrics { name: config.name.clone(), values }
        })
        .collect()
    }
}

impl Recorder for Meter {
    /// Inlined into the recorder that holds it, so that an event is one call.
    #[inline(always)]
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        match *event {
            Event::Link { direction, size, what } => self.link(now, origin.path, direction, size, what),
            _ if now >= self.turn && !self.counts(now) => {
                self.cross.on_event(now, origin, event, false);
            }
            _ => self.on_host(now, origin, event),
        }
    }

    fn needs_order(&self) -> bool {
        false
    }

    #[inline]
    fn link(&mut self, now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        match self.config.direction.has(direction) {
            true if now < self.turn => self.on_link(now, path, size, what),
            true => self.on_link_at_turn(now, path, size, what),
            false => {}
        }
    }
}

/// The end that applies to a run, and its time.
#[derive(Clone, Copy, Debug)]
struct Ended {
    sized: bool,
    /// Each connection is a flow.
    flows: bool,
    completion: Option<Duration>,
    /// Data flow both ways.
    both: bool,
    /// When the data of each direction were complete.
    each: [Option<Duration>; 2],
}

/// All connections under test together.
#[derive(Clone, Debug, Default)]
struct Totals {
    /// Bytes delivered, by direction in their order.
    delivered: [u64; 2],
    duplicate: u64,
    blocked: Duration,
    outage: Duration,
    ofo: Histogram,
    subflow_ofo: Histogram,
    frames: Histogram,
    frame_times: WrittenFrames,
    /// Late frames by direction, in the order of ways.
    late: [LateTotals; 2],
    responses: Histogram,
    video: VideoTotals,
    completions: Histogram,
    disorder: Disorder,
    head_start: HeadStart,
    efficiency: Option<f64>,
    syns: u64,
    paths: Vec<PathSender>,
}

impl Totals {
    /// Adds a flow of the direction with this place among those of the run.
    fn add(&mut self, flow: FlowMeter, way: usize, end: Instant) {
        let FlowMeter { sender, receiver, timing, completion, started, .. } = flow;
        match timing {
            Timing::Nothing => {}
            Timing::Frames(frames) => {
                let results = frames.finish(end);
                self.frames.merge(&results.delays);
                self.frame_times[way].extend(results.times);
                self.late[way].add(results.late);
            }
            Timing::Responses(responses) => self.responses.merge(&responses.finish(end)),
            Timing::Video(segments) => self.video.add(segments.finish(started, end)),
        }
        completion.iter().for_each(|completion| self.completions.add(completion.as_nanos(), 1));
        self.delivered[way] += receiver.delivered;
        self.duplicate += receiver.duplicate;
        self.blocked += sender.blocked.read(end);
        self.outage = self.outage.max(receiver.outage.longest(end));
        receiver.arrivals.finish(&mut self.disorder);
        for (all, path) in self.paths.iter_mut().zip(sender.paths) {
            all.merge(&path.finish(end));
        }
    }

    fn values(&self, time: Duration, ended: Ended, spent: Option<f64>) -> Vec<(&'static str, f64)> {
        let mut values = self.of_application(time, ended);
        values.extend(present(LateTotals::values(self.late, ended.both)));
        values.extend(present(self.video.values()));
        values.extend(self.of_receiver());
        values.extend(self.of_sender(spent));
        values
    }

    fn of_application(&self, time: Duration, ended: Ended) -> Vec<(&'static str, f64)> {
        let mean = |of: &Histogram| of.mean().map(|ns| ns / 1e9);
        let quantile = |of: &Histogram, p: f64| of.quantile(p).map(|ns| ns / 1e9);
        let max = |of: &Histogram| of.max().map(|ns| ns as f64 / 1e9);
        let (frames, responses, flows) = (&self.frames, &self.responses, &self.completions);
        let delivered = self.delivered.iter().sum::<u64>();
        let goodput = |bytes: u64| ratio(bytes as f64 * 8.0, time.as_secs_f64());
        let [down, up] = ended.each.map(|done| done.filter(|_| ended.both).map(Duration::as_secs_f64));
        present([
            ("goodput_bps", goodput(delivered)),
            (names::GOODPUT_DOWN, goodput(self.delivered[0]).filter(|_| ended.both)),
            (names::GOODPUT_UP, goodput(self.delivered[1]).filter(|_| ended.both)),
            ("delivered_bytes", ended.sized.then_some(delivered as f64)),
            ("completion_s", ended.completion.map(Duration::as_secs_f64)),
            (names::COMPLETION_DOWN, down),
            (names::COMPLETION_UP, up),
            ("flow_completion_mean_s", mean(flows)),
            ("flow_completion_p50_s", quantile(flows, 0.5)),
            ("flow_completion_p95_s", quantile(flows, 0.95)),
            ("flow_completion_max_s", max(flows)),
            ("flows_finished", ended.flows.then_some(flows.len() as f64)),
            ("response_mean_s", mean(responses)),
            ("response_p50_s", quantile(responses, 0.5)),
            ("response_p95_s", quantile(responses, 0.95)),
            ("response_p99_s", quantile(responses, 0.99)),
            ("response_max_s", max(responses)),
            ("app_delay_mean_s", mean(frames)),
            ("app_delay_p50_s", quantile(frames, 0.5)),
            ("app_delay_p95_s", quantile(frames, 0.95)),
            ("app_delay_p99_s", quantile(frames, 0.99)),
            ("app_delay_max_s", max(frames)),
        ])
    }

    fn of_receiver(&self) -> Vec<(&'static str, f64)> {
        let max = |of: &Histogram| of.max().map(|max| max as f64);
        let (ofo, subflows) = (&self.ofo, &self.subflow_ofo);
        present([
            ("ofo_mean_bytes", ofo.mean()),
            ("ofo_p95_bytes", ofo.quantile(0.95)),
            ("ofo_max_bytes", max(ofo)),
            ("subflow_ofo_mean_bytes", subflows.mean()),
            ("subflow_ofo_p95_bytes", subflows.quantile(0.95)),
            ("subflow_ofo_max_bytes", max(subflows)),
            ("rbd_mean_packets", self.disorder.density.mean_occupancy()),
            ("reordered_ratio", self.disorder.extents.ratio()),
            ("reorder_extent_mean_packets", self.disorder.extents.mean_extent()),
        ])
    }

    fn of_sender(&self, spent: Option<f64>) -> Vec<(&'static str, f64)> {
        let sum = |of: fn(&PathSender) -> u64| self.paths.iter().map(of).sum::<u64>() as f64;
        let [opportunistic, rescued, copied] =
            [SendKind::Opportunistic, SendKind::Rescue, SendKind::Copy].map(|kind| self.sent(kind));
        let mut again = opportunistic;
        again.add(rescued);
        again.add(copied);
        present([
            ("opportunistic_packets", Some(opportunistic.packets as f64)),
            ("opportunistic_bytes", Some(opportunistic.bytes as f64)),
            ("rescued_packets", Some(rescued.packets as f64)),
            ("rescued_bytes", Some(rescued.bytes as f64)),
            ("copied_packets", Some(copied.packets as f64)),
            ("copied_bytes", Some(copied.bytes as f64)),
            ("reinjected_packets", Some(again.packets as f64)),
            ("reinjected_bytes", Some(again.bytes as f64)),
            ("duplicate_bytes", Some(self.duplicate as f64)),
            ("retransmitted_packets", Some(self.sent(SendKind::Retransmission).packets as f64)),
            ("timeouts", Some(sum(|path| path.timeouts))),
            ("path_probes", Some(sum(|path| path.probes))),
            ("syns_sent", Some(self.syns as f64)),
            ("idle_restarts", Some(sum(|path| path.idle_restarts))),
            ("window_blocked_s", Some(self.blocked.as_secs_f64())),
            ("outage_s", Some(self.outage.as_secs_f64())),
            ("head_start_packets", self.head_start.packets()),
            ("head_start_rtt_ratio", self.head_start.rtt_ratio()),
            ("increment_efficiency_mean", self.efficiency),
            ("price", spent),
        ])
    }

    fn sent(&self, kind: SendKind) -> Tally {
        let mut all = Tally::default();
        self.paths.iter().for_each(|path| all.add(path.kind(kind)));
        all
    }
}

/// `a / b`; `None` if `b` is not positive.
fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}
