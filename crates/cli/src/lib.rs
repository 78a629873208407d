//! The command line: what `anabranch` understands, and what it answers.
//!
//! The drivers come from outside, and an answer is a value, so that tests can ask without a process.

mod args;
mod artifacts;
mod builtin;
mod commands;
mod failure;
mod frontier;
mod input;
mod kept;
#[cfg(target_os = "linux")]
mod link_table;
mod load;
mod marked;
mod number;
mod opener;
mod out_folder;
mod output;
mod papers;
mod parity_table;
mod plain_table;
mod pool;
mod preflight_table;
#[cfg(target_os = "linux")]
mod programs;
mod reference;
mod reproduction;
mod results_folder;
mod runs_csv;
mod runs_parquet;
mod runs_table;
mod stage;
mod table;
mod told;
mod watch;

use anabranch_run::Driver;
use anabranch_units::Duration;
use args::{Arguments, Command};
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use failure::Failure;
use std::ffi::OsString;
use std::path::Path;
use told::Told;

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
    /// For standard error, after the output.
    pub errors: String,
    /// 0 = success, 1 = a run or check failed, 2 = the input cannot be used, 130 = interrupted; of `shell`, the exit code of
    /// what it ran.
    pub code: u8,
}

impl Answer {
    /// The same when its output could not be written: that is said after all else, and is no success.
    #[must_use]
    pub fn unprinted(mut self, error: &std::io::Error, colour: bool) -> Self {
        let failure = Failure::unwritable("standard output".as_ref(), error);
        self.errors += &failure.render(colour);
        self.code = self.code.max(failure.exit_code());
        self
    }
}

/// Does what `arguments` (the program's name first) ask for. `drivers` run scenarios; `colour` is for diagnostics.
pub fn answer(arguments: impl IntoIterator<Item = OsString>, drivers: &Drivers<'_>, colour: bool) -> Answer {
    let parsed = match Arguments::try_parse_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return refusal(&error, colour),
    };
    dispatch(parsed, drivers).unwrap_or_else(Told::from).answer(colour)
}

/// Help and version are errors to clap; they go to standard output and are a success.
fn refusal(error: &clap::Error, colour: bool) -> Answer {
    let rendered = error.render();
    let text = if colour { rendered.ansi().to_string() } else { rendered.to_string() };
    match error.use_stderr() {
        true => Answer { errors: text + &tip(error), code: 2, ..Answer::default() },
        false => Answer { output: rendered.to_string(), ..Answer::default() },
    }
}

/// What a word may have been meant for where clap knows no neighbour of it.
fn tip(error: &clap::Error) -> String {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let scenario = |word: &&str| builtin::find(word).is_some() || Path::new(word).is_file();
    if let Some(word) = word(ContextKind::InvalidSubcommand).filter(scenario) {
        return format!("\n`anabranch run {word}` runs this scenario.\n");
    }
    let key = word(ContextKind::InvalidArg).and_then(|word| word.strip_prefix("--"));
    let key = key.filter(|word| !anabranch_scenario::find_keys(word).is_empty());
    key.map_or(String::new(), |key| {
        format!("\n`{key}` is a key of scenarios: see `anabranch explain {key}`, and --set.\n")
    })
}

fn dispatch(arguments: Arguments, drivers: &Drivers<'_>) -> Result<Told, Failure> {
    let Some(command) = arguments.command else { return Ok(commands::tour().into()) };
    match command {
        Command::Demo(arguments) => commands::demo(&arguments, drivers.virtual_time),
        Command::Run(arguments) => commands::run(&arguments, drivers),
        #[cfg(target_os = "linux")]
        Command::Shell(arguments) => commands::shell(&arguments),
        #[cfg(not(target_os = "linux"))]
        Command::Shell(_) => {
            Err(Failure::failed("anabranch::shell::failed", "a shell over emulated paths needs Linux"))
        }
        Command::Check(arguments) => commands::check(&arguments).map(Told::from),
        Command::List(arguments) => commands::list(&arguments).map(Told::from),
        Command::Explain(arguments) => commands::explain(&arguments).map(Told::from),
        Command::Completions { shell } => Ok(commands::completions(shell).into()),
        Command::Reproduce(arguments) => commands::reproduce(&arguments, drivers),
        Command::Compare(arguments) => commands::compare(&arguments, drivers.virtual_time),
        Command::Model(arguments) => commands::model(&arguments).map(Told::from),
        Command::New(arguments) => commands::new(&arguments).map(Told::from),
        Command::Parity(arguments) => commands::parity(&arguments, drivers),
        Command::Report(arguments) => commands::report(&arguments),
    }
}
