//! `anabranch new`

mod edit;

use crate::args::{NewArguments, PlugInKind};
use anabranch_workbench::failure::Failure;
use anabranch_workbench::input::{TEXT, read_within, why};
use anabranch_workbench::output::write;
use edit::{Names, names, registered, source, with_module};
use std::env;
use std::path::{Path, PathBuf};

/// Where schedulers are, in a checkout.
const FOLDER: &str = "crates/schedulers/src";
const REGISTRY: &str = "registry.rs";
const LIBRARY: &str = "lib.rs";

/// Writes a plug-in's file, and its lines in the files that list them.
pub fn new(arguments: &NewArguments) -> Result<String, Failure> {
    match arguments.kind {
        PlugInKind::Scheduler => scheduler(&arguments.name),
    }
}

fn scheduler(name: &str) -> Result<String, Failure> {
    let names = names(name).map_err(|why| refused(&format!("`{name}` cannot be a scheduler's name: {why}"), None))?;
    if let Some(known) = anabranch_schedulers::find(name) {
        let help = format!("`anabranch explain {}` has its page", known.name);
        return Err(refused(&format!("there is a scheduler `{name}` already"), Some(help)));
    }
    let folder = checkout()?.join(FOLDER);
    let file = folder.join(format!("{}.rs", names.module));
    if file.exists() {
        return Err(refused(&format!("{} exists already", file.display()), None));
    }
    // Everything is read and made before anything is written.
    let library = edited(&folder.join(LIBRARY), |text| with_module(text, &names.module))?;
    let registry = edited(&folder.join(REGISTRY), |text| registered(text, &names.module))?;
    write(&file, source(&names))?;
    write(&folder.join(LIBRARY), &library)?;
    write(&folder.join(REGISTRY), &registry)?;
    Ok(next(&names))
}

/// The text of `file` after `edit`, which finds the place for its line or does not.
fn edited(file: &Path, edit: impl Fn(&str) -> Option<String>) -> Result<String, Failure> {
    let text = read_within(TEXT, 0, file)
        .map_err(|error| refused(&format!("cannot read {}: {}", file.display(), why(&error)), None))?;
    edit(&text).ok_or_else(|| {
        let help = "CONTRIBUTING.md says which line to add by hand".to_owned();
        refused(&format!("{} has no place for a new line that is known here", file.display()), Some(help))
    })
}

/// The checkout in which we are.
fn checkout() -> Result<PathBuf, Failure> {
    let here = env::current_dir().unwrap_or_default();
    let found = here.ancestors().find(|folder| folder.join(FOLDER).join(REGISTRY).is_file());
    found.map(Path::to_owned).ok_or_else(|| {
        let message = format!("this needs a checkout of the repository: there is no {FOLDER}/{REGISTRY} here or above");
        refused(&message, Some("clone the repository and run the command inside it".into()))
    })
}

/// The steps done, and the next ones.
fn next(Names { name, module, .. }: &Names) -> String {
    format!(
        "\
new: {FOLDER}/{module}.rs, with a rule, a parameter and a test to start from
one more line in {FOLDER}/{LIBRARY} and {FOLDER}/{REGISTRY}

  1. Write rule, test and page in {module}.rs.
  2. cargo test -p anabranch-schedulers
  3. cargo run -- run tight-window --scheduler minrtt,{name}
  4. cargo run -- explain --all schedulers > docs/schedulers.md

`Add a scheduler` in CONTRIBUTING.md has the rest.
"
    )
}

fn refused(message: &str, help: Option<String>) -> Failure {
    Failure::unusable("anabranch::cli::new", message, help)
}
