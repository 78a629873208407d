//! Phases of recovery and what leads from one to another (RFC 5681, 5682, 6582, 6675, 8985), as Linux orders them.

use super::probe::Probe;
use super::prr::{Progress, Prr};
use super::scoreboard::{Delivered, Marked};
use super::timers::Timer;
use super::{AckInput, Fired, RecoveryChange, Sender};
use crate::settings::RecoveryKind;
use anabranch_trace::RecoveryPhase;
use anabranch_units::{Duration, Instant};

/// Packets that must have overtaken another before it is taken for lost (RFC 5681 §3.2, RFC 6675 §2).
const DUP_THRESHOLD: u32 = 3;

/// Facts from an acknowledgment, for the phases.
#[derive(Debug)]
pub(super) struct Facts {
    pub now: Instant,
    pub una_advanced: bool,
    pub sacked: bool,
    /// Without SACK: a duplicate acknowledgment.
    pub duplicate: bool,
    /// When the segment was sent whose timestamp is echoed.
    pub echo: Option<Instant>,
    /// Something sent only once, before the last recovery point, was delivered.
    pub original: bool,
}

/// The verdict on it.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub change: Option<RecoveryChange>,
    /// Packets newly marked lost.
    pub lost: u32,
}

impl From<RecoveryChange> for Verdict {
    fn from(change: RecoveryChange) -> Self {
        Verdict { change: Some(change), lost: 0 }
    }
}

impl Sender {
    pub(super) fn facts(&self, input: &AckInput<'_>, delivered: &Delivered, una_advanced: bool) -> Facts {
        // Without SACK what a retransmission's acknowledgment covers besides may have arrived long ago.
        let certain = (self.sack || delivered.repeated.is_none()) && !self.answered;
        Facts {
            now: input.now,
            una_advanced,
            sacked: delivered.sacked > 0,
            duplicate: !self.sack && !una_advanced && input.bare && input.ack == self.una(),
            echo: input.echo.map(|(_, sent)| sent),
            original: certain && delivered.original_end.is_some_and(|end| end <= self.high),
        }
    }

    /// Follows an acknowledgment through the phases.
    pub(super) fn judge(&mut self, ack: &Facts) -> Verdict {
        match self.phase {
            RecoveryPhase::Open | RecoveryPhase::Disorder => self.judge_open(ack),
            RecoveryPhase::Recovery => self.judge_recovery(ack),
            RecoveryPhase::Loss => self.judge_loss(ack),
        }
    }

    #[inline(always)]
    fn judge_open(&mut self, ack: &Facts) -> Verdict {
        if self.undo.all_duplicates() {
            return self.take_back();
        }
        let marked = self.detect(ack.now, ack.una_advanced);
        if self.board.lost() == 0 {
            return Verdict { change: self.keep_open(), lost: marked.packets };
        }
        self.on_first_loss(ack.now, marked.packets)
    }

    /// Packets are marked lost, and recovery has not begun; `lost`: those newly marked.
    #[inline(always)]
    fn on_first_loss(&mut self, now: Instant, lost: u32) -> Verdict {
        self.on_lone_loss(now, lost).unwrap_or_else(|| Verdict { change: Some(self.enter_recovery()), lost })
    }

    fn judge_recovery(&mut self, ack: &Facts) -> Verdict {
        if self.board.una() >= self.high {
            return self.leave(ack, RecoveryChange::ExitRecovery);
        }
        if ack.una_advanced && self.undo.delayed(ack.echo) {
            // The hole was filled by a delayed packet. Wait for what else was retransmitted.
            self.rack.on_reordering();
            return if self.board.retransmitted() == 0 { self.take_back() } else { Verdict::default() };
        }
        if self.board.lost() == 0 && self.undo.all_duplicates() {
            return self.take_back();
        }
        Verdict { change: None, lost: self.detect(ack.now, ack.una_advanced).packets }
    }

    fn judge_loss(&mut self, ack: &Facts) -> Verdict {
        // RFC 4015; RFC 5682 §3.1 step 3.b: what was sent before the timeout arrives
        let eifel = ack.una_advanced && (self.undo.delayed(ack.echo) || self.undo.all_duplicates());
        if eifel || (self.frto && ack.original) {
            return self.take_back();
        }
        if self.frto && ack.una_advanced && self.board.nxt() == self.high {
            // RFC 5682 §3.1 step 2.b: up to two new segments
            self.new_first = 2;
        } else if ack.una_advanced || ack.duplicate || (self.board.nxt() > self.high && ack.sacked) {
            // Step 3.a; without SACK §2 step 2.a too
            self.no_new();
        }
        if self.board.una() >= self.high {
            return self.leave(ack, RecoveryChange::LeaveLoss);
        }
        let marked = self.detect(ack.now, ack.una_advanced);
        // RFC 8985 §6.3: a retransmission that is lost too is a new sign of congestion.
        let change = if marked.again { Some(self.enter_recovery()) } else { None };
        Verdict { change, lost: marked.packets }
    }

    /// All that was outstanding when the recovery began is acknowledged.
    fn leave(&mut self, ack: &Facts, change: RecoveryChange) -> Verdict {
        if self.undo.all_duplicates() || (ack.una_advanced && self.undo.delayed(ack.echo)) {
            return self.take_back();
        }
        self.end_episode();
        let next = self.judge_open(ack);
        // A recovery may begin at once; that the phase went by Open or Disorder is not worth telling.
        let entered = next.change.filter(|&c| c == RecoveryChange::EnterRecovery);
        Verdict { change: entered.or(Some(change)), lost: next.lost }
    }

    fn end_episode(&mut self) {
        self.phase = RecoveryPhase::Open;
        self.prr = None;
        self.no_new();
        self.head_due = false;
        self.duplicates = 0;
        self.rack.on_recovery_end();
    }

    /// Nothing was lost: the reaction is taken back.
    fn take_back(&mut self) -> Verdict {
        self.undo.done();
        self.timeouts = 0;
        if matches!(self.phase, RecoveryPhase::Recovery | RecoveryPhase::Loss) {
            self.board.unmark();
            self.end_episode();
        }
        self.keep_open();
        RecoveryChange::Undo.into()
    }

    /// Disorder as long as something is SACKed or was retransmitted, else Open.
    fn keep_open(&mut self) -> Option<RecoveryChange> {
        let again = self.board.retransmitted() > 0 || self.board.first().is_some_and(|p| p.repeated);
        if !again {
            self.undo.settle();
        }
        let disorder = again || self.board.sacked() > 0 || self.duplicates > 0 || self.board.lost() > 0;
        let (phase, change) = if disorder {
            (RecoveryPhase::Disorder, RecoveryChange::EnterDisorder)
        } else {
            (RecoveryPhase::Open, RecoveryChange::LeaveDisorder)
        };
        (core::mem::replace(&mut self.phase, phase) != phase).then_some(change)
    }

    fn enter_recovery(&mut self) -> RecoveryChange {
        self.give_probe_up();
        self.phase = RecoveryPhase::Recovery;
        self.high = self.board.nxt();
        self.no_new();
        self.head_due = false;
        self.prr = None;
        self.probe = Probe::Idle;
        self.next_seg = Default::default();
        self.undo.begin(self.board.una(), self.board.retransmitted());
        self.loss.on_episode();
        RecoveryChange::EnterRecovery
    }

    /// Marks what is lost, by the rules that were agreed, and arms the reordering timer.
    #[inline(always)]
    fn detect(&mut self, now: Instant, una_advanced: bool) -> Marked {
        if !self.sack {
            return Marked { packets: self.detect_by_duplicates(una_advanced), again: false };
        }
        match self.kind {
            // Packets that overtake each other would be taken for lost.
            RecoveryKind::Fack if !self.rack.reordering_seen() => {
                Marked { packets: self.board.mark_below_highest(u64::from(DUP_THRESHOLD)), again: false }
            }
            RecoveryKind::Sack | RecoveryKind::Fack => {
                Marked { packets: self.board.mark_below_sacked(u64::from(DUP_THRESHOLD)), again: false }
            }
            RecoveryKind::Rack => self.detect_by_time(now),
        }
    }

    /// RFC 8985 §6.2 step 5.
    #[inline(always)]
    fn detect_by_time(&mut self, now: Instant) -> Marked {
        self.timers.disarm(Timer::Reorder);
        let Some(newest) = self.rack.newest() else { return Marked::default() };
        let recovering = matches!(self.phase, RecoveryPhase::Recovery | RecoveryPhase::Loss);
        let patience = self.rack.rtt() + self.rack.window(recovering, self.board.sacked(), &self.rtt);
        let marked = self.board.mark_expired(now, newest, patience);
        if let Some(last) = self.board.last_sent_before(newest) {
            self.timers.arm(Timer::Reorder, last + patience);
        }
        marked
    }

    /// Duplicate and partial acknowledgments: RFC 6582 §3.2.
    fn detect_by_duplicates(&mut self, una_advanced: bool) -> u32 {
        let lost = match self.phase {
            // Step 2: once per window, so that what was retransmitted in vain does not begin another recovery.
            RecoveryPhase::Open | RecoveryPhase::Disorder => {
                self.duplicates >= DUP_THRESHOLD && self.recover.is_none_or(|recover| self.board.una() > recover)
            }
            // Step 3, partial acknowledgments
            RecoveryPhase::Recovery => una_advanced,
            RecoveryPhase::Loss => false,
        };
        if lost {
            self.recover = Some(self.board.nxt());
            self.board.mark_first()
        } else {
            0
        }
    }

    /// After [`RecoveryChange::EnterRecovery`], once congestion control has set `ssthresh` (packets): RFC 6937. Without effect
    /// in any other phase.
    pub fn begin_recovery(&mut self, ssthresh: u32) {
        if self.phase == RecoveryPhase::Recovery {
            let mut prr = Prr::new(ssthresh, self.recover_fs);
            // A recovery that a timer began counts as if one packet had been delivered (Linux).
            let progress = Progress { delivered: self.progress.delivered.max(1), ..self.progress };
            prr.on_ack(&progress, self.in_flight());
            self.prr = Some(prr);
        }
    }

    pub(super) fn on_reorder_timer(&mut self, now: Instant) -> Fired {
        self.recover_fs = self.board.outstanding();
        let marked = self.detect(now, false);
        self.progress = Progress { delivered: 0, lost: marked.packets, una_advanced: false };
        let begins = match self.phase {
            RecoveryPhase::Open | RecoveryPhase::Disorder => self.board.lost() > 0,
            RecoveryPhase::Recovery => false,
            RecoveryPhase::Loss => marked.again,
        };
        let quiet = Verdict { change: None, lost: marked.packets };
        let verdict = if begins { self.on_first_loss(now, marked.packets) } else { quiet };
        Fired::ReorderTimer { newly_lost: verdict.lost, change: verdict.change }
    }

    /// RFC 6298 §5.4-5.7, RFC 5682 §3.1 step 1.
    pub(super) fn on_retransmission_timer(&mut self, now: Instant) -> Fired {
        if self.board.is_empty() {
            return Fired::Nothing;
        }
        self.give_probe_up();
        let fresh = matches!(self.phase, RecoveryPhase::Open | RecoveryPhase::Disorder);
        // RFC 5681 §3.1: ssthresh is set once per episode; progress since the last timeout makes a new one (Linux).
        let again = !fresh && (self.phase == RecoveryPhase::Recovery || self.timeouts > 0);
        self.frto = fresh || self.timeouts > 0;
        self.new_first = 0;
        if !again {
            self.undo.begin(self.board.una(), self.board.retransmitted());
            self.loss.on_episode();
        }
        self.timeouts += 1;
        self.timers.back_off();
        self.phase = RecoveryPhase::Loss;
        self.high = self.board.nxt();
        self.recover = Some(self.high);
        self.prr = None;
        self.probe = Probe::Idle;
        self.duplicates = 0;
        self.head_due = true;
        let newly_lost = self.mark_timed_out(now);
        self.timers.disarm_all();
        self.timers.start_retransmission(now, self.rtt.rto());
        Fired::Timeout { n: self.timeouts, newly_lost, again }
    }

    /// Marks everything lost that was sent more than a round trip ago (RFC 8985 §6.3). Returns how many packets.
    pub(super) fn mark_timed_out(&mut self, now: Instant) -> u32 {
        let timed = self.sack && self.kind == RecoveryKind::Rack;
        self.board.mark_all(now, if timed { self.rack.rtt() } else { Duration::ZERO })
    }
}
