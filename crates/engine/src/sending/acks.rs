//! Acknowledgments, windows and transmissions, as they change the connection's send side.

use super::{Fresh, Sending};
use crate::congestion::{Acked, Loss};
use crate::cx::Scope;
use crate::schedule::{Cause, PeerWindow, Queued, SchedulerEvent};
use crate::settings::{AckCounting, LimitedDecay};
use crate::subflow::forward::PeerClock;
use crate::subflow::sender::{AckOutcome, Occasion, RecoveryChange, Sent};
use crate::subflow::{Lent, Subflow};
use anabranch_trace::{Event, RecoveryPhase, SendKind, Violation};
use anabranch_units::Instant;
use anabranch_wire::{Flags, Segment};

/// The flags of a FIN.
const FIN: Flags = Flags(Flags::ACK.0 | Flags::FIN.0);

impl Sending {
    /// The peer has spoken on `s`. On a failing path that may answer a probe.
    #[inline(always)]
    pub fn on_heard(&mut self, cx: &Scope<'_>, s: &mut Subflow) {
        s.on_answer(cx.now, cx.settings().tcp.retries, &mut self.assignment);
    }

    /// The window of the subflow. In plain TCP it is the connection's too; MPTCP's moves with its DATA_ACK.
    #[inline(always)]
    pub fn on_window(&mut self, s: &mut Subflow, segment: &Segment, seq: u64, ack: u64) {
        // RFC 9293 §3.10.7.4: SND.UNA =< SEG.ACK. An acknowledgment that a newer one overtook does not show the window.
        if ack < s.sender().una() {
            return;
        }
        let shift = s.terms.send_shift;
        let size = u64::from(segment.window) << shift;
        if s.on_window((seq, ack), size, &mut self.assignment) {
            self.rounds.ask(Cause::Window);
        }
        if self.is_plain() {
            let acked = self.stream.offset_of(ack);
            self.move_window(size, acked + size);
        }
    }

    /// The first window of the connection. RFC 7323 §2.2: that of a SYN is not scaled.
    pub fn learn_window(&mut self, window: u16) {
        self.assignment.set_window(window.into(), window.into());
    }

    /// The peer's window and its right edge.
    #[inline(always)]
    pub fn move_window(&mut self, size: u64, edge: u64) {
        let before = self.assignment.window_edge();
        self.assignment.set_window(size, edge);
        if self.assignment.window_edge() > before {
            self.rounds.ask(Cause::Window);
        }
    }

    /// RFC 8684 §3.3.2: `segment`, which came on `s`, acknowledges the data below `upto`, the DATA_FIN included. `windows`:
    /// how many the peer has, if each subflow has one.
    #[inline(always)]
    pub fn on_data_ack(
        &mut self,
        cx: &mut Scope<'_>,
        s: &mut Subflow,
        segment: &Segment,
        upto: u64,
        windows: Option<usize>,
    ) {
        // Nearly always the first comparison is enough.
        if upto > self.stream.sent_end() && upto > self.stream.sent_upto() {
            return cx.violation(s.id, Violation::DataAckBeyond);
        }
        let end = self.stream.end();
        if upto == end + 1 && !self.stream.data_fin.is_acked() {
            self.stream.data_fin.on_acked();
            self.rounds.ask(Cause::Window);
        }
        let is_new = self.on_data_acked(cx, upto.min(end));
        s.on_data_ack(upto.min(end), is_new);
        let mut size = u64::from(segment.window) << s.terms.send_shift;
        if let Some(windows) = windows {
            size = self.all_windows(size, windows);
        } else if self.assignment.sender().window == PeerWindow::OfSubflow {
            size = s.hear_window(segment, size, self.assignment.max_window());
        }
        self.move_window(size, upto + size);
    }

    /// The windows of all `subflows` together, where the widest of one is `size`.
    fn all_windows(&self, size: u64, subflows: usize) -> u64 {
        let subflows = subflows.max(1) as u64;
        size.max(self.assignment.max_window() / subflows) * subflows
    }

    /// Where the delivery rate is measured: if a subflow has nothing to send, and room in its window, the application limits the
    /// rate (draft-cheng-iccrg-delivery-rate-estimation-02 §3.4), or the scheduler, whose last round left it nothing. It is the
    /// buffers if the application waits for room in the send buffer or data for the peer's window: a sender that called
    /// that its application's limit would take a path for not yet filled as long as the buffers are smaller than the window
    /// (BBR's Startup), and Linux sets the limit only when the application writes (`tcp_rate_check_app_limited`), for a
    /// subflow of Multipath TCP never.
    #[inline]
    pub fn note_starved(&self, s: &mut Subflow) {
        if s.sender().measures_rate()
            && !self.stream.is_full()
            && !self.rounds.found_waiting()
            && !self.assignment.window_blocked()
            && let Some(p) = self.assignment.path(s.id).filter(|p| p.queued == 0)
            && (self.rounds.due().is_none() || self.assignment.backlog().bytes() < p.mss.into())
        {
            s.note_starved();
        }
    }

    /// Takes an acknowledgment of `s`. `None` if it says nothing new.
    #[inline(always)]
    pub fn take_ack(
        &mut self,
        now: Instant,
        s: &mut Subflow,
        clock: &mut PeerClock,
        segment: &Segment,
        ack: (u64, bool),
    ) -> Option<AckOutcome> {
        self.note_starved(s);
        s.on_ack(now, clock, segment, ack, &mut self.assignment)
    }

    /// `s` was acknowledged.
    #[inline(always)]
    pub fn on_ack(&mut self, cx: &mut Scope<'_>, mut s: Lent<'_>, outcome: &AckOutcome) {
        if outcome.una_advanced && s.failing {
            self.on_return(cx, &mut s);
        }
        let s: &mut Subflow = &mut s;
        let id = s.id;
        self.on_change(cx, s, outcome.change, outcome.newly_lost);
        if outcome.marked {
            self.on_marked(cx, s);
        }
        let tcp = &cx.settings().tcp;
        let acked = Acked {
            now: cx.now,
            packets: outcome.acked_packets,
            counted: outcome.acked_packets.min(tcp.abc_limit), // RFC 3465 §2.2
            one_in_avoidance: tcp.ack_counting == AckCounting::AcksInAvoidance,
            slow_start_at_threshold: tcp.slow_start_at_threshold,
            bytes: outcome.acked_bytes,
            rtt: outcome.rtt,
            prior_in_flight: outcome.prior_in_flight,
            cwnd_limited: s.is_limited(tcp.slow_start_at_threshold),
            may_grow: outcome.may_grow,
            round_ended: outcome.round_ended,
            data_end: outcome.data_end,
            data_ack: s.data_ack,
            lost: outcome.newly_lost,
            rate: outcome.rate,
        };
        let occasion = if outcome.una_advanced { Occasion::Acked } else { Occasion::Other };
        self.follow(cx.now, s, occasion);
        self.windows.on_ack(&mut self.assignment, s, &acked);
        if outcome.may_grow && cx.settings().tcp.limited_decay == LimitedDecay::Linux {
            s.restart_underuse(cx.now);
        }
        if cx.settings().tcp.autotune {
            self.expand(cx.settings());
        }
        self.record_window(cx, id, outcome.rtt);
        self.assignment.on_acked(id, &acked);
        self.rounds.tell(&SchedulerEvent::Ack { path: id, acked: &acked }, &self.assignment);
        self.rounds.ask_because_of(Cause::Ack(id));
        if self.is_plain() {
            self.acked_by_subflow(cx, s);
        }
    }

    /// Acts on the losses that an acknowledgment or a timer showed.
    #[inline(always)]
    pub(super) fn on_change(
        &mut self,
        cx: &mut Scope<'_>,
        s: &mut Subflow,
        change: Option<RecoveryChange>,
        newly_lost: u32,
    ) {
        if newly_lost > 0 {
            cx.record(Some(s.id), Event::Lost { packets: newly_lost });
        }
        if let Some(change) = change {
            self.on_recovery_change(cx, s, change);
        }
    }

    /// Loss recovery changed.
    #[inline(never)]
    fn on_recovery_change(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, change: RecoveryChange) {
        let id = s.id;
        match change {
            RecoveryChange::EnterRecovery | RecoveryChange::ProbeRepaired => {
                if !s.ecn.covers_loss(s.sender().una()) {
                    self.windows.on_loss(&mut self.assignment, s, Loss::Fast);
                    s.ecn.on_reduced(s.sender().nxt());
                }
                if change == RecoveryChange::EnterRecovery && !self.windows.is_rate_based() {
                    s.begin_recovery(&mut self.assignment);
                }
                self.rounds.tell(&SchedulerEvent::Loss { path: id }, &self.assignment);
            }
            RecoveryChange::Undo => {
                // RFC 3168 §6.1.2: a mark requires the reduction too, unless the congestion control ignores marks.
                if !s.ecn.is_justified() || self.windows.is_rate_based() {
                    self.windows.on_undo(&mut self.assignment, s);
                    s.ecn.on_undo();
                }
                cx.record(Some(id), Event::Undo);
            }
            RecoveryChange::ExitRecovery
            | RecoveryChange::EnterDisorder
            | RecoveryChange::LeaveDisorder
            | RecoveryChange::LeaveLoss => {}
        }
        cx.record(Some(id), Event::Recovery(s.sender().phase()));
    }

    /// The peer echoes a new mark.
    #[inline(never)]
    fn on_marked(&mut self, cx: &mut Scope<'_>, s: &mut Subflow) {
        self.windows.on_loss(&mut self.assignment, s, Loss::Marked);
        s.ecn.on_marked(s.sender().nxt(), !self.windows.is_rate_based());
        cx.record(Some(s.id), Event::Marked);
    }

    /// A failing path delivers again.
    fn on_return(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>) {
        let id = s.id;
        s.came_up();
        if s.sender().phase() != RecoveryPhase::Loss {
            // It was silent, and had not timed out: nothing of what it carries is known to be lost.
            self.assignment.unstrand(id);
        }
        self.assignment.renew_shared(id);
        self.came_up(cx, s.all_mut(), id);
    }

    /// Plain TCP: what the subflow acknowledged is acknowledged at connection level.
    pub(super) fn acked_by_subflow(&mut self, cx: &mut Scope<'_>, s: &Subflow) {
        self.on_data_acked(cx, self.stream.acked_on(s));
    }

    /// The peer has everything below `upto`. True if no earlier acknowledgment covered it.
    #[inline]
    fn on_data_acked(&mut self, cx: &mut Scope<'_>, upto: u64) -> bool {
        let advances = upto > self.assignment.data_acked();
        if advances {
            self.release(cx, upto);
        }
        advances
    }

    /// The peer has everything below `upto`, which no earlier acknowledgment covered.
    fn release(&mut self, cx: &mut Scope<'_>, upto: u64) {
        let before = self.assignment.data_acked();
        self.assignment.on_data_acked(upto);
        self.stream.on_acked(before, upto, self.assignment.lowest_kept().unwrap_or(u64::MAX));
        self.wake_writer();
        self.persist.on_data_acked();
        cx.record(None, Event::DataAcked(upto));
        self.rounds.tell(&SchedulerEvent::DataAck { upto }, &self.assignment);
        self.rounds.ask(Cause::Window);
    }

    // ---- transmissions ----

    /// New data left on `s`.
    #[inline(always)]
    pub(super) fn on_sent(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, sent: Sent, fresh: Fresh) {
        let Fresh { queued: Queued { range, kind, ahead }, data_fin } = fresh;
        let seq = sent.seq().start;
        s.on_sent(cx.now, sent, &mut self.assignment);
        if data_fin {
            self.data_fin_sent(cx, s);
        }
        self.assignment.on_sent(s.id, range);
        self.stream.on_sent(range.end);
        self.follow(cx.now, s, Occasion::Sent);
        if cx.settings().tcp.limited_decay != LimitedDecay::None {
            self.give_back_unused(cx, s);
        }
        cx.record(Some(s.id), Event::DataSent { seq, data: range, kind });
        if ahead < cx.now {
            cx.record(Some(s.id), Event::BoundAhead { since: ahead });
        }
    }

    /// A retransmission left on `s`.
    pub(super) fn on_retransmitted(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, sent: &Sent) {
        s.on_retransmitted(cx.now, sent, &mut self.assignment);
        if sent.seq().start == s.sender().una() {
            self.follow(cx.now, s, Occasion::Repeated);
        }
        let event = match sent.payload.is_empty() {
            true => Event::ControlSent { flags: FIN.0, again: true },
            false => Event::DataSent { seq: sent.seq().start, data: sent.data(), kind: SendKind::Retransmission },
        };
        cx.record(Some(s.id), event);
    }

    /// The FIN that is to leave on `s`, after all data that is bound to it.
    pub(super) fn next_fin(&self, s: &mut Subflow) -> Option<Sent> {
        if self.has_queued(s.id) { None } else { s.next_fin(self.assignment.written()) }
    }

    /// A FIN left on `s`.
    pub(super) fn on_fin_sent(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, fin: Sent) {
        s.on_fin_sent(cx.now, fin, &mut self.assignment);
        cx.record(Some(s.id), Event::ControlSent { flags: FIN.0, again: false });
    }

    /// Our DATA_FIN left on `s`.
    pub fn data_fin_sent(&mut self, cx: &Scope<'_>, s: &Subflow) {
        self.stream.data_fin.on_sent(cx.now, s.id, s.sender().rtt().rto(), cx.settings().tcp.rto_max);
    }

    /// RFC 2861 §3.2: a window that was not full for a retransmission timeout loses part of what was not used; not while data
    /// waits for room in the send buffer (Linux).
    fn give_back_unused(&mut self, cx: &mut Scope<'_>, s: &mut Subflow) {
        let used = self.assignment.path(s.id).and_then(|p| s.used_at_most(cx.now, p));
        let Some(used) = used else { return };
        if s.sender().phase() != RecoveryPhase::Open || self.stream.is_full() {
            return;
        }
        self.windows.on_underuse(&mut self.assignment, s, used);
        self.record_window(cx, s.id, None);
    }
}
