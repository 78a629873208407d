//! `anabranch explain`

use crate::args::{Arguments, Catalogue, ExplainArguments};
use crate::reference::commands;
use anabranch_workbench::explain::{explain as explain_name, pages};
use anabranch_workbench::failure::Failure;
use anabranch_workbench::reference;

/// The page of a name, or all pages of a kind.
pub fn explain(arguments: &ExplainArguments) -> Result<String, Failure> {
    match (arguments.all, arguments.name.as_deref().unwrap_or_default()) {
        (Some(Catalogue::Schedulers), _) => Ok(reference::schedulers()),
        (Some(Catalogue::Congestion), _) => Ok(reference::congestion()),
        (Some(Catalogue::Abrs), _) => Ok(reference::abrs()),
        (Some(Catalogue::Keys), _) => Ok(reference::keys()),
        (Some(Catalogue::Metrics), _) => Ok(reference::metrics()),
        (Some(Catalogue::Commands), _) => Ok(commands()),
        (Some(Catalogue::Scenarios), _) => Ok(reference::scenarios()),
        (None, name) if Arguments::has_command(name) && pages(name)?.is_empty() => {
            let help = Some(format!("anabranch {name} --help"));
            Err(Failure::unusable("anabranch::cli::command", format!("`{name}` is a command"), help))
        }
        (None, name) => explain_name(name),
    }
}
