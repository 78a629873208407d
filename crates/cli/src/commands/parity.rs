//! `anabranch parity`

use crate::args::{ListFormat, ParityArguments};
use crate::bar::Bar;
use crate::marked::Marked;
use crate::outcome::Outcome;
use anabranch_report::text::{parity_markdown, parity_text};
use anabranch_scenario::{Override, PlugIn};
use anabranch_studies::parity::{BRIEF, Later, MODES, Mode, Parity};
use anabranch_workbench::drivers::Drivers;
use anabranch_workbench::failure::{Failure, Salvage};
use anabranch_workbench::folder::Folder;
use anabranch_workbench::kept::{Kept, salvage, through};
use anabranch_workbench::load::{Loaded, congestions, scenario_files, set_overrides};
use anabranch_workbench::stage::{Carried, Stage, carry_out};
use anabranch_workbench::watch::Wanted;
use std::path::Path;

/// Runs one scenario or a grid of them in all modes.
pub fn parity(arguments: &ParityArguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let congestions = congestions("--congestion", &arguments.congestion)?;
    let loaded = scenarios(arguments)?;
    // Said before the work, not after it.
    let target = arguments.update.as_deref().map(|file| Marked::read(file, &["parity"])).transpose()?;
    let modes: &[Mode] = if arguments.brief { &BRIEF } else { &MODES };
    let journal = |driver, real_time| Kept::in_out(arguments.out.as_deref(), driver, real_time);
    let (in_virtual_time, in_real_time) = (journal(drivers.virtual_time, false)?, journal(drivers.real_time, true)?);
    let kept = salvage(in_virtual_time.as_ref());
    let later = Later(through(in_virtual_time.as_ref(), drivers.virtual_time));
    let drivers =
        Drivers { virtual_time: &later, real_time: through(in_real_time.as_ref(), drivers.real_time), ..*drivers };
    let stages: Vec<Stage<'_>> =
        loaded.iter().flat_map(|one| stages(one, modes, &congestions, arguments, &drivers, kept)).collect();
    let Carried { results, mut wrong, .. } = carry_out(&stages, Wanted::default(), &Bar::new())?;
    let whole = results.len() == stages.len();
    // A scenario with missing modes has no comparison.
    let measured: Vec<Parity> = results.chunks_exact(modes.len()).map(|one| Parity::of(modes, one)).collect();
    if measured.is_empty() && !whole {
        return Ok(Outcome::new(String::new(), wrong));
    }
    let incomplete = match whole {
        true => String::new(),
        false => format!("Incomplete: {} of {} scenarios.\n", measured.len(), loaded.len()),
    };
    let json = serde_json::to_string_pretty(&measured).unwrap_or_default() + "\n";
    if let Some(folder) = &arguments.out {
        wrong.extend(keep(folder, &json, &(parity_markdown(&measured) + &incomplete)).err());
    }
    // A document never holds a part.
    if let Some(target) = target.filter(|_| whole) {
        wrong.extend(target.write(|_| parity_markdown(&measured)).err());
    }
    drop(stages);
    [in_virtual_time, in_real_time].into_iter().flatten().for_each(|journal| journal.close(&mut wrong));
    let output = match arguments.format {
        ListFormat::Table => parity_text(&measured) + &incomplete,
        ListFormat::Json => json,
    };
    Ok(Outcome::new(output, wrong))
}

fn keep(folder: &Path, json: &str, markdown: &str) -> Result<(), Failure> {
    let folder = Folder::make(folder)?;
    folder.write("parity.json", json)?;
    folder.write("parity.md", markdown)
}

/// A scenario's plans in the order of `modes`.
fn stages<'a>(
    loaded: &Loaded,
    modes: &[Mode],
    congestions: &[PlugIn],
    arguments: &ParityArguments,
    drivers: &Drivers<'a>,
    kept: Salvage,
) -> Vec<Stage<'a>> {
    let variants = loaded.variants();
    let stage = |mode: &Mode| {
        let real_time = !mode.is_virtual();
        Stage {
            plan: mode.plan(&variants, congestions, !arguments.brief),
            driver: if real_time { drivers.real_time } else { drivers.virtual_time },
            real_time,
            jobs: real_time.then_some(arguments.jobs),
            name: format!("{}, ", mode.name),
            kept,
            folder: None,
            order: None,
        }
    };
    modes.iter().map(stage).collect()
}

/// The one scenario, or those of the grid by name. Their engines act as kernels, unless `--set` says otherwise.
fn scenarios(arguments: &ParityArguments) -> Result<Vec<Loaded>, Failure> {
    let overrides = || {
        let models = ["hosts.sender_model", "hosts.receiver_model"];
        let mut overrides: Vec<_> = models.map(|key| Override::new("parity", key, "linux")).into();
        overrides.extend(set_overrides(&arguments.set));
        overrides.push(Override::new("--repeat", "repeat", arguments.repeat.to_string()));
        overrides
    };
    let Some(folder) = &arguments.grid else {
        let name = arguments.scenario.as_deref().unwrap_or(Path::new(""));
        return Ok(vec![Loaded::read(name, overrides())?]);
    };
    scenario_files(folder)?.iter().map(|file| Loaded::read(file, overrides())).collect()
}
