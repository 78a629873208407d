//! One subflow as its host sees it.

use crate::mappings::{Entry, Mappings};
use crate::receiving::Receiving;
use anabranch_units::{PathId, Range, SeqNumber};
use anabranch_wire::{Flags, Packet};
use core::net::SocketAddr;

/// The two ends of a subflow, as its host sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FourTuple {
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

impl FourTuple {
    pub fn of(packet: &Packet, sent: bool) -> Self {
        let source = SocketAddr::new(packet.src, packet.segment.src_port);
        let target = SocketAddr::new(packet.dst, packet.segment.dst_port);
        if sent { Self { local: source, remote: target } } else { Self { local: target, remote: source } }
    }
}

/// The state of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The host sent a SYN.
    SynSent,
    /// The host got a SYN.
    SynReceived,
    /// SYNs are exchanged; a join of the host waits for the fourth ACK (RFC 8684 §3.2).
    Unconfirmed,
    /// May carry data.
    Established,
    /// Both directions closed in order; the host answers for a while (RFC 9293 §3.6.1).
    TimeWait,
    /// Closed in order or reset, and the host has removed it.
    Closed,
}

/// A fixed distance between a subflow's sequence and the data sequence: plain TCP and infinite mappings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distance {
    pub sub: u64,
    pub data: u64,
}

/// The first payload byte is the first of the stream.
impl Default for Distance {
    fn default() -> Self {
        Self { sub: 1, data: 0 }
    }
}

impl Distance {
    /// `part` in the data sequence; `None` if that would begin before it.
    pub fn translate(self, part: Range) -> Option<Range> {
        let start = (self.data + part.start).checked_sub(self.sub)?;
        Some(Range::new(start, start + part.len()))
    }
}

/// The send side of a subflow. Offsets: 0 = SYN, 1 = first payload byte.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    /// The host's initial sequence number.
    pub isn: SeqNumber,
    pub mappings: Mappings,
    /// First offset that is not acknowledged.
    pub una: u64,
    /// Next offset to be sent.
    pub nxt: u64,
    /// The offset of the FIN.
    pub fin: Option<u64>,
    /// The peer's FIN came before the host's left: LAST-ACK follows instead of TIME-WAIT (RFC 9293 §3.3.2).
    pub fin_answers: bool,
}

impl Sending {
    pub fn new(isn: SeqNumber) -> Self {
        Self { isn, mappings: Mappings::default(), una: 1, nxt: 1, fin: None, fin_answers: false }
    }
}

/// The offers of a SYN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offer {
    pub timestamps: bool,
    pub scale: Option<u8>,
    /// Random number of a join.
    pub nonce: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Subflow {
    pub tuple: FourTuple,
    pub path: PathId,
    pub stage: Stage,
    /// Made by MP_JOIN.
    pub join: bool,
    /// The key that the host offered on it (RFC 8684 §3.1).
    pub key: Option<u64>,
    /// Both SYNs carried timestamps.
    pub timestamps: bool,
    /// The host's SYN and the peer's, once seen.
    pub offers: (Option<Offer>, Option<Offer>),
    pub sending: Sending,
    pub receiving: Receiving,
}

impl Subflow {
    pub fn new(tuple: FourTuple, path: PathId, stage: Stage, join: bool, isn: SeqNumber) -> Self {
        Self {
            tuple,
            path,
            stage,
            join,
            key: None,
            timestamps: false,
            offers: (None, None),
            // The initial number of the silent end is filled in at its first segment.
            sending: Sending::new(isn),
            receiving: Receiving::new(isn),
        }
    }

    /// Both SYNs are exchanged.
    pub fn is_synchronized(&self) -> bool {
        matches!(self.stage, Stage::Unconfirmed | Stage::Established | Stage::TimeWait)
    }

    /// The subflow has not ended.
    pub fn is_live(&self) -> bool {
        !matches!(self.stage, Stage::TimeWait | Stage::Closed)
    }

    /// The window field of a segment in bytes, in the scale of the host (`sent`) or of the peer.
    pub fn window(&self, sent: bool, flags: Flags, field: u16) -> u64 {
        let shift = match self.offers {
            // RFC 7323 §2.2: not on a SYN, and only if both offered it; §2.3: at most 14
            (Some(Offer { scale: Some(ours), .. }), Some(Offer { scale: Some(theirs), .. }))
                if !flags.has(Flags::SYN) =>
            {
                (if sent { ours } else { theirs }).min(14)
            }
            _ => 0,
        };
        u64::from(field) << shift
    }

    /// The place in the data sequence of the first bytes of `part`, as far as one mapping reaches.
    pub fn sent_data(&self, part: Range, plain: Option<Distance>) -> Option<Range> {
        match self.sending.mappings.find(part.start) {
            Some(Entry { sub, data, whole }) => {
                Some(Entry { sub, data, whole }.translate(Range::new(part.start, part.end.min(sub.end))))
            }
            None => plain?.translate(part),
        }
    }
}
