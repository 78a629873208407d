//! Which segments of the peer's a subflow takes, and how it answers the others (RFC 9293 §3.10.7.4, RFC 5961, RFC 7323 §5).

use super::forward::{self, PeerClock};
use super::life::on_probe_answered;
use super::mapping::{Entry, subflow_offset};
use super::sender::{AckInput, AckOutcome, RecoveryChange};
use super::stamps::Stamps;
use super::{Reset, State, Subflow};
use crate::cx::Scope;
use crate::mode::Mode;
use crate::reasons::INTERFERENCE;
use anabranch_trace::{RecoveryPhase, Violation};
use anabranch_units::{Instant, Range};
use anabranch_wire::{Flags, Mapping, Reason, Segment};
use bytes::Bytes;

/// A segment begins at most this much below the lowest number that the peer may have to retransmit.
const LARGEST_SEGMENT: u64 = 0xffff;

/// Why a segment is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The segment is not acceptable: its offset, if it is anywhere near; whether its timestamp is older than one that came before
    /// (RFC 7323 §5.3).
    Unacceptable { seq: Option<u64>, old: bool },
    /// An off-path attacker may have sent it (RFC 5961).
    Suspect(Violation),
}

/// Facts about the connection that decide about an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub mode: Mode,
    /// The end of the window in the subflow's sequence.
    pub end: u64,
    /// The widest window that we ever advertised.
    pub widest: u64,
    /// The widest window that the peer ever offered.
    pub max_window: u64,
}

/// The meaning of a segment for a subflow that is not synchronized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Nothing, or it breaks a rule, and what follows from that is noted.
    Nothing,
    /// The peer refuses.
    Refused,
    /// The segment acknowledges our SYN.
    Answered,
    /// Both SYNs crossed (RFC 9293 §3.5).
    Crossed,
}

/// The meaning of a segment in a synchronized state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// The segment has no effect.
    Nothing,
    /// The peer resets.
    Reset,
    /// The segment's contents are to be taken: where it begins, and what it acknowledges.
    Contents { seq: u64, ack: u64 },
    /// The segment is refused, and answered as it must be: see [`Subflow::on_refused`].
    Refused(Refused),
}

/// The payload of a segment takes `room` bytes at most.
#[inline(always)]
pub(crate) fn fits(segment: &Segment, room: u64) -> bool {
    segment.payload.len() as u64 <= room
}

/// RFC 9293 §3.10.7.4: what of a segment lies within the window, `len` bytes.
#[cold]
#[inline(never)]
fn cut_off(segment: &Segment, len: u64) -> Segment {
    let mut segment = segment.clone();
    // A slice of a packet would keep all of it in memory.
    segment.payload = Bytes::copy_from_slice(&segment.payload[..len as usize]);
    segment.flags = Flags(segment.flags.0 & !Flags::FIN.0);
    segment
}

impl Subflow {
    /// The meaning of a segment in SYN-SENT (RFC 9293 §3.10.7.3). `racing`: other paths have sent a SYN too.
    pub fn in_syn_sent(&mut self, cx: &mut Scope<'_>, segment: &Segment, racing: bool) -> Opening {
        let flags = segment.flags;
        let acks_our_syn = flags.has(Flags::ACK) && segment.ack == self.isn.at(1);
        if flags.has(Flags::ACK) && !acks_our_syn {
            // RFC 9293 §3.10.7.3: the peer may hold an old connection
            self.refusal = Some(segment.ack).filter(|_| !flags.has(Flags::RST));
            if !flags.has(Flags::RST) && !flags.has(Flags::SYN) {
                self.handshake.repeat_in(cx.settings().tcp.rto_initial, cx.now);
            }
            cx.violation(self.id, Violation::BlindAck);
            return Opening::Nothing;
        }
        match (flags.has(Flags::RST), flags.has(Flags::SYN)) {
            (true, _) if acks_our_syn => Opening::Refused,
            (true, _) | (false, false) => Opening::Nothing,
            (false, true) if acks_our_syn => Opening::Answered,
            // MP_JOIN knows no simultaneous open, and neither does a race: it would end in plain TCP.
            (false, true) if self.join || racing => {
                cx.violation(self.id, Violation::UnexpectedOption);
                Opening::Nothing
            }
            (false, true) => Opening::Crossed,
        }
    }

    /// The SYN of a segment in SYN-RECEIVED is the one that came already. `Some(true)`: with an acknowledgment, the other half
    /// of a simultaneous open (RFC 9293 §3.5); `Some(false)`: our SYN/ACK was lost.
    fn repeats_syn(&self, segment: &Segment) -> Option<bool> {
        let flags = segment.flags;
        let again = flags.has(Flags::SYN) && !flags.has(Flags::RST) && segment.seq == self.peer_isn;
        let crossed = flags.has(Flags::ACK) && self.handshake.active;
        again.then_some(crossed).filter(|crossed| *crossed || !flags.has(Flags::ACK))
    }

    /// The meaning of a segment in SYN-RECEIVED (RFC 9293 §3.10.7.4); `offers`: it has an offer of MPTCP that can be answered.
    pub fn in_syn_received(&mut self, cx: &mut Scope<'_>, segment: &Segment, facts: Facts, offers: bool) -> Opening {
        let flags = segment.flags;
        let repeated = self.repeats_syn(segment);
        if repeated == Some(false) {
            self.on_syn_again(cx.now, segment, offers || cx.settings().mptcp_required);
            return Opening::Nothing;
        }
        let crossed = repeated.is_some();
        if !crossed && self.in_window(cx, segment, facts).is_none() {
            return Opening::Nothing;
        }
        if flags.has(Flags::RST) {
            // RFC 5961 §3.2
            let exact = segment.seq == self.peer_isn.at(1);
            if exact {
                return Opening::Refused;
            }
            self.challenge(cx, facts.mode, Violation::BlindReset);
            return Opening::Nothing;
        }
        if flags.has(Flags::SYN) && !crossed {
            // Back to LISTEN: the peer begins another connection. It sends its SYN again. Or else RFC 5961 §4.
            let listens = !self.handshake.active;
            if listens {
                return Opening::Refused;
            }
            self.challenge(cx, facts.mode, Violation::BlindSyn);
            return Opening::Nothing;
        }
        if !flags.has(Flags::ACK) {
            return Opening::Nothing;
        }
        if segment.ack != self.isn.at(1) {
            self.refusal = Some(segment.ack);
            cx.violation(self.id, Violation::BlindAck);
            return Opening::Nothing;
        }
        if crossed { Opening::Crossed } else { Opening::Answered }
    }

    /// The meaning of a segment in a synchronized state, by its numbers and flags (RFC 9293 §3.10.7.4, first to fifth step).
    /// The window ends at `end`; the peer never offered a wider one than `max_window`.
    #[inline(always)]
    pub fn accept(&mut self, cx: &Scope<'_>, segment: &Segment, end: u64, max_window: u64) -> Accepted {
        let seq = match self.acceptable(segment, end, cx.now) {
            Ok(seq) => seq,
            Err(refused) => return Accepted::Refused(refused),
        };
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            return Accepted::Reset;
        }
        if flags.has(Flags::SYN) {
            // RFC 5961 §4
            return Accepted::Refused(Refused::Suspect(Violation::BlindSyn));
        }
        if !flags.has(Flags::ACK) {
            return Accepted::Nothing;
        }
        let Some(ack) = self.acked(segment, max_window) else {
            return Accepted::Refused(Refused::Suspect(Violation::BlindAck));
        };
        self.heard(cx, segment, seq);
        self.data_ack = None;
        Accepted::Contents { seq, ack }
    }

    /// The segment's offset, if it is acceptable; otherwise it is answered as it must be.
    fn in_window(&mut self, cx: &mut Scope<'_>, segment: &Segment, facts: Facts) -> Option<u64> {
        match self.acceptable(segment, facts.end, cx.now) {
            Ok(seq) => Some(seq),
            Err(refused) => {
                self.on_refused(cx, segment, refused, facts);
                None
            }
        }
    }

    /// The part of a segment within the window, `room` bytes, if it has more.
    pub fn cut_off(&mut self, cx: &mut Scope<'_>, segment: &Segment, room: u64) -> Option<Segment> {
        if fits(segment, room) {
            return None;
        }
        cx.violation(self.id, Violation::BeyondWindow);
        // The peer may be asking whether the window is still closed (§3.8.6.1).
        self.acks.demand();
        Some(cut_off(segment, room))
    }

    /// Sequence number and timestamps (RFC 9293 §3.10.7.4, first step): the segment's offset, if it is acceptable in a window
    /// that ends at `end`.
    ///
    /// # Errors
    /// It is not: see [`Self::on_refused`].
    #[inline(always)]
    fn acceptable(&self, segment: &Segment, end: u64, now: Instant) -> Result<u64, Refused> {
        let next = self.receiver.next();
        let seq = segment.seq.offset_from(self.peer_isn, next);
        let rst = segment.flags.has(Flags::RST);
        // RFC 7323 §5.3 R1
        let old =
            segment.options.timestamps().is_some_and(|t| self.terms.timestamps && self.stamps.is_old(t, now)) && !rst;
        if let Some(seq) = seq.filter(|_| !old) {
            // Just behind the window nothing is taken but what the header says. A peer that has filled the window
            // acknowledges from there, and a closed one must let acknowledgments and resets through.
            let reaches = || !rst && seq + u64::from(segment.seq_len()) > next;
            if seq <= end && (seq >= next || reaches()) {
                return Ok(seq);
            }
        }
        Err(Refused::Unacceptable { seq, old })
    }

    /// Answers a segment that is not taken.
    #[cold]
    pub fn on_refused(&mut self, cx: &mut Scope<'_>, segment: &Segment, refused: Refused, facts: Facts) {
        match refused {
            Refused::Unacceptable { seq, old } => self.on_unacceptable(cx, segment, seq, old, facts),
            Refused::Suspect(violation) => self.challenge(cx, facts.mode, violation),
        }
    }

    /// A segment that is not acceptable is answered with an acknowledgment (RFC 9293 §3.10.7.4): at once if the peer may have
    /// sent it again because ours was lost, else seldom. (Linux answers every segment with payload at once.)
    fn on_unacceptable(&mut self, cx: &mut Scope<'_>, segment: &Segment, seq: Option<u64>, old: bool, facts: Facts) {
        let (flags, len) = (segment.flags, u64::from(segment.seq_len()));
        if flags.has(Flags::RST) {
            return cx.violation(self.id, Violation::Unacceptable);
        }
        if old {
            cx.violation(self.id, Violation::OldTimestamp);
        }
        let next = self.receiver.next();
        if !old && seq.is_some_and(|seq| seq > next) {
            cx.violation(self.id, Violation::BeyondWindow);
        }
        // The peer's unacknowledged data is never more than a window.
        let lowest = next.saturating_sub(facts.widest + LARGEST_SEGMENT);
        let repeated = len > 0 && !flags.has(Flags::SYN);
        let Some(seq) = seq.filter(|seq| repeated && (lowest..next).contains(seq)) else {
            if flags.has(Flags::SYN | Flags::ACK) && segment.seq == self.peer_isn && cx.now >= self.answer_after {
                self.repeat_third_ack(facts.mode);
            }
            return self.answer(cx.now, facts.mode);
        };
        if old || segment.payload.is_empty() {
            self.acks.demand();
        } else {
            self.acks.report(Range::new(seq, seq + segment.payload.len() as u64));
        }
        if seq + len == next && !old {
            self.on_last_again(cx, segment, facts);
        }
    }

    /// The server repeats its SYN/ACK: our third ACK was lost. It carried keys or an HMAC unless they are known to
    /// have come.
    fn repeat_third_ack(&mut self, mode: Mode) {
        let waiting = if self.join { !self.handshake.confirmed } else { mode == Mode::Agreed };
        self.handshake.third_ack |= waiting && self.handshake.active;
    }

    /// The peer's last segment comes again: our acknowledgment was lost, or it waits in TIME-WAIT.
    fn on_last_again(&mut self, cx: &Scope<'_>, segment: &Segment, facts: Facts) {
        let known = segment.flags.has(Flags::ACK) && self.acked(segment, facts.max_window).is_some();
        if let Some(stamps) = segment.options.timestamps().filter(|_| self.terms.timestamps && known) {
            // RFC 7323 §5.3 would keep the time of the copy that came first, from which the peer would take the whole time
            // since for a round trip. Linux keeps this one: it reaches back to the last acknowledgment.
            self.stamps.keep(stamps, true, cx.now);
        }
        if segment.flags.has(Flags::FIN) && self.state == State::TimeWait {
            // RFC 9293 §3.10.7.4
            self.linger = cx.now + cx.settings().tcp.time_wait;
        }
    }

    /// A reset is the peer's, as far as its number can show: it is the next expected one (RFC 5961 §3.2), or the right edge of what
    /// was acknowledged selectively, where a peer continues whose data is missing (Linux `tcp_validate_incoming`).
    pub fn is_exact(&self, reset: &Segment) -> bool {
        let next = self.receiver.next();
        let edge = self.receiver.held_end().filter(|_| self.terms.sack);
        [Some(next), edge].into_iter().flatten().any(|at| reset.seq == self.peer_isn.at(at))
    }

    /// A segment that an off-path attacker may have sent is answered with an acknowledgment, at a limited rate (RFC 5961).
    #[cold]
    pub fn challenge(&mut self, cx: &mut Scope<'_>, mode: Mode, violation: Violation) {
        cx.violation(self.id, violation);
        self.answer(cx.now, mode);
    }

    /// Acknowledges a segment that an off-path attacker may have sent, unless the last such answer is too recent.
    fn answer(&mut self, now: Instant, mode: Mode) {
        if !self.may_answer(now) {
            return;
        }
        if self.state == State::SynReceived && !mode.is_plain() {
            // A bare acknowledgment would be taken for the fourth ACK of a join, or for a sign of plain TCP (RFC 8684 §3.2,
            // §3.7). The SYN/ACK acknowledges the same.
            self.handshake.due = true;
        } else {
            self.acks.demand();
        }
    }

    /// The offset that a segment acknowledges, if it may do so (RFC 5961 §5.2): not older than the peer's largest window, not
    /// newer than what was sent.
    #[inline(always)]
    pub fn acked(&self, segment: &Segment, max_window: u64) -> Option<u64> {
        let (una, nxt) = (self.sender.una(), self.sender.nxt());
        let oldest = || una.saturating_sub(max_window);
        segment.ack.offset_from(self.isn, una).filter(|ack| *ack <= nxt && (*ack >= una || *ack >= oldest()))
    }

    /// True if the window field of the peer's segment is another than in the one before, which is forgotten.
    #[inline(always)]
    pub fn is_window_news(&mut self, segment: &Segment) -> bool {
        core::mem::replace(&mut self.peer_window, segment.window) != segment.window
    }

    /// A segment passed all checks of its numbers, so it counts as the peer's own. Notes what its arrival alone shows.
    #[inline(always)]
    pub fn heard(&mut self, cx: &Scope<'_>, segment: &Segment, seq: u64) {
        self.last_heard = cx.now;
        if self.probes > 0 {
            on_probe_answered(self, cx);
        }
        if self.ecn.is_on() && self.ecn.on_arrival(segment) {
            self.acks.demand();
        }
        // RFC 7323 §4.3: SEG.SEQ <= Last.ACK.sent. One that is old is not acceptable.
        if seq <= self.acked_to
            && let Some(stamps) = segment.options.timestamps().filter(|_| self.terms.timestamps)
        {
            self.stamps.keep_next(stamps, cx.now);
        }
    }

    /// Takes an acknowledgment. `bare`: the segment says nothing else, so that it may be a duplicate acknowledgment
    /// (RFC 5681 §2). `None` if nothing changed.
    #[inline(always)]
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        clock: &mut PeerClock,
        segment: &Segment,
        ack: u64,
        bare: bool,
    ) -> Option<AckOutcome> {
        let mut blocks = [Range::new(0, 0); 4];
        let (count, dsack) = self.sack_blocks(segment, ack, &mut blocks);
        let echo = segment.options.timestamps().filter(|_| self.terms.timestamps);
        let echoed = echo.and_then(|t| Stamps::echoed(t.ecr, now));
        let input = AckInput { now, ack, sack: &blocks[..count], dsack, echo: echoed, bare };
        let mut outcome = self.sender.on_ack(&input);
        if outcome.useless {
            return None;
        }
        if self.ecn.is_on() && segment.flags.has(Flags::ECE) {
            self.on_echo(&mut outcome);
        }
        if let (Some(stamps), Some(sent)) = (echo, outcome.sent)
            && let Some(sample) = clock.transit(stamps.val, sent)
        {
            let srtt = self.sender.rtt().srtt().unwrap_or_default();
            self.forward = Some(forward::smoothed(self.forward, srtt, sample, now));
        }
        Some(outcome)
    }

    /// An acknowledgment echoes a mark. In a recovery the window was reduced already; if this acknowledgment reduces or restores it
    /// for another reason, the next one echoes the same.
    #[inline(never)]
    fn on_echo(&mut self, outcome: &mut AckOutcome) {
        self.ecn.on_echo();
        let phase = self.sender.phase();
        if phase != RecoveryPhase::Loss {
            // RFC 3168 §6.1.2: no increase in response to an echo. After a timeout there may be no new data that could carry CWR: the
            // echoes would not end, and the window would stay at one packet.
            outcome.may_grow = false;
        }
        let intact = matches!(phase, RecoveryPhase::Open | RecoveryPhase::Disorder);
        let reacts = matches!(outcome.change, Some(RecoveryChange::ProbeRepaired | RecoveryChange::Undo));
        outcome.marked = intact && !reacts && self.ecn.is_new_mark(self.sender.una());
    }

    /// The SACK blocks of a segment, written to `blocks`: how many there are, and the DSACK block.
    #[inline(always)]
    fn sack_blocks(&self, segment: &Segment, ack: u64, blocks: &mut [Range; 4]) -> (usize, Option<Range>) {
        let una = self.sender.una();
        let (mut count, mut dsack) = (0, None);
        for (n, block) in segment.options.sack().iter().enumerate() {
            let (Some(start), Some(end)) =
                (block.start.offset_from(self.isn, una), block.end.offset_from(self.isn, una))
            else {
                continue;
            };
            let range = Range::new(start, end);
            // RFC 2883 §4: the first block below the acknowledgment, or inside the second block
            let inside_next = || {
                let next = segment.options.sack().get(1)?;
                let outer = Range::new(next.start.offset_from(self.isn, una)?, next.end.offset_from(self.isn, una)?);
                Some(outer.contains(range))
            };
            if n == 0 && (end <= ack || inside_next() == Some(true)) {
                dsack = Some(range).filter(|r| !r.is_empty());
            } else if start < end && start >= ack && end <= self.sender.nxt() {
                blocks[count] = range;
                count += 1;
            }
        }
        (count, dsack)
    }

    /// Notes the mapping of `len` bytes to the data sequence from `start` on. False if all of them came before.
    ///
    /// # Errors
    /// It contradicts one that is known, or there are too many.
    pub fn note_mapping(&mut self, mapping: &Mapping, start: u64, len: u64) -> Result<bool, Violation> {
        let needed = self.mapping_needed();
        let sub = subflow_offset(mapping.subflow_seq, self.receiver.next());
        let Some(sub) = sub.filter(|sub| sub + len > needed) else {
            return Ok(false);
        };
        let checksum = mapping.checksum.map(|sum| (sum, mapping.len));
        let entry = Entry { sub: Range::new(sub, sub + len), data: start, checksum };
        self.placement.add(entry, needed, self.receiver.held_bytes()).map(|()| true)
    }

    /// The first offset whose mapping is still of use.
    fn mapping_needed(&self) -> u64 {
        self.placement.first_unmapped().unwrap_or(self.receiver.next())
    }

    /// Takes the payload of a segment at `seq`, of at most `mss` bytes unless a device left several in one piece, if it is next
    /// in sequence and no hole is anywhere: nearly always. False if it is not: see [`Self::take_payload`].
    #[inline(always)]
    pub fn take_next(&mut self, now: Instant, segment: &Segment, seq: u64, mss: u32) -> bool {
        let len = segment.payload.len() as u32;
        let is_next = self.receiver.take_next(seq, len.into());
        if is_next {
            let at_once = self.wants_answer(len, mss);
            self.acks.on_arrival(now, at_once);
        }
        is_next
    }

    /// Takes the payload of a segment, wherever it belongs. Returns what is next in sequence now.
    pub fn take_payload(&mut self, now: Instant, segment: &Segment, seq: u64, mss: u32) -> Option<(u64, Bytes)> {
        if seq > self.mapping_needed() && self.placement.lacks(seq, self.receiver.held_bytes()) {
            // RFC 9293 §3.10.7.4: a segment out of order may be dropped; the acknowledgment has it retransmitted.
            self.acks.on_arrival(now, true);
            return None;
        }
        let at_once = self.wants_answer(segment.payload.len() as u32, mss);
        let arrival = self.receiver.accept(seq, &segment.payload);
        arrival.duplicate.into_iter().for_each(|duplicate| self.acks.report(duplicate));
        self.acks.on_arrival(now, at_once || arrival.acknowledge_now);
        arrival.ready
    }

    /// A payload of `len` bytes is to be acknowledged at once. RFC 5681 §4.2: at least every second segment; of those that came
    /// in one piece there are enough. What we send ourselves will acknowledge a small one.
    #[inline(always)]
    fn wants_answer(&mut self, len: u32, mss: u32) -> bool {
        len >= 2 * mss || self.acks.is_small(len.min(mss)) && self.sender.is_empty()
    }

    /// Takes the FIN of a segment at `seq`, if it has one. True once everything up to the peer's FIN has come.
    #[inline(always)]
    pub fn take_fin(&mut self, now: Instant, segment: &Segment, seq: u64) -> bool {
        if segment.flags.has(Flags::FIN) {
            let known = self.receiver.note_fin(seq + segment.payload.len() as u64);
            if known { self.acks.on_arrival(now, true) } else { self.acks.demand() }
        }
        self.receiver.take_fin()
    }

    // ---- rules that the peer breaks ----

    /// The peer broke a rule: the subflow is reset for that `reason`.
    pub fn refuse(&mut self, cx: &mut Scope<'_>, violation: Violation, reason: Reason) {
        cx.violation(self.id, violation);
        self.reset = Some(Reset::Because(reason));
    }

    /// The mapping of data does not come: the subflow is closed (RFC 8684 §3.3.1), even the only one (§3.7). Whether the
    /// peer's next data is new cannot be known, so that plain TCP might corrupt the stream.
    pub fn end_unmapped(&mut self) {
        self.reset = Some(Reset::Because(INTERFERENCE));
        self.placement.take_unmapped();
    }

    /// Data from `data_seq` on could not be verified, and the subflow does not continue.
    pub fn fail(&mut self, data_seq: u64) {
        self.reset = Some(Reset::Fail(data_seq));
        self.placement.take_unmapped();
        self.placement.take_collected();
    }
}
