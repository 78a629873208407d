//! The runs of a results directory, made again and compared.

use crate::failure::Failure;
use crate::folder::Folder;
use crate::input::why;
use crate::inputs::{INPUTS, Inputs};
use crate::making::{Filing, Made, Making, execute};
use crate::progress::Progress;
use crate::verdict::{Earlier, Verdict};
use crate::watch::Wanted;
use anabranch_run::Driver;
use std::path::Path;

/// Makes the runs of a results directory again, and compares.
///
/// # Errors
/// The directory cannot be read; its runs followed the clock, or need objects of Python; there are no results.
pub fn rerun(
    path: &Path,
    filing: &Filing<'_>,
    driver: &dyn Driver,
    progress: &dyn Progress,
) -> Result<(Made, Verdict), Failure> {
    let folder = Folder::open(path).map_err(|error| {
        let message = format!("cannot read {}: {}", path.display(), why(&error));
        Failure::unusable("anabranch::cli::unreadable", message, None)
    })?;
    let inputs = Inputs::read(&folder)?;
    check(&path.to_string_lossy(), &inputs)?;
    // Before the runs: the files may go into the same directory.
    let earlier = Earlier::read(&folder)?;
    let (loaded, options) = inputs.whole.again()?;
    let made = execute((&loaded, &options), filing, Wanted::default(), Making::Kept(driver), progress)?;
    let verdict = earlier.compare(&inputs, &made.results);
    Ok((made, verdict))
}

/// Refuses runs that this command cannot make.
fn check(folder: &str, inputs: &Inputs) -> Result<(), Failure> {
    let refuse = |why: String, help: String| Err(Failure::unusable("anabranch::cli::no_rerun", why, Some(help)));
    if inputs.whole.real_time {
        let why = format!("the runs of {folder} followed the clock: no two of these are the same");
        return refuse(why, "the words of its command are in manifest.json".into());
    }
    let names: Vec<String> = inputs.plug_ins.iter().map(|object| format!("`{}`", object.name)).collect();
    if !names.is_empty() {
        let why = format!("{} of {folder} {} of Python", names.join(", "), if names.len() == 1 { "is" } else { "are" });
        let help = format!(
            "in Python, anabranch.rerun({folder:?}, trust=True) executes their source: read it first in {INPUTS}"
        );
        return refuse(why, help);
    }
    Ok(())
}
