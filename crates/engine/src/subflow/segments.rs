//! Segments of a subflow without the options of MPTCP, and the choice of the next one.

use super::sender::Sent;
use super::{Move, Reset, State, Subflow};
use crate::mode::Mode;
use crate::reasons::{INTERFERENCE, MPTCP_ERROR};
use crate::settings::Settings;
use anabranch_units::{Instant, Range, SeqNumber};
use anabranch_wire::{Ecn, Flags, MptcpOption, SackBlock, Segment, Timestamps};
use bytes::Bytes;

/// After so many SYNs without an answer, MP_CAPABLE itself may be what is dropped on the way.
const SYNS_WITH_OPTION: u32 = 2;

/// The next segment of a subflow. Windows and pacing may hold back a stream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    /// A reset of the subflow itself, or of an acknowledgment that it does not hold for its own.
    Reset,
    /// A SYN or SYN/ACK.
    Handshake,
    /// A third ACK.
    ThirdAck,
    /// An acknowledgment, or what else a segment without payload says.
    Control,
    /// Data or a FIN.
    Data,
    /// The same, and `Control` unless they leave.
    DataOrControl,
}

/// The subflows for which data of the connection waits, as [bits](anabranch_units::PathId::bit).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Data is bound to them.
    pub data: u32,
    /// The DATA_FIN is to be sent on them without payload.
    pub data_fin: u32,
}

/// The part of a segment that acknowledges at connection level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgment {
    /// The window field.
    pub window: u16,
    /// Next offset of the peer's stream.
    pub data: u64,
}

impl Subflow {
    /// The next segment to be sent: the one place that decides this.
    #[inline(always)]
    pub fn wanted(&self, mode: Mode, waiting: Waiting) -> Wanted {
        if self.reset.is_some() | self.refusal.is_some() {
            return Wanted::Reset;
        }
        let control = self.acks.is_due() | self.window_probe | !self.signals.is_empty();
        if !self.state.is_synchronized() | self.handshake.third_ack || self.is_unproven() {
            return self.wanted_in_handshake(mode, control);
        }
        let bit = self.id.bit();
        let data = waiting.data & bit != 0
            || self.probe
            || self.sender.may_repeat()
            || self.sender.wants_new()
            || self.fin.wanted && self.fin.offset.is_none();
        let control = control || waiting.data_fin & bit != 0 && self.may_carry();
        match (data, control) {
            (true, false) => Wanted::Data,
            (true, true) => Wanted::DataOrControl,
            (false, true) => Wanted::Control,
            (false, false) => Wanted::Nothing,
        }
    }

    /// The same until the handshake is over. `control`: an acknowledgment or a signal is due.
    #[cold]
    fn wanted_in_handshake(&self, mode: Mode, control: bool) -> Wanted {
        match self.state {
            State::SynSent | State::SynReceived if self.handshake.due => Wanted::Handshake,
            State::SynReceived if control && mode.is_plain() => Wanted::Control,
            State::SynSent | State::SynReceived | State::Closed | State::Listen => Wanted::Nothing,
            _ if self.handshake.third_ack => Wanted::ThirdAck,
            // A join that says something without its proof is reset (RFC 8684 §3.2).
            _ if self.acks.is_due() => Wanted::ThirdAck,
            _ => Wanted::Nothing,
        }
    }

    /// Takes our SYN or SYN/ACK, without MPTCP's option. False if that is to be left out of it.
    pub fn write_handshake(&mut self, out: &mut Segment, settings: &Settings, window: u16, now: Instant) -> bool {
        let answering = self.state == State::SynReceived;
        *out = Segment {
            src_port: self.tuple.local.port(),
            dst_port: self.tuple.remote.port(),
            seq: self.isn,
            ack: if answering { self.peer_isn.at(1) } else { SeqNumber::default() },
            flags: if answering {
                self.terms.flags_of_answer()
            } else {
                self.terms.flags_of_syn(self.handshake.repeats)
            },
            window,
            ..Segment::default()
        };
        let stamps = self.stamps.option(now);
        self.terms.write(&mut out.options, settings, stamps);
        let kept = self.join || !self.handshake.active || settings.mptcp_required;
        kept || self.handshake.repeats <= SYNS_WITH_OPTION
    }

    /// Writes the reset of the subflow itself, without options. False if there is none.
    pub fn take_reset(&mut self, out: &mut Segment, now: Instant) -> Option<Reset> {
        let reset = self.reset.take()?;
        self.broken |= matches!(reset, Reset::Because(INTERFERENCE | MPTCP_ERROR));
        self.begin(out, self.sender.nxt(), Flags::RST | Flags::ACK, 0, now);
        self.go(Move::Abort);
        Some(reset)
    }

    /// Writes the reset of an acknowledgment that the subflow does not hold for its own.
    pub fn write_refusal(&mut self, out: &mut Segment, now: Instant) {
        let Some(seq) = self.refusal.take() else { return };
        // RFC 9293 §3.10.7.3: <SEQ=SEG.ACK><CTL=RST>
        self.begin(out, 0, Flags::RST, 0, now);
        out.seq = seq;
    }

    /// Writes a segment without payload, whose SACK blocks are added last: see [`Self::add_sack`].
    pub fn write_control(&mut self, out: &mut Segment, window: u16, now: Instant) -> Option<Range> {
        // A probe lies just below the window, so that it must be answered (RFC 9293 §3.8.6.1, §3.8.4).
        let probe = core::mem::take(&mut self.window_probe);
        let seq = if probe { self.sender.una() - 1 } else { self.sender.nxt() };
        // An ADD_ADDR leaves no room for a DSS beside it: what has come is acknowledged first.
        let announces = || matches!(self.signals.front(), Some(MptcpOption::AddAddr(_)));
        let signals = !(self.signals.is_empty() || self.acks.owes() && announces());
        let duplicate = self.acknowledges(window);
        self.begin_with(out, seq, Flags::ACK, window, now, Bytes::new());
        if self.ecn.is_on() {
            self.ecn.complete(out, false);
        }
        if signals && let Some(signal) = self.signals.pop_front() {
            if signal.encoded_len() > out.options.room() {
                // An IPv6 address with a port leaves none for timestamps either (Linux omits them too).
                out.options.clear();
            }
            out.options.push_mptcp(signal);
        }
        duplicate
    }

    /// Adds the SACK blocks of an acknowledgment that reports a `duplicate`.
    #[inline(always)]
    pub fn add_sack(&self, segment: &mut Segment, duplicate: Option<Range>) {
        if !self.terms.sack || (duplicate.is_none() && self.receiver.held_bytes() == 0) {
            return;
        }
        let mut blocks = [SackBlock::default(); 4];
        let mut count = 0;
        // RFC 2883 §4: the duplicate first
        for range in duplicate.into_iter().chain(self.receiver.sack_blocks()).take(4) {
            blocks[count] = SackBlock { start: self.peer_isn.at(range.start), end: self.peer_isn.at(range.end) };
            count += 1;
        }
        segment.options.set_sack(&blocks[..count]);
    }

    /// Writes a segment that carries `sent`, as it stands in the subflow's sequence; `more` follows.
    #[inline(always)]
    pub fn write_data(&mut self, out: &mut Segment, sent: &Sent, window: u16, more: bool, now: Instant) {
        self.acknowledges(window);
        let flags = match (sent.fin, more) {
            (true, _) => Flags::ACK | Flags::FIN,
            (false, false) => Flags::ACK | Flags::PSH,
            (false, true) => Flags::ACK,
        };
        self.begin_with(out, sent.seq().start, flags, window, now, sent.payload.clone());
        if self.ecn.is_on() {
            self.ecn.complete(out, sent.seq().start >= self.sender.nxt());
        }
    }

    /// A packet is lost that the peer's window admits.
    #[inline(always)]
    pub fn has_lost(&self) -> bool {
        self.sender.next_lost().is_some_and(|lost| self.may_repeat(lost))
    }

    /// The lowest packet that is lost, if the peer's window admits it.
    pub fn next_lost(&self) -> Option<Sent> {
        self.sender.next_lost().filter(|lost| self.may_repeat(lost)).cloned()
    }

    /// New data may be sent: its window has `room`, or a tail loss probe is due.
    #[inline(always)]
    pub fn may_send_new(&self, room: bool) -> bool {
        let open = self.handshake.confirmed && (self.state.may_send() || !self.fin.wanted);
        (room || self.probe) && open && self.fin.offset.is_none()
    }

    /// A tail loss probe or the FIN is to be sent.
    #[inline(always)]
    pub fn owes_probe_or_fin(&self) -> bool {
        self.probe || self.fin.wanted
    }

    /// The packet to retransmit where nothing was lost and there is no new data, or the window has no `room` for it.
    pub fn next_repeat(&mut self, room: bool) -> Option<Sent> {
        if room && self.sender.wants_new() {
            self.sender.no_new();
            if let Some(lost) = self.next_lost() {
                return Some(lost);
            }
        }
        if room && let Some(again) = self.sender.next_speculative().filter(|again| self.may_repeat(again)).cloned() {
            return Some(again);
        }
        // RFC 8985 §7.3: no new data to probe with
        let probe = core::mem::take(&mut self.probe);
        self.sender.last().filter(|last| probe && self.may_repeat(last)).cloned()
    }

    /// Leaves of `sent`, which `out` retransmits, what is not acknowledged and what the peer's window admits (RFC 9293 §3.8.6); where it
    /// admits nothing, all asks whether it is open again. Returns what leaves. The mapping stays whole: Linux resets a subflow that maps
    /// the same bytes otherwise than before.
    pub fn cut(&self, sent: Sent, out: &mut Segment) -> Sent {
        let (whole, una) = (sent.seq(), self.sender.una());
        let start = whole.start.max(una);
        let end = match self.window.left(start) {
            0 => whole.end,
            left => whole.end.min(start + left),
        };
        if sent.payload.is_empty() || (start, end) == (whole.start, whole.end) {
            return sent;
        }
        let part = sent.part(Range::new(start, end));
        out.seq = self.isn.at(start);
        out.payload = part.payload.clone();
        part
    }

    /// Unacknowledged data is one piece of the data sequence, in order, and ends at `end`.
    pub fn carries_in_order(&self, end: u64) -> bool {
        let mut data = self.sender.unacknowledged().filter(|sent| !sent.payload.is_empty());
        let Some(first) = data.next() else { return true };
        let mut upto = (first.seq().end, first.data().end);
        let follows = |sent: &Sent| {
            let goes_on = (sent.seq().start, sent.data().start) == upto;
            upto = (sent.seq().end, sent.data().end);
            goes_on
        };
        data.all(follows) && upto.1 == end
    }

    /// A segment with an acknowledgment and this window leaves; returns the duplicate that it should report.
    #[inline(always)]
    pub fn acknowledges(&mut self, window: u16) -> Option<Range> {
        self.offered = u64::from(window) << self.terms.recv_shift;
        if self.offered != self.taken && !self.keeps_window(self.offered) {
            self.taken = self.offered;
        }
        self.acked_to = self.receiver.next();
        self.acks.on_sent()
    }

    /// The subflow's own window reaches as far as `edge` at least.
    pub fn promise(&mut self, edge: u64) {
        self.own_edge = self.own_edge.max(edge);
    }

    /// Bytes that are left of the window that was offered last.
    pub fn left_of_offer(&self) -> u64 {
        self.offered.saturating_sub(self.receiver.next() - self.acked_to)
    }

    /// A Linux peer keeps the window that it has of this subflow when an acknowledgment that leaves now has one of `offered` bytes: it
    /// takes a smaller one only with an acknowledgment of more, or if it is shut (Linux 6.18: `tcp_may_update_window`; it takes one with a
    /// later sequence number, too).
    #[inline(always)]
    pub fn keeps_window(&self, offered: u64) -> bool {
        self.receiver.next() == self.acked_to && offered <= self.taken && offered > 0
    }

    /// Makes `segment` one with ports, numbers, window and timestamps filled in, and no payload.
    pub fn begin(&self, segment: &mut Segment, seq: u64, flags: Flags, window: u16, now: Instant) {
        self.begin_with(segment, seq, flags, window, now, Bytes::new());
    }

    /// As [`Self::begin`], with a payload.
    #[inline(always)]
    fn begin_with(&self, segment: &mut Segment, seq: u64, flags: Flags, window: u16, now: Instant, payload: Bytes) {
        segment.src_port = self.ends.src_port;
        segment.dst_port = self.ends.dst_port;
        segment.seq = self.isn.at(seq);
        segment.ack = if flags.has(Flags::ACK) { self.peer_isn.at(self.receiver.next()) } else { SeqNumber(0) };
        segment.flags = flags;
        segment.ecn = Ecn::NotEct;
        segment.window = window;
        segment.options.clear();
        if self.terms.timestamps {
            let stamps = self.stamps.option(now);
            // RFC 7323 §3.2: an echo goes with an acknowledgment
            let ecr = if flags.has(Flags::ACK) { stamps.ecr } else { 0 };
            segment.options.set_timestamps(Timestamps { ecr, ..stamps });
        }
        segment.payload = payload;
    }
}
