//! `anabranch report`

use crate::args::ReportArguments;
use crate::failure::Failure;
use crate::opener::Opener;
use crate::outcome::Outcome;
use crate::results_folder::{PAGE, make_report};

/// Makes the report of a results directory again.
pub fn report(arguments: &ReportArguments) -> Result<Outcome, Failure> {
    let opener = arguments.open.then(Opener::find).transpose()?;
    make_report(&arguments.folder, arguments.packets)?;
    let file = arguments.folder.join(PAGE);
    let wrong = opener.and_then(|opener| opener.open(&file).err());
    Ok(Outcome::new(format!("{}\n", file.display()), wrong.into_iter().collect()))
}
