//! `anabranch check`

use crate::args::CheckArguments;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::load::{Loaded, set_overrides};

/// The resolved scenario as a scenario file.
pub fn check(arguments: &CheckArguments) -> Result<String, Failure> {
    Ok(Loaded::read(&arguments.scenario, set_overrides(&arguments.set))?.document.resolved())
}
