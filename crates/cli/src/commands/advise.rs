//! `advise`: whether and how to use several links together.

use crate::args::{AdviseArguments, ListFormat};
use crate::bar::Bar;
use crate::outcome::Outcome;
use anabranch_run::Driver;
use anabranch_workbench::advise::Request;
use anabranch_workbench::failure::Failure;

/// Asks, and puts the answer into words.
pub fn advise(arguments: &AdviseArguments, driver: &dyn Driver) -> Result<Outcome, Failure> {
    let request = Request {
        scenario: arguments.scenario.as_deref(),
        paths: &arguments.path,
        set: &arguments.set,
        uses: &arguments.uses,
        schedulers: &arguments.scheduler,
        congestion: arguments.congestion.as_deref(),
        error: arguments.error / 100.0,
        jobs: arguments.jobs,
    };
    let advised = request.answer(driver, &Bar::new())?;
    let output = match arguments.format {
        ListFormat::Table => advised.text(),
        ListFormat::Json => advised.json(),
    };
    Ok(output.into())
}
