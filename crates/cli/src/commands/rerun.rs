//! `anabranch rerun`

use super::run::{Making, execute, print};
use crate::args::{Format, RerunArguments};
use crate::drivers::Drivers;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::input::why;
use crate::inputs::{INPUTS, Inputs};
use crate::outcome::Outcome;
use crate::verdict::Earlier;
use crate::watch::Wanted;

/// Makes the runs of a results directory again, and compares.
pub fn rerun(arguments: &RerunArguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let folder = Folder::open(&arguments.folder).map_err(|error| {
        let message = format!("cannot read {}: {}", arguments.folder.display(), why(&error));
        Failure::unusable("anabranch::cli::unreadable", message, None)
    })?;
    let inputs = Inputs::read(&folder)?;
    check(&arguments.folder.to_string_lossy(), &inputs)?;
    // Before the runs: --out may name the same directory.
    let earlier = Earlier::read(&folder)?;
    let (loaded, options) = inputs.whole.again()?;
    let making = Making::Kept(drivers.virtual_time);
    let (results, mut wrong) = execute(&loaded, &options, &arguments.output, Wanted::default(), making)?;
    let verdict = earlier.compare(&inputs, &results);
    let format = arguments.output.format;
    let (output, notes) = match format {
        Format::Table => (verdict.text, String::new()),
        Format::Json | Format::Csv => (print(&results, format), verdict.text),
    };
    if !verdict.is_same {
        let message = format!("the results of {} do not come out again", arguments.folder.display());
        wrong.push(Failure::failed("anabranch::run::differs", message));
    }
    Ok(Outcome { notes, ..Outcome::new(output, wrong) })
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
