//! Papers' tables and figures, run again and judged claim by claim.

use crate::artifacts::{Machine, command_line};
use crate::drivers::Drivers;
use crate::failure::{Failure, Salvage};
use crate::folder::Folder;
use crate::kept::Kept;
use crate::load::Loaded;
use crate::making::Repetitions;
use crate::out_folder::{OutFolder, Owner};
use crate::papers::{self, Source};
use crate::progress::Progress;
use crate::results_folder::{self, PAGE, make_report};
use crate::runs_csv::runs_csv;
use crate::stage::{Carried, Stage, carry_out};
use crate::watch::Wanted;
use anabranch_report::of_reproduction::{
    self, Around, CLAIMS_CSV, claims_csv, picture, picture_name, screens_markdown, summary_markdown, text,
};
use anabranch_reproduce::{Asked, Item, PaperOutcome, Part, Ran, Reproduction, conclude, example, parts, weigh};
use anabranch_run::{Plan, Results};
use anabranch_scenario::Override;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Packets of a run that its report shows.
const PACKETS: usize = 2000;

/// An item with what it runs and where its runs are kept.
struct Work<'a> {
    item: &'a Item,
    scenario: &'a str,
    parts: Vec<Part<'a>>,
    /// The runs whose packets are shown.
    example: Option<Plan>,
    kept: &'a Kept<'a>,
    /// `blest-table4`.
    name: String,
}

/// A reproduction to make.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// A paper's key, `all`, or a folder with a `claims.toml`, as [`papers::find`] takes it.
    pub paper: &'a Path,
    /// One of its items; all of them if `None`.
    pub item: Option<&'a str>,
    /// Also run items in real time.
    pub live: bool,
    /// Three seeds, shorter runs, only the reading as written.
    pub quick: bool,
    /// Also run the readings that the baselines do not admit.
    pub readings: bool,
    /// Repetitions; `None` = the papers'.
    pub repeat: Option<Repetitions>,
    /// Threads; one per core if `None`.
    pub jobs: Option<NonZeroUsize>,
    /// Directory of results, report and finished runs.
    pub out: &'a Path,
    /// Replace the results of a scenario there.
    pub force: bool,
}

/// The outcome of a reproduction, perhaps of a part.
pub struct Ended {
    /// The items that are finished.
    pub reproduction: Reproduction,
    /// All items are finished.
    pub is_whole: bool,
    /// The report, if it was written.
    pub page: Option<PathBuf>,
    /// Everything that went wrong.
    pub wrong: Vec<Failure>,
}

impl Ended {
    /// The verdicts in lines of at most `width` columns.
    pub fn text(&self, width: u16) -> String {
        let last = match &self.page {
            _ if !self.is_whole => INCOMPLETE.to_owned(),
            Some(page) => format!("The report: {}", page.display()),
            None => "The report could not be written.".into(),
        };
        format!("{}\n{last}\n", text(&self.reproduction, width))
    }

    /// The whole document.
    pub fn json(&self) -> String {
        json(&self.reproduction)
    }

    /// A table for a document: the verdicts of each paper counted, or every claim.
    pub fn section(&self, name: &str) -> String {
        match name {
            SUMMARY => summary_markdown(&self.reproduction),
            _ => screens_markdown(&self.reproduction),
        }
    }

    /// The claims in every reading, as CSV and pictures, into `folder`.
    pub fn write_beside(&self, folder: &Folder) -> Result<(), Failure> {
        write_beside(&self.reproduction, folder)
    }
}

/// Runs papers, or an item of one. `papers` are those of the request.
///
/// # Errors
/// The request names no item; the directory has other results; the drivers lack something.
pub fn reproduce(
    papers: &[Source],
    request: &Request<'_>,
    drivers: &Drivers<'_>,
    progress: &dyn Progress,
) -> Result<Ended, Failure> {
    let items: Vec<Vec<&Item>> = papers.iter().map(|paper| chosen(paper, request)).collect::<Result<_, _>>()?;
    let out = OutFolder::claim(request.out, &Owner::Reproduction, request.force)?;
    let journals = Journals::open(request, drivers)?;
    let mut works: Vec<Vec<Work<'_>>> = Vec::new();
    for (source, items) in papers.iter().zip(items) {
        works.push(items.into_iter().map(|item| work(source, item, request, &journals)).collect::<Result<_, _>>()?);
    }
    let begun = Instant::now();
    let (ran, mut wrong) = run(&works, request, progress)?;
    wrong.extend(journals.failures());
    let is_whole = ran.len() == works.iter().flatten().count();
    let mut found = Reproduced::of(&ran, papers, &works, request.quick);
    let mut page = None;
    if is_whole {
        for work in works.iter().flatten() {
            wrong.extend(work.follow_packets(out.timeline(), drivers, progress)?);
        }
        match found.write(out, begun.elapsed(), progress) {
            Ok(written) => page = Some(written),
            Err(failure) => wrong.push(failure),
        }
    } else {
        found.reproduction.papers.retain(|paper| !paper.items.is_empty());
    }
    Ok(Ended { reproduction: found.reproduction, is_whole, page, wrong })
}

/// The runs of an item: as written, then of each reading.
struct ItemRuns {
    main: Results,
    readings: Vec<ReadingRuns>,
}

/// The runs of one reading.
#[derive(Default)]
struct ReadingRuns {
    baselines: Option<Results>,
    whole: Option<Results>,
}

/// Runs every item as written and the baselines of its readings; then, wholly, the readings that these admit. Answers for the
/// items that are finished, from the first on.
fn run(
    works: &[Vec<Work<'_>>],
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<(Vec<ItemRuns>, Vec<Failure>), Failure> {
    let works: Vec<&Work<'_>> = works.iter().flatten().collect();
    let stages: Vec<Stage<'_>> = works.iter().flat_map(|work| work.first(request.jobs)).collect();
    let Carried { results, mut wrong, .. } = carry_out(&stages, Wanted::default(), progress)?;
    let mut results = results.into_iter();
    let mut ran: Vec<ItemRuns> = works.iter().map_while(|work| work.take_first(&mut results)).collect();
    let further: Vec<Vec<usize>> =
        works.iter().zip(&ran).map(|(work, ran)| work.further(ran, request.readings)).collect();
    let stages = works.iter().zip(&further).flat_map(|(work, further)| work.whole(further, request.jobs));
    if ran.len() < works.len() {
        ran.truncate(further.iter().take_while(|further| further.is_empty()).count());
        return Ok((ran, wrong));
    }
    let carried = carry_out(&stages.collect::<Vec<_>>(), Wanted::default(), progress)?;
    wrong.extend(carried.wrong);
    let mut results = carried.results.into_iter();
    let mut done = 0;
    for (ran, further) in ran.iter_mut().zip(&further) {
        for &n in further {
            ran.readings[n].whole = results.next();
        }
        if further.iter().any(|&n| ran.readings[n].whole.is_none()) {
            break;
        }
        done += 1;
    }
    ran.truncate(done);
    Ok((ran, wrong))
}

/// The last line where items are missing.
const INCOMPLETE: &str = "Incomplete: the other items were not finished; nothing is written.";

/// The outcomes of finished items.
struct Reproduced {
    reproduction: Reproduction,
    /// The runs of each item: its name and a table.
    runs: Vec<(String, String)>,
    seeds: BTreeSet<u64>,
}

impl Reproduced {
    /// `ran` are the first of `works`, perhaps all.
    fn of(ran: &[ItemRuns], papers: &[Source], works: &[Vec<Work<'_>>], quick: bool) -> Self {
        let (mut ran, mut runs, mut seeds) = (ran.iter(), Vec::new(), BTreeSet::new());
        let mut outcomes = Vec::new();
        for (source, works) in papers.iter().zip(works) {
            let mut items = Vec::new();
            for (work, own) in works.iter().zip(ran.by_ref().take(works.len())) {
                seeds.extend(own.main.runs.seeds());
                runs.push((work.name.clone(), runs_csv(&own.main)));
                let readings: Vec<Ran<'_>> = own.readings.iter().map(ReadingRuns::ran).collect();
                items.push(conclude(work.item, work.scenario, &own.main, &readings));
            }
            outcomes.push(PaperOutcome::new(&source.paper, items));
        }
        let anabranch = env!("CARGO_PKG_VERSION").to_owned();
        Self { reproduction: Reproduction { anabranch, quick, papers: outcomes }, runs, seeds }
    }

    /// Writes all and the report, whose page it names. The work took `wall_time`.
    fn write(&self, out: OutFolder, wall_time: Duration, progress: &dyn Progress) -> Result<PathBuf, Failure> {
        let beside = Folder::make(out.beside())?;
        let runs = beside.make_inner("runs")?;
        self.runs.iter().try_for_each(|(name, table)| runs.write(format!("{name}.csv"), table))?;
        beside.write("reproduction.json", json(&self.reproduction))?;
        write_beside(&self.reproduction, &beside)?;
        let around = around(self.seeds.iter().copied().collect(), wall_time);
        let report = of_reproduction::report(&self.reproduction, around);
        // Strings and finite numbers only: this cannot fail.
        beside.write("report.json", serde_json::to_string(&report).unwrap_or_default() + "\n")?;
        make_report(out.beside(), None, progress)?;
        Ok(out.take()?.join(PAGE))
    }
}

fn json(reproduction: &Reproduction) -> String {
    serde_json::to_string_pretty(reproduction).unwrap_or_default() + "\n"
}

fn write_beside(reproduction: &Reproduction, folder: &Folder) -> Result<(), Failure> {
    folder.write(CLAIMS_CSV, claims_csv(reproduction))?;
    reproduction.papers.iter().try_for_each(|paper| folder.write(picture_name(paper), picture(paper)))
}

/// How the runs came about, which took `wall_time`.
fn around(seeds: Vec<u64>, wall_time: Duration) -> Around {
    let command = command_line().join(" ");
    let wall_time = format!("{:.1} s, without runs that were kept from before", wall_time.as_secs_f64());
    let settings = [("command", command), ("wall time", wall_time), ("machine", Machine::here().to_string())];
    Around {
        made_by: results_folder::made_by(),
        settings: settings.map(|(key, value)| (key.to_owned(), value)).to_vec(),
        seeds,
        schedulers: results_folder::scheduler_names(),
    }
}

/// Name of the table that counts the verdicts of each paper.
pub const SUMMARY: &str = "reproduction summary";
/// Name of the table of every claim.
pub const CLAIMS: &str = "reproduction";

/// The item that is named, or all that may be run.
fn chosen<'a>(source: &'a Source, request: &Request<'_>) -> Result<Vec<&'a Item>, Failure> {
    let Some(id) = request.item else {
        return Ok(source.paper.items.iter().filter(|item| request.live || !item.live).collect());
    };
    if papers::are_all(request.paper) {
        let help = format!("name the paper: anabranch reproduce PAPER {id}");
        return Err(Failure::unusable("anabranch::cli::usage", "an item belongs to one paper", Some(help)));
    }
    let item = source.item(id)?;
    if item.live && !request.live {
        let message = format!("`{id}` has a kernel at the receiving end and runs in real time");
        let help = format!("anabranch reproduce {} {id} --live", request.paper.display());
        return Err(Failure::unusable("anabranch::cli::usage", message, Some(help)));
    }
    Ok(vec![item])
}

/// Where the runs are kept, those of all items together: some items share runs.
struct Journals<'a> {
    virtual_time: Kept<'a>,
    /// The journal of live items, if these may run.
    real_time: Option<Kept<'a>>,
}

impl<'a> Journals<'a> {
    fn open(request: &Request<'_>, drivers: &Drivers<'a>) -> Result<Self, Failure> {
        let real_time = || Kept::in_folder(request.out, drivers.real_time, true);
        let virtual_time = Kept::in_folder(request.out, drivers.virtual_time, false)?;
        Ok(Self { virtual_time, real_time: request.live.then(real_time).transpose()? })
    }

    fn of(&self, item: &Item) -> &Kept<'a> {
        self.real_time.as_ref().filter(|_| item.live).unwrap_or(&self.virtual_time)
    }

    fn failures(&self) -> impl Iterator<Item = Failure> {
        std::iter::once(&self.virtual_time).chain(&self.real_time).filter_map(Kept::failure)
    }
}

fn work<'a>(
    source: &'a Source,
    item: &'a Item,
    request: &Request<'_>,
    journals: &'a Journals<'_>,
) -> Result<Work<'a>, Failure> {
    let asked = Asked {
        quick: request.quick,
        auto: request.repeat == Some(Repetitions::Auto),
        overrides: match request.repeat {
            Some(Repetitions::Count(count)) => vec![Override::new("--repeat", "repeat", count.to_string())],
            _ => Vec::new(),
        },
    };
    let scenario = source.scenario(&item.scenario)?;
    let file = format!("{}/{}", source.folder, item.scenario);
    let mut read = |overrides| Loaded::given(&file, scenario, overrides).map(|loaded| loaded.document);
    let parts = parts(item, &asked, &mut read)?;
    let example = example(item, &asked, &mut read)?;
    let name = format!("{}-{}", source.paper.key, item.id);
    Ok(Work { item, scenario, parts, example, kept: journals.of(item), name })
}

impl Work<'_> {
    /// Runs what is shown packet by packet: kept outcomes have no packets. Says what went wrong; the verdicts do not need it.
    fn follow_packets(
        &self,
        folder: PathBuf,
        drivers: &Drivers<'_>,
        progress: &dyn Progress,
    ) -> Result<Vec<Failure>, Failure> {
        let Some(plan) = self.example.clone() else { return Ok(Vec::new()) };
        let timeline = Some((folder, PACKETS));
        let wanted = Wanted { timeline, prefix: format!("{}-", self.name), ..Wanted::default() };
        let (driver, name) = (drivers.virtual_time, format!("{}: ", self.name));
        let stage =
            Stage { plan, driver, real_time: false, jobs: None, name, kept: Salvage::Kept, folder: None, order: None };
        Ok(carry_out(&[stage], wanted, progress)?.wrong)
    }

    /// As written, and the baselines of the readings.
    fn first(&self, jobs: Option<NonZeroUsize>) -> Vec<Stage<'_>> {
        let main = self.parts.first().map(|part| &part.whole);
        let baselines = self.parts.iter().skip(1).filter_map(|part| part.baselines.as_ref());
        main.into_iter().chain(baselines).map(|plan| self.stage(plan, jobs)).collect()
    }

    /// The results of the stages of `first`, from the next of `results`; `None` if some are missing.
    fn take_first(&self, results: &mut impl Iterator<Item = Results>) -> Option<ItemRuns> {
        let main = results.next()?;
        let mut readings = Vec::new();
        for part in &self.parts[1..] {
            let baselines = match part.baselines {
                Some(_) => Some(results.next()?),
                None => None,
            };
            readings.push(ReadingRuns { baselines, whole: None });
        }
        Some(ItemRuns { main, readings })
    }

    /// The readings that are to be run wholly, by their places: all, or those that are admissible.
    fn further(&self, ran: &ItemRuns, all: bool) -> Vec<usize> {
        let readings = ran.readings.iter().map(|reading| reading.ran().runs());
        let runs: Vec<_> = std::iter::once(Some(ran.main.runs.to_vec())).chain(readings).collect();
        let weighed = weigh(self.item, &runs.iter().map(Option::as_deref).collect::<Vec<_>>());
        (0..ran.readings.len()).filter(|n| all || weighed[n + 1].admissible).collect()
    }

    /// These readings, every row.
    fn whole(&self, readings: &[usize], jobs: Option<NonZeroUsize>) -> Vec<Stage<'_>> {
        readings.iter().map(|n| self.stage(&self.parts[n + 1].whole, jobs)).collect()
    }

    fn stage(&self, plan: &Plan, jobs: Option<NonZeroUsize>) -> Stage<'_> {
        Stage {
            plan: plan.clone(),
            driver: self.kept,
            real_time: self.item.live,
            // Runs that follow the clock disturb each other where they share the machine.
            jobs: if self.item.live { NonZeroUsize::new(1) } else { jobs },
            name: format!("{}: ", self.name),
            kept: Salvage::Kept,
            folder: None,
            order: None,
        }
    }
}

impl ReadingRuns {
    fn ran(&self) -> Ran<'_> {
        Ran { baselines: self.baselines.as_ref(), whole: self.whole.as_ref() }
    }
}
