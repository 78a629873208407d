//! The outcome of all traffic of the programs.

use crate::exchange::Exchange;
use anabranch_metrics::{LinkMeter, LinkTotals};
use anabranch_run::Live;
use anabranch_scenario::Scenario;
use anabranch_units::{Direction, Instant};
use indexmap::IndexMap;
use serde::Serialize;

/// The summary of one shell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShellSummary {
    /// Version of this layout.
    pub schema: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Seed of the run.
    pub seed: u64,
    /// Seconds from the program's start until its data had arrived.
    pub elapsed_s: f64,
    /// Per path, in the scenario's order.
    pub paths: IndexMap<String, PathSummary>,
    /// Lateness, the kernels' counters and settings.
    #[serde(flatten)]
    pub live: Live,
}

/// The summary of one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathSummary {
    /// Server → client.
    pub down: WaySummary,
    /// Client → server.
    pub up: WaySummary,
}

/// One direction of a path. A value that does not apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaySummary {
    /// IP packets that crossed the bottleneck.
    pub packets: u64,
    /// Their bytes, with the path's overhead.
    pub bytes: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// Packets dropped by active queue management.
    pub aqm_drops: u64,
    /// Packets dropped by the policer.
    pub police_drops: u64,
    /// Packets larger than the path carries.
    pub mtu_drops: u64,
    /// A middlebox refused them.
    pub middlebox_drops: u64,
    /// Packets marked by active queue management (ECN) in place of being dropped.
    pub marked: u64,
    /// Packets lost at random behind the bottleneck.
    pub loss_drops: u64,
    /// Packets lost because the path was down.
    pub outage_drops: u64,
    /// Packets delivered with a wrong bit.
    pub corruption_drops: u64,
    /// Bytes divided by the bottleneck's capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// Packets in the queue, averaged over arriving packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_mean_packets: Option<f64>,
    /// Most packets in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_max_packets: Option<u32>,
    /// Mean one-way delay of the packets that arrived, lateness included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_mean_s: Option<f64>,
    /// 99th percentile of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_p99_s: Option<f64>,
}

impl ShellSummary {
    pub(super) fn new(scenario: &Scenario, exchange: &Exchange, meter: &LinkMeter, live: Live) -> Self {
        let now = exchange.world.now();
        let paths = scenario.topology.paths.iter().zip(meter.finish(now)).enumerate();
        let way = |path, direction, totals: &LinkTotals| {
            let delays = &exchange.delays;
            let (mean, p99) = (delays.mean_s(path, direction), delays.quantile_s(path, direction, 0.99));
            WaySummary::new(totals, mean, p99)
        };
        let of = |n, [down, up]: &[LinkTotals; 2]| PathSummary {
            down: way(n, Direction::Down, down),
            up: way(n, Direction::Up, up),
        };
        Self {
            schema: 1,
            scenario: scenario.name.clone(),
            seed: scenario.seed,
            elapsed_s: now.since(Instant::ZERO).as_secs_f64(),
            paths: paths.map(|(n, (path, totals))| (path.name.clone(), of(n, &totals))).collect(),
            live,
        }
    }
}

impl WaySummary {
    fn new(totals: &LinkTotals, delay_mean_s: Option<f64>, delay_p99_s: Option<f64>) -> Self {
        let drops = &totals.drops;
        Self {
            packets: totals.packets,
            bytes: totals.bytes,
            queue_drops: drops.queue,
            aqm_drops: drops.aqm,
            police_drops: drops.police,
            mtu_drops: drops.mtu,
            middlebox_drops: drops.middlebox,
            marked: totals.marked,
            loss_drops: drops.loss,
            outage_drops: drops.outage,
            corruption_drops: drops.corruption,
            utilisation: totals.utilisation,
            queue_mean_packets: totals.queue_mean_packets,
            queue_max_packets: totals.queue_max_packets,
            delay_mean_s,
            delay_p99_s,
        }
    }
}
