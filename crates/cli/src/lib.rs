//! The command line: what `anabranch` understands, and what it answers.
//!
//! The drivers come from outside, and an answer is a value, so that tests can ask without a process.

mod args;
mod artifacts;
mod builtin;
mod commands;
mod failure;
mod frontier_table;
mod kept;
#[cfg(target_os = "linux")]
mod link_table;
mod load;
mod marked;
mod opener;
mod out_folder;
mod output;
mod papers;
mod parity_table;
mod plain_table;
mod pool;
mod preflight_table;
mod reference;
mod reproduction_table;
mod results_folder;
mod runs_csv;
mod runs_parquet;
mod runs_table;
mod stage;
mod table;
mod watch;

use anabranch_run::Driver;
use anabranch_units::Duration;
use args::{Arguments, Command};
use clap::Parser;
use failure::Failure;
use std::ffi::OsString;

/// What runs scenarios.
#[derive(Clone, Copy)]
pub struct Drivers<'a> {
    /// By its own time.
    pub virtual_time: &'a dyn Driver,
    /// By the clock, with kernels as hosts.
    pub real_time: &'a dyn Driver,
    /// The same, with each network measured before its first run, as far as that takes no longer than the limit.
    pub preflight: fn(Duration) -> Box<dyn Driver>,
}

/// What a command answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// For standard output.
    pub output: String,
    /// For standard error.
    pub errors: String,
    /// 0 = success, 1 = a run or check failed, 2 = the input cannot be used, 130 = interrupted; of `shell`, the exit code of
    /// what it ran.
    pub code: u8,
}

/// Does what `arguments` (the program's name first) ask for. `drivers` run scenarios; `colour` is for diagnostics.
pub fn answer(arguments: impl IntoIterator<Item = OsString>, drivers: &Drivers<'_>, colour: bool) -> Answer {
    let parsed = match Arguments::try_parse_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return refusal(&error, colour),
    };
    match dispatch(parsed, drivers) {
        Ok(answer) => answer,
        Err(failure) => Answer { errors: failure.render(colour), code: failure.exit_code(), ..Answer::default() },
    }
}

/// Help and version are errors to clap; they go to standard output and are a success.
fn refusal(error: &clap::Error, colour: bool) -> Answer {
    let rendered = error.render();
    let text = if colour { rendered.ansi().to_string() } else { rendered.to_string() };
    match error.use_stderr() {
        true => Answer { errors: text, code: 2, ..Answer::default() },
        false => Answer { output: rendered.to_string(), ..Answer::default() },
    }
}

impl From<String> for Answer {
    fn from(output: String) -> Self {
        Self { output, ..Self::default() }
    }
}

fn dispatch(arguments: Arguments, drivers: &Drivers<'_>) -> Result<Answer, Failure> {
    let Some(command) = arguments.command else { return Ok(commands::tour().into()) };
    let output = match command {
        Command::Demo(arguments) => commands::demo(&arguments, drivers.virtual_time),
        Command::Run(arguments) => commands::run(&arguments, drivers),
        // What it runs has printed by now, and its exit code is ours.
        #[cfg(target_os = "linux")]
        Command::Shell(arguments) => return commands::shell(&arguments),
        #[cfg(not(target_os = "linux"))]
        Command::Shell(_) => {
            Err(Failure::failed("anabranch::shell::failed", "a shell over emulated paths needs Linux"))
        }
        Command::Check(arguments) => commands::check(&arguments),
        Command::List(arguments) => commands::list(&arguments),
        Command::Explain(arguments) => commands::explain(&arguments),
        Command::Completions { shell } => Ok(commands::completions(shell)),
        Command::Reproduce(arguments) => commands::reproduce(&arguments, drivers),
        Command::Compare(arguments) => commands::compare(&arguments, drivers.virtual_time),
        Command::Model(arguments) => commands::model(&arguments),
        Command::Parity(arguments) => commands::parity(&arguments, drivers),
        Command::Report(arguments) => commands::report(&arguments),
    };
    output.map(Answer::from)
}
