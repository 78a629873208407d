//! A handshake that a peer began and has not completed: all that is kept of it (RFC 9293 §3.10.7.2, RFC 8684 §3.1, §3.2).

use super::Both;
use super::ecn::sets_up;
use super::handshake::Terms;
use super::stamps::Stamps;
use crate::four_tuple::FourTuple;
use crate::settings::Settings;
use anabranch_units::{Instant, Rng, SeqNumber};
use anabranch_wire::{Flags, MpCapable, MptcpOption, Segment, Timestamps};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The offer of a SYN, and our answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Plain TCP.
    Plain,
    /// MP_CAPABLE: our key, and whether checksums are used. `bare`: the last SYN had no MPTCP option, so the answer has none,
    /// and the third ACK tells what it is to be (RFC 8684 §3.7).
    Capable { key: u64, checksum: bool, bare: bool },
    /// MP_JOIN: whose token it names, both random numbers, both address IDs, and whether the peer wants a backup.
    Join { token: u32, nonces: Both<u32>, address_ids: Both<u8>, backup: bool },
}

/// The meaning of a segment for a half-open handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sense {
    /// Nothing.
    Nothing,
    /// The peer's SYN again: it is answered again.
    Again,
    /// The segment is not acceptable: the answer is repeated (RFC 9293 §3.10.7.4, RFC 5961 §3.2, §4).
    Unacceptable,
    /// The peer gives up.
    Over,
    /// The segment acknowledges what was never sent: answered with a reset.
    Refused,
    /// The segment acknowledges our SYN.
    Complete,
}

/// Both ends in little room, ours first: ports, and addresses as IPv6 has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CompactEnds {
    ports: [u16; 2],
    addresses: [[u8; 16]; 2],
}

impl From<FourTuple> for CompactEnds {
    fn from(FourTuple { local, remote }: FourTuple) -> Self {
        let octets = |end: SocketAddr| match end.ip() {
            // RFC 4291 §2.5.5.2
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        Self { ports: [local, remote].map(|end| end.port()), addresses: [local, remote].map(octets) }
    }
}

/// A SYN that was answered. Small, since anyone may send some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfOpen {
    ends: CompactEnds,
    pub isn: SeqNumber,
    pub peer_isn: SeqNumber,
    pub terms: Terms,
    /// The peer's timestamp, if both use them.
    stamp: u32,
    /// The peer's window, not scaled (RFC 7323 §2.2).
    pub window: u16,
    pub offer: Offer,
    /// When the SYN came and was answered.
    pub since: Instant,
    /// How often it was answered, no matter why.
    pub answers: u8,
    /// How often it was answered because time passed.
    pub repeats: u8,
}

impl HalfOpen {
    /// The answer to a SYN that came on `tuple`.
    pub fn new(
        rng: &mut Rng,
        now: Instant,
        settings: &Settings,
        tuple: FourTuple,
        syn: &Segment,
        offer: Offer,
    ) -> Self {
        let terms = Terms::offer(settings).agree(syn, tuple.remote.is_ipv6());
        Self {
            ends: tuple.into(),
            isn: SeqNumber(rng.bits() as u32),
            peer_isn: syn.seq,
            terms,
            stamp: syn.options.timestamps().map_or(0, |stamps| stamps.val),
            window: syn.window,
            offer,
            since: now,
            answers: 0,
            repeats: 0,
        }
    }

    /// As this one, with another offer.
    pub fn with(&self, offer: Offer) -> Self {
        Self { offer, ..*self }
    }

    /// The peer's SYN came again. RFC 3168 §6.1.1: one that does not set ECN up gives it up.
    pub fn on_syn_again(&mut self, syn: &Segment) {
        self.terms.ecn &= sets_up(syn);
    }

    /// Ends of the handshake, in few bytes.
    pub fn ends(&self) -> CompactEnds {
        self.ends
    }

    /// Ends of the handshake.
    pub fn tuple(&self) -> FourTuple {
        let [local, remote] = [0, 1].map(|n| {
            let ip = IpAddr::V6(Ipv6Addr::from(self.ends.addresses[n])).to_canonical();
            SocketAddr::new(ip, self.ends.ports[n])
        });
        FourTuple { local, remote }
    }

    /// The timestamp clock of the peer, as its SYN showed it.
    pub fn stamps(&self) -> Stamps {
        let mut stamps = Stamps::new();
        if self.terms.timestamps {
            stamps.keep(Timestamps { val: self.stamp, ecr: 0 }, true, self.since);
        }
        stamps
    }

    /// The meaning of `segment` for it (RFC 9293 §3.10.7.4, SYN-RECEIVED).
    pub fn sense(&self, segment: &Segment) -> Sense {
        let flags = segment.flags;
        // RFC 7323 §2.2: the window of a SYN/ACK is not scaled.
        let inside = segment.seq.offset_from(self.peer_isn, 1).is_some_and(|seq| (1..=0x1_0000).contains(&seq));
        if flags.has(Flags::RST) {
            // RFC 5961 §3.2
            return match inside {
                true if segment.seq == self.peer_isn.at(1) => Sense::Over,
                true => Sense::Unacceptable,
                false => Sense::Nothing,
            };
        }
        match (flags.has(Flags::SYN), flags.has(Flags::ACK)) {
            (true, false) if segment.seq == self.peer_isn => Sense::Again,
            (true, _) => Sense::Unacceptable,
            _ if !inside => Sense::Unacceptable,
            (_, false) => Sense::Nothing,
            _ if segment.ack == self.isn.at(1) => Sense::Complete,
            _ => Sense::Refused,
        }
    }

    /// MP_CAPABLE of the SYN/ACK, if the SYN requested it (RFC 8684 §3.1).
    pub fn capable(&self) -> Option<MptcpOption> {
        let Offer::Capable { key, checksum, bare: false } = self.offer else { return None };
        Some(MptcpOption::Capable(MpCapable { checksum, sender_key: Some(key), ..MpCapable::OFFER }))
    }

    /// Makes `out` the SYN/ACK, with an MPTCP option.
    pub fn answer(
        &self,
        now: Instant,
        settings: &Settings,
        window: u16,
        option: Option<MptcpOption>,
        out: &mut Segment,
    ) {
        let [src_port, dst_port] = self.ends.ports;
        *out = Segment {
            src_port,
            dst_port,
            seq: self.isn,
            ack: self.peer_isn.at(1),
            flags: self.terms.flags_of_answer(),
            window,
            ..Segment::default()
        };
        self.terms.write(&mut out.options, settings, self.stamps().option(now));
        if let Some(option) = option {
            out.options.push_mptcp(option);
        }
    }
}
