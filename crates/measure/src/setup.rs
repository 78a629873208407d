//! The connection that carries messages about runs.

use crate::station::CONTROL;
use anabranch_carrier::Addresses;
use anabranch_engine::connection::{PathSetup, Setup};
use anabranch_engine::{FourTuple, Settings};
use anabranch_link::HEADERS;
use anabranch_units::{ConnId, PathId};
use std::net::SocketAddr;

/// Bytes that the carrier and UDP add to a packet.
const OVERHEAD: u32 = anabranch_carrier::OVERHEAD as u32 + 8;
/// The same with the outer IP header, on the way to `server`.
pub fn overhead(server: SocketAddr) -> u32 {
    OVERHEAD + if server.is_ipv4() { 20 } else { 40 }
}

/// Payload of a segment that fits every path: 1,088 bytes have room in the least one.
pub const MSS: u32 = 1_080;
const _: () = assert!((MSS + HEADERS) as usize + anabranch_carrier::OVERHEAD <= anabranch_carrier::mtu::BASE);
/// Usable bytes of either buffer.
const BUFFER: u64 = 4 << 20;

/// The setup of the control connection at either end, over the paths that a client names.
pub(super) fn control(paths: Vec<PathSetup>) -> Option<Setup> {
    Some(Setup {
        id: ConnId(0),
        settings: Settings { mss: MSS, send_buffer: BUFFER, recv_buffer: BUFFER, ..Settings::default() },
        scheduler: anabranch_schedulers::build("minrtt", &[]).ok()?,
        congestion: anabranch_congestion::build("cubic", &[]).ok()?,
        paths,
        announce: Vec::new(),
        accept_announced: false,
    })
}

/// A client's paths to the server's engine, the first of which opens the connection.
pub(super) fn paths(addresses: Addresses, over: &[PathId]) -> Vec<PathSetup> {
    let local = |path| (addresses.client(path), 0).into();
    let tuple = |path| FourTuple { local: local(path), remote: (addresses.server(), CONTROL).into() };
    over.iter().map(|path| PathSetup::new(*path, tuple(*path))).collect()
}
