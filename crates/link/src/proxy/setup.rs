//! The setup of a proxied connection, the same at both ends.

use super::message::PORT;
use crate::measure::MSS;
use anabranch_carrier::{Addresses, MAX_PATHS};
use anabranch_engine::connection::{PathSetup, Setup};
use anabranch_engine::{FirstPath, FourTuple, Settings, TcpSettings};
use anabranch_scenario::PlugIn;
use anabranch_units::{ConnId, Duration, PathId, Side};
use core::net::SocketAddr;

/// A path that is back carries data after this time at the latest. Linux has the same limit as a setting since 6.15
/// (`tcp_rto_max_ms`).
const RTO_MAX: Duration = Duration::from_secs(2);
/// No datagram lives longer inside a carrier: replayed ones are dropped.
const TIME_WAIT: Duration = Duration::from_secs(5);

/// Settings of all connections.
#[derive(Clone, Debug)]
pub struct Common {
    /// Congestion control of what this end sends.
    pub congestion: PlugIn,
    /// How long a connection survives without any path.
    pub orphan_timeout: Duration,
}

impl Common {
    /// A connection with buffers of `each` bytes over these paths; `None` if the congestion control cannot be built.
    pub(crate) fn setup(&self, each: u64, paths: Vec<PathSetup>) -> Option<Setup> {
        let PlugIn { name, parameters } = &self.congestion;
        let tcp = TcpSettings { rto_max: RTO_MAX, nagle: false, time_wait: TIME_WAIT, ..TcpSettings::default() };
        Some(Setup {
            id: ConnId(0),
            settings: Settings {
                tcp,
                // The carrier removes no option.
                mptcp_required: true,
                mss: MSS,
                send_buffer: each,
                recv_buffer: each,
                first_path: FirstPath::Race,
                orphan_timeout: self.orphan_timeout,
                ..Settings::default()
            },
            scheduler: anabranch_schedulers::build("minrtt", &[]).ok()?,
            congestion: anabranch_congestion::build(name, parameters).ok()?,
            paths,
            announce: Vec::new(),
            accept_announced: false,
        })
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
