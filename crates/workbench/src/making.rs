//! The runs of a scenario, with everything that `--out` keeps of them.

use crate::artifacts;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::kept::{Kept, salvage, through};
use crate::load::Loaded;
use crate::out_folder::{OutFolder, Owner};
use crate::progress::Progress;
use crate::results_folder::{PAGE, make_run_report};
use crate::shard::refuse_shard;
use crate::stage::{Carried, Stage, carry_out};
use crate::watch::Wanted;
use anabranch_run::{Driver, Options, Plan, Results};
use anabranch_scenario::{Scenario, Traffic};
use anabranch_units::ConnId;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Packets that timelines follow unless the user says otherwise.
const PACKETS: usize = 20_000;

/// How often each row is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetitions {
    /// So many seeds.
    Count(u32),
    /// As many as the interval needs.
    Auto,
}

/// Where the files of results go, and what is in them.
#[derive(Clone, Copy, Debug)]
pub struct Filing<'a> {
    /// The directory; `None` = no files.
    pub out: Option<&'a Path>,
    /// Replace the results of another scenario there.
    pub force: bool,
    /// Packets that timelines follow; `None` = as usual.
    pub timeline: Option<usize>,
    /// Packets of each timeline in the report; `None` = as usual.
    pub packets: Option<usize>,
    /// The connection that series and timelines follow, counted from 1.
    pub connection: NonZeroU32,
    /// Threads; `None` = one per core, or one for runs in real time.
    pub jobs: Option<NonZeroUsize>,
}

impl Default for Filing<'_> {
    fn default() -> Self {
        let (timeline, packets) = (None, None);
        Self { out: None, force: false, timeline, packets, connection: NonZeroU32::MIN, jobs: None }
    }
}

/// Results with their files.
pub struct Made {
    /// Results, perhaps of a part of the runs.
    pub results: Results,
    /// The report, if it was written.
    pub page: Option<PathBuf>,
    /// The errors of files that could not be written, and of runs that ended early.
    pub wrong: Vec<Failure>,
}

/// The maker of runs.
#[derive(Clone, Copy)]
pub enum Making<'a> {
    /// A driver whose runs a journal keeps, so that an interrupted command continues.
    Kept(&'a dyn Driver),
    /// Networks that change: the runs of each repetition come in a random order with this seed, and those of an earlier command
    /// cannot be continued.
    Changing(&'a dyn Driver, u64),
}

/// Plans, runs, and writes the files of `filing`.
///
/// # Errors
/// There are no results.
pub fn execute(
    (loaded, options): (&Loaded, &Options),
    filing: &Filing<'_>,
    mut wanted: Wanted,
    making: Making<'_>,
    progress: &dyn Progress,
) -> Result<Made, Failure> {
    let clock = Instant::now();
    wanted.connection = followed(loaded, filing.connection.get())?;
    refuse_shard(filing.out)?;
    let owner = Owner::of(&loaded.source);
    let out = filing.out.map(|folder| OutFolder::claim(folder, &owner, filing.force)).transpose()?;
    let plan = Plan::new(&loaded.variants(), options);
    // Those of each cell would be most of what a sweep writes.
    let unless_given = (!plan.is_sweep()).then_some(PACKETS).max(filing.packets.filter(|packets| *packets > 0));
    let timeline = filing.timeline.or(unless_given);
    wanted.series = out.as_ref().filter(|_| timeline.is_some()).map(OutFolder::series);
    wanted.timeline = out.as_ref().zip(timeline.filter(|packets| *packets > 0)).map(|(out, n)| (out.timeline(), n));
    // Runs that follow the clock disturb each other where they share the machine: only if asked.
    let jobs = filing.jobs.or(NonZeroUsize::new(1).filter(|_| options.real_time));
    let (driver, folder, order) = match making {
        Making::Kept(driver) => (driver, filing.out, None),
        Making::Changing(driver, seed) => (driver, None, Some(seed)),
    };
    let journal = Kept::in_out(folder, driver, options.real_time)?;
    let (driver, kept) = (through(journal.as_ref(), driver), salvage(journal.as_ref()));
    let folder = out.as_ref().map(|out| out.beside().to_owned());
    let stage = Stage { plan, driver, real_time: options.real_time, jobs, name: String::new(), kept, folder, order };
    let Carried { mut results, part, mut wrong } = carry_out(&[stage], wanted, progress)?;
    let Some(results) = results.pop().or(part) else { return Err(wrong.remove(0)) };
    // Whole results of an earlier command do not give way to a part.
    let out = out.filter(|out| results.incomplete.is_none() || out.is_free());
    let keep = |out: OutFolder| {
        artifacts::write(&Folder::make(out.beside())?, (loaded, options), &results, clock.elapsed())?;
        make_run_report(out.beside(), &results, filing.packets, progress)?;
        Ok(out.take()?.join(PAGE))
    };
    let page = out.map(keep).transpose().unwrap_or_else(|failure| {
        wrong.push(failure);
        None
    });
    journal.into_iter().for_each(|journal| journal.close(&mut wrong));
    Ok(Made { results, page, wrong })
}

/// The connection that its number names, counted from 1, if every cell has one.
fn followed(loaded: &Loaded, number: u32) -> Result<ConnId, Failure> {
    let count = |scenario: &Scenario| scenario.traffic.iter().map(Traffic::connections).sum::<u32>();
    let fewest = loaded.document.cells.iter().map(|(_, scenario)| count(scenario)).min().unwrap_or(1);
    if number > fewest {
        let message = format!("--connection {number}: there is no such connection");
        let help = if fewest == 1 { "there is one".to_owned() } else { format!("there are {fewest}") };
        return Err(Failure::unusable("anabranch::cli::usage", message, Some(help)));
    }
    Ok(ConnId(number - 1))
}
