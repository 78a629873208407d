//! Whether a retransmission was spurious (RFC 3522, RFC 4015, RFC 2883 §4), with Linux's bookkeeping.

use super::scoreboard::echo_before;
use anabranch_units::{Instant, Range};

/// State needed to undo the reaction to a spurious loss.
#[derive(Debug, Default)]
pub(super) struct Undo {
    /// `una` when the window was reduced; `None` if there is nothing to undo.
    marker: Option<u64>,
    /// Retransmissions since, not yet reported as duplicates; `None` before the first.
    unproven: Option<u32>,
    /// When the first of the retransmissions was sent that may still be outstanding.
    first: Option<Instant>,
    retransmissions: u64,
    duplicates: u64,
}

impl Undo {
    /// The window is reduced; `retransmitted` packets retransmitted are in flight already.
    pub fn begin(&mut self, una: u64, retransmitted: u32) {
        self.marker = Some(una);
        self.unproven = (retransmitted > 0).then_some(retransmitted);
    }

    /// The reduction is taken back.
    pub fn done(&mut self) {
        self.marker = None;
    }

    pub fn on_retransmitted(&mut self, now: Instant) {
        self.retransmissions += 1;
        self.unproven = Some(self.unproven.unwrap_or(0) + 1);
        self.first.get_or_insert(now);
    }

    /// Nothing that was retransmitted is outstanding any more.
    pub fn settle(&mut self) {
        self.first = None;
    }

    /// The peer got a packet twice. False if the network must have duplicated it: more reports than retransmissions.
    pub fn on_dsack(&mut self, dsack: Range) -> bool {
        if self.duplicates >= self.retransmissions {
            return false;
        }
        self.duplicates += 1;
        if self.marker.is_some_and(|marker| dsack.end > marker) {
            self.unproven = self.unproven.map(|n| n.saturating_sub(1));
        }
        true
    }

    /// Every retransmission was a duplicate (RFC 2883 §4).
    pub fn all_duplicates(&self) -> bool {
        self.marker.is_some() && self.unproven == Some(0)
    }

    /// The Eifel algorithm: what is acknowledged was sent before the first retransmission (RFC 3522 §3.2 step 4).
    pub fn delayed(&self, echo: Option<Instant>) -> bool {
        self.marker.is_some() && self.first.is_some_and(|first| echo_before(echo, first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn all_retransmissions_must_be_duplicates() {
        let mut undo = Undo::default();
        undo.begin(100, 0);
        assert!(!undo.all_duplicates());
        undo.on_retransmitted(at(1));
        undo.on_retransmitted(at(2));
        assert!(undo.on_dsack(Range::new(100, 110)));
        assert!(!undo.all_duplicates());
        assert!(undo.on_dsack(Range::new(110, 120)));
        assert!(undo.all_duplicates());
        undo.done();
        assert!(!undo.all_duplicates());
    }

    #[test]
    fn duplicates_of_the_network_and_of_old_data_prove_nothing() {
        let mut undo = Undo::default();
        assert!(!undo.on_dsack(Range::new(1, 2)));
        undo.begin(100, 0);
        undo.on_retransmitted(at(1));
        assert!(undo.on_dsack(Range::new(80, 100)));
        assert!(!undo.all_duplicates());
        assert!(!undo.on_dsack(Range::new(100, 110)));
        assert!(!undo.all_duplicates());
    }

    #[test]
    fn an_echo_from_before_the_retransmission_tells() {
        let mut undo = Undo::default();
        undo.begin(1, 0);
        assert!(!undo.delayed(Some(at(1))));
        undo.on_retransmitted(at(50));
        undo.on_retransmitted(at(60));
        assert!(undo.delayed(Some(at(49))));
        assert!(!undo.delayed(Some(at(50))));
        assert!(!undo.delayed(None));
        // Within one tick of the timestamp clock the order cannot be known.
        let mut undo = Undo::default();
        undo.begin(1, 0);
        undo.on_retransmitted(Instant::from_nanos(50_900_000));
        assert!(!undo.delayed(Some(at(50))));
        assert!(undo.delayed(Some(at(49))));
        undo.settle();
        assert!(!undo.delayed(Some(at(49))));
    }
}
