//! Packets that the path does not carry any more, because they are too large, and probes for larger ones.

use super::probe::Probe;
use super::search::Search;
use super::{RecoveryChange, Sender, Verdict};
use anabranch_trace::RecoveryPhase;
use anabranch_units::Instant;

impl Sender {
    /// Packets leave with at most `most` payload bytes from now on, retransmissions too. A search for larger ones ends.
    pub fn cut_to(&mut self, most: u32) {
        self.search = None;
        self.cut(most, false);
    }

    fn cut(&mut self, most: u32, lost: bool) -> u32 {
        // It names packets by their numbers.
        self.next_seg = Default::default();
        self.board.cut_to(most.into(), lost)
    }

    /// A router has dropped a packet of more than `most` payload bytes: all such packets are lost, and are retransmitted in parts. A search for
    /// larger ones ends. Returns how many packets are newly lost.
    pub fn on_too_big(&mut self, now: Instant, most: u32) -> u32 {
        self.search = None;
        let newly_lost = self.cut(most, true);
        if newly_lost > 0 {
            self.repair(now);
        }
        newly_lost
    }

    /// Segments that were too large are lost. Congestion is not the reason, so that the window stays as it is (Linux `tcp_simple_retransmit`).
    fn repair(&mut self, now: Instant) {
        if matches!(self.phase, RecoveryPhase::Open | RecoveryPhase::Disorder) {
            self.phase = RecoveryPhase::Loss;
            self.high = self.board.nxt();
            self.no_new();
            self.undo.done();
            self.probe = Probe::Idle;
            self.duplicates = 0;
            self.timers.start_retransmission(now, self.rtt.rto());
        }
    }

    // ---- larger ones ----

    /// Packets leave with at most `low` payload bytes from now on. Larger ones are looked for, up to `before` or the limit of the search before.
    pub fn fall_to(&mut self, now: Instant, low: u32, before: u32) {
        let max = self.search.as_ref().map_or(before, |search| search.max());
        self.cut(low, false);
        self.search = Some(Box::new(Search::begin(now, low, max)));
    }

    /// Larger packets are looked for, or were.
    #[inline(always)]
    pub fn searches(&self) -> bool {
        self.search.is_some()
    }

    /// Payload of the probe to send now, and of ordinary packets. None is sent while losses are repaired.
    pub fn next_probe(&mut self, now: Instant) -> Option<(u32, u32)> {
        let open = self.phase == RecoveryPhase::Open;
        let search = self.search.as_mut().filter(|_| open)?;
        Some((search.next(now)?, search.low()))
    }

    /// The payload of packets from now on, if a probe has arrived.
    pub fn take_larger(&mut self) -> Option<u32> {
        let una = self.una();
        let search = self.search.as_mut()?;
        search.probe().filter(|probe| probe.end <= una)?;
        search.on_arrived()
    }

    /// RFC 4821 §7.6.1: if nothing else is lost, the probe was too large, and the window stays as it is.
    /// `lost`: packets newly marked lost.
    pub(super) fn on_lone_loss(&mut self, now: Instant, lost: u32) -> Option<Verdict> {
        let search = self.search.as_mut()?;
        let first = self.board.first().filter(|first| self.board.lost() == 1 && first.lost)?;
        search.probe().filter(|probe| *probe == first.seq())?;
        search.on_lost();
        let low = search.low();
        self.cut(low, true);
        self.repair(now);
        // The event is of a retransmission alone: congestion control has nothing to react to.
        Some(Verdict { change: Some(RecoveryChange::EnterDisorder), lost })
    }

    /// The probe leaves no second time, nor as a tail: it is cut, and its fate stays unknown.
    pub(super) fn give_probe_up(&mut self) {
        let una = self.board.una();
        let Some(search) = self.search.as_mut() else { return };
        if search.probe().is_some_and(|probe| probe.end > una) {
            search.on_unclear();
            let low = search.low();
            self.cut(low, false);
        }
    }
}
