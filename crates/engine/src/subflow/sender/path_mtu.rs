//! Packets that the path does not carry any more, because they are too large.

use super::Sender;
use super::probe::Probe;
use anabranch_trace::RecoveryPhase;
use anabranch_units::Instant;

impl Sender {
    /// Packets leave with at most `most` payload bytes from now on, retransmissions too.
    pub fn cut_to(&mut self, most: u32) {
        self.cut(most, false);
    }

    fn cut(&mut self, most: u32, lost: bool) -> u32 {
        // It names packets by their numbers.
        self.next_seg = Default::default();
        self.board.cut_to(most.into(), lost)
    }

    /// A router has dropped a packet of more than `most` payload bytes: all such packets are lost, and are retransmitted in parts. Congestion
    /// is not the reason, so that the window stays as it is (Linux `tcp_simple_retransmit`). Returns how many packets are newly lost.
    pub fn on_too_big(&mut self, now: Instant, most: u32) -> u32 {
        let newly_lost = self.cut(most, true);
        if newly_lost > 0 && matches!(self.phase, RecoveryPhase::Open | RecoveryPhase::Disorder) {
            self.phase = RecoveryPhase::Loss;
            self.high = self.board.nxt();
            self.no_new();
            self.undo.done();
            self.probe = Probe::Idle;
            self.duplicates = 0;
            self.timers.start_retransmission(now, self.rtt.rto());
        }
        newly_lost
    }
}
