//! Segments of a subflow with the options of MPTCP (RFC 8684 §3).

use super::Session;
use crate::settings::Settings;
use crate::subflow::Subflow;
use crate::subflow::segments::{Acknowledgment, Wanted};
use crate::subflow::sender::Sent;
use anabranch_units::Instant;
use anabranch_wire::{Flags, Segment};

impl Session {
    /// Makes `out` the reset, or the segment of a handshake with this window field, that is `wanted` of `s`. True if it left
    /// before.
    pub fn write_opening(
        &self,
        s: &mut Subflow,
        settings: &Settings,
        wanted: Wanted,
        window: u16,
        now: Instant,
        out: &mut Segment,
    ) -> bool {
        match wanted {
            Wanted::Reset => self.write_reset(s, now, out),
            Wanted::Handshake => return self.write_handshake(s, settings, window, now, out),
            Wanted::ThirdAck => self.write_third_ack(s, window, now, out),
            Wanted::Nothing | Wanted::Control | Wanted::Data | Wanted::DataOrControl => {}
        }
        false
    }

    /// Makes `out` the reset that `s` owes.
    fn write_reset(&self, s: &mut Subflow, now: Instant, out: &mut Segment) {
        match s.take_reset(out, now) {
            Some(reset) => self.add_reason(reset, &mut out.options),
            None => s.write_refusal(out, now),
        }
    }

    /// Makes `out` our SYN or SYN/ACK. True if it left before.
    fn write_handshake(
        &self,
        s: &mut Subflow,
        settings: &Settings,
        window: u16,
        now: Instant,
        out: &mut Segment,
    ) -> bool {
        let with_option = s.write_handshake(out, settings, window, now);
        if let Some(option) = self.handshake_option(s).filter(|_| with_option) {
            out.options.push_mptcp(option);
        }
        let again = s.handshake.sent.is_some();
        s.handshake.on_sent(now);
        again
    }

    /// Makes `out` a third ACK.
    fn write_third_ack(&self, s: &mut Subflow, window: u16, now: Instant, out: &mut Segment) {
        s.third_ack_leaves(window);
        s.begin(out, s.sender().nxt(), Flags::ACK, window, now);
        if s.ecn.is_on() {
            s.ecn.complete(out, false);
        }
        out.options.push_mptcp(self.third_ack_option(s));
    }

    /// Makes `out` a segment without payload: an acknowledgment, a signal, a DATA_FIN, a probe. `data_fin`: where our stream ends,
    /// if the DATA_FIN goes out. True if it does, and has found room.
    pub fn write_control(
        &self,
        s: &mut Subflow,
        ack: Acknowledgment,
        data_fin: Option<u64>,
        now: Instant,
        out: &mut Segment,
    ) -> bool {
        let duplicate = s.write_control(out, ack.window, now);
        let has_data_fin = self.add_control(s, ack.data, data_fin, &mut out.options);
        s.add_sack(out, duplicate);
        has_data_fin
    }

    /// Makes `out` a segment that carries `sent`; `more` follows.
    #[inline(always)]
    pub fn write_data(
        &self,
        s: &mut Subflow,
        sent: &Sent,
        ack: Acknowledgment,
        more: bool,
        now: Instant,
        out: &mut Segment,
    ) {
        s.write_data(out, sent, ack.window, more, now);
        self.add_mapping(s, sent, ack.data, &mut out.options);
    }
}
