//! Measurements that only a run in real time has.

use crate::preflight::Preflight;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fields of the kernel's `tcp_info` under their own names.
pub type TcpInfo = BTreeMap<String, u64>;

/// The facts of one run in real time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// How true the emulated paths were.
    pub emulation: Emulation,
    /// Paths as measured before the run; null if nothing was measured.
    #[serde(default)]
    pub preflight: Option<Preflight>,
    /// The kernel's release; null if both hosts are engines.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The kernels' counters of the run, by host (`client`, `server`), under their own names.
    #[serde(default)]
    pub counters: IndexMap<String, BTreeMap<String, u64>>,
    /// The kernels' settings, by host.
    #[serde(default)]
    pub settings: IndexMap<String, IndexMap<String, String>>,
    /// Settings of the scenario that a kernel cannot be given, each with the reason.
    #[serde(default)]
    pub not_applied: Vec<String>,
    /// The kernels' state of each subflow when it was last seen open: by host, then by path.
    #[serde(default)]
    pub tcp_info: IndexMap<String, IndexMap<String, TcpInfo>>,
}

/// How late the loop ran that moves the world in real time. Seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Emulation {
    /// Packets given to kernels.
    pub packets: u64,
    /// The median lateness.
    pub late_median_s: f64,
    /// The lateness that 99 of 100 packets do not exceed.
    pub late_p99_s: f64,
    /// The greatest lateness.
    pub late_max_s: f64,
    /// Most packets in a row that a host got together because the loop was late, though the model had spaced them.
    #[serde(default)]
    pub late_burst_packets: u64,
    /// Packets that a kernel's device dropped because they were not read in time.
    pub device_drops: u64,
    /// 99 of 100 left within a millisecond, all within ten, and no device dropped any.
    pub accurate: bool,
}
