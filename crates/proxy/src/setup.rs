//! The setup of a proxied connection, the same at both ends.

use crate::message::PORT;
use anabranch_carrier::{Addresses, MAX_PACKET, MAX_PATHS};
use anabranch_engine::connection::{PathSetup, Setup};
use anabranch_engine::{FirstPath, FourTuple, Settings, TcpSettings};
use anabranch_link::HEADERS;
use anabranch_scenario::PlugIn;
use anabranch_units::{ConnId, Duration, PathId, Side};
use core::net::SocketAddr;

/// A path that is back carries data after this time at the latest. Linux has the same limit as a setting since 6.15
/// (`tcp_rto_max_ms`).
const RTO_MAX: Duration = Duration::from_secs(2);
/// No datagram lives longer inside a carrier: replayed ones are dropped.
const TIME_WAIT: Duration = Duration::from_secs(5);
/// NATs on the way forget a connection that is silent; a peer that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(600);

/// Settings of all connections.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// Congestion control of what this end sends.
    pub congestion: PlugIn,
    /// How long a connection survives without any path.
    pub orphan_timeout: Duration,
    /// Connections inside a carrier offer ECN: datagrams may be marked in place of being dropped.
    pub ecn: bool,
}

impl ConnectionSettings {
    /// A connection inside the carrier with buffers of `each` bytes over these paths; `None` if the congestion control cannot be built.
    pub(crate) fn setup(&self, each: u64, paths: Vec<PathSetup>) -> Option<Setup> {
        let tcp = TcpSettings { time_wait: TIME_WAIT, ecn: self.ecn, ..tcp() };
        let mss = mss(MAX_PACKET);
        // The carrier removes no option.
        self.with(each, paths, Settings { tcp, mptcp_required: true, mss, ..Settings::default() })
    }

    /// The same to a host that may speak plain TCP, without a carrier. Segments carry at most `mss` bytes.
    pub(crate) fn direct(&self, each: u64, mss: u32, paths: Vec<PathSetup>) -> Option<Setup> {
        // A connection that has fallen back survives the loss of its only path as long as others do that of all.
        let silence = self.orphan_timeout.as_secs_f64() / RTO_MAX.as_secs_f64();
        let retries = TcpSettings::default().retries + silence.ceil() as u32;
        let tcp = TcpSettings { retries, keep_alive: Some(KEEP_ALIVE), ..tcp() };
        self.with(each, paths, Settings { tcp, mss, ..Settings::default() })
    }

    fn with(&self, each: u64, paths: Vec<PathSetup>, settings: Settings) -> Option<Setup> {
        let PlugIn { name, parameters } = &self.congestion;
        Some(Setup {
            id: ConnId(0),
            settings: Settings {
                send_buffer: each,
                recv_buffer: each,
                first_path: FirstPath::Race,
                orphan_timeout: self.orphan_timeout,
                ..settings
            },
            scheduler: anabranch_schedulers::build("minrtt", &[]).ok()?,
            congestion: anabranch_congestion::build(name, parameters).ok()?,
            paths,
            announce: Vec::new(),
            accept_announced: false,
        })
    }
}

fn tcp() -> TcpSettings {
    TcpSettings { rto_max: RTO_MAX, nagle: false, ..TcpSettings::default() }
}

/// Payload bytes of the largest segment in packets of so many bytes.
fn mss(packet: usize) -> u32 {
    (packet as u32).saturating_sub(HEADERS)
}

/// Payload bytes of the largest segment on each path, so that it travels whole; `None` where nothing is known of that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SegmentSizes([Option<u32>; MAX_PATHS]);

impl SegmentSizes {
    /// The largest packet of a path has so many bytes. Returns the payload of the largest segment.
    pub fn set(&mut self, id: PathId, packet: usize) -> u32 {
        let mss = mss(packet);
        self.0.get_mut(id.index()).into_iter().for_each(|of_path| *of_path = Some(mss));
        mss
    }

    /// A path with its size.
    pub fn with(&self, path: PathSetup) -> PathSetup {
        PathSetup { mss: self.0.get(path.id.index()).copied().flatten(), ..path }
    }

    /// The paths with a size.
    pub fn all(&self) -> impl Iterator<Item = (PathId, u32)> {
        (0..).map(PathId).zip(self.0).filter_map(|(id, mss)| Some((id, mss?)))
    }
}

/// A path of a session, as one end sees it.
pub(crate) fn path(addresses: Addresses, side: Side, id: PathId) -> PathSetup {
    let client = SocketAddr::from((addresses.client(id), 0));
    let server = SocketAddr::from((addresses.server(), PORT));
    let (local, remote) = if side == Side::Client { (client, server) } else { (server, client) };
    PathSetup::new(id, FourTuple { local, remote })
}

/// All paths that a session may have.
pub(crate) fn all_paths(addresses: Addresses, side: Side) -> Vec<PathSetup> {
    (0..MAX_PATHS as u8).map(|id| path(addresses, side, PathId(id))).collect()
}
