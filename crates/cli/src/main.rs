//! The `anabranch` command.

use anabranch_cli::Drivers;
use anabranch_lab::RealTime;
use anabranch_lab::preflight::Preflighted;
use anabranch_run::VirtualTime;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let drivers = Drivers {
        virtual_time: &VirtualTime::default(),
        real_time: &RealTime,
        preflight: |limit| Box::new(Preflighted::new(limit)),
    };
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
