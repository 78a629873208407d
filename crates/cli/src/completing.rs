//! Names that a shell completes: schedulers, congestion controls, scenarios, papers, keys.

use crate::args::Arguments;
use anabranch_workbench::list::Listing;
use clap::{Arg, Command, CommandFactory};
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate, PathCompleter};
use std::ffi::OsStr;

/// The variable by which a shell's script asks.
pub const VARIABLE: &str = "ANABRANCH_COMPLETE";

/// The shells that have a script.
pub fn completers() -> Shells<'static> {
    Shells::builtins()
}

/// Answers a shell that requests completions and ends the process; returns at once if none does.
pub fn complete() {
    CompleteEnv::with_factory(program).var(VARIABLE).shells(completers()).complete();
}

/// The commands, with names for the arguments that take them.
fn program() -> Command {
    Arguments::command().mut_subcommands(|command| {
        let explains = command.get_name() == "explain";
        command.mut_args(|argument| with_names(argument, explains))
    })
}

fn with_names(argument: Arg, explains: bool) -> Arg {
    match argument.get_id().as_str() {
        "scheduler" => argument.add(ArgValueCompleter::new(|word: &OsStr| several("schedulers", word))),
        "congestion" => argument.add(ArgValueCompleter::new(|word: &OsStr| several("congestion", word))),
        "set" | "sweep" => argument.add(ArgValueCompleter::new(assignments)),
        "scenario" => argument.add(ArgValueCompleter::new(|word: &OsStr| or_file("scenarios", word))),
        "paper" => argument.add(ArgValueCompleter::new(|word: &OsStr| or_file("papers", word))),
        "name" if explains => argument.add(ArgValueCompleter::new(anything)),
        _ => argument,
    }
}

/// Entries of a list as `(name, about)`.
fn entries(list: &str) -> Vec<(String, String)> {
    Listing::find(list).and_then(Listing::names).unwrap_or_default()
}

fn candidate(name: String, about: String) -> CompletionCandidate {
    CompletionCandidate::new(name).help(Some(about.into()))
}

/// Names behind those that `word` lists already, separated by commas.
fn several(list: &str, word: &OsStr) -> Vec<CompletionCandidate> {
    let Some(word) = word.to_str() else { return Vec::new() };
    let (before, begun) = word.rfind(',').map_or(("", word), |at| word.split_at(at + 1));
    let fitting = entries(list).into_iter().filter(|(name, _)| name.starts_with(begun));
    fitting.map(|(name, about)| candidate(format!("{before}{name}"), about)).collect()
}

fn or_file(list: &str, word: &OsStr) -> Vec<CompletionCandidate> {
    use clap_complete::engine::ValueCompleter as _;
    let mut all = several(list, word);
    all.extend(PathCompleter::any().complete(word));
    all
}

/// Keys with the `=` that follows. The key of a path is completed behind the path's name: `path.NAME.`
fn assignments(word: &OsStr) -> Vec<CompletionCandidate> {
    let Some(word) = word.to_str() else { return Vec::new() };
    let mut parts = word.splitn(3, '.');
    let named = match (parts.next(), parts.next(), parts.next()) {
        (Some(section @ ("path" | "link")), Some(name), Some(_)) => Some((section, name)),
        _ => None,
    };
    let key = |(full, about): (String, String)| {
        let written = match (full.split_once('.'), named) {
            (Some((section, key)), Some((wanted, name))) if section == wanted => format!("{section}.{name}.{key}="),
            (Some((section @ ("path" | "link"), _)), _) => format!("{section}."),
            _ => format!("{full}="),
        };
        candidate(written, about)
    };
    let mut keys: Vec<_> = entries("keys").into_iter().map(key).collect();
    keys.retain(|key| key.get_value().to_str().is_some_and(|key| key.starts_with(word)));
    keys.dedup_by(|a, b| a.get_value() == b.get_value());
    keys
}

/// Everything that has a page.
fn anything(word: &OsStr) -> Vec<CompletionCandidate> {
    ["schedulers", "congestion", "abrs", "metrics", "keys", "models"]
        .into_iter()
        .flat_map(|list| several(list, word))
        .collect()
}
