//! Drivers do runs and observers watch them: the interface to the outside world.

use crate::job::{Job, RunError, RunOutcome};
use crate::plan::Plan;
use anabranch_trace::Recorder;
use std::fmt;

/// Why a driver cannot begin with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The plan names something that the hosts do not have.
    Word {
        /// Kind of the refused item: `scheduler`.
        kind: &'static str,
        /// The name.
        word: String,
        /// Why it cannot be.
        why: String,
        /// A valid word.
        help: String,
    },
    /// The system lacks something, or denies access to it.
    Missing {
        /// The missing part.
        what: String,
        /// How to get it.
        help: Option<String>,
    },
}

/// Does one run: in virtual time, or on real hosts.
pub trait Driver: Sync {
    /// Gets from the system what `plan` needs, before any thread starts. Called for each plan of a process.
    ///
    /// # Errors
    /// The plan is beyond this driver, or this system.
    fn prepare(&self, _plan: &Plan) -> Result<(), Refusal> {
        Ok(())
    }

    /// Does `job`, and records every event in `listener` too. The outcome must not depend on the listener.
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError>;
}

/// Does many tasks, in any order, on any number of threads.
pub trait Pool: Sync {
    /// Calls `task` with each of `0..count` once and returns when all are done.
    fn for_each(&self, count: usize, task: &(dyn Fn(usize) + Sync));
}

/// One task after the other, on the caller's thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Pool for Serial {
    fn for_each(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }
}

/// Observes runs from outside: lends them recorders, and is informed of their progress.
pub trait Observer: Sync {
    /// Calls `run` once with a recorder that listens to `job`.
    fn observe(&self, _job: &Labelled<'_>, run: &mut dyn FnMut(&mut dyn Recorder)) {
        run(&mut ());
    }
    /// `done` of `planned` runs are done. `planned` may grow when repeats are added. Called from any thread.
    fn progress(&self, _done: usize, _planned: usize) {}
}

impl Observer for () {}

/// A job with the names that results give it.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a> {
    /// The job.
    pub job: &'a Job,
    /// `minrtt+pr`, `single:wlan`.
    pub scheduler: &'a str,
    /// `olia`.
    pub congestion: &'a str,
    /// The row of the plan, counted over all cells; the first is 0.
    pub row: usize,
    /// The repetition of the row; the first is 0.
    pub repetition: u32,
}

impl fmt::Display for Labelled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, seed {}", self.scheduler, self.congestion, self.job.seed)?;
        self.job.cell.iter().try_for_each(|(key, value)| write!(f, ", {key} = {value}"))
    }
}
