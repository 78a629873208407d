//! Work on a thread of its own, while Python's looks after signals and progress.

use crate::errors;
use crate::plugins::Fate;
use anabranch_run::{Driver, Job, RunError, RunOutcome, VirtualTime};
use anabranch_trace::Recorder;
use anabranch_workbench::progress::Progress;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

/// Numbers of runs, done and planned.
#[derive(Default)]
pub struct Counts([AtomicUsize; 2]);

impl Counts {
    pub fn set(&self, done: usize, planned: usize) {
        for (count, now) in self.0.iter().zip([done, planned]) {
            count.store(now, Ordering::Relaxed);
        }
    }

    pub fn get(&self) -> [usize; 2] {
        self.0.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

impl Progress for Counts {
    fn advance(&self, done: usize, planned: usize) {
        self.set(done, planned);
    }

    fn say(&self, _: &str) {}

    fn warn(&self, _: &str) {}

    fn end(&self) {}
}

/// Signals and the progress bar; an exception in either ends the runs.
pub struct Attendant<'a> {
    progress: Option<&'a Py<PyAny>>,
    fate: &'a Fate,
    raised: Mutex<Option<PyErr>>,
}

impl<'a> Attendant<'a> {
    /// `progress` is called with the numbers of runs that are done and planned.
    pub fn new(progress: Option<&'a Py<PyAny>>, fate: &'a Fate) -> Self {
        Self { progress, fate, raised: Mutex::default() }
    }

    pub fn attend(&self, py: Python<'_>, [done, planned]: [usize; 2]) {
        let tell = || match self.progress {
            Some(progress) if planned > 0 => progress.call1(py, (done, planned)).map(drop),
            _ => Ok(()),
        };
        if let Err(error) = py.check_signals().and_then(|()| tell()) {
            crate::plan::locked(&self.raised).get_or_insert(error);
            self.fate.stop();
        }
    }

    /// The first exception.
    pub fn take(self) -> Option<PyErr> {
        self.raised.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Does `work` on another thread, and attends meanwhile; `None` if it panicked.
    #[expect(clippy::disallowed_methods, reason = "one thread waits for signals while the others work")]
    pub fn beside<T: Send>(&self, py: Python<'_>, counts: &Counts, work: impl FnOnce() -> T + Send) -> Option<T> {
        py.detach(|| {
            std::thread::scope(|scope| {
                let (end, ended) = channel();
                let work = scope.spawn(move || {
                    let answer = work();
                    let _ = end.send(());
                    answer
                });
                while ended.recv_timeout(std::time::Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
                    Python::attach(|py| self.attend(py, counts.get()));
                }
                work.join().ok()
            })
        })
    }
}

/// Virtual time that a signal stops, before a run and in the middle of one.
struct Stoppable(Fate);

impl Driver for Stoppable {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let world = VirtualTime { stop: Some(self.0.flag()), ..VirtualTime::default() };
        if self.0.is_stopped() { Err(RunError::Interrupted) } else { world.run(job, listener) }
    }
}

/// Does `work`, which gets a driver in virtual time. Ctrl-C ends its runs.
pub fn attended<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&dyn Driver, &dyn Progress) -> T + Send,
) -> PyResult<T> {
    let (fate, counts) = (Fate::new(), Counts::default());
    let driver = Stoppable(fate.clone());
    let attendant = Attendant::new(progress, &fate);
    let done = attendant.beside(py, &counts, || work(&driver, &counts));
    attendant.take().map_or(Ok(()), Err)?;
    done.ok_or_else(|| errors::error(py, "CommandError", "the work panicked: this is a defect"))
}
