//! Schedulers over a grid of paths, each against the best that any could reach.

use crate::builtin;
use crate::failure::{Failure, Salvage};
use crate::folder::Folder;
use crate::kept::{Kept, salvage, through};
use crate::load::{Loaded, congestions, scenario_files, schedulers};
use crate::pool::Threads;
use crate::progress::Progress;
use crate::watch::{Wanted, Watch};
use anabranch_report::of_frontier::{cells, csv, first_path, picture, room, room_csv, standings, text};
use anabranch_run::{Driver, Pool, RunError, with_known_rates};
use anabranch_scenario::{Override, PlugIn};
use anabranch_studies::frontier::{
    APPLICATIONS, Comparison, FirstPath, Grid, Opened, PathSet, Room, usual_applications,
};
use std::num::{NonZeroU32, NonZeroUsize};
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

/// A comparison to make.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Schedulers, as options take them; empty = every one, and the forms that papers measure.
    pub schedulers: &'a [String],
    /// Congestion controls, in the same form; empty = the usual ones.
    pub congestions: &'a [String],
    /// Names of applications; empty = the usual ones.
    pub traffic: &'a [String],
    /// Directory of scenario files; `None` = the reference grid.
    pub grid: Option<&'a Path>,
    /// The wavering path sets in place of the reference grid.
    pub wavering: bool,
    /// Two seeds per cell, and one congestion control.
    pub quick: bool,
    /// Seeds per cell; `None` = the scenarios' number.
    pub repeat: Option<NonZeroU32>,
    /// Threads; one per core if `None`.
    pub jobs: Option<NonZeroUsize>,
    /// Also open the connections on each path in turn.
    pub first_path: bool,
    /// Also remove the causes of the distance to the best, one by one.
    pub room: bool,
    /// Also run schedulers with the true capacities.
    pub known_rates: bool,
    /// Directory of the documents, and of finished runs.
    pub out: Option<&'a Path>,
}

/// Everything that was found.
pub struct Compared {
    /// The standings.
    pub comparison: Comparison,
    opened: Vec<Opened>,
    room: Option<Room>,
}

/// The outcome of a comparison, perhaps of a part.
pub struct Ended<'d> {
    /// Findings so far.
    pub found: Compared,
    /// The failure that ended the runs, and that of a file that could not be written.
    pub wrong: Vec<Failure>,
    journal: Option<Kept<'d>>,
}

impl Ended<'_> {
    /// Every cell was finished, and every file written.
    pub fn is_whole(&self) -> bool {
        self.wrong.is_empty() && self.found.comparison.missing == 0
    }

    /// Removes the kept runs if nothing went wrong; everything that did.
    pub fn close(mut self) -> Vec<Failure> {
        self.journal.into_iter().for_each(|journal| journal.close(&mut self.wrong));
        self.wrong
    }
}

impl Request<'_> {
    /// The names of the tables that [`Compared::section`] makes.
    pub fn sections(&self) -> Vec<&'static str> {
        let mut names = vec!["frontier", "frontier-cells"];
        names.extend(self.first_path.then_some("first-path"));
        names.extend(self.room.then_some("room"));
        names
    }

    /// Runs all schedulers over `grid`, which is that of [`Self::grid`].
    ///
    /// # Errors
    /// The driver lacks something, or the directory cannot be made: reported before the first run.
    pub fn run<'d>(&self, grid: &Grid, driver: &'d dyn Driver, progress: &dyn Progress) -> Result<Ended<'d>, Failure> {
        grid.prepare(driver).map_err(Failure::refused)?;
        let journal = Kept::in_out(self.out, driver, false)?;
        let watch = Watch::new(Wanted::default(), progress)?;
        let pool = Threads::new(self.jobs);
        let (found, ended) = runs(self, grid, through(journal.as_ref(), driver), (&pool, &watch));
        let is_lost = found.is_empty() && journal.is_none();
        let kept = if is_lost { Salvage::Nothing } else { salvage(journal.as_ref()) };
        let mut wrong: Vec<Failure> = ended.map(|failure| why(&failure, &watch, kept)).into_iter().collect();
        wrong.extend(watch.finish());
        let folder = self.out.filter(|_| !found.is_nothing());
        wrong.extend(folder.and_then(|folder| found.keep(folder).err()));
        Ok(Ended { found, wrong, journal })
    }

    /// The grid of these paths and applications.
    pub fn grid(&self) -> Result<Grid, Failure> {
        let schedulers = match self.schedulers.is_empty() {
            true => schedulers("--scheduler", &[&["all"][..], &FORMS].concat())?,
            false => schedulers("--scheduler", self.schedulers)?,
        };
        let schedulers = if self.known_rates { beside_known_rates(schedulers)? } else { schedulers };
        let congestions = match (self.congestions.is_empty(), self.quick) {
            (true, true) => congestions("--congestion", &["cubic"])?,
            (true, false) => congestions("--congestion", &["cubic,lia,bbr"])?,
            (false, _) => congestions("--congestion", self.congestions)?,
        };
        let (path_sets, traffic) = (self.path_sets()?, traffic(self.traffic)?);
        Ok(Grid { path_sets, traffic, schedulers, congestions })
    }

    /// The scenarios of `--grid`, or those that come with the program; the cells of a sweep one by one.
    fn path_sets(&self) -> Result<Vec<PathSet>, Failure> {
        let repeat = self.repeat.map(NonZeroU32::get).or(self.quick.then_some(QUICK));
        let overrides = || repeat.map(|n| Override::new("--repeat", "repeat", n.to_string())).into_iter().collect();
        let loaded: Result<Vec<Loaded>, Failure> = match self.grid {
            Some(folder) => scenario_files(folder)?.iter().map(|file| Loaded::read(file, overrides())).collect(),
            None => {
                let ready = if self.wavering { builtin::WAVERING } else { builtin::FRONTIER };
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
}

impl Compared {
    fn is_empty(&self) -> bool {
        self.comparison.frontiers.iter().all(|frontier| frontier.cells.is_empty())
    }

    /// Nothing was finished.
    pub fn is_nothing(&self) -> bool {
        self.is_empty() && self.comparison.missing > 0
    }

    /// The standings as a table.
    pub fn text(&self) -> String {
        text(&self.comparison)
    }

    /// The whole document.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&self.comparison).unwrap_or_default() + "\n"
    }

    /// The rows of the document as CSV.
    pub fn csv(&self) -> String {
        csv(&self.comparison)
    }

    /// Each scheduler's distance from the best by kind of paths and application, as SVG.
    pub fn picture(&self) -> String {
        picture(&self.comparison)
    }

    /// The table of this name, one of [`Request::sections`].
    pub fn section(&self, name: &str) -> String {
        match name {
            "frontier-cells" => cells(&self.comparison),
            "first-path" => first_path(&self.opened),
            "room" => self.room.as_ref().map(room).unwrap_or_default(),
            _ => standings(&self.comparison),
        }
    }

    fn keep(&self, folder: &Path) -> Result<(), Failure> {
        let folder = Folder::make(folder)?;
        folder.write("frontier.json", self.json())?;
        folder.write("frontier.csv", csv(&self.comparison))?;
        folder.write("frontier.svg", picture(&self.comparison))?;
        let pages = standings(&self.comparison) + &cells(&self.comparison);
        folder.write("frontier.md", pages)?;
        let pretty = |value: Result<String, serde_json::Error>| value.unwrap_or_default() + "\n";
        if !self.opened.is_empty() {
            folder.write("first-path.json", pretty(serde_json::to_string_pretty(&self.opened)))?;
            folder.write("first-path.md", first_path(&self.opened))?;
        }
        if let Some(found) = &self.room {
            folder.write("room.json", pretty(serde_json::to_string_pretty(found)))?;
            folder.write("room.csv", room_csv(found))?;
            folder.write("room.md", room(found))?;
        }
        Ok(())
    }
}

/// The grid, then the requested additions, with the first congestion control.
fn runs(
    request: &Request<'_>,
    grid: &Grid,
    driver: &dyn Driver,
    (pool, watch): (&dyn Pool, &Watch<'_>),
) -> (Compared, Option<anabranch_run::Failure>) {
    let (comparison, ended) = grid.run(driver, pool, watch);
    let mut found = Compared { comparison, opened: Vec::new(), room: None };
    let Some((frontier, congestion)) = found.comparison.frontiers.first().zip(grid.congestions.first()) else {
        return (found, ended);
    };
    if ended.is_some() {
        return (found, ended);
    }
    if request.first_path {
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
    if request.room {
        let cells = (frontier, &grid.path_sets[..], congestion);
        let (room, ended) = Room::run(cells, &grid.schedulers, (driver, pool, watch));
        found.room = room;
        return (found, ended);
    }
    (found, None)
}

/// Why the grid was not finished.
fn why(failure: &anabranch_run::Failure, watch: &Watch<'_>, kept: Salvage) -> Failure {
    match failure.error {
        RunError::Interrupted => {
            let what = format!("interrupted {}: {}", watch.progress_so_far(), failure.run);
            Failure::interrupted(&what, kept)
        }
        _ => Failure::failed("anabranch::run::failed", failure.to_string()),
    }
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
