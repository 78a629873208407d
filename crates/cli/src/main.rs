//! The `anabranch` command.

use anabranch_cli::Drivers;
#[cfg(target_os = "linux")]
use anabranch_lab::{RealTime, preflight::Preflighted};
use anabranch_run::{Driver, VirtualTime};
use anabranch_units::Duration;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

/// Where there is no Linux.
#[cfg(not(target_os = "linux"))]
struct RealTime;

#[cfg(not(target_os = "linux"))]
impl anabranch_run::Driver for RealTime {
    fn prepare(&self, _: &anabranch_run::Plan) -> Result<(), anabranch_run::Refusal> {
        let what = "hosts in real time need Linux".to_owned();
        let help = "leave out --realtime, --sender and --receiver for virtual time".to_owned();
        Err(anabranch_run::Refusal::Missing { what, help: Some(help) })
    }

    fn run(
        &self,
        _: &anabranch_run::Job,
        _: &mut dyn anabranch_trace::Recorder,
    ) -> Result<anabranch_run::RunOutcome, anabranch_run::RunError> {
        Err(anabranch_run::RunError::Unsupported { what: "hosts in real time need Linux".into() })
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

fn main() -> ExitCode {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let drivers = Drivers { virtual_time: &VirtualTime::default(), real_time: &RealTime, preflight };
    let answer = anabranch_cli::answer(std::env::args_os(), &drivers, colour);
    // Standard error may be closed; there is nowhere left to say so.
    let _ = std::io::stderr().write_all(answer.errors.as_bytes());
    let mut out = std::io::stdout();
    match out.write_all(answer.output.as_bytes()).and_then(|()| out.flush()) {
        // The reader, `head` perhaps, has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(answer.code),
        Err(_) => ExitCode::FAILURE,
        Ok(()) => ExitCode::from(answer.code),
    }
}
