//! `anabranch report`

use crate::args::ReportArguments;
use crate::failure::Failure;
use crate::opener::Opener;
use crate::results_folder::make_report;

/// Makes the report of a results directory again.
pub fn report(arguments: &ReportArguments) -> Result<String, Failure> {
    let opener = arguments.open.then(Opener::find).transpose()?;
    let file = make_report(&arguments.folder)?;
    opener.map_or(Ok(()), |opener| opener.open(&file))?;
    Ok(format!("{}\n", file.display()))
}
