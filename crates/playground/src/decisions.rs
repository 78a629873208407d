//! The view of a scheduler when it chose: a witness around it takes down the view of each round that bound data, or that waited
//! although a path had room. It gives no command, so the run is the same.

use crate::numbers::{flag, seconds, window_left};
use anabranch_engine::schedule::{PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_sim::{End, FlowSetup, Party};
use anabranch_units::{Instant, Rng};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Numbers of a decision before those of its paths: time in seconds, its outcome (0 = the scheduler waited, 1 = it bound data, 2 =
/// it bound data and then waited), bytes of backlog, bytes that the peer's window still admits.
pub const HEAD: usize = 4;

/// Numbers of each path: established (1, or 0), room in packets, smoothed RTT in seconds (NaN before the first sample), congestion
/// window, packets in flight, packets queued.
pub const OF_PATH: usize = 6;

/// The decisions of a run that were not taken yet, in their order.
#[derive(Clone, Debug)]
pub struct Decisions {
    rows: Arc<Mutex<Vec<f64>>>,
    paths: usize,
    limit: usize,
}

impl Decisions {
    /// Of a scenario with this many paths; at most `limit` that bound data are kept, and as many that waited.
    pub fn new(paths: usize, limit: usize) -> Self {
        Self { rows: Arc::default(), paths, limit }
    }

    /// Numbers per decision.
    pub fn width(&self) -> usize {
        HEAD + OF_PATH * self.paths
    }

    /// The rows since the last call.
    pub fn take(&self) -> Vec<f64> {
        core::mem::take(&mut *self.rows())
    }

    fn rows(&self) -> MutexGuard<'_, Vec<f64>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a witness around the scheduler of the first connection's server, which sends the data.
    pub fn witness(&self, flows: &mut [FlowSetup]) {
        let Some(End::Engine { parties, .. }) = flows.first_mut().map(|flow| &mut flow.server) else { return };
        let Some(Party { setup, .. }) = parties.first_mut() else { return };
        let nobody = anabranch_schedulers::build("fifo", &[]);
        if let Ok(nobody) = nobody {
            let inner = core::mem::replace(&mut setup.scheduler, nobody);
            setup.scheduler = Box::new(Witness { inner, decisions: self.clone(), before: Vec::new(), kept: [0; 2] });
        }
    }
}

#[derive(Debug)]
struct Witness {
    inner: Box<dyn Scheduler>,
    decisions: Decisions,
    /// The view before a round, as a row.
    before: Vec<f64>,
    /// Decisions so far: those that only waited, those that bound data.
    kept: [usize; 2],
}

impl Witness {
    /// Takes down the view.
    fn look(&mut self, view: &View) {
        self.before.clear();
        self.before.extend([view.now().as_secs_f64(), 0.0, view.backlog().bytes() as f64, window_left(view) as f64]);
        self.before.resize(self.decisions.width(), f64::NAN);
        for path in view.paths() {
            let at = HEAD + OF_PATH * path.id.index();
            if let Some(row) = self.before.get_mut(at..at + OF_PATH) {
                row.copy_from_slice(&of_path(path));
            }
        }
    }

    /// Keeps the view of a round that chose or waited.
    fn keep(&mut self, view: &View) {
        let bound = (view.backlog().bytes() as f64) < self.before[2];
        let could_send = !view.backlog().is_empty() && !view.window_blocked();
        let waited = could_send && view.candidates().any(PathView::eligible);
        let kept = &mut self.kept[usize::from(bound)];
        if (bound || waited) && *kept < self.decisions.limit {
            *kept += 1;
            self.before[1] = f64::from(u8::from(bound) * (1 + u8::from(waited)));
            self.decisions.rows().extend(&self.before);
        }
    }
}

fn of_path(path: &PathView) -> [f64; OF_PATH] {
    let counts = [path.room(), path.cwnd, path.in_flight, path.queued].map(f64::from);
    [flag(path.usable), counts[0], seconds(path.srtt), counts[1], counts[2], counts[3]]
}

impl Scheduler for Witness {
    fn seed(&mut self, rng: Rng) {
        self.inner.seed(rng);
    }
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.look(round);
        self.inner.schedule(round);
        self.keep(round);
    }
    fn rescue(&mut self, round: &mut Round<'_>) {
        self.inner.rescue(round);
    }
    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        self.inner.on_event(event, view);
    }
    fn serves_lone_path(&self) -> bool {
        self.inner.serves_lone_path()
    }
    fn waits_for_timeouts(&self) -> bool {
        self.inner.waits_for_timeouts()
    }
    fn next_wakeup(&self) -> Option<Instant> {
        self.inner.next_wakeup()
    }
    fn values(&self) -> Option<(&'static str, f64)> {
        self.inner.values()
    }
}
