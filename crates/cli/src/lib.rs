#![doc = include_str!("../README.md")]

mod args;
mod bar;
mod commands;
mod completing;
#[cfg(target_os = "linux")]
mod link_table;
mod marked;
mod number;
mod opener;
mod outcome;
#[cfg(target_os = "linux")]
mod programs;
mod reference;
mod search_path;
mod site;
mod site_server;
mod terminal;

use anabranch_workbench::builtin;
use anabranch_workbench::cache::Cached;
use anabranch_workbench::failure::Failure;
use args::{Arguments, Command};
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use outcome::Outcome;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

pub use anabranch_workbench::cache::cache_folder;
pub use anabranch_workbench::drivers::Drivers;
pub use anabranch_workbench::visible::visible;
pub use completing::complete;
pub use outcome::Answer;

/// Executes the command that `arguments` (the program's name first) name. `drivers` run scenarios; `colour` is for diagnostics.
pub fn answer(arguments: impl IntoIterator<Item = OsString>, drivers: &Drivers<'_>, colour: bool) -> Answer {
    let parsed = match Arguments::try_parse_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return refusal(&error, colour),
    };
    dispatch(parsed, drivers).unwrap_or_else(Outcome::from).answer(colour)
}

/// Help and version are errors to clap; they go to standard output and are a success.
fn refusal(error: &clap::Error, colour: bool) -> Answer {
    let rendered = error.render();
    let text = match visible(&rendered.to_string()) {
        Cow::Borrowed(_) if colour => rendered.ansi().to_string(),
        shown => shown.into_owned(),
    };
    match error.use_stderr() {
        true => Answer { errors: text + &tip(error), code: 2, ..Answer::default() },
        false => Answer { output: rendered.to_string(), ..Answer::default() },
    }
}

/// A suggestion for a word where clap has none.
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

fn dispatch(arguments: Arguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let Some(command) = arguments.command else { return Ok(commands::tour().into()) };
    let cached = Cached::new(drivers.virtual_time, drivers.cache.filter(|_| command.is_cached()));
    let drivers = &Drivers { virtual_time: &cached, ..*drivers };
    match command {
        Command::Demo(arguments) => commands::demo(&arguments, drivers.virtual_time),
        Command::Run(arguments) => commands::run(&arguments, drivers),
        #[cfg(target_os = "linux")]
        Command::Shell(arguments) => commands::shell(&arguments),
        #[cfg(not(target_os = "linux"))]
        Command::Shell(_) => {
            Err(Failure::failed("anabranch::shell::failed", "a shell over emulated paths needs Linux"))
        }
        Command::Check(arguments) => commands::check(&arguments).map(Outcome::from),
        Command::List(arguments) => commands::list(&arguments).map(Outcome::from),
        Command::Explain(arguments) => commands::explain(&arguments).map(Outcome::from),
        Command::Completions { shell } => Ok(commands::completions(shell).into()),
        Command::Man { folder } => commands::man(&folder).map(Outcome::from),
        Command::Licences => Ok(commands::LICENCES.to_owned().into()),
        Command::Reproduce(arguments) => commands::reproduce(&arguments, drivers),
        Command::Infer(arguments) => commands::infer(&arguments, drivers),
        Command::Compare(arguments) => commands::compare(&arguments, drivers.virtual_time),
        Command::Model(arguments) => commands::model(&arguments).map(Outcome::from),
        Command::Advise(arguments) => commands::advise(&arguments, drivers.virtual_time),
        Command::Analyse(arguments) => commands::analyse(&arguments),
        Command::Trace { action } => commands::trace(&action),
        Command::Playground(arguments) => commands::playground(&arguments),
        Command::Topology { name } => commands::topology(&name).map(Outcome::from),
        Command::New(arguments) => commands::new(&arguments).map(Outcome::from),
        Command::Parity(arguments) => commands::parity(&arguments, drivers),
        #[cfg(target_os = "linux")]
        Command::Key { action } => commands::key(&action).map(Outcome::from),
        #[cfg(not(target_os = "linux"))]
        Command::Key { .. } => Err(Failure::failed("anabranch::key", "keys are for links, which need Linux")),
        #[cfg(target_os = "linux")]
        Command::Serve(arguments) => commands::serve(&arguments),
        #[cfg(target_os = "linux")]
        Command::Proxy(arguments) => commands::proxy(&arguments),
        #[cfg(target_os = "linux")]
        Command::Status(arguments) => commands::status(&arguments).map(Outcome::from),
        #[cfg(target_os = "linux")]
        Command::Measure(arguments) => commands::measure(*arguments, drivers.virtual_time),
        #[cfg(not(target_os = "linux"))]
        Command::Serve(_) | Command::Proxy(_) | Command::Status(_) | Command::Measure(_) => {
            Err(Failure::failed("anabranch::link", "real links need Linux"))
        }
        Command::Merge(arguments) => commands::merge(&arguments, drivers),
        Command::Report(arguments) => commands::report(&arguments),
        Command::Figure(arguments) => commands::figure(&arguments).map(Outcome::from),
        Command::Archive(arguments) => commands::archive(&arguments).map(Outcome::from),
        Command::Rerun(arguments) => commands::rerun(&arguments, drivers),
    }
}
