//! The native half of the Python package `anabranch`: it hands scenarios, runs and tables over, and has no logic of its own.

mod errors;
mod inputs;
mod plan;
mod plugins;
mod scenario;
mod seam;
mod session;
mod table;

use anabranch_cli::Drivers;
use anabranch_run::{Driver, Job, Plan, Refusal, RunError, RunOutcome, VirtualTime};
use anabranch_trace::Recorder;
use anabranch_units::Duration;
use plugins::Fate;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::sync::mpsc::{RecvTimeoutError, channel};

/// Real time needs privileges and a process of its own.
struct NoRealTime;

impl Driver for NoRealTime {
    fn prepare(&self, _: &Plan) -> Result<(), Refusal> {
        let what = "hosts in real time need the command `anabranch`".to_owned();
        let help = "leave out realtime, hosts.sender and hosts.receiver for virtual time".to_owned();
        Err(Refusal::Missing { what, help: Some(help) })
    }

    fn run(&self, _: &Job, _: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        Err(RunError::Unsupported { what: "hosts in real time".into() })
    }
}

fn no_preflight(_: Duration) -> Box<dyn Driver> {
    Box::new(NoRealTime)
}

/// Virtual time that a signal stops, before a run and in the middle of one.
struct Stoppable(Fate);

impl Driver for Stoppable {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let world = VirtualTime { stop: Some(self.0.flag()), ..VirtualTime::default() };
        if self.0.is_stopped() { Err(RunError::Interrupted) } else { world.run(job, listener) }
    }
}

/// Executes the command that `arguments` (without the program's name) name: its output, its messages and its exit code.
/// Ctrl-C ends its runs.
#[pyfunction]
#[expect(clippy::disallowed_methods, reason = "one thread waits for signals while the others work")]
fn answer(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<(String, String, u8)> {
    let fate = Fate::new();
    let driver = Stoppable(fate.clone());
    let mut raised = Ok(());
    let answer = py.detach(|| {
        std::thread::scope(|scope| {
            let (end, ended) = channel();
            let work = scope.spawn(move || {
                let drivers =
                    Drivers { virtual_time: &driver, real_time: &NoRealTime, preflight: no_preflight, cache: None };
                let arguments = std::iter::once("anabranch".into()).chain(arguments);
                let answer = anabranch_cli::answer(arguments, &drivers, false);
                let _ = end.send(());
                answer
            });
            while ended.recv_timeout(std::time::Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    raised = Err(error);
                    fate.stop();
                }
            }
            work.join()
        })
    });
    raised?;
    let answer = answer.map_err(|_| errors::error(py, "CommandError", "the command panicked: this is a defect"))?;
    Ok((answer.output, answer.errors, answer.code))
}

/// `anabranch._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<inputs::Inputs>()?;
    module.add_class::<plan::Folder>()?;
    module.add_class::<plan::Outcomes>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<plan::Results>()?;
    module.add_class::<plugins::Acked>()?;
    module.add_class::<plugins::Event>()?;
    module.add_class::<plugins::PyWindow>()?;
    module.add_class::<scenario::Checked>()?;
    module.add_class::<seam::Path>()?;
    module.add_class::<seam::Round>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(answer, module)?)?;
    module.add_function(wrap_pyfunction!(plan::main_metric, module)?)?;
    module.add_function(wrap_pyfunction!(plan::program, module)?)?;
    module.add_function(wrap_pyfunction!(plan::read_text, module)?)?;
    module.add_function(wrap_pyfunction!(plan::schema, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::builtin, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::codes, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::scenarios, module)?)?;
    Ok(())
}
