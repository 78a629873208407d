//! `anabranch report`

use crate::args::ReportArguments;
use crate::bar::Bar;
use crate::opener::Opener;
use crate::outcome::Outcome;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::results_folder::{PAGE, make_report};

/// Makes the report of a results directory again.
pub fn report(arguments: &ReportArguments) -> Result<Outcome, Failure> {
    let opener = arguments.open.then(Opener::find).transpose()?;
    make_report(&arguments.folder, arguments.packets, &Bar::new())?;
    let file = arguments.folder.join(PAGE);
    let wrong = opener.and_then(|opener| opener.open(&file).err());
    Ok(Outcome::new(format!("{}\n", file.display()), wrong.into_iter().collect()))
}
