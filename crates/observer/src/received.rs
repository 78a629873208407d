//! Packets that the host receives (RFC 9293 §3.10.7.4).

use crate::mappings::Refused;
use crate::observer::{Mode, Observer, Out};
use crate::subflow::{Distance, Stage};
use anabranch_trace::{Event, PathState, Violation};
use anabranch_units::Range;
use anabranch_wire::{DataAck, Flags, MpCapable, MptcpOption, Segment};

/// How payload arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// In a segment with a DSS.
    Seen,
    /// In a segment without.
    Bare,
    /// Not captured, but acknowledged by the host.
    Proven,
}

impl Observer {
    pub(crate) fn on_received(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) {
        match self.subflows[i].stage {
            Stage::SynSent => self.on_answer(out, i, segment),
            Stage::SynReceived => {
                if self.on_opening(out, i, segment) {
                    self.on_synchronized(out, i, segment);
                }
            }
            _ => self.on_synchronized(out, i, segment),
        }
    }

    fn on_synchronized(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) {
        let Some(seq) = self.acceptable(out, i, segment) else { return };
        let flags = segment.flags;
        let s = &mut self.subflows[i];
        if let Some(stamps) = segment.options.timestamps().filter(|_| s.timestamps) {
            s.receiving.keep(stamps, seq, out.now);
        }
        if flags.has(Flags::RST) {
            // RFC 5961 §3.2; or the host's key authenticates it (RFC 8684 §3.5).
            let receiver_key = self.outgoing.owner.map(|owner| owner.key);
            let proof = receiver_key.map(|receiver_key| MptcpOption::FastClose { receiver_key });
            let proven = proof.is_some_and(|proof| segment.options.mptcp().contains(&proof));
            return if seq == s.receiving.next() || proven {
                self.drop_subflow(out, i)
            } else {
                self.violation(out, i, Violation::BlindReset)
            };
        }
        if flags.has(Flags::SYN) {
            // RFC 5961 §4
            return self.violation(out, i, Violation::BlindSyn);
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        let Some(ack) = self.acceptable_ack(i, segment) else {
            return self.violation(out, i, Violation::BlindAck);
        };
        if self.mode == Mode::Multipath {
            self.on_options(out, i, segment, ack);
        }
        let s = &mut self.subflows[i];
        s.sending.una = s.sending.una.max(ack);
        if self.mode == Mode::Plain {
            self.outgoing.window = s.window(false, flags, segment.window);
            self.acked_by_subflow(out, i);
        } else {
            s.sending.mappings.forget_below(s.sending.una);
        }
        let end = seq + segment.payload.len() as u64;
        let how = if segment.options.dss().is_some() { How::Seen } else { How::Bare };
        self.take_payload(out, i, Range::new(seq, end), how);
        let receiving = &mut self.subflows[i].receiving;
        if flags.has(Flags::FIN) {
            receiving.note_fin(end);
        }
        receiving.take_fin();
        self.close_if_over(out, i);
    }

    /// Sequence number and timestamps: the segment's offset if it is acceptable.
    pub(crate) fn acceptable(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) -> Option<u64> {
        let s = &self.subflows[i];
        let rst = segment.flags.has(Flags::RST);
        let seq = segment.seq.offset_from(s.receiving.isn, s.receiving.next());
        let old = segment.options.timestamps().is_some_and(|t| s.timestamps && s.receiving.is_old(t, out.now));
        if seq.is_some() && old && !rst {
            // RFC 7323 §5.3 R1
            self.violation(out, i, Violation::OldTimestamp);
            return None;
        }
        // The window belongs to the connection: retransmissions on this subflow do not count against it.
        let limit = self.incoming.window.saturating_mul(2).max(1 << 16);
        let inside = seq.filter(|seq| s.receiving.accepts(*seq, u64::from(segment.seq_len()), limit));
        if inside.is_none() {
            if rst {
                self.violation(out, i, Violation::Unacceptable);
            } else if seq.is_some_and(|seq| seq > self.subflows[i].receiving.next()) {
                self.violation(out, i, Violation::BeyondWindow);
            } else if segment.flags.has(Flags::ACK) && self.acceptable_ack(i, segment).is_some() {
                let s = &mut self.subflows[i];
                let last = seq.is_some_and(|seq| seq + u64::from(segment.seq_len()) == s.receiving.next());
                if let Some(stamps) = segment.options.timestamps().filter(|_| last && s.timestamps) {
                    s.receiving.renew(stamps, out.now);
                }
            }
        }
        inside
    }

    /// RFC 5961 §5.2: not older than the largest window, not newer than what was sent
    fn acceptable_ack(&self, i: usize, segment: &Segment) -> Option<u64> {
        let sending = &self.subflows[i].sending;
        let oldest = sending.una.saturating_sub(self.outgoing.window.max(1 << 16));
        let ack = segment.ack.offset_from(sending.isn, sending.una);
        ack.filter(|ack| (oldest..=sending.nxt).contains(ack))
    }

    fn on_options(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment, ack: u64) {
        self.confirm(out, i, segment, ack);
        if self.mode == Mode::Plain {
            return;
        }
        if let Some(ack) = segment.options.dss().and_then(|dss| dss.ack) {
            self.on_data_ack(out, i, segment, ack);
        }
        self.note_received_mapping(out, i, segment);
        let fail = segment.options.mptcp().iter().any(|o| matches!(o, MptcpOption::Fail { .. }));
        if fail && self.live() > 1 {
            self.violation(out, i, Violation::UnexpectedOption);
        }
        // RFC 8684 §3.7: with one subflow the host answers in kind, or by a reset; that answer decides.
    }

    fn live(&self) -> usize {
        self.subflows.iter().filter(|s| s.is_live()).count()
    }

    /// The peer shows that it has the host's keys, or that it does not speak MPTCP (RFC 8684 §3.1, §3.7).
    fn confirm(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment, ack: u64) {
        let s = &mut self.subflows[i];
        if s.stage == Stage::Unconfirmed {
            // RFC 8684 §3.2: the fourth ACK
            s.stage = Stage::Established;
            out.tell_of(s.path, Event::Path(PathState::Established));
        }
        let speaks = !segment.options.mptcp().is_empty();
        let data = !segment.payload.is_empty() || ack != 1;
        let joined = s.join;
        // An ADD_ADDR may leave no room for a DSS, and an MP_CAPABLE with data has a mapping too.
        let shows = |o: &MptcpOption| {
            matches!(o, MptcpOption::AddAddr(_) | MptcpOption::Capable(MpCapable { data: Some(_), .. }))
        };
        if segment.options.dss().is_some() || segment.options.mptcp().iter().any(shows) {
            self.dss_seen = true;
        } else if !self.dss_seen && !speaks && !joined && data && self.live() == 1 {
            self.fall_back(out, i);
        }
    }

    /// RFC 8684 §3.3.2
    fn on_data_ack(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment, ack: DataAck) {
        let Some(upto) = self.outgoing.owner.and_then(|owner| owner.offset(ack, self.outgoing.acked)) else { return };
        let end = self.outgoing.end;
        if upto > end + u64::from(self.outgoing.fin == Some(end)) {
            return self.violation(out, i, Violation::DataAckBeyond);
        }
        self.outgoing.window = self.subflows[i].window(false, segment.flags, segment.window);
        self.data_acked(out, upto.min(end));
    }

    /// Plain TCP: data that the subflow acknowledged is acknowledged at connection level.
    pub(crate) fn acked_by_subflow(&mut self, out: &mut Out<'_>, i: usize) {
        let s = &self.subflows[i];
        let una = Range::new(s.sending.una, s.sending.una + 1);
        if let Some(data) = s.sent_data(una, Some(self.plain.0)) {
            self.data_acked(out, data.start.min(self.outgoing.end));
        }
    }

    fn data_acked(&mut self, out: &mut Out<'_>, upto: u64) {
        if self.outgoing.on_acked(upto) {
            out.tell(Event::DataAcked(upto));
        }
    }

    fn note_received_mapping(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) {
        let Some((mapping, data_fin)) = self.mapping_of(false, segment) else { return };
        let near = (self.incoming.next(), self.subflows[i].receiving.next());
        let place = self.place(false, &mapping, data_fin, near);
        if mapping.len == 0 {
            // RFC 8684 §3.7: infinite, for connections with one subflow
            if self.live() > 1 {
                return self.violation(out, i, Violation::UnexpectedOption);
            }
            self.fall_back(out, i);
            // It may reach back; without a subflow offset (as Linux sends it) it begins here.
            if let Some(entry) = place.filter(|_| mapping.subflow_seq != 0) {
                self.plain.1 = Distance { sub: entry.sub.start, data: entry.data };
            }
            return self.pass_on_held(out, i);
        }
        let Some(entry) = place else { return };
        if data_fin && !self.incoming.note_fin(entry.data + entry.sub.len()) {
            self.violation(out, i, Violation::DataFinMoved);
        }
        let receiving = &mut self.subflows[i].receiving;
        if entry.sub.end <= receiving.unplaced() {
            return;
        }
        match receiving.mappings.add(entry) {
            Ok(()) => self.pass_on_held(out, i),
            Err(Refused::Conflict) => self.violation(out, i, Violation::MappingConflict),
            Err(Refused::NoRoom) => self.unfollowed.overflows += 1,
        }
    }

    /// Payload in the subflow's sequence.
    pub(crate) fn take_payload(&mut self, out: &mut Out<'_>, i: usize, all: Range, mut how: How) {
        if all.is_empty() {
            return;
        }
        if self.mode == Mode::Plain && how != How::Proven {
            // RFC 9293 §3.8.6: acknowledged data must be kept, so data that does not fit is not accepted.
            let beyond = self.plain.1.translate(all).is_none_or(|data| data.end > self.incoming.edge);
            if beyond {
                return self.violation(out, i, Violation::BeyondWindow);
            }
        }
        let mut ready = self.subflows[i].receiving.accept(all).unwrap_or_else(|()| {
            self.unfollowed.overflows += 1;
            None
        });
        while let Some(piece) = ready {
            self.pass_on(out, i, piece, how);
            how = if how == How::Proven { How::Seen } else { how };
            ready = self.subflows[i].receiving.pop();
        }
        let receiving = &mut self.subflows[i].receiving;
        receiving.mappings.forget_below(receiving.unplaced());
        if let Some(bytes) = receiving.held_change() {
            out.tell_of(self.subflows[i].path, Event::SubflowOfo(bytes));
        }
    }

    /// Retries the data that waited for its mapping.
    fn pass_on_held(&mut self, out: &mut Out<'_>, i: usize) {
        for piece in self.subflows[i].receiving.take_unmapped() {
            self.pass_on(out, i, piece, How::Seen);
        }
    }

    /// Hands the next bytes of a subflow's sequence to the connection by their mapping.
    fn pass_on(&mut self, out: &mut Out<'_>, i: usize, mut piece: Range, how: How) {
        while !piece.is_empty() {
            if self.mode != Mode::Multipath {
                if let Some(data) = self.plain.1.translate(piece) {
                    self.arrived(out, i, data, how);
                }
                return;
            }
            let mappings = &self.subflows[i].receiving.mappings;
            let Some(entry) = mappings.find(piece.start) else {
                let end = mappings.next_after(piece.start).unwrap_or(u64::MAX).min(piece.end);
                if self.unmapped(out, i, Range::new(piece.start, end), how) {
                    piece.start = end;
                }
                continue;
            };
            let part = Range::new(piece.start, piece.end.min(entry.sub.end));
            if !entry.whole {
                self.arrived(out, i, entry.translate(part), how);
            } else if part.end == entry.sub.end {
                // RFC 8684 §3.3: handed on once the checksum can be verified.
                self.arrived(out, i, entry.translate(entry.sub), how);
            }
            piece.start = part.end;
        }
    }

    /// Data without a mapping, which may still come (RFC 8684 §3.3.1). False if the connection fell back for it: a
    /// subflow whose very first data has no DSS does not speak MPTCP (§3.7).
    fn unmapped(&mut self, out: &mut Out<'_>, i: usize, part: Range, how: How) -> bool {
        let at_start = part.start == 1 && self.incoming.next() == 0 && self.incoming.ofo_bytes() == 0;
        if how == How::Bare && at_start && self.live() == 1 {
            self.violation(out, i, Violation::Unmapped);
            self.fall_back(out, i);
            self.plain.1 = Distance::default();
            return false;
        }
        // The DATA_ACK will account for data that was not captured.
        if how != How::Proven && !self.subflows[i].receiving.hold_unmapped(part) {
            self.unfollowed.unmapped_bytes += part.len();
        }
        true
    }

    /// Bytes with their place in the data sequence arrived.
    fn arrived(&mut self, out: &mut Out<'_>, i: usize, data: Range, how: How) {
        let end = self.incoming.fin.unwrap_or(u64::MAX);
        let beyond = data.end > self.incoming.edge && how != How::Proven;
        if beyond || data.end > end {
            // RFC 8684 §3.3.1: beyond the window, or behind the end of the stream
            return self.violation(out, i, Violation::BeyondWindow);
        }
        if self.incoming.is_full() {
            self.unfollowed.overflows += 1;
            return;
        }
        self.take_data(out, i, data, how == How::Proven);
    }

    /// Adds bytes to the stream. `proven`: they were not captured, but the host acknowledged them.
    pub(crate) fn take_data(&mut self, out: &mut Out<'_>, i: usize, data: Range, proven: bool) {
        let new = self.incoming.accept(data);
        self.unfollowed.missed_bytes += if proven { new } else { 0 };
        let ofo = self.incoming.ofo_bytes();
        out.tell_of(self.subflows[i].path, Event::DataArrived { data, new, ofo });
    }
}
