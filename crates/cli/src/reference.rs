//! The reference document of all commands.

use crate::args::Arguments;
use anabranch_workbench::reference::opening;
use clap::{Command, CommandFactory};

/// All commands with their help.
pub fn commands() -> String {
    let mut all = Arguments::command();
    all.build();
    opening("Commands", "commands", COMMANDS) + &subcommands(&mut all, "##")
}

fn subcommands(of: &mut Command, level: &str) -> String {
    of.get_subcommands_mut().filter(|one| one.get_name() != "help").map(|one| command(one, level)).collect()
}

fn command(command: &mut Command, level: &str) -> String {
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let name = command.get_bin_name().unwrap_or_default();
    let page = format!("\n{level} {name}\n\n```text\n{}\n```\n", help.join("\n"));
    page + &subcommands(command, &format!("{level}#"))
}

const COMMANDS: &str = "\
Every command, as `anabranch COMMAND --help` prints it.
";
