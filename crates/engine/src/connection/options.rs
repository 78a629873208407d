//! MPTCP options of a segment (RFC 8684 §3).

use super::{Connection, Mode, Offset};
use crate::cx::Cx;
use crate::schedule::Cause;
use crate::subflow::Reset;
use anabranch_trace::{CloseReason, Event, PathState, Violation};
use anabranch_units::DataSeq;
use anabranch_wire::{AddAddr, DataAck, Dss, Mapping, MpCapable, MptcpOption, Segment, crypto};

impl Connection {
    /// The options of an acceptable segment.
    pub(super) fn on_options(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        if self.mode == Mode::Plain {
            return;
        }
        let carries_dss = segment.options.dss().is_some();
        self.confirm(cx, i, segment, carries_dss);
        if let Some(dss) = segment.options.dss() {
            self.on_dss(cx, i, segment, dss);
        }
        for option in segment.options.mptcp() {
            if self.closed || self.subflows[i].reset.is_some() {
                return;
            }
            self.on_option(cx, i, segment, option);
        }
    }

    /// Options of a segment that resets its subflow.
    pub(super) fn on_reset_options(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        for option in segment.options.mptcp() {
            if let MptcpOption::FastClose { .. } = option {
                self.on_option(cx, i, segment, option);
            }
        }
    }

    /// The peer shows that it got our keys, or that nobody speaks MPTCP here (RFC 8684 §3.1, §3.7).
    fn confirm(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, carries_dss: bool) {
        let s = &mut self.subflows[i];
        if s.join && !s.handshake.confirmed {
            // RFC 8684 §3.2: the fourth ACK
            s.handshake.confirmed = true;
            s.handshake.complete();
            self.path_up(cx, i);
        }
        if self.mode != (Mode::Multipath { confirmed: false }) {
            return;
        }
        if carries_dss {
            self.mode = Mode::Multipath { confirmed: true };
            self.paths.ready = true;
        } else if !segment.payload.is_empty() || segment.ack != self.subflows[i].isn.at(1) {
            // Data, or an acknowledgment of ours, without DSS: the peer is plain TCP.
            self.fall_back(cx);
        }
    }

    fn on_option(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, option: &MptcpOption) {
        match *option {
            MptcpOption::Capable(MpCapable { data: Some((len, checksum)), .. }) => {
                // RFC 8684 §3.1: the first data of the connection
                let mapping =
                    Mapping { data_seq: self.keys.remote_number(0).0, wide: true, subflow_seq: 1, len, checksum };
                if len > 0 {
                    self.note_mapping(cx, i, &mapping, false);
                }
            }
            MptcpOption::Capable(_) | MptcpOption::Join(_) => {}
            MptcpOption::AddAddr(announced) => self.on_add_addr(cx, i, announced),
            MptcpOption::RemoveAddr(ids) => {
                for id in ids.into_iter().flatten() {
                    self.on_remove_addr(cx, id);
                }
            }
            MptcpOption::Prio { backup } => {
                self.subflows[i].backup.1 = backup;
                self.refresh_usability();
                self.due.get_or_insert(Cause::PathChange(self.subflows[i].id));
            }
            MptcpOption::Fail { data_seq } => self.on_fail(cx, data_seq),
            MptcpOption::FastClose { receiver_key } => {
                if receiver_key != self.keys.local {
                    return self.violation(cx, i, Violation::WrongKey);
                }
                // RFC 8684 §3.5: the other subflows are reset
                let ours = segment.flags.has(anabranch_wire::Flags::RST).then_some(i);
                for (n, s) in self.subflows.iter_mut().enumerate() {
                    if Some(n) != ours {
                        s.reset = Some(Reset::Because(super::open::UNSPECIFIED));
                    }
                }
                if ours.is_some() {
                    self.drop_subflow(cx, i, PathState::Dead);
                }
                self.end(cx, CloseReason::ResetByPeer);
            }
            MptcpOption::TcpRst(_) => {}
        }
    }

    fn on_dss(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, dss: &Dss) {
        if let Some(ack) = dss.ack {
            self.on_data_ack(cx, i, segment, ack);
        }
        if let Some(mapping) = &dss.mapping {
            self.note_mapping(cx, i, mapping, dss.data_fin);
        }
    }

    /// RFC 8684 §3.3.2
    fn on_data_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, ack: DataAck) {
        let first = self.keys.local_number(0);
        let near = self.view.data_acked();
        let offset = match ack {
            DataAck::Long(number) => DataSeq(number).offset_from(first, near),
            DataAck::Short(low) => DataSeq::low_offset_from(low, first, near),
        };
        let Some(upto) = offset else { return };
        let end = self.buffer.end();
        let fin_sent = self.data_fin.sent.is_some();
        if upto > end + u64::from(fin_sent) {
            return self.violation(cx, i, Violation::DataAckBeyond);
        }
        if fin_sent && upto == end + 1 && !self.data_fin.acked {
            self.data_fin.acked = true;
            self.data_fin.due = 0;
            self.due.get_or_insert(Cause::Window);
        }
        self.data_acked(cx, upto.min(end));
        let size = u64::from(segment.window) << self.subflows[i].terms.send_shift;
        self.move_window(cx, size, upto + size);
    }

    /// RFC 8684 §3.4.1: verify, echo, and join if we are to.
    fn on_add_addr(&mut self, cx: &mut Cx<'_>, i: usize, announced: AddAddr) {
        let AddAddr { address_id, address, port, hmac } = announced;
        let Some(hmac) = hmac else {
            return self.paths.echoed(address_id);
        };
        if hmac != crypto::add_addr_hmac(self.keys.remote, self.keys.local, address_id, address, port) {
            return self.violation(cx, i, Violation::Hmac);
        }
        let s = &mut self.subflows[i];
        if s.signals.len() < 16 {
            s.signals.push_back(MptcpOption::AddAddr(AddAddr { hmac: None, ..announced }));
            s.acks.demand();
        }
        let remote = core::net::SocketAddr::new(address, port.unwrap_or(s.tuple.remote.port()));
        let local = s.tuple.local.ip();
        self.paths.announced(local, remote, address_id, self.side);
    }

    /// RFC 8684 §3.4.2: the subflows over that address are closed.
    fn on_remove_addr(&mut self, cx: &mut Cx<'_>, address_id: u8) {
        self.paths.forget_remote(address_id);
        for i in (0..self.subflows.len()).rev() {
            if self.subflows[i].handshake.address_ids.1 == address_id && self.subflows.len() > 1 {
                self.paths.withdraw(self.subflows[i].id);
                self.subflows[i].reset = Some(Reset::Because(super::open::UNSPECIFIED));
            }
        }
        let _ = cx;
    }

    /// RFC 8684 §3.7: the peer could not verify our data.
    fn on_fail(&mut self, cx: &mut Cx<'_>, data_seq: u64) {
        if self.subflows.len() > 1 {
            return;
        }
        // Answer with an infinite mapping: what follows is sent as plain TCP, from what the peer has not verified.
        let first = self.keys.local_number(0);
        let _ = DataSeq(data_seq).offset_from(first, self.view.data_acked());
        self.fall_back(cx);
    }

    /// From here on the connection is plain TCP over its one subflow (RFC 8684 §3.7).
    pub(super) fn fall_back(&mut self, cx: &mut Cx<'_>) {
        if self.mode == Mode::Plain {
            return;
        }
        self.mode = Mode::Plain;
        self.record(cx, None, Event::Fallback);
        self.checksum = false;
        self.paths.stop();
        let Some(s) = self.subflows.first_mut() else { return };
        s.handshake.confirmed = true;
        s.handshake.third_ack = false;
        s.handshake.complete();
        // What was sent with mappings keeps its place; new data follows in the subflow's own sequence.
        let sent = s.sender.last().map_or(self.view.data_acked(), |last| last.data.end);
        self.send_offset = Offset { sub: s.sender.nxt(), data: sent.max(self.view.data_acked()) };
        self.data_fin.due = 0;
        let id = s.id;
        self.view.take_back(id);
        self.refresh_usability();
        self.due.get_or_insert(Cause::PathChange(id));
    }
}
