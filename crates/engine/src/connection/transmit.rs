//! Transmission: handshakes, retransmissions, new data, FINs, acknowledgments, resets (RFC 9293 §3.8).

use super::Connection;
use crate::cx::Cx;
use crate::subflow::segments::Wanted;
use crate::subflow::sender::Sent;
use crate::subflow::{Handle, State};
use anabranch_trace::{Event, PathState};
use anabranch_units::PathId;
use anabranch_wire::{Packet, Segment};

impl Connection {
    /// Writes the next packet to send into one that is overwritten; returns its path. Ask until there is none.
    #[inline(always)]
    pub fn transmit_into(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> Option<PathId> {
        let mode = self.session.mode();
        if self.sending.hold_round(&mut cx.scope(&self.frame), &mut self.subflows) {
            self.settle_stream(cx.now);
        }
        // Nearly always nothing is to be sent, found out with little work.
        let (i, wanted) = self.subflows.wanted_after(None, mode, self.sending.waiting())?;
        self.transmit_from(cx, i, wanted, packet)
    }

    /// The next segment of subflow `i`, which is to send what is `wanted`, or of those after it.
    #[inline(never)]
    fn transmit_from(&mut self, cx: &mut Cx<'_>, i: Handle, wanted: Wanted, packet: &mut Packet) -> Option<PathId> {
        let (mut i, mut wanted, out) = (i, wanted, &mut packet.segment);
        loop {
            match wanted {
                Wanted::Data | Wanted::DataOrControl if self.send_data(cx, i, out) => break,
                Wanted::Nothing | Wanted::Data => {} // held back: there may be another one's
                Wanted::Control | Wanted::DataOrControl => break self.send_control(cx, i, out),
                _ => break self.send_opening(cx, i, wanted, out),
            }
            (i, wanted) = self.subflows.wanted_after(Some(i), self.session.mode(), self.sending.waiting())?;
        }
        let s = &self.subflows[i];
        let id = s.id;
        (packet.src, packet.dst) = (s.ends.src, s.ends.dst);
        if s.state == State::Closed {
            // Its reset has left: that was its last segment.
            self.drop_subflow(cx, i, PathState::Dead);
            self.settle(cx);
        }
        Some(id)
    }

    /// A segment of a stream without payload: nearly always an acknowledgment.
    #[inline(never)]
    fn send_control(&mut self, cx: &mut Cx<'_>, i: Handle, out: &mut Segment) {
        let ack = self.receiving.acknowledge(&mut self.subflows.lend(i));
        let s = &mut self.subflows[i];
        let data_fin = self.sending.stream.end_due_on(s);
        if self.session.write_control(s, ack, data_fin, cx.now, out) {
            self.sending.data_fin_sent(&cx.scope(&self.frame), s);
        }
        cx.scope(&self.frame).record(Some(s.id), Event::ControlSent { flags: out.flags.0, again: false });
    }

    /// A segment of a handshake, or a reset.
    #[cold]
    fn send_opening(&mut self, cx: &mut Cx<'_>, i: Handle, wanted: Wanted, out: &mut Segment) {
        let window = self.receiving.window_of(wanted, &mut self.subflows.lend(i));
        let s = &mut self.subflows[i];
        let again = self.session.write_opening(s, &self.frame.settings, wanted, window, cx.now, out);
        cx.scope(&self.frame).record(Some(s.id), Event::ControlSent { flags: out.flags.0, again });
    }

    /// New data, or else a retransmission, a probe or a FIN, if the windows and pacing allow one.
    #[inline(always)]
    fn send_data(&mut self, cx: &mut Cx<'_>, i: Handle, out: &mut Segment) -> bool {
        let (mode, s) = (self.session.mode(), &mut self.subflows[i]);
        let Some(fresh) = self.sending.next_new(&cx.scope(&self.frame), mode, s) else {
            return self.sending.may_send_old(s, cx.now) && self.send_old(cx, i, out);
        };
        let sent = self.sending.segment_of(s, fresh);
        self.write_data(cx, i, &sent, out);
        let ends = self.sending.on_new_sent(&mut cx.scope(&self.frame), &mut self.subflows[i], sent, fresh);
        if ends && mode.is_plain() {
            self.settle_stream(cx.now);
        }
        true
    }

    #[inline(never)]
    fn send_old(&mut self, cx: &mut Cx<'_>, i: Handle, out: &mut Segment) -> bool {
        let Some(sent) = self.sending.next_old(cx.now, &mut self.subflows[i]) else { return false };
        self.write_data(cx, i, &sent, out);
        self.sending.on_old_sent(&mut cx.scope(&self.frame), &mut self.subflows[i], sent, out);
        true
    }

    /// Makes `out` a segment that carries `sent`, as it stands in the subflow's sequence.
    #[inline(always)]
    fn write_data(&mut self, cx: &Cx<'_>, i: Handle, sent: &Sent, out: &mut Segment) {
        let ack = self.receiving.acknowledge(&mut self.subflows.lend(i));
        let s = &mut self.subflows[i];
        self.session.write_data(s, sent, ack, self.sending.has_queued(s.id), cx.now, out);
    }
}
