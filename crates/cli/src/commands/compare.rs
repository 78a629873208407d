//! `anabranch compare`

use crate::args::{CompareArguments, ListFormat};
use crate::builtin;
use crate::failure::Failure;
use crate::frontier_table::{csv, markdown, text};
use crate::load::{Loaded, congestions, scenario_files, schedulers};
use crate::marked::Marked;
use crate::output::{create, write};
use crate::pool::Threads;
use crate::stage::Kept;
use crate::told::Told;
use crate::watch::{Wanted, Watch};
use anabranch_run::frontier::{Frontier, Grid};
use anabranch_run::{Driver, RunError};
use anabranch_scenario::{Override, Scenario};
use std::num::NonZeroU32;
use std::path::Path;

/// Seeds of `--quick`.
const QUICK: u32 = 3;

/// Runs all schedulers over the grid.
pub fn compare(arguments: &CompareArguments, driver: &dyn Driver) -> Result<Told, Failure> {
    let schedulers = match arguments.scheduler.is_empty() {
        true => schedulers("--scheduler", &["all"])?,
        false => schedulers("--scheduler", &arguments.scheduler)?,
    };
    let congestion = congestions("--congestion", &[&arguments.congestion])?;
    let [congestion] = &congestion[..] else {
        let help = "run it once for each, with --out".to_owned();
        return Err(Failure::unusable("anabranch::cli::usage", "one congestion control at a time", Some(help)));
    };
    let grid = Grid { path_sets: path_sets(arguments)?, schedulers, congestion: congestion.clone() };
    let target = arguments.update.as_deref().map(|file| Marked::read(file, &["frontier"])).transpose()?;
    grid.prepare(driver).map_err(Failure::refused)?;
    let watch = Watch::new(Wanted::default())?;
    let (frontier, ended) = grid.run(driver, &Threads::new(arguments.jobs), &watch);
    let kept = if frontier.cells.is_empty() { Kept::Nothing } else { Kept::Stages };
    let mut wrong: Vec<Failure> = ended.map(|failure| why(&failure, &watch, kept)).into_iter().collect();
    wrong.extend(watch.finish());
    if frontier.cells.is_empty() && frontier.missing > 0 {
        return Ok(Told::new(String::new(), wrong));
    }
    let json = serde_json::to_string_pretty(&frontier).unwrap_or_default() + "\n";
    if let Some(folder) = &arguments.out {
        wrong.extend(keep(folder, &frontier, &json).err());
    }
    // A document never holds a part.
    if let Some(target) = target.filter(|_| frontier.missing == 0) {
        wrong.extend(target.write(|_| markdown(&frontier)).err());
    }
    let output = match arguments.format {
        ListFormat::Table => text(&frontier),
        ListFormat::Json => json,
    };
    Ok(Told::new(output, wrong))
}

/// Why the grid was not finished.
fn why(failure: &anabranch_run::Failure, watch: &Watch, kept: Kept) -> Failure {
    match failure.error {
        RunError::Interrupted => {
            let what = format!("interrupted {}: {}", watch.progress_so_far(), failure.run);
            Failure::interrupted(&what, kept)
        }
        _ => Failure::failed("anabranch::run::failed", failure.to_string()),
    }
}

fn keep(folder: &Path, frontier: &Frontier, json: &str) -> Result<(), Failure> {
    create(folder)?;
    write(&folder.join("frontier.json"), json)?;
    write(&folder.join("frontier.csv"), csv(frontier))?;
    write(&folder.join("frontier.md"), markdown(frontier))
}

/// The scenarios of `--grid`, or those that come with the program; the cells of a sweep one by one.
fn path_sets(arguments: &CompareArguments) -> Result<Vec<Scenario>, Failure> {
    let repeat = arguments.repeat.map(NonZeroU32::get).or(arguments.quick.then_some(QUICK));
    let overrides = || repeat.map(|n| Override::new("--repeat", "repeat", n.to_string())).into_iter().collect();
    let loaded: Result<Vec<Loaded>, Failure> = match &arguments.grid {
        Some(folder) => {
            scenario_files(folder)?.iter().map(|file| Loaded::read(&file.to_string_lossy(), overrides())).collect()
        }
        None => builtin::FRONTIER.iter().map(|(name, text)| Loaded::given(name, text, overrides())).collect(),
    };
    Ok(loaded?.into_iter().flat_map(|loaded| loaded.document.cells).map(|(_, scenario)| scenario).collect())
}
