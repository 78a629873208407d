//! `anabranch compare`

use crate::args::{CompareArguments, ListFormat};
use crate::builtin;
use crate::failure::Failure;
use crate::frontier_table::{csv, markdown, text};
use crate::load::{Loaded, congestions, scenario_files, schedulers};
use crate::marked::Marked;
use crate::output::{create, write};
use crate::pool::Threads;
use crate::watch::{Wanted, Watch};
use anabranch_run::Driver;
use anabranch_run::frontier::Grid;
use anabranch_scenario::{Override, Scenario};
use std::num::NonZeroU32;

/// Seeds of `--quick`.
const QUICK: u32 = 3;

/// Runs all schedulers over the grid.
pub fn compare(arguments: &CompareArguments, driver: &dyn Driver) -> Result<String, Failure> {
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
    let watch = Watch::new(Wanted::default())?;
    let frontier = grid.run(driver, &Threads::new(arguments.jobs), &watch);
    watch.finish()?;
    let frontier = frontier.map_err(|failure| Failure::failed("anabranch::run::failed", failure.to_string()))?;
    let json = serde_json::to_string_pretty(&frontier).unwrap_or_default() + "\n";
    if let Some(folder) = &arguments.out {
        create(folder)?;
        write(&folder.join("frontier.json"), &json)?;
        write(&folder.join("frontier.csv"), csv(&frontier))?;
        write(&folder.join("frontier.md"), markdown(&frontier))?;
    }
    if let Some(target) = target {
        target.write(|_| markdown(&frontier))?;
    }
    Ok(match arguments.format {
        ListFormat::Table => text(&frontier),
        ListFormat::Json => json,
    })
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
