//! Segments of established subflows (RFC 9293 §3.10.7.4), from acceptability to FIN.

use super::{Connection, Mode};
use crate::congestion::{Acked, Loss};
use crate::cx::Cx;
use crate::schedule::{Cause, SchedulerEvent};
use crate::settings::{AckCounting, LimitedDecay};
use crate::subflow::sender::{AckInput, AckOutcome, Change};
use crate::subflow::stamps::Stamps;
use crate::subflow::{Move, State, forward};
use anabranch_trace::{CloseReason, Event, PathState, RecoveryPhase, Violation, WindowChange};
use anabranch_units::{Duration, Instant, PathId, Range};
use anabranch_wire::{Flags, MptcpOption, Segment};
use bytes::Bytes;
use core::cmp::Ordering;
use core::ops::ControlFlow;

/// A segment begins at most that much below the lowest number that the peer may have to send again.
const LARGEST_SEGMENT: u64 = 0xffff;

impl Connection {
    /// Takes a segment that arrived on `path`.
    pub fn handle_segment(&mut self, cx: &mut Cx<'_>, path: PathId, segment: &Segment) {
        let Some(i) = self.index(path) else { return };
        self.touch(i);
        self.view.set_now(cx.now);
        match self.subflows[i].state {
            State::SynSent => self.on_syn_sent(cx, i, segment),
            State::SynReceived => self.on_syn_received(cx, i, segment),
            State::Closed | State::Listen => {}
            _ => self.on_synchronized(cx, i, segment),
        }
        // Nearly always: nothing is about to end.
        let ending = self.closed || self.finished || self.peer_fin.is_some();
        if ending || self.subflows.get(i).is_none_or(|s| s.state != State::Established) {
            self.settle(cx);
        }
    }

    pub(super) fn on_synchronized(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let Some((seq, window_end)) = self.acceptable(cx, i, segment) else { return };
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            return self.on_reset(cx, i, segment, seq);
        }
        if flags.has(Flags::SYN) {
            // RFC 5961 §4
            self.violation(cx, i, Violation::BlindSyn);
            return self.answer(cx, i);
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        let Some(ack) = self.acceptable_ack(cx, i, segment) else { return };
        self.heard(cx, i, segment, seq);
        let bare = segment.seq_len() == 0;
        let beyond = seq + segment.payload.len() as u64 > window_end;
        let cut = beyond.then(|| self.cut_off(cx, i, segment, window_end - seq));
        let segment = cut.as_ref().unwrap_or(segment);
        self.subflows[i].data_ack = None;
        let place = self.on_options(cx, i, segment, seq);
        if self.closed || self.subflows[i].reset.is_some() {
            return;
        }
        self.on_window(i, segment, seq, ack);
        let s = &mut self.subflows[i];
        let window_update = core::mem::replace(&mut s.peer_window, segment.window) != segment.window;
        // Every segment of a peer that only sends is an acknowledgment that says nothing.
        if !(segment.options.sack().is_empty() && s.sender.is_at_rest(ack)) {
            // RFC 8684 §4: an acknowledgment that carries a signal is no duplicate.
            let bare = bare && !window_update && segment.options.mptcp().is_empty();
            self.on_ack(cx, i, segment, ack, bare);
        }
        self.on_text(cx, i, segment, seq, place);
    }

    /// Payload and FIN (RFC 9293 §3.10.7.4, seventh and eighth step); `place`: see [`Self::on_options`].
    #[inline(always)]
    fn on_text(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64, place: ControlFlow<(), Option<u64>>) {
        if !self.subflows[i].state.may_receive() {
            // Nothing follows the peer's FIN, and no other FIN.
            return;
        }
        if let ControlFlow::Continue(place) = place
            && !segment.payload.is_empty()
        {
            self.on_payload(cx, i, segment, seq, place);
        }
        if segment.flags.has(Flags::FIN) {
            self.on_fin(cx, i, seq + segment.payload.len() as u64);
        }
        if self.subflows[i].receiver.take_fin() {
            self.fin_taken(cx, i);
        }
    }

    /// Payload and FIN of a SYN/ACK (RFC 9293 §3.10.7.3). With Multipath TCP nothing tells where they belong: they come again.
    pub(super) fn on_text_of_syn(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        if self.mode != Mode::Plain || segment.seq_len() == 1 {
            return;
        }
        let room = self.window_end(i, 1) - 1;
        let cut = (segment.payload.len() as u64 > room).then(|| self.cut_off(cx, i, segment, room));
        self.on_text(cx, i, cut.as_ref().unwrap_or(segment), 1, ControlFlow::Continue(None));
    }

    /// A segment is the peer's own, as far as numbers can show it: what says so to us comes after all checks.
    #[inline(always)]
    fn heard(&mut self, cx: &Cx<'_>, i: usize, segment: &Segment, seq: u64) {
        let s = &mut self.subflows[i];
        s.last_heard = cx.now;
        s.probes = 0;
        if core::mem::take(&mut s.probed) && s.failing && s.sender.timeouts() <= self.settings.tcp.retries {
            s.sender.retry(cx.now);
        }
        if let Some(stamps) = segment.options.timestamps().filter(|_| s.terms.timestamps) {
            // RFC 7323 §4.3: SEG.SEQ <= Last.ACK.sent
            s.stamps.keep(stamps, seq <= s.acked_to, cx.now);
        }
    }

    /// The server repeats its SYN/ACK: our third ACK was lost. It carried keys or an HMAC unless they are known to
    /// have come.
    fn repeat_third_ack(&mut self, i: usize) {
        let s = &mut self.subflows[i];
        let waiting = if s.join { !s.handshake.confirmed } else { self.mode == Mode::Multipath { confirmed: false } };
        s.handshake.third_ack |= waiting && s.handshake.active;
    }

    /// Sequence number and timestamps (RFC 9293 §3.10.7.4, first step): the segment's offset and the window's end, if it is
    /// acceptable; otherwise answers as it must.
    #[inline(always)]
    pub(super) fn acceptable(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) -> Option<(u64, u64)> {
        let s = &self.subflows[i];
        let next = s.receiver.next();
        let seq = segment.seq.offset_from(s.peer_isn, next);
        let rst = segment.flags.has(Flags::RST);
        // RFC 7323 §5.3 R1
        let old =
            segment.options.timestamps().is_some_and(|t| s.terms.timestamps && s.stamps.is_old(t, cx.now)) && !rst;
        if let Some(seq) = seq.filter(|_| !old) {
            let len = if rst { 0 } else { u64::from(segment.seq_len()) };
            let end = self.window_end(i, next);
            // Just behind the window nothing is taken but what the header says. A peer that has filled the window
            // acknowledges from there, and a closed one must let acknowledgments and resets through.
            if seq <= end && (seq + len > next || len == 0 && seq >= next) {
                return Some((seq, end));
            }
        }
        self.unacceptable(cx, i, segment, seq, old);
        None
    }

    /// The end of the window (`RCV.NXT + RCV.WND`) in the sequence of subflow `i`, on which `next` is expected next.
    #[inline(always)]
    fn window_end(&self, i: usize, next: u64) -> u64 {
        match self.mode {
            Mode::Multipath { .. } if self.windows_apart() && self.subflows[i].own_edge > 0 => {
                self.subflows[i].own_edge.max(next)
            }
            Mode::Plain => (self.recv_offset.sub + self.announced).saturating_sub(self.recv_offset.data).max(next),
            // RFC 8684 §3.3.4: the window is the connection's, and where data belongs decides. What a sender may have under
            // way on a subflow is never more than the widest window (§3.3.5), of which it may have been told on any of them.
            // The RFC's own check, SSN - SUBFLOW_ACK <= DSN - DATA_ACK, would refuse copies of data that came elsewhere.
            Mode::Opening | Mode::Multipath { .. } => next + self.widest,
        }
    }

    /// RFC 9293 §3.10.7.4: what of a segment lies within the window, `len` bytes.
    #[cold]
    fn cut_off(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, len: u64) -> Segment {
        self.violation(cx, i, Violation::BeyondWindow);
        // The peer may be asking whether the window is still closed (§3.8.6.1).
        self.subflows[i].acks.demand();
        let mut segment = segment.clone();
        // What is left of a packet would keep all of it in memory.
        segment.payload = Bytes::copy_from_slice(&segment.payload[..len as usize]);
        segment.flags = Flags(segment.flags.0 & !Flags::FIN.0);
        segment
    }

    /// A segment that is not acceptable is answered with an acknowledgment (RFC 9293 §3.10.7.4): at once if the peer may have
    /// sent it again because ours was lost, else seldom. (Linux answers at once whatever has payload.)
    #[cold]
    fn unacceptable(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: Option<u64>, old: bool) {
        let (flags, len) = (segment.flags, u64::from(segment.seq_len()));
        if flags.has(Flags::RST) {
            return self.violation(cx, i, Violation::Unacceptable);
        }
        if old {
            self.violation(cx, i, Violation::OldTimestamp);
        }
        let next = self.subflows[i].receiver.next();
        if !old && seq.is_some_and(|seq| seq > next) {
            self.violation(cx, i, Violation::BeyondWindow);
        }
        let s = &mut self.subflows[i];
        // What was sent and not acknowledged is never more than a window.
        let lowest = next.saturating_sub(self.widest + LARGEST_SEGMENT);
        let repeated = len > 0 && !flags.has(Flags::SYN);
        let Some(seq) = seq.filter(|seq| repeated && (lowest..next).contains(seq)) else {
            if flags.has(Flags::SYN | Flags::ACK) && segment.seq == s.peer_isn && cx.now >= s.answer_after {
                self.repeat_third_ack(i);
            }
            return self.answer(cx, i);
        };
        if old || segment.payload.is_empty() {
            s.acks.demand();
        } else {
            s.acks.report(Range::new(seq, seq + segment.payload.len() as u64));
        }
        if seq + len == next && !old {
            self.on_last_again(cx, i, segment);
        }
    }

    /// What the peer sent last comes again: our acknowledgment was lost, or it waits in TIME-WAIT.
    fn on_last_again(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let known = segment.flags.has(Flags::ACK) && self.acked(i, segment).is_some();
        let s = &mut self.subflows[i];
        if let Some(stamps) = segment.options.timestamps().filter(|_| s.terms.timestamps && known) {
            // RFC 7323 §5.3 would keep the time of the copy that came first, from which the peer would take the whole time
            // since for a round trip. Linux keeps this one: it reaches back to the last acknowledgment.
            s.stamps.keep(stamps, true, cx.now);
        }
        if segment.flags.has(Flags::FIN) && s.state == State::TimeWait {
            // RFC 9293 §3.10.7.4
            s.linger = cx.now + self.settings.tcp.time_wait;
        }
    }

    /// RFC 5961 §3.2: only a reset exactly at the next expected number resets, or one that proves by our key whose it is.
    fn on_reset(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, seq: u64) {
        let ours = MptcpOption::FastClose { receiver_key: self.keys.local };
        let proven = self.speaks_mptcp() && segment.options.mptcp().contains(&ours);
        if seq != self.subflows[i].receiver.next() && !proven {
            self.violation(cx, i, Violation::BlindReset);
            return self.answer(cx, i);
        }
        let before = self.closed;
        self.on_reset_options(cx, i, segment);
        if self.closed && !before {
            return;
        }
        self.heed_reason(i, segment);
        let last = !self.speaks_mptcp();
        self.drop_subflow(cx, i, PathState::Dead);
        if last {
            self.end(cx, CloseReason::ResetByPeer);
        }
    }

    /// Acknowledges, unless it did so a short while ago for a segment that anybody may have sent.
    pub(super) fn answer(&mut self, cx: &Cx<'_>, i: usize) {
        let plain = self.mode == Mode::Plain;
        let s = &mut self.subflows[i];
        if !s.may_answer(cx.now) {
            return;
        }
        if s.state == State::SynReceived && !plain {
            // A bare acknowledgment would be taken for the fourth ACK of a join, or for a sign of plain TCP (RFC 8684 §3.2,
            // §3.7). The SYN/ACK acknowledges the same.
            s.handshake.due = true;
        } else {
            s.acks.demand();
        }
    }

    fn acceptable_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) -> Option<u64> {
        let acked = self.acked(i, segment);
        if acked.is_none() {
            self.violation(cx, i, Violation::BlindAck);
            self.answer(cx, i);
        }
        acked
    }

    /// The offset that a segment acknowledges, if it may do so (RFC 5961 §5.2): not older than the largest window, not newer
    /// than what was sent.
    #[inline(always)]
    pub(super) fn acked(&self, i: usize, segment: &Segment) -> Option<u64> {
        let s = &self.subflows[i];
        let (una, nxt) = (s.sender.una(), s.sender.nxt());
        let oldest = || una.saturating_sub(self.view.max_window());
        segment.ack.offset_from(s.isn, una).filter(|ack| *ack <= nxt && (*ack >= una || *ack >= oldest()))
    }

    /// The window of the subflow. In plain TCP it is the connection's too; MPTCP's moves with its DATA_ACK.
    #[inline]
    fn on_window(&mut self, i: usize, segment: &Segment, seq: u64, ack: u64) {
        let s = &mut self.subflows[i];
        let shift = s.terms.send_shift;
        let size = u64::from(segment.window) << shift;
        let reach = s.window.update(seq, ack, size, 1 << shift);
        if let Some(p) = self.view.path_mut(s.id) {
            let shut = p.is_shut();
            p.window = s.window.left(s.sender.nxt());
            let news = match reach {
                Ordering::Greater => shut,
                // What is queued may not leave any more: somebody must ask for the window then.
                Ordering::Less => p.queued > 0,
                Ordering::Equal => false,
            };
            if news {
                self.due.get_or_insert(Cause::Window);
            }
        }
        if self.mode == Mode::Plain {
            let acked = (self.send_offset.data + ack).saturating_sub(self.send_offset.sub);
            self.move_window(size, acked + size);
        }
    }

    /// The peer's window and its right edge.
    pub(super) fn move_window(&mut self, size: u64, edge: u64) {
        let before = self.view.window_edge();
        self.view.set_window(size, edge);
        if self.view.window_edge() > before {
            self.due.get_or_insert(Cause::Window);
        }
    }

    /// `bare`: the segment says nothing else, so that it may be a duplicate acknowledgment (RFC 5681 §2).
    fn on_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment, ack: u64, bare: bool) {
        self.note_starved(i);
        let s = &mut self.subflows[i];
        let una = s.sender.una();
        let mut blocks = [Range::new(0, 0); 4];
        let mut count = 0;
        let mut dsack = None;
        for (n, block) in segment.options.sack().iter().enumerate() {
            let (Some(start), Some(end)) = (block.start.offset_from(s.isn, una), block.end.offset_from(s.isn, una))
            else {
                continue;
            };
            let range = Range::new(start, end);
            // RFC 2883 §4: the first block below the acknowledgment, or inside the second block
            let inside_next = || {
                let next = segment.options.sack().get(1)?;
                let outer = Range::new(next.start.offset_from(s.isn, una)?, next.end.offset_from(s.isn, una)?);
                Some(outer.contains(range))
            };
            if n == 0 && (end <= ack || inside_next() == Some(true)) {
                dsack = Some(range).filter(|r| !r.is_empty());
            } else if start < end && start >= ack && end <= s.sender.nxt() {
                blocks[count] = range;
                count += 1;
            }
        }
        let echo = segment.options.timestamps().filter(|_| s.terms.timestamps);
        let input = AckInput {
            now: cx.now,
            ack,
            sack: &blocks[..count],
            dsack,
            echo: echo.and_then(|t| Stamps::echoed(t.ecr, cx.now)),
            bare,
        };
        let outcome = s.sender.on_ack(&input);
        if outcome.useless {
            return;
        }
        if let (Some(stamps), Some(sent)) = (echo, outcome.sent)
            && let Some(sample) = self.peer_clock.transit(stamps.val, sent)
        {
            let srtt = s.sender.rtt().srtt().unwrap_or_default();
            s.forward = Some(forward::smoothed(s.forward, srtt, sample, cx.now));
        }
        self.after_ack(cx, i, &outcome);
    }

    /// Where the delivery rate is measured: if the last round left nothing for a subflow to send, and room in its window,
    /// the application or the scheduler is what limits the rate.
    #[inline]
    pub(super) fn note_starved(&mut self, i: usize) {
        let s = &mut self.subflows[i];
        if s.sender.measures_rate()
            && self.due.is_none()
            && let Some(p) = self.view.path(s.id).filter(|p| p.queued == 0)
        {
            s.sender.note_starved(p.cwnd);
        }
    }

    fn after_ack(&mut self, cx: &mut Cx<'_>, i: usize, outcome: &AckOutcome) {
        let s = &mut self.subflows[i];
        let id = s.id;
        if s.fin.offset.is_some_and(|fin| s.sender.una() > fin) && s.go(Move::FinAcked) {
            self.fin_acked(cx, i);
        }
        if outcome.una_advanced {
            self.delivered_something(cx, i);
        }
        self.follow(cx, i, outcome.change, outcome.newly_lost);
        let window = self.congestion.window(id);
        let s = &self.subflows[i];
        let acked = Acked {
            now: cx.now,
            packets: outcome.acked_packets,
            counted: outcome.acked_packets.min(self.settings.tcp.abc_limit), // RFC 3465 §2.2
            one_in_avoidance: self.settings.tcp.ack_counting == AckCounting::AcksInAvoidance,
            bytes: outcome.acked_bytes,
            rtt: outcome.rtt,
            prior_in_flight: outcome.prior_in_flight,
            cwnd_limited: s.usage.is_limited(window.cwnd, window.ssthresh),
            may_grow: outcome.may_grow,
            round_ended: outcome.round_ended,
            data_end: outcome.data_end,
            data_ack: s.data_ack,
            lost: outcome.newly_lost,
            rate: outcome.rate,
        };
        self.refresh_measures(i);
        if acked.packets > 0 || acked.rtt.is_some() {
            self.congestion.on_ack(id, &acked, self.view.paths());
        }
        if outcome.may_grow && self.settings.tcp.limited_decay == LimitedDecay::Linux {
            self.subflows[i].underuse.restart(cx.now);
        }
        self.refresh_window(i);
        self.record_window(cx, i, outcome.rtt);
        self.scheduler.on_event(&SchedulerEvent::Ack { path: id, acked: &acked }, &self.view);
        self.due = Some(Cause::Ack(id));
        if self.mode == Mode::Plain {
            self.acked_by_subflow(cx, i);
        }
    }

    /// Acts on what an acknowledgment or a timer found out about losses.
    pub(super) fn follow(&mut self, cx: &mut Cx<'_>, i: usize, change: Option<Change>, newly_lost: u32) {
        let id = self.subflows[i].id;
        if newly_lost > 0 {
            self.record(cx, Some(id), Event::Lost { packets: newly_lost });
        }
        let Some(change) = change else { return };
        match change {
            Change::EnterRecovery | Change::ProbeRepaired => {
                self.congestion.on_loss(id, cx.now, Loss::Fast, self.view.paths());
                let ssthresh = self.congestion.window(id).ssthresh;
                if change == Change::EnterRecovery && !self.congestion.is_rate_based() {
                    self.subflows[i].sender.begin_recovery(ssthresh);
                }
                self.scheduler.on_event(&SchedulerEvent::Loss { path: id }, &self.view);
            }
            Change::Undo => {
                self.congestion.on_undo(id, cx.now);
                self.record(cx, Some(id), Event::Undo);
            }
            Change::ExitRecovery | Change::EnterDisorder | Change::LeaveDisorder | Change::LeaveLoss => {}
        }
        self.record(cx, Some(id), Event::Recovery(self.subflows[i].sender.phase()));
    }

    /// A failing path delivers again.
    fn delivered_something(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &mut self.subflows[i];
        if s.failing {
            s.failing = false;
            s.path_probe = Instant::MAX;
            let id = s.id;
            s.told = PathState::Established;
            if s.sender.phase() != RecoveryPhase::Loss {
                // It was silent, and had not timed out: nothing of what it carries is known to be lost.
                self.view.unstrand(id);
            }
            self.record(cx, Some(id), Event::Path(PathState::Established));
            self.refresh_usability();
            self.relieve_failing(cx);
            self.scheduler.on_event(&SchedulerEvent::PathUp { path: id }, &self.view);
        }
    }

    pub(super) fn record_window(&self, cx: &mut Cx<'_>, i: usize, rtt: Option<Duration>) {
        let s = &self.subflows[i];
        let Some(p) = self.view.path(s.id) else { return };
        let change = WindowChange {
            cwnd: p.cwnd,
            ssthresh: p.ssthresh,
            in_flight: p.in_flight,
            srtt: p.srtt.unwrap_or(Duration::ZERO),
            rtt,
        };
        self.record(cx, Some(s.id), Event::Window(change));
    }

    /// Plain TCP: what the subflow acknowledged is acknowledged at connection level.
    pub(super) fn acked_by_subflow(&mut self, cx: &mut Cx<'_>, i: usize) {
        let s = &self.subflows[i];
        let upto = match s.sender.first() {
            Some(first) => first.data.start,
            None => self.send_offset.data + s.sender.nxt().saturating_sub(self.send_offset.sub),
        };
        self.data_acked(cx, upto.min(self.buffer.end()));
    }

    /// The peer has everything below `upto`.
    #[inline]
    pub(super) fn data_acked(&mut self, cx: &mut Cx<'_>, upto: u64) {
        if upto > self.view.data_acked() {
            self.release(cx, upto);
        }
    }

    /// Tells the application, if it waits for it, that there is room in the send buffer.
    pub(super) fn wake_writer(&mut self) {
        // As Linux: a third of the buffer must be free, so that an application is not woken for every segment.
        if self.wants_to_write && self.writable() >= self.send_room / 3 {
            self.wants_to_write = false;
            self.view.set_buffer_full(false);
            self.pending.writable = true;
        }
    }

    /// The peer has everything below `upto`, which is news.
    fn release(&mut self, cx: &mut Cx<'_>, upto: u64) {
        self.acked_before = self.view.data_acked();
        self.view.on_data_acked(upto);
        self.buffer.release(upto);
        self.wake_writer();
        self.persist.1 = 0;
        self.vain = 0;
        self.record(cx, None, Event::DataAcked(upto));
        self.scheduler.on_event(&SchedulerEvent::DataAck { upto }, &self.view);
        self.due.get_or_insert(Cause::Window);
    }
}
