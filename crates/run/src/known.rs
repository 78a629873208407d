//! Subflows that know their path's capacity from the start: what a run would be without slow start.

use anabranch_engine::CongestionControl;
use anabranch_engine::congestion::{Acked, Loss, Window};
use anabranch_engine::schedule::PathView;
use anabranch_network::{Bottleneck, BottleneckSpec, PathSpec, Topology};
use anabranch_scenario::PlugIn;
use anabranch_units::{Direction, Duration, Instant, PathId, Rate};

/// Before the name of a congestion control. No scenario can write it: the readers know registered names alone.
const PREFIX: &str = "known-capacity+";
/// Packets above the product of bandwidth and delay, so that delayed acknowledgments leave no gap.
const SPARE: u64 = 3;
/// No window is smaller than the usual initial one (RFC 6928).
const LEAST: u64 = 10;

/// `congestion`, each of whose subflows begins at its path's capacity.
pub fn with_known_capacity(congestion: &PlugIn) -> PlugIn {
    PlugIn { name: format!("{PREFIX}{}", congestion.name), ..congestion.clone() }
}

/// The congestion control of the registry behind `name`, and whether capacities are known.
pub(crate) fn registered(name: &str) -> (&str, bool) {
    name.strip_prefix(PREFIX).map_or((name, false), |name| (name, true))
}

/// The window and the pace that fill a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    packets: u32,
    rate: Rate,
    /// The window stays as it is until the first loss. One of several connections does not know how many others there are
    /// at a time: it begins with its part and grows from there.
    holds: bool,
}

/// For each path of `topology`, on this way, the window for one of `connections`, paced at the path's rate; a shared
/// link is divided among the paths across it, and the link with the least share counts. `packet` = bytes of a full IP packet.
pub(crate) fn fills(topology: &Topology, way: Direction, packet: u64, connections: u32) -> Vec<Fill> {
    let rate = |bottleneck: &BottleneckSpec, sharers: usize| {
        bottleneck.capacity.initial_rate().as_bps() / (sharers as u64).max(1)
    };
    let of_link = |link: usize| {
        let across = topology.paths.iter().filter(|path| path.way(way).bottleneck.crosses(link)).count();
        topology.links.get(link).map_or(0, |link| rate(link.bottleneck(way), across))
    };
    let fill = |path: &PathSpec| {
        let rate = match &path.way(way).bottleneck {
            Bottleneck::Own(own) => rate(own, 1),
            Bottleneck::Route(links) => links.iter().map(|link| of_link(*link)).min().unwrap_or(0),
        };
        let rate = Rate::from_bps(rate.max(1));
        let bytes = rate.bytes_in(topology.round_trip(path)) / u64::from(connections.max(1));
        let packets = (bytes.div_ceil(packet.max(1)) + SPARE).max(LEAST);
        Fill { packets: u32::try_from(packets).unwrap_or(u32::MAX), rate, holds: connections <= 1 }
    };
    topology.paths.iter().map(fill).collect()
}

/// Each subflow has the window that fills its path, paced, until its first loss; then `inner` continues from there, or
/// before if the window does not hold.
#[derive(Debug)]
pub(crate) struct KnownCapacity {
    inner: Box<dyn CongestionControl>,
    fills: Vec<Fill>,
    /// Subflows without a loss so far.
    untouched: Vec<PathId>,
}

impl KnownCapacity {
    /// `fills` by path id.
    pub fn new(inner: Box<dyn CongestionControl>, fills: Vec<Fill>) -> Self {
        Self { inner, fills, untouched: Vec::new() }
    }

    fn fill(&self, id: PathId) -> Option<Fill> {
        self.fills.get(id.index()).copied().filter(|fill| fill.holds && self.untouched.contains(&id))
    }
}

impl CongestionControl for KnownCapacity {
    fn on_join(&mut self, id: PathId, initial_window: u32) {
        let packets = self.fills.get(id.index()).map_or(initial_window, |fill| fill.packets);
        self.inner.on_join(id, packets);
        self.untouched.push(id);
    }
    fn on_leave(&mut self, id: PathId) {
        self.untouched.retain(|known| *known != id);
        self.inner.on_leave(id);
    }
    fn on_ack(&mut self, id: PathId, ack: &Acked, paths: &[PathView]) {
        if self.fill(id).is_none() || self.inner.is_rate_based() {
            self.inner.on_ack(id, ack, paths);
        }
    }
    fn on_loss(&mut self, id: PathId, now: Instant, loss: Loss, paths: &[PathView]) {
        self.untouched.retain(|known| *known != id);
        self.inner.on_loss(id, now, loss, paths);
    }
    fn on_undo(&mut self, id: PathId, now: Instant) {
        self.inner.on_undo(id, now);
    }
    fn set_threshold(&mut self, id: PathId, ssthresh: u32) {
        self.inner.set_threshold(id, ssthresh);
    }
    fn on_underuse(&mut self, id: PathId, used: u32) {
        if self.fill(id).is_none() {
            self.inner.on_underuse(id, used);
        }
    }
    fn on_idle(&mut self, id: PathId, now: Instant, idle: Duration, rto: Duration) {
        if self.fill(id).is_none() {
            self.inner.on_idle(id, now, idle, rto);
        }
    }
    fn window(&self, id: PathId) -> Window {
        match self.fill(id) {
            Some(Fill { packets, rate, .. }) => Window { cwnd: packets, ssthresh: packets, pacing: Some(rate) },
            None => self.inner.window(id),
        }
    }
    fn is_rate_based(&self) -> bool {
        self.inner.is_rate_based()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::Document;

    const SCENARIO: &str = r#"
        [[link]]
        name = "common"
        rate = "12mbit"
        [[path]]
        name = "a"
        rate = "8mbit"
        delay = "74ms"
        [[path]]
        name = "b"
        link = "common"
        delay = "10ms"
        [[path]]
        name = "c"
        link = "common"
        delay = "0ms"
        [[traffic]]
        kind = "bulk"
        size = 1
    "#;

    #[test]
    fn a_path_is_filled_by_its_bandwidth_delay_product() {
        let scenario = Document::parse("test", SCENARIO).unwrap().cells.remove(0).1;
        let mbit = |mbit: u64| Rate::from_bps(mbit * 1_000_000);
        // 8 Mbit/s × 148 ms = 148,000 bytes = 100 packets of 1,480; half of 12 Mbit/s × 20 ms = 15,000 bytes: 11 packets.
        let expected = [(103, mbit(8)), (14, mbit(6)), (10, mbit(6))];
        let expected = expected.map(|(packets, rate)| Fill { packets, rate, holds: true });
        assert_eq!(fills(&scenario.topology, Direction::Down, 1480, 1), expected);
        assert_eq!(
            fills(&scenario.topology, Direction::Down, 1480, 2)[0],
            Fill { packets: 53, rate: mbit(8), holds: false }
        );
    }

    #[test]
    fn the_window_holds_until_the_first_loss() {
        let inner = anabranch_congestion::build("reno", &[]).unwrap();
        let mut known =
            KnownCapacity::new(inner, vec![Fill { packets: 100, rate: Rate::from_bps(8_000_000), holds: true }]);
        let id = PathId(0);
        known.on_join(id, 10);
        let filled = Window { cwnd: 100, ssthresh: 100, pacing: Some(Rate::from_bps(8_000_000)) };
        assert_eq!(known.window(id), filled);
        let mut ack = Acked::default();
        (ack.packets, ack.counted, ack.cwnd_limited, ack.may_grow) = (2, 2, true, true);
        known.on_ack(id, &ack, &[]);
        assert_eq!(known.window(id), filled);
        known.on_loss(id, Instant::ZERO, Loss::Fast, &[]);
        assert_eq!(known.window(id), Window { cwnd: 50, ssthresh: 50, pacing: None });
        // A subflow that joins again knows again.
        known.on_leave(id);
        known.on_join(id, 10);
        assert_eq!(known.window(id), filled);
    }

    #[test]
    fn one_of_several_connections_grows_from_its_part() {
        let inner = anabranch_congestion::build("reno", &[]).unwrap();
        let mut known = KnownCapacity::new(inner, vec![Fill { packets: 20, rate: Rate::from_bps(1), holds: false }]);
        known.on_join(PathId(0), 10);
        assert_eq!(known.window(PathId(0)), Window { cwnd: 20, ssthresh: u32::MAX, pacing: None });
    }

    #[test]
    fn only_plans_write_its_name() {
        let cubic = PlugIn { name: "cubic".into(), parameters: Vec::new() };
        assert_eq!(registered(&with_known_capacity(&cubic).name), ("cubic", true));
        assert_eq!(registered("cubic"), ("cubic", false));
        assert!(anabranch_scenario::congestion("test", "known-capacity+cubic").is_err());
    }
}
