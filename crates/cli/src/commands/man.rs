//! `anabranch man`, `anabranch completions` and `anabranch licences`: what belongs beside an installed program.

use crate::args::Arguments;
use crate::completing::{VARIABLE, completers};
use anabranch_workbench::failure::Failure;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// Licences of all crates, fonts and scripts in the program; `tests/licences.rs` writes the file.
pub const LICENCES: &str = include_str!("../../licences.txt");

/// Writes a manual page per command into `folder`; the names of the pages.
pub fn man(folder: &Path) -> Result<String, Failure> {
    let program = Arguments::command().disable_help_subcommand(true);
    let wrong = |error: std::io::Error| {
        Failure::failed("anabranch::man", format!("no manual pages in {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(wrong)?;
    clap_mangen::generate_to(program, folder).map_err(wrong)?;
    Ok(format!("{}\n", folder.join("anabranch.1").display()))
}

/// The completion script for `shell`, which asks the program itself for names.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    let completers = completers();
    let completer = completers.completer(&shell.to_string());
    // Bytes in memory: writing them cannot fail.
    let _ = completer.map(|it| it.write_registration(VARIABLE, "anabranch", "anabranch", "anabranch", &mut script));
    String::from_utf8_lossy(&script).into_owned()
}
