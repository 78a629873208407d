//! `anabranch rerun`

use super::run::{opened, print};
use crate::args::{Format, RerunArguments};
use crate::bar::Bar;
use crate::opener::Opener;
use crate::outcome::Outcome;
use anabranch_workbench::drivers::Drivers;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::rerun;

/// Makes the runs of a results directory again, and compares.
pub fn rerun(arguments: &RerunArguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let RerunArguments { folder, output } = arguments;
    let opener = output.open.then(Opener::find).transpose()?;
    let (made, verdict) = rerun::rerun(folder, &output.filing(), drivers.virtual_time, &Bar::new())?;
    let (results, mut wrong) = opened(made, opener);
    let (text, notes) = match output.format {
        Format::Table => (verdict.text, String::new()),
        format @ (Format::Json | Format::Csv) => (print(&results, format), verdict.text),
    };
    if !verdict.is_same {
        let message = format!("the results of {} do not come out again", folder.display());
        wrong.push(Failure::failed("anabranch::run::differs", message));
    }
    Ok(Outcome { notes, ..Outcome::new(text, wrong) })
}
