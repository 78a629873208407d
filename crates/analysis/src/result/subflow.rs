//! One subflow.

use super::verdict::{self, JoinFailure, name};
use crate::connection::{Fate, Flow, Half, Opening, Tally, Times, Vantage, half};
use anabranch_units::{Instant, Side};
use serde::Serialize;
use std::net::SocketAddr;

/// The packets that one host sent on a subflow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneWay {
    /// `client` or `server`.
    pub from: &'static str,
    /// Beside which host this was counted: the sender's, where that was captured.
    pub counted_at: &'static str,
    /// All packets.
    pub packets: u64,
    /// Packets with payload, and their payload.
    pub data: Tally,
    /// Packets whose payload had all been seen before on this subflow.
    pub repeated_packets: u64,
    /// Bytes that had been seen before on this subflow.
    pub repeated_bytes: u64,
    /// Packets with new payload below a number that had been seen: reordered, or lost and retransmitted.
    pub late_packets: u64,
    /// Data that a near sender sent as new to the connection.
    pub new: Option<Tally>,
    /// Data that a near sender retransmitted on this subflow.
    pub retransmitted: Option<Tally>,
    /// Data that a near sender sent, and another subflow had carried.
    pub reinjected: Option<Tally>,
    /// Bytes that a near receiver got and did not have.
    pub new_bytes: Option<u64>,
    /// Data packets that left one host and did not come to the other, where both ends were captured.
    pub lost_packets: Option<u64>,
    /// Round trips that the near sender measures.
    pub rtt: Option<Times>,
    /// Windows of zero that the other host announced.
    pub zero_windows: u64,
    /// Silences with data outstanding, as a near sender sees them.
    pub outages: Vec<Outage>,
}

/// A silence of the other host, with data outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// The last sign of the other host, in seconds since the connection's first packet.
    pub from_s: f64,
    /// The next sign; none until the end of the capture.
    pub until_s: Option<f64>,
    /// When the subflow's data was first sent on another one.
    pub rescued_s: Option<f64>,
}

/// One subflow.
#[derive(Clone, Debug, Serialize)]
pub struct Subflow {
    /// Number of the subflow, from 1.
    pub number: usize,
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// Made by MP_JOIN.
    pub join: bool,
    /// The client requests backup use.
    pub backup: bool,
    /// The first packet, in seconds since the connection's first.
    pub begins_s: f64,
    /// The last packet.
    pub ends_s: f64,
    /// The end of the subflow, or its state.
    pub fate: Fate,
    /// Why the join failed.
    pub failure: Option<JoinFailure>,
    /// SYNs of the client.
    pub syns: u64,
    /// The first round trip, through SYN, SYN/ACK and third ACK.
    pub handshake_rtt_s: Option<f64>,
    /// From the server to the client, and back.
    pub ways: [OneWay; 2],
}

/// The subflow `n` of a connection seen beside one host or both.
pub(super) fn subflow(
    vantages: &[Option<Vantage>; 2],
    main: &Vantage,
    n: usize,
    ends: (SocketAddr, SocketAddr),
    known_token: bool,
) -> Subflow {
    let both =
        [0, 1].map(|side| vantages[side].as_ref().and_then(|v| v.flows.get(n)).filter(|flow| flow.first.is_some()));
    let of_main = main.flows.get(n).filter(|flow| flow.first.is_some());
    let empty = Flow::default();
    let flow = of_main.or(both[0]).or(both[1]).unwrap_or(&empty);
    let fate = both.into_iter().flatten().map(|flow| flow.opening.fate(flow.fins_acked == [true; 2]));
    let fate = worst(fate, flow.opening.fate(flow.fins_acked == [true; 2]));
    let join = both.into_iter().flatten().any(|flow| flow.opening.is_join());
    let failure = if join { verdict::join_failure(main, both, fate, known_token) } else { None };
    let since = |at: Instant| at.since(main.first).as_secs_f64();
    let round = both.into_iter().flatten().find_map(|flow| Opening::round(&flow.opening));
    Subflow {
        number: n + 1,
        client: ends.0,
        server: ends.1,
        join,
        backup: both.into_iter().flatten().any(|flow| flow.opening.backup),
        begins_s: flow.first.map_or(0.0, since),
        ends_s: since(flow.last),
        fate,
        failure,
        syns: flow.halves[0].syns,
        handshake_rtt_s: round.map(|(there, back)| (there + back).as_secs_f64()),
        ways: [Side::Server, Side::Client].map(|from| way(vantages, main, n, from)),
    }
}

/// Beside one host a join may look complete that failed beside the other.
fn worst(mut fates: impl Iterator<Item = Fate>, main: Fate) -> Fate {
    let failed = |fate: &Fate| matches!(fate, Fate::Stripped | Fate::Refused);
    fates.find(failed).unwrap_or(main)
}

fn way(vantages: &[Option<Vantage>; 2], main: &Vantage, n: usize, from: Side) -> OneWay {
    let sender = vantages[half(from)].as_ref();
    let receiver = vantages[1 - half(from)].as_ref();
    let counted = sender.unwrap_or(main);
    let empty = Half::default();
    let half_of = |v: &Vantage| v.flows.get(n).map(|flow| flow.halves[half(from)].clone());
    let of = half_of(counted).unwrap_or(empty);
    let sent = sender.and_then(|v| v.fold.carried.get(n));
    let got = receiver.and_then(|v| v.fold.carried.get(n));
    let back = counted.flows.get(n).map_or(0, |flow| flow.halves[1 - half(from)].zero_windows);
    let lost = sender.and(receiver).and_then(half_of).map(|there| of.data_packets.saturating_sub(there.data_packets));
    let since = |at: Instant| at.since(main.first).as_secs_f64();
    let outages = sent.map(|sent| &sent.sending.outages[..]).unwrap_or_default();
    let outages = outages.iter().map(|outage| Outage {
        from_s: since(outage.from),
        until_s: outage.until.map(since),
        rescued_s: outage.rescued.map(since),
    });
    OneWay {
        from: name(from),
        counted_at: name(counted.near),
        packets: of.packets,
        data: Tally { packets: of.data_packets, bytes: of.bytes },
        repeated_packets: of.again_packets,
        repeated_bytes: of.again_bytes,
        late_packets: of.late_packets,
        new: sent.map(|sent| sent.new),
        retransmitted: sent.map(|sent| sent.again),
        reinjected: sent.map(|sent| sent.reinjected),
        new_bytes: got.map(|got| got.arrived_new),
        lost_packets: lost,
        rtt: sent.and_then(|sent| sent.sending.rtt.times()),
        zero_windows: back,
        outages: outages.collect(),
    }
}
