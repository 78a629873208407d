//! The choice of retransmissions in fast recovery that are not taken for lost (RFC 6675 §4, `NextSeg` rules 3 and 4).

use super::scoreboard::Scoreboard;

/// One recovery's memory.
#[derive(Debug, Default)]
pub(super) struct NextSeg {
    /// Number after the highest packet that was retransmitted (`HighRxt`).
    high_rxt: u64,
    /// The rescue retransmission was made (`RescueRxt`).
    rescued: bool,
}

impl NextSeg {
    /// The packet to retransmit when nothing is lost and nothing is new.
    pub fn choose(&self, board: &Scoreboard) -> Option<u64> {
        self.hole(board).or_else(|| board.last_open().filter(|_| !self.rescued))
    }

    /// Rule 3: the lowest hole below what is SACKed and above what was retransmitted.
    fn hole(&self, board: &Scoreboard) -> Option<u64> {
        board.hole_from(self.high_rxt)
    }

    /// Packet `n` is about to be retransmitted.
    pub fn on_retransmitted(&mut self, n: u64, board: &Scoreboard) {
        if board.is_missing(n) || self.hole(board) == Some(n) {
            self.high_rxt = self.high_rxt.max(n + 1);
        } else {
            self.rescued = true;
        }
    }
}
