//! MPTCP options of a segment (RFC 8684 §3).

use super::fallback::Place;
use super::{Connection, Mode};
use crate::cx::Cx;
use crate::schedule::Cause;
use crate::subflow::{Reset, State, Subflow};
use anabranch_trace::{CloseReason, PathState, Violation};
use anabranch_units::DataSeq;
use anabranch_wire::{AddAddr, DataAck, Dss, Mapping, MpJoin, MptcpOption, Segment, crypto};
use core::ops::ControlFlow;

impl Connection {
    /// The options of an acceptable segment, which begins at `seq`. `Break`: its payload is not to be taken. Otherwise where
    /// that begins in the data sequence if it is told by its own mapping and nothing else, which is then not noted.
    pub(super) fn on_options(
        &mut self,
        cx: &mut Cx<'_>,
        i: usize,
        segment: &Segment,
        seq: u64,
    ) -> ControlFlow<(), Option<u64>> {
        if self.mode == Mode::Plain {
            match self.place_in_plain_tcp(i, segment, seq) {
                Place::Sequence => {
                    self.on_failing(cx, i, segment);
                    return ControlFlow::Continue(None);
                }
                Place::Repeat => self.pass_over(cx, i, segment, seq),
                Place::Elsewhere => {
                    self.violation(cx, i, Violation::MappingConflict);
                    self.break_off(cx, CloseReason::Aborted);
                }
            }
            return ControlFlow::Break(());
        }
        self.confirm(cx, i, segment);
        let place = segment.options.dss().and_then(|dss| self.on_dss(cx, i, segment, seq, dss));
        for option in segment.options.mptcp() {
            if self.closed || self.subflows[i].reset.is_some() {
                break;
            }
            self.touch_all();
            // It may stand in place of a DSS: keys (RFC 8684 §3.1), or an ADD_ADDR, which leaves no room for one.
            self.data_ack_heard = true;
            self.on_option(cx, i, segment, option);
        }
        let fell_back = self.mode == Mode::Plain && !self.closed;
        if fell_back && self.place_in_plain_tcp(i, segment, seq) != Place::Sequence {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(place)
    }

    /// Options of a segment that resets its subflow.
    pub(super) fn on_reset_options(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        for option in segment.options.mptcp() {
            if !self.closed && matches!(option, MptcpOption::FastClose { .. }) {
                self.on_option(cx, i, segment, option);
            }
        }
    }

    /// The peer shows that it got our keys, or that nobody speaks MPTCP here (RFC 8684 §3.1, §3.7).
    fn confirm(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &mut self.subflows[i];
        if s.join && !s.handshake.confirmed {
            // RFC 8684 §3.2: the fourth ACK
            s.handshake.confirmed = true;
            s.handshake.complete();
            self.path_up(cx, i);
        }
        if self.dss_seen {
            return;
        }
        // An ADD_ADDR may leave no room for a DSS, and MP_CAPABLE with data maps it too.
        let shows = |o: &MptcpOption| matches!(o, MptcpOption::AddAddr(_)) || self.first_data(o).is_some();
        if segment.options.dss().is_some() || segment.options.mptcp().iter().any(shows) {
            self.dss_seen = true;
            let s = &mut self.subflows[i];
            // MP_CAPABLE does not tell that a path is a backup.
            if s.backup.0 && !s.join {
                s.signal_backup();
            }
            self.mode = Mode::Multipath { confirmed: true };
            self.touch_all();
            self.paths.open();
            self.addresses.open();
        } else if segment.options.mptcp().is_empty()
            && self.subflows.len() == 1
            && !self.subflows[i].join
            && !self.joined
            && (!segment.payload.is_empty() || segment.ack != self.subflows[i].isn.at(1))
        {
            // RFC 8684 §3.7: data, or an acknowledgment of ours, without the option: nobody speaks MPTCP there.
            self.fall_back(cx, i);
        }
    }

    fn on_option(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, option: &MptcpOption) {
        match *option {
            MptcpOption::Capable(_) => {
                // RFC 8684 §3.1
                let Some((len, checksum)) = self.first_data(option).filter(|(len, _)| *len > 0) else { return };
                let data_seq = self.keys.remote_number(0).0;
                self.note_mapping(cx, i, &Mapping { data_seq, wide: true, subflow_seq: 1, len, checksum }, false);
            }
            // RFC 8684 §3.2: the fourth ACK was lost
            MptcpOption::Join(MpJoin::Ack { .. }) => self.subflows[i].acks.demand(),
            MptcpOption::Join(_) => {}
            MptcpOption::AddAddr(announced) => self.on_add_addr(cx, i, announced),
            MptcpOption::RemoveAddr(ids) => {
                for id in ids.into_iter().flatten() {
                    self.on_remove_addr(id);
                }
            }
            MptcpOption::Prio { backup } => {
                self.subflows[i].backup.1 = backup;
                self.refresh_usability();
                self.due.get_or_insert(Cause::PathChange(self.subflows[i].id));
            }
            MptcpOption::Fail { data_seq } => self.on_fail(cx, i, data_seq),
            MptcpOption::FastClose { receiver_key } => {
                if receiver_key != self.keys.local {
                    return self.violation(cx, i, Violation::WrongKey);
                }
                // RFC 8684 §3.5: the other subflows are reset
                let ours = segment.flags.has(anabranch_wire::Flags::RST).then_some(i);
                for (n, s) in self.subflows.iter_mut().enumerate() {
                    if Some(n) != ours {
                        s.abort(Reset::Because(super::open::UNSPECIFIED));
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

    fn on_dss(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64, dss: &Dss) -> Option<u64> {
        if let Some(ack) = dss.ack {
            self.on_data_ack(cx, i, segment, ack);
        }
        // RFC 8684 §3.7: the length 0 says how data goes on that comes with it. Without data it maps nothing.
        let mapping = dss.mapping.as_ref().filter(|m| m.len > 0 || !segment.payload.is_empty())?;
        self.peer_wide |= mapping.wide;
        if !dss.data_fin && self.maps_itself(i, segment, seq, mapping) {
            return self.data_offset(mapping);
        }
        self.note_mapping(cx, i, mapping, dss.data_fin);
        None
    }

    /// RFC 8684 §3.3.2
    fn on_data_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, ack: DataAck) {
        self.data_ack_heard = true;
        let first = self.keys.local_number(0);
        let near = self.view.data_acked();
        let offset = match ack {
            DataAck::Long(number) => DataSeq(number).offset_from(first, near),
            DataAck::Short(low) => DataSeq::low_offset_from(low, first, near),
        };
        let Some(upto) = offset else { return };
        let end = self.buffer.end();
        let fin_sent = self.data_fin.sent.is_some();
        let sent = self.sent_end + u64::from(fin_sent && self.sent_end == end);
        if upto > sent {
            return self.violation(cx, i, Violation::DataAckBeyond);
        }
        if fin_sent && upto == end + 1 && !self.data_fin.acked {
            self.data_fin.acked = true;
            self.data_fin.due = 0;
            self.due.get_or_insert(Cause::Window);
        }
        self.subflows[i].data_ack = Some(upto.min(end));
        self.data_acked(cx, upto.min(end));
        let size = u64::from(segment.window) << self.subflows[i].terms.send_shift;
        let size = match (self.windows_apart(), self.heeds_as_linux()) {
            (true, _) => self.all_windows(size),
            (false, true) => self.linux_heard(i, segment, size),
            (false, false) => size,
        };
        self.move_window(size, upto + size);
    }

    /// RFC 8684 §3.4.1: verify, echo, and join if we are to.
    fn on_add_addr(&mut self, cx: &mut Cx<'_>, i: usize, announced: AddAddr) {
        let AddAddr { address_id, address, port, hmac } = announced;
        let Some(hmac) = hmac else {
            return self.addresses.echoed(address_id, address, port);
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
        self.paths.announced(local, remote, address_id);
    }

    /// RFC 8684 §3.4.2: the subflows over that address are closed, at once as Linux does, unless none would be left.
    fn on_remove_addr(&mut self, address_id: u8) {
        self.paths.taken_back(address_id, None);
        let over = |s: &Subflow| s.handshake.address_ids.1 == address_id && s.state != State::SynSent;
        if !self.subflows.iter().any(|s| s.may_carry() && !over(s)) {
            return;
        }
        for s in self.subflows.iter_mut().filter(|s| over(s)) {
            self.paths.taken_back(address_id, Some(s.id));
            s.close_by_reset(Reset::Because(super::open::UNSPECIFIED));
        }
    }
}
