//! Packets that the host sends.

use crate::observer::{Mode, Observer, Out, capable};
use crate::received::How;
use crate::stream::Owner;
use crate::subflow::{Distance, Stage};
use anabranch_trace::{Event, SendKind};
use anabranch_units::Range;
use anabranch_wire::{Dss, Flags, MpCapable, MptcpOption, Segment};

impl Observer {
    pub(crate) fn on_sent(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) {
        let s = &self.subflows[i];
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            return self.on_rst_sent(out, i, segment);
        }
        if flags.has(Flags::SYN) {
            self.on_syn_sent(out, i, segment);
            return self.admit(i, segment);
        }
        if s.stage == Stage::SynSent || s.offers.0.is_none() {
            self.unfollowed.stray_packets += 1;
            return;
        }
        let Some(seq) = segment.seq.offset_from(s.sending.isn, s.sending.nxt) else {
            self.unfollowed.stray_packets += 1;
            return;
        };
        self.learn_key(segment);
        self.catch_up(out, i, segment);
        self.admit(i, segment);
        if segment.options.mptcp().iter().any(|o| matches!(o, MptcpOption::Fail { .. })) {
            self.follow_back(out, i);
        }
        self.note_sent_mapping(out, i, segment, seq);
        if segment.payload.is_empty() {
            self.control_sent(out, i, flags, seq);
        } else {
            self.data_sent(out, i, Range::new(seq, seq + segment.payload.len() as u64));
        }
        if flags.has(Flags::FIN) {
            let fin = seq + segment.payload.len() as u64;
            let s = &mut self.subflows[i];
            let sending = &mut s.sending;
            sending.fin_answers = if sending.fin.is_none() { s.receiving.is_finished() } else { sending.fin_answers };
            sending.fin = sending.fin.or(Some(fin));
            sending.nxt = sending.nxt.max(fin + 1);
        }
        self.close_if_over(out, i);
    }

    fn on_rst_sent(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) {
        let s = &self.subflows[i];
        if s.offers.0.is_none() {
            // The host refuses a SYN, so there is no subflow.
            self.subflows.remove(i);
            self.unfollowed.stray_packets += 1;
            return;
        }
        out.tell_of(s.path, Event::ControlSent { flags: segment.flags.0, again: false });
        // RFC 9293 §3.10.7.3: a reset that answers a wrong acknowledgment changes nothing.
        if s.is_synchronized() || segment.seq == s.sending.isn.at(s.sending.nxt) {
            self.drop_subflow(out, i);
        }
    }

    /// A client reveals its key on the third ACK or the first data.
    fn learn_key(&mut self, segment: &Segment) {
        if self.outgoing.owner.is_none()
            && let Some(MpCapable { sender_key: Some(key), receiver_key: Some(_), .. }) = capable(segment)
        {
            self.outgoing.owner = Some(Owner::new(key));
        }
    }

    /// Data that the host acknowledges has arrived, even if it was not captured.
    fn catch_up(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) {
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        let receiving = &mut self.subflows[i].receiving;
        if let Some(ack) = segment.ack.offset_from(receiving.isn, receiving.next()) {
            receiving.acked = receiving.acked.max(ack);
            while let Some(gap) = self.subflows[i].receiving.first_gap(ack) {
                self.take_payload(out, i, gap, How::Proven);
            }
            self.subflows[i].receiving.take_fin();
        }
        let Some(Dss { ack: Some(ack), .. }) = segment.options.dss() else { return };
        let Some(upto) = self.incoming.owner.and_then(|owner| owner.offset(*ack, self.incoming.next())) else { return };
        let upto = upto.min(self.incoming.fin.unwrap_or(upto));
        if upto > self.incoming.next() && self.mode == Mode::Multipath {
            self.take_data(out, i, Range::new(self.incoming.next(), upto), true);
        }
    }

    /// The window that the host advertises (RFC 9293 §3.8.6, RFC 8684 §3.3.1).
    fn admit(&mut self, i: usize, segment: &Segment) {
        let size = self.subflows[i].window(true, segment.flags, segment.window);
        self.incoming.admit(size);
    }

    /// The host shows that it fell back. Data acknowledged by the same segment counts already as plain TCP.
    fn follow_back(&mut self, out: &mut Out<'_>, i: usize) {
        if self.mode == Mode::Multipath {
            self.fall_back(out, i);
            self.acked_by_subflow(out, i);
        }
    }

    fn note_sent_mapping(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment, seq: u64) {
        let Some((mapping, data_fin)) = self.mapping_of(true, segment) else { return };
        if mapping.len == 0 {
            // RFC 8684 §3.7: infinite
            self.follow_back(out, i);
            let near = (self.outgoing.end, seq);
            if let Some(entry) = self.place(true, &mapping, false, near).filter(|_| mapping.subflow_seq != 0) {
                self.plain.0 = Distance { sub: entry.sub.start, data: entry.data };
            }
            return;
        }
        let Some(entry) = self.place(true, &mapping, data_fin, (self.outgoing.end, seq)) else { return };
        if data_fin && self.outgoing.fin.is_none() {
            self.outgoing.fin = Some(entry.data + entry.sub.len());
        }
        if !entry.sub.is_empty() && self.subflows[i].sending.mappings.add(entry).is_err() {
            self.unfollowed.overflows += 1;
        }
    }

    fn control_sent(&mut self, out: &mut Out<'_>, i: usize, flags: Flags, seq: u64) {
        let s = &self.subflows[i];
        let again = flags.has(Flags::FIN) && s.sending.fin == Some(seq);
        out.tell_of(s.path, Event::ControlSent { flags: flags.0, again });
    }

    fn data_sent(&mut self, out: &mut Out<'_>, i: usize, all: Range) {
        let s = &mut self.subflows[i];
        let again = all.start < s.sending.nxt;
        s.sending.nxt = s.sending.nxt.max(all.end);
        let plain = (self.mode == Mode::Plain).then_some(self.plain.0);
        let mut left = all;
        while !left.is_empty() {
            let Some(data) = s.sent_data(left, plain).filter(|data| !data.is_empty()) else {
                self.unfollowed.unmapped_bytes += left.len();
                return;
            };
            let first = self.outgoing.on_sent(data);
            let kind = if again { SendKind::Retransmission } else { first };
            out.tell_of(s.path, Event::DataSent { seq: left.start, data, kind });
            left.start += data.len();
        }
    }
}
