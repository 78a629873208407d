//! Congestion control. Every call that may change a subflow's window hands the window on: to the subflow, and to its path's view.

use crate::congestion::{Acked, CongestionControl, Loss};
use crate::schedule::Assignment;
use crate::settings::Settings;
use crate::subflow::Subflow;
use anabranch_units::{Duration, PathId};

/// Congestion control, and what is done with its windows.
#[derive(Debug)]
pub(super) struct Windows {
    congestion: Box<dyn CongestionControl>,
    /// Paths are paced, though congestion control gives no rate.
    paces: bool,
}

impl Windows {
    pub fn new(congestion: Box<dyn CongestionControl>, settings: &Settings) -> Self {
        Self { congestion, paces: settings.tcp.pacing }
    }

    /// For a round, whose [penalties](Self::penalised) are handed on after it.
    pub fn congestion_mut(&mut self) -> &mut dyn CongestionControl {
        &mut *self.congestion
    }

    /// The windows depend on delivery rates.
    pub fn is_rate_based(&self) -> bool {
        self.congestion.is_rate_based()
    }

    /// Debug builds: `s` has the window that congestion control decides.
    pub fn agrees_with(&self, s: &Subflow) -> bool {
        s.allowed() == self.congestion.window(s.id).into()
    }

    #[inline(always)]
    fn hand_on(&self, view: &mut Assignment, s: &mut Subflow) {
        s.allow(self.congestion.window(s.id), self.paces, view);
    }

    /// `s` begins with a window of `initial` packets, and a threshold if there is one.
    pub fn join(&mut self, view: &mut Assignment, s: &mut Subflow, initial: u32, threshold: Option<u32>) {
        self.congestion.on_join(s.id, initial);
        if let Some(threshold) = threshold {
            self.congestion.set_threshold(s.id, threshold);
        }
        self.hand_on(view, s);
    }

    /// The subflow of a path is gone.
    pub fn leave(&mut self, id: PathId) {
        self.congestion.on_leave(id);
    }

    /// `s` was acknowledged.
    #[inline(always)]
    pub fn on_ack(&mut self, view: &mut Assignment, s: &mut Subflow, acked: &Acked) {
        if acked.packets > 0 || acked.rtt.is_some() {
            self.congestion.on_ack(s.id, acked, view.paths());
        }
        self.hand_on(view, s);
    }

    /// A loss episode of `s` begins.
    pub fn on_loss(&mut self, view: &mut Assignment, s: &mut Subflow, loss: Loss) {
        self.congestion.on_loss(s.id, view.now(), loss, view.paths());
        self.hand_on(view, s);
    }

    /// The last reaction to a loss of `s` was unjustified.
    pub fn on_undo(&mut self, view: &mut Assignment, s: &mut Subflow) {
        self.congestion.on_undo(s.id, view.now());
        self.hand_on(view, s);
    }

    /// `s` is about to send after `idle`, longer than `rto`. True if its window shrinks.
    pub fn on_idle(&mut self, view: &mut Assignment, s: &mut Subflow, idle: Duration, rto: Duration) -> bool {
        let before = s.allowed().cwnd;
        self.congestion.on_idle(s.id, view.now(), idle, rto);
        self.hand_on(view, s);
        s.allowed().cwnd < before
    }

    /// No more than `used` packets of the window of `s` were in flight for long.
    pub fn on_underuse(&mut self, view: &mut Assignment, s: &mut Subflow, used: u32) {
        self.congestion.on_underuse(s.id, used);
        self.hand_on(view, s);
    }

    /// A round penalised `s`.
    pub fn penalised(&self, view: &mut Assignment, s: &mut Subflow) {
        self.hand_on(view, s);
    }
}
