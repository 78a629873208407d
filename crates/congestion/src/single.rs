//! Algorithms that know one subflow only, and the adapter that runs one per subflow.

use crate::flows::{Flows, view_of};
use crate::window::{WindowState, begins_episode};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::{Acked, Loss, Window};
use anabranch_plugin::schedule::PathView;
use anabranch_units::{Duration, Instant, PathId, Rate};
use core::fmt::Debug;

/// The congestion control of one subflow: Reno, CUBIC, Vegas… It changes the window that it borrows; each subflow
/// begins with a clone of the prototype.
pub trait SinglePath: Clone + Debug + Send {
    /// See [`CongestionControl::is_rate_based`].
    const RATE_BASED: bool = false;

    /// An acknowledgment. [`WindowState::slow_start`] returns the part that may increase the window.
    fn on_ack(&mut self, window: &mut WindowState, ack: &Acked, path: &PathView);

    /// The slow-start threshold after a loss or a mark, in packets. Called once per episode.
    fn ssthresh(&mut self, window: &WindowState) -> u32;

    /// A loss episode begins.
    fn on_loss(&mut self, window: &mut WindowState, _now: Instant, loss: Loss, _path: &PathView) {
        let ssthresh = if begins_episode(loss) { self.ssthresh(window) } else { window.ssthresh() };
        window.on_loss(loss, ssthresh);
    }

    /// The last loss was spurious.
    fn on_undo(&mut self, window: &mut WindowState, _now: Instant) {
        window.undo();
    }

    /// New data is about to be sent after `idle` without any.
    fn on_idle(&mut self, window: &mut WindowState, _now: Instant, idle: Duration, rto: Duration) {
        window.restart(idle, rto);
    }

    /// The pacing rate, if the algorithm has its own.
    fn pacing(&self) -> Option<Rate> {
        None
    }
}

/// One independent single-path algorithm per subflow: at a shared bottleneck N subflows take up to N times the rate of
/// one TCP.
#[derive(Clone, Debug)]
pub struct Uncoupled<A> {
    prototype: A,
    flows: Flows<A>,
}

impl<A: SinglePath> Uncoupled<A> {
    /// Every subflow begins with a clone of `prototype`.
    pub fn new(prototype: A) -> Self {
        Self { prototype, flows: Flows::default() }
    }
}

/// Calls `f` with the view of path `id`; without one, with an unmeasured path.
fn with_view(paths: &[PathView], id: PathId, f: impl FnOnce(&PathView)) {
    match view_of(paths, id) {
        Some(path) => f(path),
        None => f(&PathView::new(id, 1)),
    }
}

impl<A: SinglePath> CongestionControl for Uncoupled<A> {
    fn on_join(&mut self, id: PathId, initial_window: u32) {
        self.flows.join(id, initial_window, self.prototype.clone());
    }

    fn on_leave(&mut self, id: PathId) {
        self.flows.leave(id);
    }

    fn set_threshold(&mut self, id: PathId, ssthresh: u32) {
        if !A::RATE_BASED {
            self.flows.set_threshold(id, ssthresh);
        }
    }

    fn on_underuse(&mut self, id: PathId, used: u32) {
        if !A::RATE_BASED {
            self.flows.give_back(id, used);
        }
    }

    fn on_ack(&mut self, id: PathId, ack: &Acked, paths: &[PathView]) {
        if let Some(flow) = self.flows.get_mut(id) {
            with_view(paths, id, |path| flow.state.on_ack(&mut flow.window, ack, path));
        }
    }

    fn on_loss(&mut self, id: PathId, now: Instant, loss: Loss, paths: &[PathView]) {
        if let Some(flow) = self.flows.get_mut(id) {
            with_view(paths, id, |path| flow.state.on_loss(&mut flow.window, now, loss, path));
        }
    }

    fn on_undo(&mut self, id: PathId, now: Instant) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.state.on_undo(&mut flow.window, now);
        }
    }

    fn on_idle(&mut self, id: PathId, now: Instant, idle: Duration, rto: Duration) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.state.on_idle(&mut flow.window, now, idle, rto);
        }
    }

    fn window(&self, id: PathId) -> Window {
        let pacing = self.flows.get(id).and_then(|f| f.state.pacing());
        Window { pacing, ..self.flows.window(id) }
    }

    fn is_rate_based(&self) -> bool {
        A::RATE_BASED
    }
}
