//! What to send again in fast recovery although it is not taken for lost (RFC 6675 §4, `NextSeg` rules 3 and 4).

use super::scoreboard::Scoreboard;

/// One recovery's memory.
#[derive(Debug, Default)]
pub(super) struct NextSeg {
    /// Number after the highest packet that was sent again (`HighRxt`).
    high_rxt: u64,
    /// The rescue retransmission was made (`RescueRxt`).
    rescued: bool,
}

impl NextSeg {
    /// The packet to send again when nothing is lost and nothing is new.
    pub fn choose(&self, board: &Scoreboard) -> Option<u64> {
        self.hole(board).or_else(|| board.last_open().filter(|_| !self.rescued))
    }

    /// Rule 3: the lowest hole below what is SACKed and above what was sent again.
    fn hole(&self, board: &Scoreboard) -> Option<u64> {
        board.hole_from(self.high_rxt)
    }

    /// Packet `n` is about to be sent again.
    pub fn on_retransmitted(&mut self, n: u64, board: &Scoreboard) {
        if board.is_missing(n) || self.hole(board) == Some(n) {
            self.high_rxt = self.high_rxt.max(n + 1);
        } else {
            self.rescued = true;
        }
    }
}
