//! The handshakes of MP_CAPABLE and MP_JOIN (RFC 8684 §3.1, §3.2, §3.7).

use super::offers::{capable, is_spoken, join, speaks_later};
use super::{Keys, Session};
use crate::cx::Scope;
use crate::mode::Mode;
use crate::reasons::MPTCP_ERROR;
use crate::subflow::half_open::{HalfOpen, Offer};
use crate::subflow::{Both, Move, Reset, Subflow};
use anabranch_trace::{Event, Violation};
use anabranch_units::{DataSeq, SeqNumber};
use anabranch_wire::{AddAddr, MpCapable, MpJoin, MptcpOption, Reason, Segment, crypto};

/// The information in a third ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// The protocol is known.
    Mode,
    /// That the peer does not speak MPTCP.
    PlainTcp,
    /// Nothing.
    Nothing,
}

/// The information of the first segments after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Nothing,
    /// The peer got our keys.
    OurKeys,
    /// The peer's end is plain TCP.
    PlainTcp,
}

/// The agreement that the peer's SYN makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// None yet, or none any more.
    Nothing,
    Made,
    /// The same, but the peer accepts no joins to the address that it came from (RFC 8684 §3.1, flag C).
    NoJoinsHere,
}

/// The SYN/ACK of a join: the peer wants a backup; its random number; its address ID.
#[derive(Clone, Copy, Debug)]
struct Answer {
    backup: bool,
    nonce: u32,
    address_id: u8,
}

impl Session {
    /// The server's part of a first handshake is begun with `half`: what is offered there is answered.
    pub fn begin(&mut self, half: &HalfOpen) {
        match half.offer {
            Offer::Capable { checksum, .. } => self.checksum = checksum,
            _ => self.mode = Mode::Plain,
        }
    }

    /// Takes the SYN/ACK that answers the SYN of `s`, or the SYN that `crossed` it.
    pub fn on_syn(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, segment: &Segment, crossed: bool) -> Agreement {
        s.learn(segment, cx.now);
        if crossed {
            // MPTCP is not agreed that way.
            s.on_crossing_syn();
            self.become_plain();
            return Agreement::Nothing;
        }
        let mut agreement = Agreement::Made;
        if s.join {
            match self.check_syn_ack(segment, s.handshake.nonces.ours) {
                Ok(answer) => s.on_join_answer(answer.backup, answer.nonce, answer.address_id),
                Err(violation) => {
                    // RFC 8684 §3.2, §3.7: a join that is not understood is reset
                    s.reject(Reset::Because(MPTCP_ERROR));
                    violation.into_iter().for_each(|violation| cx.violation(s.id, violation));
                    return Agreement::Nothing;
                }
            }
        } else if self.learn_from_syn_ack(segment) {
            agreement = Agreement::NoJoinsHere;
        }
        s.go(Move::ReceiveSynAck);
        s.on_syn_ack(cx.now, &cx.settings().tcp, self.is_plain());
        agreement
    }

    /// Learns from the SYN/ACK of the first subflow. True if the peer accepts no joins to the address that it came from.
    fn learn_from_syn_ack(&mut self, segment: &Segment) -> bool {
        if self.mode != Mode::Opening {
            return false;
        }
        let answer = capable(segment).filter(|c| c.receiver_key.is_none());
        match answer.and_then(|c| c.sender_key.map(|key| (key, c.checksum))) {
            Some((key, checksum)) => {
                self.keys.learn(key);
                self.checksum |= checksum;
                self.mode = Mode::Agreed;
            }
            // RFC 8684 §3.7: no MP_CAPABLE on the SYN/ACK
            None => self.mode = Mode::Plain,
        }
        answer.is_some_and(|c| c.no_join_here)
    }

    /// The keys of the third ACK, or the fall back.
    pub fn learn_from_ack(&mut self, segment: &Segment, peer_isn: SeqNumber) -> Learned {
        if self.mode != Mode::Opening {
            return Learned::Mode;
        }
        match capable(segment) {
            Some(MpCapable { sender_key: Some(theirs), receiver_key: Some(ours), .. }) if *ours == self.keys.local => {
                self.keys.learn(*theirs);
                self.mode = Mode::Confirmed;
                Learned::Mode
            }
            // The third ACK was lost, and perhaps the first data too. The peer repeats its keys with the first byte until
            // a segment of ours arrives (RFC 8684 §3.1), so data that came before them counts as lost. That it has no
            // option does not show that a middlebox removed one.
            _ if segment.seq != peer_isn.at(1) => Learned::Nothing,
            _ if segment.payload.is_empty() && speaks_later(segment) => Learned::Nothing,
            _ => {
                // RFC 8684 §3.7: a middlebox removed the option, or it will never come: Linux does not repeat its keys
                // once the application has finished. Its mapping still shows where its numbers begin.
                if let Some(mapping) = segment.options.dss().and_then(|dss| dss.mapping).filter(|m| m.wide && m.len > 0)
                {
                    self.keys.remote_idsn = DataSeq(mapping.data_seq.wrapping_sub(mapping.subflow_seq.into()));
                }
                Learned::PlainTcp
            }
        }
    }

    /// The SYN/ACK of a join, which our random number `ours` began.
    ///
    /// # Errors
    /// RFC 8684 §3.2, §3.7: a join that is not understood is reset. The rule that the peer broke, if it did.
    fn check_syn_ack(&self, segment: &Segment, ours: u32) -> Result<Answer, Option<Violation>> {
        let Some(MpJoin::SynAck { backup, address_id, hmac, nonce }) = join(segment).copied() else { return Err(None) };
        let expected = crypto::join_hmac(self.keys.remote, self.keys.local, nonce, ours);
        if hmac == crypto::leftmost_64(&expected) {
            Ok(Answer { backup, nonce, address_id })
        } else {
            Err(Some(Violation::Hmac))
        }
    }

    /// The offer in a SYN's MP_JOIN; `nonce` draws our random number, `own_id` is the address ID of our end.
    ///
    /// # Errors
    /// The SYN has no MP_JOIN.
    pub fn join_offer(syn: &Segment, nonce: impl FnOnce() -> u32, own_id: u8) -> Result<Offer, Reason> {
        let Some(MpJoin::Syn { backup, address_id, token, nonce: theirs }) = join(syn).copied() else {
            return Err(MPTCP_ERROR);
        };
        Ok(Offer::Join {
            token,
            nonces: Both { ours: nonce(), theirs },
            address_ids: Both { ours: own_id, theirs: address_id },
            backup,
        })
    }

    /// The SYN/ACK's option of a join with these random numbers.
    pub fn join_answer(&self, Both { ours, theirs }: Both<u32>, address_id: u8, backup: bool) -> MptcpOption {
        let hmac = crypto::join_hmac(self.keys.local, self.keys.remote, ours, theirs);
        MptcpOption::Join(MpJoin::SynAck { backup, address_id, hmac: crypto::leftmost_64(&hmac), nonce: ours })
    }

    /// The third ACK of a join proves that the peer holds the keys.
    ///
    /// # Errors
    /// It is to be reset, with this reason. RFC 8684 §3.2: every segment of a join carries the proof until our fourth ACK
    /// reaches the peer.
    pub fn check_third_ack(&self, cx: &mut Scope<'_>, segment: &Segment, half: &HalfOpen) -> Result<(), Reason> {
        let Offer::Join { nonces: Both { ours, theirs }, .. } = half.offer else { return Err(MPTCP_ERROR) };
        let violation = match join(segment) {
            Some(MpJoin::Ack { hmac }) => {
                let expected = crypto::join_hmac(self.keys.remote, self.keys.local, theirs, ours);
                (*hmac != crypto::leftmost_160(&expected)).then_some(Violation::Hmac)
            }
            _ => Some(Violation::UnexpectedOption),
        };
        violation.map_or(Ok(()), |violation| {
            cx.record(None, Event::Violation(violation));
            Err(MPTCP_ERROR)
        })
    }

    /// The option of our SYN or SYN/ACK.
    pub(super) fn handshake_option(&self, s: &Subflow) -> Option<MptcpOption> {
        if self.mode.is_plain() || s.handshake.bare {
            return None;
        }
        if s.join {
            let (nonce, address_id) = (s.handshake.nonces.ours, s.handshake.address_ids.ours);
            let token = self.keys.remote_token;
            return Some(MptcpOption::Join(MpJoin::Syn { backup: s.backup.ours, address_id, token, nonce }));
        }
        Some(MptcpOption::Capable(MpCapable {
            checksum: self.checksum,
            // RFC 8684 §3.1: no key on the SYN, the server's on the SYN/ACK
            sender_key: (!s.handshake.active).then_some(self.keys.local),
            ..MpCapable::OFFER
        }))
    }

    /// The option of a third ACK: both keys, or the HMAC of a join.
    pub(super) fn third_ack_option(&self, s: &Subflow) -> MptcpOption {
        if s.join {
            let Both { ours, theirs } = s.handshake.nonces;
            let hmac = crypto::join_hmac(self.keys.local, self.keys.remote, ours, theirs);
            MptcpOption::Join(MpJoin::Ack { hmac: crypto::leftmost_160(&hmac) })
        } else {
            MptcpOption::Capable(self.both_keys(None))
        }
    }

    /// MP_CAPABLE with both keys, as the third ACK and the first data carry it.
    pub(super) fn both_keys(&self, data: Option<(u16, Option<u16>)>) -> MpCapable {
        MpCapable {
            checksum: self.checksum,
            sender_key: Some(self.keys.local),
            receiver_key: Some(self.keys.remote),
            data,
            ..MpCapable::OFFER
        }
    }

    /// The data that MP_CAPABLE maps, the first of the connection: its length, and the checksum if there is one.
    pub(super) fn first_data(&self, option: &MptcpOption) -> Option<(u16, Option<u16>)> {
        let MptcpOption::Capable(c) = option else { return None };
        let keys = (c.sender_key, c.receiver_key) == (Some(self.keys.remote), Some(self.keys.local));
        c.data.filter(|_| is_spoken(c) && keys)
    }

    /// The peer has shown that it got our keys.
    #[inline(always)]
    pub fn has_shown(&self) -> bool {
        self.dss_seen
    }

    /// The information of a segment on `s` about the peer's end, as long as none [had any](Self::has_shown), or on a join;
    /// `alone`: there is no other subflow.
    pub fn shown(&mut self, s: &mut Subflow, alone: bool, segment: &Segment) -> Shown {
        // One that overtook the peer's first data is no sign: that data brings the option (Linux `check_fully_established`).
        let acks = segment.ack != s.isn.at(1) && segment.seq == s.peer_isn.at(s.receiver.next());
        let bare = segment.options.mptcp().is_empty() && (!segment.payload.is_empty() || acks);
        if self.confirm(segment) {
            // MP_CAPABLE does not tell that a path is a backup.
            if s.backup.ours && !s.join {
                s.signal_backup();
            }
            Shown::OurKeys
        } else if bare && alone && !s.join && !self.joined {
            // RFC 8684 §3.7: data, or an acknowledgment of ours, without the option
            Shown::PlainTcp
        } else {
            Shown::Nothing
        }
    }

    /// The peer got our keys (RFC 8684 §3.1), as a segment shows. True if none had shown it before.
    fn confirm(&mut self, segment: &Segment) -> bool {
        if self.dss_seen {
            return false;
        }
        // An ADD_ADDR may leave no room for a DSS, and MP_CAPABLE with data maps it too.
        let shows = |o: &MptcpOption| matches!(o, MptcpOption::AddAddr(_)) || self.first_data(o).is_some();
        if segment.options.dss().is_some() || segment.options.mptcp().iter().any(shows) {
            self.dss_seen = true;
            let first = segment.options.mptcp().iter().find_map(|option| self.first_data(option));
            self.first_len = first.map_or(0, |(len, _)| len.into());
            self.mode = Mode::Confirmed;
        }
        self.dss_seen
    }

    /// An announcement of ours, with the proof that an ADD_ADDR carries (RFC 8684 §3.4.1).
    pub fn signed(&self, announcement: MptcpOption) -> MptcpOption {
        let MptcpOption::AddAddr(announced) = announcement else { return announcement };
        let AddAddr { address_id, address, port, .. } = announced;
        let hmac = crypto::add_addr_hmac(self.keys.local, self.keys.remote, address_id, address, port);
        MptcpOption::AddAddr(AddAddr { hmac: Some(hmac), ..announced })
    }

    /// An ADD_ADDR proves that the peer holds the keys.
    pub(super) fn proves(&self, announced: AddAddr) -> bool {
        let AddAddr { address_id, address, port, hmac } = announced;
        hmac == Some(crypto::add_addr_hmac(self.keys.remote, self.keys.local, address_id, address, port))
    }

    /// Keys for a server's connection: those that the SYN/ACK of `half` showed already, if no other connection has drawn the
    /// same token meanwhile. Otherwise fresh ones, and no MPTCP (RFC 8684 §3.1): the peer gets no option any more, and falls
    /// back.
    pub fn resume(&self, half: &HalfOpen, fresh: impl FnOnce() -> Keys, taken: &dyn Fn(u32) -> bool) -> (Keys, Offer) {
        let shown = match half.offer {
            Offer::Capable { key, .. } => Some(Keys::of(key)),
            _ => None,
        };
        let unique = shown.filter(|keys| self.wanted && !taken(keys.local_token));
        (unique.unwrap_or_else(fresh), unique.map_or(Offer::Plain, |_| half.offer))
    }
}
