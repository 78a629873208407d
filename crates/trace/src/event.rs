//! The events.

use anabranch_units::{Direction, Duration, Instant, Name, Range, RecoveryPhase, SchedulerName, SendKind};
use serde::{Deserialize, Serialize};

/// The state of a subflow as its user sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PathState {
    /// SYN sent or received.
    Opening,
    /// May carry data.
    Established,
    /// Silent since a timeout: gets no new data.
    Failing,
    /// Closed in order.
    Closed,
    /// Reset, timed out for good, or refused.
    Dead,
}

/// Why a packet was dropped by the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DropCause {
    /// The queue was full.
    Queue,
    /// Active queue management.
    Aqm,
    /// Random loss.
    Loss,
    /// The path was down.
    Outage,
    /// Corrupted: dropped by the receiver's checksum.
    Corruption,
    /// The packet exceeded the token bucket of a policer.
    Police,
    /// The packet was larger than the path carries.
    Mtu,
    /// A middlebox refused it.
    Middlebox,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CloseReason {
    /// Both directions closed in order.
    Finished,
    /// The application aborted it.
    Aborted,
    /// MP_FASTCLOSE or RST from the peer.
    ResetByPeer,
    /// No progress within the abort time.
    TimedOut,
    /// The handshake was refused or not answered.
    Refused,
}

/// A rule that a peer's segment broke. The segment is ignored or answered as the rule demands; the connection
/// continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Violation {
    /// Outside the window: RFC 9293 §3.10.7.4.
    Unacceptable,
    /// PAWS: RFC 7323 §5.
    OldTimestamp,
    /// RST not exactly at the expected number: RFC 5961 §3.2.
    BlindReset,
    /// SYN in a synchronized state: RFC 5961 §4.
    BlindSyn,
    /// ACK of data that was never sent, or long ago: RFC 5961 §5.
    BlindAck,
    /// Data without mapping: RFC 8684 §3.3.
    Unmapped,
    /// Two mappings disagree on a byte: RFC 8684 §3.3.
    MappingConflict,
    /// DSS checksum: RFC 8684 §3.3.
    Checksum,
    /// Data beyond the data-level window: RFC 8684 §3.3.1.
    BeyondWindow,
    /// DATA_ACK of data that was never sent: RFC 8684 §3.3.2.
    DataAckBeyond,
    /// DATA_FIN at another place than before: RFC 8684 §3.3.3.
    DataFinMoved,
    /// HMAC of MP_JOIN or ADD_ADDR: RFC 8684 §3.2, §3.4.1.
    Hmac,
    /// MP_JOIN with an unknown token: RFC 8684 §3.2.
    UnknownToken,
    /// MP_FASTCLOSE with the wrong key: RFC 8684 §3.5.
    WrongKey,
    /// An MPTCP option that is not permitted there.
    UnexpectedOption,
    /// Beyond this endpoint's limits for a peer.
    TooMuch,
}

/// The state of a path's sender after it changed. Windows and in-flight counts in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WindowChange {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold; `u32::MAX` = none yet.
    pub ssthresh: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// The newest sample, if this change has one.
    pub rtt: Option<Duration>,
}

/// A link's action on a packet. Links are named by [`crate::Origin::path`] and a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LinkEvent {
    /// Accepted. Queue lengths are those after it, without the packet in transmission. [`crate::Digest`] leaves this out.
    Enqueued {
        /// Packets waiting.
        queue_packets: u32,
        /// Bytes waiting.
        queue_bytes: u64,
    },
    /// The packet's last bit left the bottleneck, at the event's time. [`crate::Digest`] leaves this out.
    Departed,
    /// Dropped.
    Dropped(DropCause),
    /// Active queue management set CE where it would have dropped a packet that is not ECN-capable (RFC 3168 §5). The packet travels on.
    Marked,
}

impl LinkEvent {
    /// Accepted or departed, as nearly every packet is.
    #[inline(always)]
    pub const fn is_of_queue(self) -> bool {
        matches!(self, Self::Enqueued { .. } | Self::Departed)
    }
}

/// One event. Ranges are offsets in the data sequence (0 = IDSN+1, the first byte) unless stated otherwise.
///
/// The tag has its own byte: every recorder reads it first, and a tag packed into a field takes longer to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
#[non_exhaustive]
pub enum Event {
    /// The application handed over bytes.
    Written(Range),
    /// The application received bytes, in order.
    Delivered(Range),
    /// The writer will write no more; the stream ends at this offset.
    WriteEnd(u64),
    /// The application requests the next segment of a video.
    SegmentRequested {
        /// Rate at which it is encoded, in bit/s.
        bps: u64,
        /// Bytes of the segment.
        size: u64,
    },
    /// A subflow sent payload. `seq` is its offset in the subflow, `data` the data-level range.
    DataSent {
        /// Offset in the subflow's sequence (1 = first payload byte).
        seq: u64,
        /// Data-level range.
        data: Range,
        /// The reason.
        kind: SendKind,
    },
    /// Follows the [`Event::DataSent`] of new data that the scheduler had bound to the subflow earlier, ahead of its window.
    BoundAhead {
        /// When it was bound.
        since: Instant,
    },
    /// A subflow sent a segment without payload.
    ControlSent {
        /// Control bits as on the wire.
        flags: u8,
        /// A retransmission (of SYN or FIN).
        again: bool,
    },
    /// Payload arrived at the connection, in subflow order. `new` = bytes that were missing.
    DataArrived {
        /// Data-level range.
        data: Range,
        /// Bytes received for the first time.
        new: u64,
        /// Bytes in the connection's out-of-order queue (OFO) after it.
        ofo: u64,
    },
    /// The subflow's own out-of-order queue has this many bytes from now on: payload behind a gap in the subflow's sequence, which
    /// has not reached the connection. [`crate::Digest`] leaves this event out.
    SubflowOfo(u64),
    /// Everything below this offset was acknowledged to the sender.
    DataAcked(u64),
    /// An acknowledgment changed the subflow's sender.
    Window(WindowChange),
    /// Loss recovery changed its phase.
    Recovery(RecoveryPhase),
    /// Segments were marked lost.
    Lost {
        /// The number of packets.
        packets: u32,
    },
    /// The retransmission timer fired; `n` = consecutive times.
    Timeout {
        /// Consecutive timeouts, this one included.
        n: u32,
    },
    /// A tail loss probe was sent.
    TailLossProbe,
    /// A failing path is probed with a segment without payload.
    PathProbe,
    /// A window reduction was undone: the retransmission had been spurious.
    Undo,
    /// The congestion window restarted after idling (RFC 2861).
    IdleRestart,
    /// A scheduler halved a path's window (penalisation).
    Penalised,
    /// Data begins (`true`) or ceases (`false`) to wait only because the peer's data-level window is full.
    WindowBlocked(bool),
    /// Nothing in flight, data waiting, no timer: the scheduler would never be called again.
    Stall,
    /// A subflow's state.
    Path(PathState),
    /// The connection is established; `true` if with MPTCP.
    Connected(bool),
    /// The connection fell back to plain TCP (RFC 8684 §3.7).
    Fallback,
    /// The connection ended.
    Closed(CloseReason),
    /// A peer's segment broke a rule.
    Violation(Violation),
    /// A value that a scheduler publishes (λ of BLEST, for instance), times 10⁶, rounded.
    SchedulerValue {
        /// Name of the value.
        #[serde(deserialize_with = "anabranch_units::deserialize_name")]
        name: Name,
        /// Times 10⁶.
        micro: i64,
    },
    /// Another scheduler took over.
    Scheduler(SchedulerName),
    /// A packet of `size` bytes met a link.
    Link {
        /// The direction.
        direction: Direction,
        /// Whole IP packet with the path's overhead.
        size: u32,
        /// The link's action.
        what: LinkEvent,
    },
    /// The peer echoes an ECN mark, and the congestion control reacted: once per window of data (RFC 3168 §6.1.2).
    Marked,
}
