//! A document in full: every default and both directions of every path, as an equivalent scenario file.

mod text;

use crate::document::Document;
use crate::quantity::QueueLimit;
use crate::read::{LEAST_PACKETS, Pair, Queue, full_packet, least_queue};
use crate::scenario::{
    Arrivals, ConnectionsPer, Cross, CrossData, CrossKind, Distribution, Host, ObjectSizes, Scenario, TimelineChange,
    TimelineEntry, TraceStart, Traffic, TrafficKind,
};
use crate::tree::quoted;
use anabranch_engine::{
    AckCounting, BufferAccounting, DssWidth, FirstPath, HostModel, InitialThreshold, LimitedDecay, ReceiveWindow,
    RecoveryKind, RtoForm, TcpSettings,
};
use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, Change, DropTail, PathSpec, WaySpec};
use anabranch_units::{Direction, Rate};
use std::fmt::Display;
use std::sync::Arc;
use text::{bytes, distribution, instant, loss, outages, price, probability, queue, range, reorder, shown};

impl Document {
    /// The whole document as TOML, which reads back to the same document.
    pub fn resolved(&self) -> String {
        let mut out = Writer { text: String::new(), document: self };
        let scenario = &self.scenario;
        out.top(scenario);
        out.connection(scenario);
        out.tcp(scenario);
        out.hosts(scenario);
        for (index, path) in scenario.topology.paths.iter().enumerate() {
            out.path(index, path);
        }
        for (index, link) in scenario.topology.links.iter().enumerate() {
            out.header("[[link]]");
            out.line("name", quoted(&link.name));
            let crossing = |way: &WaySpec| way.bottleneck == Bottleneck::Shared(index);
            let least = out.least_queues(crossing);
            out.bottleneck(Some(&link.down), Some(&link.up), self.limits.links.get(index), least);
        }
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

    fn trace_name(&self, trace: &Arc<anabranch_network::CapacityTrace>) -> &str {
        let found = self.traces.iter().find(|(_, known)| Arc::ptr_eq(known, trace));
        found.map_or("", |(file, _)| file)
    }
}

/// A key of a path and its value in one direction.
type Column = (&'static str, fn(&WaySpec) -> String);

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

    fn top(&mut self, s: &Scenario) {
        self.line("name", quoted(&s.name));
        self.some("duration", s.duration.map(shown));
        self.line("warmup", shown(s.warmup));
        self.line("seed", s.seed);
        self.line("repeat", s.repeat);
        self.line("start", shown(s.start));
        self.line("start_jitter", shown(s.start_jitter));
    }

    fn connection(&mut self, s: &Scenario) {
        self.header("[connection]");
        self.line("scheduler", text::plug_in(&s.scheduler));
        self.line("congestion", text::plug_in(&s.congestion));
        self.line("mptcp", s.settings.mptcp);
        self.line("checksum", s.settings.checksum);
        self.line("dss", if s.settings.dss == DssWidth::Four { 4 } else { 8 });
        self.line("mss", s.settings.mss);
        self.line("send_buffer", bytes(s.settings.send_buffer));
        self.line("recv_buffer", bytes(s.settings.recv_buffer));
        let paths = &s.topology.paths;
        let first_path = match s.settings.first_path {
            // The word is refused where it may name another path.
            FirstPath::First => Some("first").filter(|word| paths.iter().skip(1).all(|path| path.name != *word)),
            FirstPath::On(path) => paths.get(path.index()).map(|path| path.name.as_str()),
            FirstPath::Race => Some("race"),
        };
        self.some("first_path", first_path.map(quoted));
        self.line("race_delay", shown(s.settings.race_delay));
        self.line("rejoin_after", shown(s.settings.rejoin_after));
        self.line("orphan_timeout", shown(s.settings.orphan_timeout));
        self.line("early_rescue", s.settings.early_rescue);
    }

    fn tcp(&mut self, s: &Scenario) {
        let tcp = &s.settings.tcp;
        self.header("[tcp]");
        self.some("era", s.era.map(quoted));
        let recovery = match tcp.recovery {
            RecoveryKind::Rack => "rack",
            RecoveryKind::Sack => "sack",
            RecoveryKind::Fack => "fack",
        };
        self.line("recovery", quoted(recovery));
        self.some("tail_loss_probe", tcp.tail_loss_probe);
        self.line("rto_min", shown(tcp.rto_min));
        self.line("rto_max", shown(tcp.rto_max));
        self.line("rto_initial", shown(tcp.rto_initial));
        let form = match tcp.rto_form {
            RtoForm::Linux => "linux",
            RtoForm::Rfc6298 => "rfc6298",
        };
        self.line("rto_form", quoted(form));
        self.line("initial_window", tcp.initial_window);
        self.some("abc_limit", Some(tcp.abc_limit).filter(|limit| *limit < u32::MAX));
        self.growth(tcp);
        self.room(tcp);
        self.line("delayed_ack", shown(tcp.delayed_ack));
        self.line("quick_acks", tcp.quick_acks);
        self.line("pacing", tcp.pacing);
        self.line("nagle", tcp.nagle);
        self.line("timestamps", tcp.timestamps);
        self.line("sack", tcp.sack);
        self.line("ecn", tcp.ecn);
        self.line("syn_retries", tcp.syn_retries);
        self.line("retries", tcp.retries);
        self.some("keep_alive", tcp.keep_alive.map(shown));
        self.line("time_wait", shown(tcp.time_wait));
    }

    /// The rules of window growth and reduction.
    fn growth(&mut self, tcp: &TcpSettings) {
        let counting = match tcp.ack_counting {
            AckCounting::Packets => "packets",
            AckCounting::AcksInAvoidance => "acks-in-avoidance",
        };
        let threshold = tcp.initial_ssthresh.map(|threshold| match threshold {
            InitialThreshold::Packets(packets) => packets.to_string(),
            InitialThreshold::Bytes(size) => bytes(size),
        });
        let decay = match tcp.limited_decay {
            LimitedDecay::None => "none",
            LimitedDecay::Rfc2861 => "rfc2861",
            LimitedDecay::Linux => "linux",
        };
        self.line("ack_counting", quoted(counting));
        self.some("initial_ssthresh", threshold);
        self.line("idle_restart", tcp.idle_restart);
        self.line("limited_decay", quoted(decay));
    }

    /// The rules of buffer accounting.
    fn room(&mut self, tcp: &TcpSettings) {
        let window = match tcp.receive_window {
            ReceiveWindow::Connection => "connection",
            ReceiveWindow::Subflow => "subflow",
        };
        let accounting = match tcp.buffer_accounting {
            BufferAccounting::Payload => "payload",
            BufferAccounting::Truesize => "truesize",
        };
        self.line("receive_window", quoted(window));
        self.line("buffer_accounting", quoted(accounting));
        self.line("autotune", tcp.autotune);
    }

    fn hosts(&mut self, s: &Scenario) {
        let word = |host: Host| match host {
            Host::Engine => "\"engine\"",
            Host::Linux => "\"linux\"",
        };
        self.header("[hosts]");
        self.line("sender", word(s.hosts.sender));
        self.line("receiver", word(s.hosts.receiver));
        let model = |model: HostModel| if model == HostModel::Linux { "\"linux\"" } else { "\"rfc\"" };
        self.line("sender_model", model(s.settings.sender_model));
        self.line("receiver_model", model(s.settings.receiver_model));
        self.line("ip", s.hosts.ip);
    }

    fn path(&mut self, index: usize, path: &PathSpec) {
        let scenario = &self.document.scenario;
        let links = &scenario.topology.links;
        let link = |way: &WaySpec| match way.bottleneck {
            Bottleneck::Shared(link) => links.get(link).map(|link| quoted(&link.name)),
            Bottleneck::Own(_) => None,
        };
        self.header("[[path]]");
        self.line("name", quoted(&path.name));
        self.pair("link", link(&path.down), link(&path.up));
        let least = [&path.down, &path.up].map(|way| self.least_queue(way.overhead));
        self.bottleneck(own(&path.down), own(&path.up), self.document.limits.paths.get(index), least);
        let columns: [Column; 8] = [
            ("delay", |way| shown(way.delay)),
            ("overhead", |way| way.overhead.to_string()),
            ("loss", |way| loss(&way.loss)),
            ("reorder", |way| reorder(way.reorder)),
            ("duplicate", |way| probability(way.duplicate)),
            ("corrupt", |way| probability(way.corrupt)),
            ("outage", |way| outages(&way.outages)),
            ("device", |way| way.device.to_string()),
        ];
        for (key, value) in columns {
            self.pair(key, Some(value(&path.down)), Some(value(&path.up)));
        }
        let start = match scenario.trace_start[index] {
            TraceStart::Begin => None,
            TraceStart::Seed => Some(quoted("seed")),
            TraceStart::At(from) => Some(shown(from)),
        };
        self.some("trace_start", start);
        self.line("backup", scenario.backup[index]);
        let policy = scenario.policy[index];
        self.line("price", price(policy.price));
        self.some("cap", policy.cap.map(bytes));
        self.some("weight", policy.weight.map(|weight| format!("{weight:?}")));
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
        let document = self.document;
        let rate = |spec: &BottleneckSpec| match &spec.capacity {
            CapacitySpec::Fixed(rate) => Some(quoted(&rate.to_string())),
            CapacitySpec::Trace(_) => None,
        };
        let trace = |spec: &BottleneckSpec| match &spec.capacity {
            CapacitySpec::Fixed(_) => None,
            CapacitySpec::Trace(trace) => Some(quoted(document.trace_name(trace))),
        };
        self.pair("rate", down.and_then(rate), up.and_then(rate));
        self.pair("trace", down.and_then(trace), up.and_then(trace));
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
        self.pair("queue", down.map(|_| queue(&limits.down)), up.map(|_| queue(&limits.up)));
        let comments: Vec<String> = comments.into_iter().flatten().collect();
        if !comments.is_empty() {
            self.text.pop();
            self.text.push_str(&format!("  # {}\n", comments.join(", ")));
        }
    }

    fn cross(&mut self, cross: &Cross) {
        let topology = &self.document.scenario.topology;
        let (key, name) = match cross.shared {
            true => ("link", topology.links.get(cross.over).map(|link| &link.name)),
            false => ("path", topology.paths.get(cross.over).map(|path| &path.name)),
        };
        let kind = match &cross.kind {
            CrossKind::Tcp { data: CrossData::Bulk(_), .. } => "tcp",
            CrossKind::Tcp { data: CrossData::Packets { .. }, .. } => "tcp-limited",
            CrossKind::Udp { .. } => "udp",
            CrossKind::UdpOnOff { .. } => "udp-onoff",
        };
        self.header("[[cross]]");
        self.line("kind", quoted(kind));
        self.some(key, name.map(|name| quoted(name)));
        self.line("direction", if cross.direction == Direction::Down { "\"down\"" } else { "\"up\"" });
        self.line("count", cross.count);
        self.line("start", range(cross.start));
        self.some("stop", cross.stop.map(instant));
        self.cross_kind(&cross.kind);
    }

    fn cross_kind(&mut self, kind: &CrossKind) {
        match kind {
            CrossKind::Tcp { congestion, delay, data } => {
                self.line("congestion", text::plug_in(congestion));
                self.some("delay", delay.map(range));
                match *data {
                    CrossData::Bulk(size) => self.some("size", size.map(bytes)),
                    CrossData::Packets { per_second, rates, packet, packets } => {
                        self.line("packets_per_second", format!("{per_second:?}"));
                        self.line("rate_distribution", distribution(rates));
                        self.packets(packet, packets);
                    }
                }
            }
            CrossKind::Udp { rate, rates, packet } => {
                self.rate(*rate, *rates);
                self.line("packet", packet);
            }
            CrossKind::UdpOnOff { rate, rates, packet, packets, on, off, shape } => {
                self.rate(*rate, *rates);
                self.packets(*packet, *packets);
                self.line("on", shown(*on));
                self.line("off", shown(*off));
                self.line("shape", format!("{shape:?}"));
            }
        }
    }

    fn rate(&mut self, rate: Rate, rates: Distribution) {
        self.line("rate", quoted(&rate.to_string()));
        self.line("rate_distribution", distribution(rates));
    }

    fn packets(&mut self, mean: u32, packets: Distribution) {
        self.line("packet", mean);
        self.line("packet_distribution", distribution(packets));
    }

    fn timeline(&mut self, entry: &TimelineEntry) {
        let topology = &self.document.scenario.topology;
        let path = |index: usize| topology.paths.get(index).map_or("", |path| path.name.as_str());
        let link = |index: usize| topology.links.get(index).map_or("", |link| link.name.as_str());
        self.header("[[timeline]]");
        self.line("at", instant(entry.at));
        let change = match &entry.change {
            TimelineChange::Network(change) => change,
            TimelineChange::Scheduler(plug_in) => {
                self.line("set", quoted("connection.scheduler"));
                return self.line("value", text::plug_in(plug_in));
            }
        };
        let (set, direction, value) = match change {
            Change::PathRate(index, way, rate) => {
                (format!("path.{}.rate", path(*index)), way, quoted(&rate.to_string()))
            }
            Change::LinkRate(index, way, rate) => {
                (format!("link.{}.rate", link(*index)), way, quoted(&rate.to_string()))
            }
            Change::Delay(index, way, delay) => (format!("path.{}.delay", path(*index)), way, shown(*delay)),
            Change::Loss(index, way, spec) => (format!("path.{}.loss", path(*index)), way, loss(spec)),
        };
        let direction = if *direction == Direction::Down { "down" } else { "up" };
        self.line("set", quoted(&set));
        self.line("value", format!("{{ {direction} = {value} }}"));
    }

    fn traffic(&mut self, traffic: &Traffic) {
        self.header("[[traffic]]");
        match &traffic.kind {
            TrafficKind::Bulk { size } => {
                self.line("kind", quoted("bulk"));
                self.some("size", size.map(bytes));
            }
            TrafficKind::Frames { size, interval, count } => {
                self.line("kind", quoted("frames"));
                self.line("size", bytes(*size));
                self.line("interval", shown(*interval));
                self.some("count", *count);
            }
            TrafficKind::Request { request, size, interval, count } => {
                self.line("kind", quoted("request"));
                self.line("size", bytes(*size));
                self.line("interval", shown(*interval));
                self.some("count", *count);
                self.line("request", bytes(*request));
            }
            TrafficKind::Web { size, objects, connections, connections_per, sizes, request } => {
                self.line("kind", quoted("web"));
                self.line("size", bytes(*size));
                self.line("request", bytes(*request));
                self.line("objects", objects);
                self.line("connections", connections);
                let per = match connections_per {
                    ConnectionsPer::Page => "page",
                    ConnectionsPer::Object => "object",
                };
                self.line("connections_per", quoted(per));
                let sizes = match sizes {
                    ObjectSizes::Equal => "equal",
                    ObjectSizes::Lognormal => "lognormal",
                };
                // A page counts as one flow.
                return self.line("sizes", quoted(sizes));
            }
        }
        self.line("flows", traffic.flows);
        match traffic.arrivals {
            Arrivals::Together => self.line("arrivals", quoted("together")),
            Arrivals::Poisson { rate } => self.line("arrivals", format!("{{ kind = \"poisson\", rate = {rate:?} }}")),
        }
    }
}

fn own(way: &WaySpec) -> Option<&BottleneckSpec> {
    match &way.bottleneck {
        Bottleneck::Own(own) => Some(own),
        Bottleneck::Shared(_) => None,
    }
}
