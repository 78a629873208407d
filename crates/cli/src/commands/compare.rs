//! `anabranch compare`

use crate::args::{CompareArguments, ListFormat};
use crate::builtin;
use crate::failure::{Failure, Salvage};
use crate::folder::Folder;
use crate::kept::{Kept, salvage, through};
use crate::load::{Loaded, congestions, scenario_files, schedulers};
use crate::marked::Marked;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::pool::Threads;
use crate::watch::{Wanted, Watch};
use anabranch_report::of_frontier::{cells, csv, first_path, picture, room, room_csv, standings, text};
use anabranch_run::{Driver, Pool, RunError, with_known_rates};
use anabranch_scenario::{Override, PlugIn};
use anabranch_studies::frontier::{
    APPLICATIONS, Comparison, FirstPath, Grid, Opened, PathSet, Room, usual_applications,
};
use std::num::NonZeroU32;
use std::path::Path;

/// Seeds of `--quick`.
const QUICK: u32 = 2;

/// The forms that the papers measure: minRTT with penalisation and opportunistic retransmission (Raiciu and others, NSDI 2012),
/// BLEST with the latter (Ferlin and others 2016), its kernel module with both.
const FORMS: [&str; 3] = ["minrtt+pr", "blest+or", "blest-linux+pr"];

/// Transfers and pages: what has an end, so that opening matters.
const OPENED: [&str; 4] = ["16 KB", "web", "256 KB", "2 MB"];
/// Opened on every path, beside the leader.
const USUAL: &str = "minrtt";

/// Everything that was found.
struct Compared {
    comparison: Comparison,
    opened: Vec<Opened>,
    room: Option<Room>,
}

/// Runs all schedulers over the grid.
pub fn compare(arguments: &CompareArguments, driver: &dyn Driver) -> Result<Outcome, Failure> {
    let grid = grid(arguments)?;
    let targets: Result<Vec<Marked<'_>>, Failure> =
        arguments.update.iter().map(|file| Marked::read(file, &marks(arguments))).collect();
    let targets = targets?;
    let picture_file = arguments.picture.as_deref().map(Output::claim).transpose()?;
    grid.prepare(driver).map_err(Failure::refused)?;
    let journal = Kept::in_out(arguments.out.as_deref(), driver, false)?;
    let driver = through(journal.as_ref(), driver);
    let watch = Watch::new(Wanted::default())?;
    let (found, ended) = run(arguments, &grid, driver, (&Threads::new(arguments.jobs), &watch));
    let empty = found.comparison.frontiers.iter().all(|frontier| frontier.cells.is_empty());
    let kept = if empty && journal.is_none() { Salvage::Nothing } else { salvage(journal.as_ref()) };
    let mut wrong: Vec<Failure> = ended.map(|failure| why(&failure, &watch, kept)).into_iter().collect();
    wrong.extend(watch.finish());
    if empty && found.comparison.missing > 0 {
        return Ok(Outcome::new(String::new(), wrong));
    }
    let json = serde_json::to_string_pretty(&found.comparison).unwrap_or_default() + "\n";
    if let Some(folder) = &arguments.out {
        wrong.extend(keep(folder, &found, &json).err());
    }
    // A document never holds a part.
    if wrong.is_empty() && found.comparison.missing == 0 {
        wrong.extend(targets.iter().filter_map(|target| target.write(|name| section(&found, name)).err()));
        wrong.extend(picture_file.and_then(|file| file.write(picture(&found.comparison)).err()));
    }
    journal.into_iter().for_each(|journal| journal.close(&mut wrong));
    let output = match arguments.format {
        ListFormat::Table => text(&found.comparison),
        ListFormat::Json => json,
    };
    Ok(Outcome::new(output, wrong))
}

/// The names of the tables that the command makes.
fn marks(arguments: &CompareArguments) -> Vec<&'static str> {
    let mut marks = vec!["frontier", "frontier-cells"];
    marks.extend(arguments.first_path.then_some("first-path"));
    marks.extend(arguments.room.then_some("room"));
    marks
}

fn section(found: &Compared, name: &str) -> String {
    match name {
        "frontier-cells" => cells(&found.comparison),
        "first-path" => first_path(&found.opened),
        "room" => found.room.as_ref().map(room).unwrap_or_default(),
        _ => standings(&found.comparison),
    }
}

/// The grid, then the requested additions, with the first congestion control.
fn run(
    arguments: &CompareArguments,
    grid: &Grid,
    driver: &dyn Driver,
    (pool, watch): (&dyn Pool, &Watch),
) -> (Compared, Option<anabranch_run::Failure>) {
    let (comparison, ended) = grid.run(driver, pool, watch);
    let mut found = Compared { comparison, opened: Vec::new(), room: None };
    let Some((frontier, congestion)) = found.comparison.frontiers.first().zip(grid.congestions.first()) else {
        return (found, ended);
    };
    if ended.is_some() {
        return (found, ended);
    }
    if arguments.first_path {
        let leader = frontier.leader().map(|standing| standing.scheduler.as_str());
        let is_shown = |plug_in: &&PlugIn| plug_in.name == USUAL || Some(plug_in.name.as_str()) == leader;
        let first_path = FirstPath {
            path_sets: grid.path_sets.clone(),
            traffic: OPENED.to_vec(),
            schedulers: grid.schedulers.iter().filter(is_shown).cloned().collect(),
            congestion: congestion.clone(),
        };
        let (opened, ended) = first_path.run(driver, pool, watch);
        found.opened = opened;
        if ended.is_some() {
            return (found, ended);
        }
    }
    if arguments.room {
        let cells = (frontier, &grid.path_sets[..], congestion);
        let (room, ended) = Room::run(cells, &grid.schedulers, (driver, pool, watch));
        found.room = room;
        return (found, ended);
    }
    (found, None)
}

/// Why the grid was not finished.
fn why(failure: &anabranch_run::Failure, watch: &Watch, kept: Salvage) -> Failure {
    match failure.error {
        RunError::Interrupted => {
            let what = format!("interrupted {}: {}", watch.progress_so_far(), failure.run);
            Failure::interrupted(&what, kept)
        }
        _ => Failure::failed("anabranch::run::failed", failure.to_string()),
    }
}

fn keep(folder: &Path, found: &Compared, json: &str) -> Result<(), Failure> {
    let folder = Folder::make(folder)?;
    folder.write("frontier.json", json)?;
    folder.write("frontier.csv", csv(&found.comparison))?;
    folder.write("frontier.svg", picture(&found.comparison))?;
    let pages = standings(&found.comparison) + &cells(&found.comparison);
    folder.write("frontier.md", pages)?;
    let pretty = |value: Result<String, serde_json::Error>| value.unwrap_or_default() + "\n";
    if !found.opened.is_empty() {
        folder.write("first-path.json", pretty(serde_json::to_string_pretty(&found.opened)))?;
        folder.write("first-path.md", first_path(&found.opened))?;
    }
    if let Some(found) = &found.room {
        folder.write("room.json", pretty(serde_json::to_string_pretty(found)))?;
        folder.write("room.csv", room_csv(found))?;
        folder.write("room.md", room(found))?;
    }
    Ok(())
}

fn grid(arguments: &CompareArguments) -> Result<Grid, Failure> {
    let schedulers = match arguments.scheduler.is_empty() {
        true => schedulers("--scheduler", &[&["all"][..], &FORMS].concat())?,
        false => schedulers("--scheduler", &arguments.scheduler)?,
    };
    let schedulers = if arguments.known_rates { beside_known_rates(schedulers)? } else { schedulers };
    let congestions = match (arguments.congestion.is_empty(), arguments.quick) {
        (true, true) => congestions("--congestion", &["cubic"])?,
        (true, false) => congestions("--congestion", &["cubic,lia,bbr"])?,
        (false, _) => congestions("--congestion", &arguments.congestion)?,
    };
    let (path_sets, traffic) = (path_sets(arguments)?, traffic(&arguments.traffic)?);
    Ok(Grid { path_sets, traffic, schedulers, congestions })
}

/// Each scheduler that measures capacities is followed by its twin with the true ones. An error if there is none.
fn beside_known_rates(schedulers: Vec<PlugIn>) -> Result<Vec<PlugIn>, Failure> {
    let given = schedulers.len();
    let both = |scheduler: PlugIn| {
        let known = with_known_rates(&scheduler);
        core::iter::once(scheduler).chain(known)
    };
    let all: Vec<PlugIn> = schedulers.into_iter().flat_map(both).collect();
    if all.len() == given {
        let what = "--known-rates: none of these schedulers measures capacities".to_owned();
        let help = Some("playahead does, and fdps(capacity=true) and mtcs(capacity=true)".to_owned());
        return Err(Failure::unusable("anabranch::cli::usage", what, help));
    }
    Ok(all)
}

/// The applications of these names.
fn traffic(names: &[String]) -> Result<Vec<&'static str>, Failure> {
    if names.is_empty() {
        return Ok(usual_applications());
    }
    let find = |name: &String| {
        APPLICATIONS.into_iter().find(|known| *known == name.trim()).ok_or_else(|| {
            let help = Some(format!("there are {}", APPLICATIONS.join(", ")));
            Failure::unusable("anabranch::cli::usage", format!("no application is called `{name}`"), help)
        })
    };
    names.iter().map(find).collect()
}

/// The scenarios of `--grid`, or those that come with the program; the cells of a sweep one by one.
fn path_sets(arguments: &CompareArguments) -> Result<Vec<PathSet>, Failure> {
    let repeat = arguments.repeat.map(NonZeroU32::get).or(arguments.quick.then_some(QUICK));
    let overrides = || repeat.map(|n| Override::new("--repeat", "repeat", n.to_string())).into_iter().collect();
    let loaded: Result<Vec<Loaded>, Failure> = match &arguments.grid {
        Some(folder) => scenario_files(folder)?.iter().map(|file| Loaded::read(file, overrides())).collect(),
        None => {
            let ready = if arguments.wavering { builtin::WAVERING } else { builtin::FRONTIER };
            ready.iter().map(|(name, text)| Loaded::given(name, text, overrides())).collect()
        }
    };
    let sets = |loaded: Loaded| {
        let [kind, part] = ["Kind", "Part"].map(|label| builtin::labelled(&loaded.source.text, label).to_owned());
        let set = move |scenario| PathSet { kind: kind.clone(), part: part.clone(), scenario };
        loaded.document.cells.into_iter().map(move |(_, scenario)| set(scenario))
    };
    Ok(loaded?.into_iter().flat_map(sets).collect())
}
