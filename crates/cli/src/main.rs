//! The `anabranch` command.

use anabranch_cli::{Drivers, visible};
#[cfg(target_os = "linux")]
use anabranch_lab::{RealTime, interrupt, preflight::Preflighted};
use anabranch_run::{Driver, Job, Plan, Refusal, RunError, RunOutcome, VirtualTime};
use anabranch_trace::Recorder;
use anabranch_units::Duration;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

/// Faster than the C library's where runs are short or flows are many; see `benches/README.md`.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Where there is no Linux.
#[cfg(not(target_os = "linux"))]
struct RealTime;

#[cfg(not(target_os = "linux"))]
impl Driver for RealTime {
    fn prepare(&self, _: &Plan) -> Result<(), Refusal> {
        let what = "hosts in real time need Linux".to_owned();
        let help = "leave out --realtime, --sender and --receiver for virtual time".to_owned();
        Err(Refusal::Missing { what, help: Some(help) })
    }

    fn run(&self, _: &Job, _: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        Err(RunError::Unsupported { what: "hosts in real time need Linux".into() })
    }
}

/// Real time with its networks measured.
#[cfg(target_os = "linux")]
fn preflight(limit: Duration) -> Box<dyn Driver> {
    Box::new(Preflighted::new(limit))
}

#[cfg(not(target_os = "linux"))]
fn preflight(_: Duration) -> Box<dyn Driver> {
    Box::new(RealTime)
}

/// Virtual time that a signal stops, so that finished work is reported; a second signal ends the process at once.
#[cfg(target_os = "linux")]
struct Stoppable(VirtualTime);

#[cfg(target_os = "linux")]
impl Default for Stoppable {
    fn default() -> Self {
        Self(VirtualTime { stop: Some(interrupt::flag()), ..VirtualTime::default() })
    }
}

#[cfg(target_os = "linux")]
impl Driver for Stoppable {
    fn prepare(&self, _: &Plan) -> Result<(), Refusal> {
        interrupt::listen().map_err(|error| Refusal::Missing { what: error.to_string(), help: None })
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        if interrupt::is_asked() { Err(RunError::Interrupted) } else { self.0.run(job, listener) }
    }
}

#[cfg(not(target_os = "linux"))]
type Stoppable = VirtualTime;

fn main() -> ExitCode {
    anabranch_cli::complete();
    #[cfg(target_os = "linux")]
    let keeper = anabranch_lab::shell::keep(std::env::args_os());
    #[cfg(target_os = "linux")]
    if let Some(code) = keeper.or_else(|| anabranch_proxy::native::keep(std::env::args_os())) {
        return ExitCode::from(code);
    }
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let cache = anabranch_cli::cache_folder();
    let driver = Stoppable::default();
    let drivers = Drivers { virtual_time: &driver, real_time: &RealTime, preflight, cache: cache.as_deref() };
    let answer = anabranch_cli::answer(std::env::args_os(), &drivers, colour);
    let mut out = std::io::stdout();
    // A file or another program gets the bytes as they are.
    let output = if out.is_terminal() { visible(&answer.output) } else { (&*answer.output).into() };
    let written = out.write_all(output.as_bytes()).and_then(|()| out.flush());
    drop(output);
    let answer = match written {
        // The reader, `head` perhaps, has seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => answer.unprinted(&error, colour),
        _ => answer,
    };
    // Standard error may be closed; there is nowhere left to say so.
    let _ = std::io::stderr().write_all(answer.errors.as_bytes());
    ExitCode::from(answer.code)
}
