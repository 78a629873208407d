//! Facts about connections, as values: times in seconds, sizes in bytes.

mod make;
mod stream;
mod subflow;
mod verdict;

pub use stream::{Blocked, OutOfOrder, Stream, Waited};
pub use subflow::{OneWay, Outage, Subflow};
pub use verdict::{Cause, Fallback, JoinFailure, Protocol};

use crate::connection::Signal;
use crate::frames::CaptureInfo;
use serde::Serialize;
use std::net::SocketAddr;

/// The content of captures.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// The version of this form.
    pub format: u32,
    /// The captures.
    pub captures: Vec<CaptureInfo>,
    /// TCP packets that were analysed, without second sightings.
    pub packets: u64,
    /// Second sightings of packets on other interfaces of the same host.
    pub sightings: u64,
    /// Packets of connections beyond the limit of those that are followed.
    pub beyond_packets: u64,
    /// The connections in the order of their first packets.
    pub connections: Vec<Connection>,
}

/// The host beside which packets were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Near {
    /// The one that opened the connection.
    Client,
    /// The one that was called.
    Server,
    /// Both hosts.
    Both,
}

/// One connection.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// Number of the connection, from 1.
    pub number: u32,
    /// The protocol.
    pub protocol: Protocol,
    /// The first subflow's client and server.
    pub client: SocketAddr,
    /// See above.
    pub server: SocketAddr,
    /// Tokens of the client and the server (RFC 8684 §3.2), in hexadecimal, where their keys were captured.
    pub tokens: [Option<String>; 2],
    /// The first packet, in seconds since the first of all captures.
    pub begins_s: f64,
    /// The first packet, in seconds since 1970 by the first capture's clock.
    pub begins_unix_s: f64,
    /// From the first packet to the last.
    pub lasts_s: f64,
    /// Beside which host it was captured.
    pub near: Near,
    /// The capture does not show which host is near: the client is assumed.
    pub near_assumed: bool,
    /// The SYN was captured.
    pub whole: bool,
    /// The fallback, if there was one.
    pub fallback: Option<Fallback>,
    /// From the server to the client, and back; none without data.
    pub streams: Vec<Stream>,
    /// The subflows in the order of their first packets.
    pub subflows: Vec<Subflow>,
    /// Signals of hosts about paths and failures.
    pub events: Vec<Event>,
    /// Events beyond the limit.
    pub more_events: u64,
    /// Payload bytes whose place in the data sequence is not known.
    pub unmapped_bytes: u64,
    /// Bytes that a host acknowledged and that the capture does not have.
    pub missed_bytes: u64,
    /// The rules of RFCs that packets broke, and how often, as seen by the near host.
    pub violations: Vec<(String, u64)>,
    /// The connection's life, in sentences.
    pub story: Vec<String>,
}

impl Connection {
    /// The direction `from` of each subflow, with the subflow's number.
    pub fn ways<'a>(&'a self, from: &str) -> impl Iterator<Item = (usize, &'a OneWay)> {
        let ways = self.subflows.iter().flat_map(|subflow| subflow.ways.iter().map(move |way| (subflow.number, way)));
        ways.filter(move |(_, way)| way.from == from)
    }

    /// Payload bytes in the direction `from`, all copies.
    pub fn payload_bytes(&self, from: &str) -> u64 {
        self.ways(from).map(|(_, way)| way.data.bytes).sum()
    }
}

/// A signal of a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Seconds since the connection's first packet.
    pub at_s: f64,
    /// The number of the subflow, from 1.
    pub subflow: usize,
    /// `client` or `server`.
    pub from: &'static str,
    /// The signal.
    pub what: Signal,
}

pub(crate) use make::analysis;
