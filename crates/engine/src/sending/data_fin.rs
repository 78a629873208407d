//! Our DATA_FIN (RFC 8684 §3.3.3). It stands at the offset where the stream ends.

use crate::deadlines::NEVER;
use anabranch_units::{Duration, Instant, PathId};

/// How long one beside payload waits for the payload's own repetition.
const BESIDE_PAYLOAD: Duration = Duration::from_secs(1);

/// Our DATA_FIN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataFin {
    /// The DATA_FIN has left once.
    left: bool,
    /// When it is repeated, without payload.
    again: Instant,
    repeats: u32,
    /// The subflows on which it is still to be sent, without payload: on every one, since one may have died unnoticed.
    due: u32,
    acked: bool,
}

impl Default for DataFin {
    fn default() -> Self {
        Self { left: false, again: NEVER, repeats: 0, due: 0, acked: false }
    }
}

impl DataFin {
    /// The subflows on which it is to be sent without payload, as [bits](PathId::bit).
    pub fn due(&self) -> u32 {
        self.due
    }

    /// The DATA_FIN is to be sent without payload on `id`.
    pub fn is_due_on(&self, id: PathId) -> bool {
        self.due & id.bit() != 0
    }

    /// The DATA_FIN has left, with or without payload.
    pub fn has_left(&self) -> bool {
        self.left
    }

    /// The peer has acknowledged it.
    pub fn is_acked(&self) -> bool {
        self.acked
    }

    /// When to call [`Self::on_timer`].
    pub fn deadline(&self) -> Instant {
        self.again
    }

    /// Has the DATA_FIN sent without payload, on every subflow.
    pub fn send(&mut self) {
        self.due = u32::MAX;
    }

    /// Has the DATA_FIN no longer sent without payload.
    pub fn hold(&mut self) {
        self.due = 0;
    }

    /// Notes that the DATA_FIN left on `id` at `now`, where the retransmission timeout is `rto`, and `most` at most after back-off.
    pub fn on_sent(&mut self, now: Instant, id: PathId, rto: Duration, most: Duration) {
        let wait = rto * (1 << self.repeats.min(6));
        // Bounded as the retransmission timer is (RFC 6298 §2.5), which never is below a round trip.
        self.again = now + wait.min(most.max(rto));
        self.left = true;
        self.due &= !id.bit();
    }

    /// The peer has acknowledged it.
    pub fn on_acked(&mut self) {
        self.acked = true;
        self.again = NEVER;
        self.due = 0;
    }

    /// Handles a DATA_FIN that was not acknowledged in time: repeats it if it is `alone`. One beside payload is repeated with that. Gives how often
    /// it was repeated, if it is now.
    pub fn on_timer(&mut self, now: Instant, alone: bool) -> Option<u32> {
        if !alone {
            self.again = now + BESIDE_PAYLOAD;
            return None;
        }
        self.again = NEVER;
        self.repeats += 1;
        self.due = u32::MAX;
        Some(self.repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_repeated_within_a_round_trip() {
        let (rto, most) = (Duration::from_secs(107), Duration::from_secs(60));
        let mut fin = DataFin::default();
        for n in 0..3 {
            fin.on_sent(Instant::ZERO, PathId(0), rto, most);
            assert_eq!(fin.deadline(), Instant::ZERO + rto, "repeated {n} times");
            assert_eq!(fin.on_timer(fin.deadline(), true), Some(n + 1));
        }
    }

    #[test]
    fn its_back_off_ends_at_the_maximum() {
        let (rto, most) = (Duration::from_millis(300), Duration::from_secs(1));
        let mut fin = DataFin::default();
        let mut waits = Vec::new();
        for _ in 0..4 {
            fin.on_sent(Instant::ZERO, PathId(0), rto, most);
            waits.push(fin.deadline().since(Instant::ZERO).as_millis());
            fin.on_timer(fin.deadline(), true);
        }
        assert_eq!(waits, [300, 600, 1000, 1000]);
    }
}
